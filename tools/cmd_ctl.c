/* cudamem ctl: talk to a program that is being recorded, through its ring file.  Uses record/control, render and
 * tools/ring_snapshot.h. */
#include "base/text.h"
#include "format/format.h"
#include "record/control.h"
#include "tools/command.h"
#include "tools/live_ring.h"
#include "tools/ring_snapshot.h"
#include "tools/torch_history.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CTL_TRIES 200  /* to find the statistics at rest */
#define CTL_NAMES 100000

static const struct option_spec ctl_options[] = {
    {"fresh", 0, NULL, OPTION_FLAG, "with resume: forget what was recorded until now"},
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

static int say_error(int64_t pid, const struct error *err)
{
    char process[32];
    snprintf(process, sizeof(process), "process %" PRId64, pid);
    return command_error(process, err);
}

/* What was set reached a process that could still see it. */
static int end_of_change(const struct live_ring *ring, const char *what)
{
    struct error err = {0};
    if (!live_ring_runs(ring)) {
        error_set(&err, STATUS_INPUT, "it has ended meanwhile");
        return say_error(ring->pid, &err);
    }
    command_note("process %" PRId64 " %s", ring->pid, what);
    return EXIT_DONE;
}

/* --- snapshot ----------------------------------------------------------------------------------------------------- */

/* The recording's own name with the first number that is free, in this folder; the file is there then, and empty. */
static char *free_name(const struct snapshot *snapshot, const char *output, struct error *err)
{
    const char *slash = strrchr(output, '/'), *pattern = slash ? slash + 1 : output;
    char word[16];
    for (int number = 1; number < CTL_NAMES; number++) {
        snprintf(word, sizeof(word), "%d", number);
        char *name = ring_snapshot_name(snapshot, *pattern ? pattern : "snapshot.bin", false, word);
        int fd = name ? open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        if (fd >= 0) {
            close(fd);
            return name;
        }
        int error = name ? errno : ENOMEM;
        if (error == EEXIST) {
            free(name);
            continue;
        }
        error_set(err, error == ENOMEM ? STATUS_NO_MEMORY : STATUS_OUTPUT, "%s: %s", name ? name : "", strerror(error));
        free(name);
        return NULL;
    }
    error_set(err, STATUS_OUTPUT, "no name is free; -o FILE names one");
    return NULL;
}

static int write_named(const struct command_line *line, const struct live_ring *ring, const struct snapshot *snapshot)
{
    struct error err = {0};
    struct output *output = NULL;
    const char *given = options_text(line, "output");
    char *name = given ? strdup(given) : free_name(snapshot, ring->header->output, &err);
    if (!name)
        return command_error(NULL, &err);
    int status = command_open_output(line, CONTENT_BINARY, name, &output);
    if (!status && format_write(snapshot, "bin", NULL, output, &err)) {
        output_abandon(output);
        status = command_error(NULL, &err);
    } else if (!status) {
        status = command_close_output(output, EXIT_DONE);
    }
    if (status && !given)
        unlink(name);
    else if (!status && strcmp(name, "-") != 0)
        command_note("wrote %s: %zu %s of process %" PRId64, name, snapshot->entries.count,
                     snapshot->entries.count == 1 ? "entry" : "entries", ring->pid);
    free(name);
    return status;
}

static int ctl_snapshot(struct command_line *line, struct live_ring *ring)
{
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    if (ring_snapshot_read(ring->path, &snapshot, &err)) {
        if (!live_ring_runs(ring))
            error_set(&err, STATUS_INPUT, "it has ended meanwhile");
        return say_error(ring->pid, &err);
    }
    if (torch_history_is_on(ring->path, ring->pid) && torch_history_ask(ring->path, ring->pid))
        torch_history_join(ring->path, ring->pid, "now", &snapshot);
    int status = write_named(line, ring, snapshot);
    snapshot_free(snapshot);
    return status;
}

/* --- pause, resume, mark ------------------------------------------------------------------------------------------ */

static int ctl_pause(struct command_line *line, struct live_ring *ring)
{
    (void)line;
    return end_of_change(ring, control_pause(ring->header, true) ? "is paused" : "is paused, as it was");
}

static int ctl_resume(struct command_line *line, struct live_ring *ring)
{
    bool is_fresh = options_has(line, "fresh");
    if (is_fresh)
        control_forget(ring->header);
    bool was_paused = control_pause(ring->header, false);
    return end_of_change(ring, is_fresh ? "is being recorded anew" : was_paused ? "is being recorded" : "is being recorded, as it was");
}

static int ctl_mark(struct command_line *line, struct live_ring *ring)
{
    const char *name = line->arguments[2];
    char what[sizeof(ring->header->marks[0].name) + 32];
    struct error err = {0};
    if (!control_mark(ring->header, name, strlen(name))) {
        error_set(&err, STATUS_INPUT, "all %d places for marks are taken", RING_MARKS);
        return say_error(ring->pid, &err);
    }
    snprintf(what, sizeof(what), "has the mark %s", name);
    return end_of_change(ring, what);
}

/* As @mark:NAME can say it. */
static int check_mark_name(struct command_line *line)
{
    const char *name = line->arguments[2];
    size_t length = strlen(name);
    struct text shown = {0};
    text_add_printable(&shown, name, length);
    bool is_plain = length > 0 && strcmp(text_string(&shown), name) == 0;
    text_free(&shown);
    if (!is_plain)
        return command_usage(line->command, "mark: a name in UTF-8, without control characters");
    if (length > CONTROL_MARK_NAME)
        return command_usage(line->command, "mark: a name of at most %zu bytes", CONTROL_MARK_NAME);
    return EXIT_DONE;
}

/* --- status ------------------------------------------------------------------------------------------------------- */

static const struct emitter_column ctl_devices[] = {
    {"device", NULL, EMITTER_NUMBER},        {"reserved", NULL, EMITTER_NUMBER}, {"peak_reserved", NULL, EMITTER_NUMBER},
    {"entries", NULL, EMITTER_NUMBER},       {"lost_entries", "lost", EMITTER_NUMBER}, {"name", NULL, EMITTER_STRING},
};
static const struct emitter_column ctl_marks[] = {
    {"events", NULL, EMITTER_NUMBER}, {"name", NULL, EMITTER_STRING},
};

struct look { /* what belongs together */
    struct ring_header header;
    struct ring_device devices[RING_DEVICES];
};

static void take_look(const struct live_ring *ring, struct look *look)
{
    const struct timespec pause = {0, 50000};
    for (int i = 0; i < CTL_TRIES; i++) {
        uint64_t before = __atomic_load_n(&ring->header->sequence, __ATOMIC_ACQUIRE);
        memcpy(&look->header, ring->header, sizeof(look->header));
        memcpy(look->devices, ring->devices, sizeof(look->devices));
        if (!look->header.lock && !__atomic_load_n(&ring->header->lock, __ATOMIC_ACQUIRE) &&
            __atomic_load_n(&ring->header->sequence, __ATOMIC_ACQUIRE) == before)
            break;
        nanosleep(&pause, NULL);
    }
    look->header.program[sizeof(look->header.program) - 1] = 0;
    look->header.output[sizeof(look->header.output) - 1] = 0;
}

static uint64_t lost_of(const struct look *look, const struct ring_device *device)
{
    uint64_t most = look->header.max_entries;
    return device->ring_failed + (device->head > most ? device->head - most : device->dropped);
}

static void devices_out(struct emitter *emitter, const struct look *look)
{
    emitter_begin_table(emitter, "devices", "", ctl_devices, sizeof(ctl_devices) / sizeof(ctl_devices[0]));
    for (unsigned i = 0; i < RING_DEVICES; i++) {
        const struct ring_device *device = &look->devices[i];
        const struct ring_stat *bytes = &device->stats[RING_BYTES][RING_ALL];
        if (!device->head && !device->known && !bytes->allocated)
            continue;
        char name[sizeof(device->name) + 1] = {0};
        memcpy(name, device->name, sizeof(device->name));
        emitter_row(emitter);
        emitter_count(emitter, NULL, i);
        emitter_size(emitter, NULL, (uint64_t)(bytes->current > 0 ? bytes->current : 0));
        emitter_size(emitter, NULL, (uint64_t)(bytes->peak > 0 ? bytes->peak : 0));
        emitter_count(emitter, NULL, device->head);
        emitter_count(emitter, NULL, lost_of(look, device));
        emitter_text(emitter, NULL, device->known & RING_DEVICE_NAME ? name : NULL);
    }
    emitter_end(emitter);
}

static void marks_out(struct emitter *emitter, const struct look *look)
{
    emitter_begin_table(emitter, "marks", "marks", ctl_marks, sizeof(ctl_marks) / sizeof(ctl_marks[0]));
    for (uint32_t i = 0; i < RING_MARKS && i < look->header.mark_count; i++) {
        const struct ring_mark *mark = &look->header.marks[i];
        if (mark->state != RING_MARK_WHOLE)
            continue;
        emitter_row(emitter);
        emitter_count(emitter, NULL, mark->sequence);
        emitter_string(emitter, NULL, mark->name, strnlen(mark->name, sizeof(mark->name)));
    }
    emitter_end(emitter);
}

static void status_out(struct emitter *emitter, const struct live_ring *ring, const struct look *look, bool runs)
{
    const struct ring_header *header = &look->header;
    bool has_ended = !runs || (header->state & RING_FINISHED);
    emitter_text(emitter, "program", header->program);
    emitter_integer(emitter, "pid", ring->pid);
    if (header->rank >= 0)
        emitter_integer(emitter, "rank", header->rank);
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, "rank");
    emitter_text(emitter, "state", has_ended ? "finished" : header->paused ? "paused" : "recording");
    emitter_time(emitter, "start_time", header->start_time / 1000);
    emitter_count(emitter, "events", header->sequence);
    emitter_count(emitter, "while_paused", header->skipped_paused);
    emitter_text(emitter, "file", ring->path);
    devices_out(emitter, look);
    marks_out(emitter, look);
}

