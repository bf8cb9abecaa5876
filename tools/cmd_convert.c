/* cudamem convert: between formats.  Uses format, render, and analyze for the state of a moment. */
#include "analyze/replay.h"
#include "format/format.h"
#include "format/slice.h"
#include "render/torch_text.h"
#include "tools/command.h"
#include "tools/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option_spec convert_options[] = {
    {"to", 0, "FORMAT", OPTION_CHOICE, "what to write", "bin|pickle|json|csv|folded"},
    {"view", 0, "VIEW", OPTION_CHOICE, "folded: segments or memory; csv: entries, segments or blocks",
     "segments|memory|entries|blocks"},
    {"entries", 0, "A..B", OPTION_SELECTION, "only these trace entries, and the state after them"},
    OPTIONS_OUTPUT,
    OPTIONS_INPUT,
    OPTIONS_END,
};

/* What to write, checked; folded lines are a view of their own, not a format of src/format. */
struct conversion {
    const struct format *format; /* NULL: folded */
    enum flame_view flame;
    struct format_write_options options;
};

static int choose(struct command_line *line, struct conversion *conversion)
{
    const char *to = options_text(line, "to"), *view = options_text(line, "view");
    if (!to)
        return command_usage(line->command, "say which format: --to bin, pickle, json, csv or folded");
    *conversion = (struct conversion){.format = format_by_name(to), .options = {.view = view}};
    bool folded = !conversion->format, csv = strcmp(to, "csv") == 0;
    bool is_memory = view && strcmp(view, "memory") == 0, is_segments = view && strcmp(view, "segments") == 0;
    conversion->flame = is_memory ? FLAME_MEMORY : FLAME_SEGMENTS;
    if (view && (folded ? !is_memory && !is_segments : csv ? is_memory : true))
        return command_usage(line->command, "--to %s has no view '%s'", to, view);
    return EXIT_DONE;
}

/* snapshot.pickle.gz -> snapshot.bin, beside it.  NULL: no memory. */
static char *default_name(const char *file, const char *suffix)
{
    static const char *const known[] = {".gz", ".bin", ".pickle", ".pkl", ".ring", ".csv"};
    const char *slash = strrchr(file, '/');
    size_t start = slash ? (size_t)(slash + 1 - file) : 0, length = strlen(file);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t size = strlen(known[i]);
        if (length > start + size && memcmp(file + length - size, known[i], size) == 0)
            length -= size;
    }
    char *name;
    return asprintf(&name, "%.*s%s", (int)length, file, suffix) < 0 ? NULL : name;
}

/* Only the entries asked for: up to the moment, and of --entries; with the blocks as they were, if a replay knows. */
static int cut(struct load *load, struct error *err)
{
    uint64_t count = load->snapshot->entries.count, first = 0, last = load->has_moment ? load->moment : count;
    if (load->is_part)
        return replay_mend_end(load->snapshot, err);
    if (load->selection.has_entries) {
        first = load->selection.first_entry;
        last = load->selection.last_entry < last ? load->selection.last_entry : last;
    }
    first = first < last ? first : last;
    if (first == 0 && last == count)
        return STATUS_OK;
    int status = slice_entries(load->snapshot, first, last, NULL, false, err);
    return status ? status : replay_mend_end(load->snapshot, err);
}

static int write_it(const struct conversion *conversion, const struct load *load, struct output *output)
{
    struct error err = {0};
    int status;
    if (conversion->format)
        status = format_write(load->snapshot, conversion->format->name, &conversion->options, output, &err);
    else
        status = torch_text_folded(load->snapshot, &load->snapshot->end, conversion->flame, output, &err);
    return status ? command_error(load->file, &err) : EXIT_DONE;
}

/* A file is made beside the input where nobody said where to; it replaces nothing then. */
static int open_output(struct command_line *line, const struct conversion *conversion, const struct load *load,
                       char **name, struct output **output)
{
    bool binary = conversion->format && conversion->format->is_binary;
    *name = NULL;
    if (binary && !options_has(line, "output") && strcmp(load->file, "-") != 0) {
        *name = default_name(load->file, conversion->format->suffix);
        if (!*name) {
            struct error err = {0};
            error_no_memory(&err);
            return command_error(NULL, &err);
        }
        if (access(*name, F_OK) == 0)
            return command_usage(line->command, "%s exists already; name the output with -o FILE", *name);
    }
    return command_open_output(line, binary ? CONTENT_BINARY : CONTENT_TEXT, *name, output);
}

static int convert_run(struct command_line *line)
{
    struct conversion conversion;
    struct error err = {0};
    struct load load;
    struct output *output;
    char *name;
    int status = choose(line, &conversion);
    if (status || (status = load_open(line, line->arguments[0], LOAD_SLICE, &load)))
        return status;
    if (cut(&load, &err)) {
        status = command_error(load.file, &err);
        load_close(&load);
        return status;
    }
    status = open_output(line, &conversion, &load, &name, &output);
    if (!status) {
        status = write_it(&conversion, &load, output);
        if (status)
            output_abandon(output);
        else
            status = command_close_output(output, EXIT_DONE);
        if (!status && name)
            command_note("wrote %s", name);
    }
    free(name);
    load_close(&load);
    return status;
}

const struct command command_convert = {
    .name = "convert",
    .summary = "write a snapshot in another format",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = convert_options,
    .run = convert_run,
};
