/* FILE[@MOMENT] opened for a command.  Uses format, symbol, analyze and snapshot. */
#include "tools/load.h"

#include "analyze/replay.h"
#include "format/format.h"
#include "snapshot/state.h"
#include "symbol/symbolize.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOAD_DEFAULT "snapshot.bin"
#define LOAD_SMALL ((off_t)1 << 20)   /* files up to this many bytes are read whole for a state, so that a replay knows its blocks */
#define LOAD_REPLAYED_MOST 4000000u   /* entries before a moment that are replayed for that: a second or two */

static const char *load_shown(const char *file)
{
    return strcmp(file, "-") ? file : "standard input";
}

/* Where the '@' of a moment stands, NULL if the whole argument is a file. */
static const char *load_split(const char *argument)
{
    struct stat about;
    const char *at = strstr(argument, "@mark:"); /* whose name may have one, too */
    at = at ? at : strrchr(argument, '@');
    if (!at || stat(argument, &about) == 0)
        return NULL;
    return at;
}

/* How many arguments are standard input, which can be read once. */
static size_t load_stdin_count(const struct command_line *line)
{
    size_t count = 0;
    for (size_t i = 0; i < line->argument_count; i++)
        count += strcmp(line->arguments[i], "-") == 0 || strncmp(line->arguments[i], "-@", 2) == 0;
    return count;
}

/* Fill file and moment_text from the argument; a moment that is none is a usage error if its file exists. */
static int load_name(const struct command_line *line, const char *argument, unsigned flags, struct load *load,
                     struct moment *moment)
{
    struct error err = {0};
    const char *at = argument ? load_split(argument) : NULL;
    size_t length = !argument ? 0 : at ? (size_t)(at - argument) : strlen(argument);
    load->file = length ? strndup(argument, length) : strdup(LOAD_DEFAULT);
    load->moment_text = strdup(at ? at + 1 : "end");
    load->has_moment = at != NULL;
    if (!load->file || !load->moment_text) {
        error_no_memory(&err);
        return command_error(NULL, &err);
    }
    if (at && moment_parse(at + 1, moment, &err)) {
        if (access(load->file, F_OK) && strcmp(load->file, "-")) { /* neither half is right: it is the file that lacks */
            error_set(&err, STATUS_INPUT, "no such file");
            return command_error(argument, &err);
        }
        return command_usage(line->command, "%s", err.message);
    }
    if (!at)
        moment->kind = MOMENT_END;
    if (!argument || !length) {
        if (access(LOAD_DEFAULT, F_OK)) {
            error_set(&err, STATUS_INPUT, "no such file here; name a snapshot, or make one: cudamem record PROGRAM");
            return command_error(LOAD_DEFAULT, &err);
        }
        command_note("reading %s", LOAD_DEFAULT);
    }
    if (flags & LOAD_NO_TRACES && moment->kind != MOMENT_END)
        return command_usage(line->command, "--no-traces leaves only the end to look at, not @%s", load->moment_text);
    if (strcmp(load->file, "-") == 0 && load_stdin_count(line) > 1)
        return command_usage(line->command, "standard input can be read only once; keep it in a file first");
    if (strcmp(load->file, "-") == 0 && isatty(STDIN_FILENO))
        return command_usage(line->command, "standard input is a terminal; name a file");
    return EXIT_DONE;
}

static bool load_needs_names(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->frame_count; i++)
        if ((snapshot->frames[i].flags & (FRAME_NATIVE | FRAME_SYMBOLIZED)) == FRAME_NATIVE)
            return true;
    return false;
}

/* Ring files hold bare program counters; snapshot.bin got its names when it was made. */
static bool load_is_ring(const char *file, uint64_t max_input)
{
    struct input *input;
    if (strcmp(file, "-") == 0 || input_open(file, max_input, &input, NULL))
        return false;
    const struct format *format = format_detect(input, NULL);
    bool is_ring = format && strcmp(format->name, "ring") == 0;
    input_close(input);
    return is_ring;
}