static int ctl_status(struct command_line *line, struct live_ring *ring)
{
    struct look *look = malloc(sizeof(*look));
    struct output *output;
    struct error err = {0};
    if (!look) {
        error_no_memory(&err);
        return command_error(NULL, &err);
    }
    take_look(ring, look);
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options options = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &options);
        if (emitter)
            status_out(emitter, ring, look, live_ring_runs(ring));
        status = command_finish(emitter, output, EXIT_DONE);
    }
    free(look);
    return status;
}

/* --- the words ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    size_t arguments;
    bool writes, tables, fresh; /* the options that go with it */
    int (*run)(struct command_line *line, struct live_ring *ring);
} ctl_words[] = {
    {"snapshot", 2, true, false, false, ctl_snapshot}, {"pause", 2, false, false, false, ctl_pause},
    {"resume", 2, false, false, true, ctl_resume},     {"mark", 3, false, false, false, ctl_mark},
    {"status", 2, true, true, false, ctl_status},
};
#define CTL_WORDS (sizeof(ctl_words) / sizeof(ctl_words[0]))

static size_t find_word(const char *word)
{
    size_t i = 0;
    while (i < CTL_WORDS && strcmp(ctl_words[i].word, word) != 0)
        i++;
    return i;
}

static int check_options(struct command_line *line, size_t word)
{
    static const char *const tables[] = {"json", "bytes", "color"};
    const char *name = ctl_words[word].word;
    if (options_has(line, "output") && !ctl_words[word].writes)
        return command_usage(line->command, "%s writes nothing: -o goes with snapshot and status", name);
    if (options_has(line, "fresh") && !ctl_words[word].fresh)
        return command_usage(line->command, "--fresh goes with resume");
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (options_has(line, tables[i]) && !ctl_words[word].tables)
            return command_usage(line->command, "--%s goes with status", tables[i]);
    return EXIT_DONE;
}

static int check_words(struct command_line *line, size_t word, int64_t *pid)
{
    char *end = NULL;
    errno = 0;
    *pid = isdigit((unsigned char)line->arguments[0][0]) ? strtoll(line->arguments[0], &end, 10) : 0;
    if (!end || *end || errno || *pid < 1 || *pid > INT32_MAX)
        return command_usage(line->command, "'%s' is no process number", line->arguments[0]);
    if (word == CTL_WORDS)
        return command_usage(line->command, "'%s' is none of snapshot, pause, resume, mark and status",
                             line->arguments[1]);
    if (line->argument_count < ctl_words[word].arguments)
        return command_usage(line->command, "mark: a name is missing");
    if (line->argument_count > ctl_words[word].arguments)
        return command_usage(line->command, "%s: '%s' is too much", ctl_words[word].word, line->arguments[2]);
    int status = check_options(line, word);
    return status || ctl_words[word].arguments < 3 ? status : check_mark_name(line);
}

static int ctl_run(struct command_line *line)
{
    struct live_ring ring;
    struct error err = {0};
    int64_t pid = 0;
    size_t word = find_word(line->arguments[1]);
    int status = check_words(line, word, &pid);
    if (status)
        return status;
    if (live_ring_open(pid, &ring, &err))
        return say_error(pid, &err);
    status = ctl_words[word].run(line, &ring);
    live_ring_close(&ring);
    return status;
}

const struct command command_ctl = {
    .name = "ctl",
    .summary = "talk to a program being recorded: snapshot, pause, resume, mark, status",
    .arguments = "PID snapshot|pause|resume|mark NAME|status",
    .least = 2,
    .most = 3,
    .options = ctl_options,
    .run = ctl_run,
};