static int load_select(const struct command_line *line, struct load *load, struct error *err)
{
    for (size_t i = 0; i < line->given_count; i++) {
        const struct option_given *given = &line->given[i];
        if (given->spec->kind != OPTION_SELECTION)
            continue;
        int status = selection_set(&load->selection, given->spec->name, given->text, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/* Which entries the command looks at, where that can be said before the trace is seen. */
static void load_range(const struct moment *moment, unsigned flags, struct load *load, struct format_options *options)
{
    const struct selection *selection = &load->selection;
    uint64_t first = 0, last = UINT64_MAX;
    bool is_number = moment->kind == MOMENT_ENTRY && moment->number > 0;
    struct stat about;
    if (!(flags & (LOAD_STATE_ONLY | LOAD_SLICE)) || !(is_number || moment->kind == MOMENT_END))
        return;
    if (is_number && (flags & LOAD_STATE_ONLY) && stat(load->file, &about) == 0 && about.st_size <= LOAD_SMALL)
        return;
    if (is_number)
        last = moment->number;
    if (flags & LOAD_STATE_ONLY) {
        first = is_number ? last : 0;
    } else if (selection->has_entries) {
        if (is_number && last > selection->last_entry)
            return; /* whether the trace has the moment would not be seen */
        first = selection->first_entry;
        last = selection->last_entry < last ? selection->last_entry : last;
    }
    if (last == 0 || (first == 0 && last == UINT64_MAX))
        return;
    options->first_entry = first;
    options->last_entry = last;
    load->is_part = true;
}

static int load_read(const struct command_line *line, unsigned flags, const struct moment *moment, struct load *load,
                     struct error *err)
{
    struct format_options options = FORMAT_OPTIONS_ALL;
    struct error remark;
    options.max_input = options_number(line, "max-input", 0);
    options.skip_traces = load->is_part = (flags & LOAD_NO_TRACES) != 0;
    load_range(moment, flags, load, &options);
    char what[200];
    snprintf(what, sizeof(what), "reading %s", load_shown(load->file));
    progress_start(what, 0);
    int status = format_read(load->file, &options, &load->snapshot, err);
    if (!status && load_needs_names(load->snapshot) && load_is_ring(load->file, options.max_input))
        status = symbolize_snapshot(load->snapshot, NULL, &remark) == STATUS_NO_MEMORY ? error_no_memory(err) : STATUS_OK;
    progress_stop();
    return status;
}

static int load_moment(const struct moment *moment, unsigned flags, struct load *load, struct error *err)
{
    const struct snapshot *snapshot = load->snapshot;
    int device = load->selection.device < 0 ? MOMENT_ALL_DEVICES : load->selection.device;
    uint64_t read = snapshot->first_entry + snapshot->entries.count;
    if (load->is_part && moment->kind == MOMENT_ENTRY && moment->number > read)
        return error_set(err, STATUS_NOT_FOUND, "@#%" PRIu64 ": the trace has entries 0 to %" PRIu64, moment->number, read);
    int status = moment_resolve(snapshot, moment, device, &load->moment, err);
    if (status)
        return status;
    load->state = &snapshot->end;
    if (!(flags & LOAD_STATE) || load->moment == snapshot->entries.count)
        return STATUS_OK;
    status = state_at(snapshot, load->moment, &load->own_state, err);
    if (!status && !load->own_state.exact && !load->is_part && load->moment <= LOAD_REPLAYED_MOST)
        status = replay_mend_state(load->snapshot, &load->own_state, err);
    if (!status)
        load->state = &load->own_state;
    return status;
}

/* Who asks for a device that the file does not have gets nothing, and is told why. */
static void load_tell_device(const struct load *load)
{
    const struct snapshot *snapshot = load->snapshot;
    int device = load->selection.device;
    bool found = device < 0;
    for (size_t i = 0; !found && i < snapshot->device_count; i++)
        found = snapshot->devices[i].ordinal == device;
    for (size_t i = 0; !found && i < snapshot->end.segment_count; i++)
        found = snapshot->end.segments[i].device == device;
    for (size_t i = 0; !found && i < snapshot->entries.count; i++)
        found = snapshot->entries.device[i] == device;
    if (!found)
        command_note("%s has nothing of device %d", load_shown(load->file), device);
}

int load_open(const struct command_line *line, const char *argument, unsigned flags, struct load *load)
{
    struct error err = {0};
    struct moment moment = {0};
    memset(load, 0, sizeof(*load));
    selection_init(&load->selection);
    int exit_status = load_name(line, argument, flags, load, &moment);
    if (!exit_status) {
        int status = load_select(line, load, &err);
        if (!status)
            status = load_read(line, flags, &moment, load, &err);
        if (!status)
            status = selection_bind(&load->selection, load->snapshot, &err);
        if (!status)
            status = load_moment(&moment, flags, load, &err);
        if (status)
            exit_status = command_error(load_shown(load->file), &err);
        else
            load_tell_device(load);
    }
    if (exit_status)
        load_close(load);
    return exit_status;
}

void load_close(struct load *load)
{
    state_free(&load->own_state);
    selection_free(&load->selection);
    snapshot_free(load->snapshot);
    free(load->file);
    free(load->moment_text);
    memset(load, 0, sizeof(*load));
}

int load_one_process(const struct command_line *line, const struct load *load)
{
    if (load->snapshot->process_count < 2)
        return EXIT_DONE;
    return command_usage(line->command, "%s holds %zu processes, and this works on one: name the file of that one",
                         load_shown(load->file), load->snapshot->process_count);
}
