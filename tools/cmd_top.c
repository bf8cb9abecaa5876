/* cudamem top: what recorded programs hold now, live.  Uses render and the ring files (tools/top_view.h). */
#include "tools/command.h"
#include "tools/top_screen.h"
#include "tools/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOP_STACKS 5
#define TOP_MOST_STACKS 1000
#define TOP_LONGEST (24 * 3600)

static const struct option_spec top_options[] = {
    {"once", 0, NULL, OPTION_FLAG, "one look, then end (so it is where output is no terminal)"},
    {"interval", 0, "SECONDS", OPTION_NUMBER, "between two looks (default: 1)"},
    {"rows", 'n', "N", OPTION_NUMBER, "so many of the biggest stacks (default: 5)"},
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

static const struct emitter_column top_columns[] = {
    {"pid", NULL, EMITTER_NUMBER},        {"rank", NULL, EMITTER_NUMBER},
    {"device", NULL, EMITTER_NUMBER},     {"reserved", NULL, EMITTER_NUMBER},
    {"allocated", NULL, EMITTER_NUMBER},  {"peak_reserved", NULL, EMITTER_NUMBER},
    {"events", NULL, EMITTER_NUMBER},     {"events_per_second", "events/s", EMITTER_NUMBER},
    {"lost_entries", "lost", EMITTER_NUMBER}, {"state", NULL, EMITTER_STRING},
    {"program", NULL, EMITTER_STRING},
};

static const struct emitter_column top_stack_columns[] = {
    {"pid", NULL, EMITTER_NUMBER},    {"allocated", NULL, EMITTER_NUMBER},
    {"blocks", NULL, EMITTER_NUMBER}, {"where", "biggest stacks", EMITTER_STRING},
};

static const char *state_of(const struct top_process *process)
{
    if (process->facts.finished || !process->runs)
        return "ended";
    return process->facts.paused ? "paused" : "recording";
}

/* What living blocks hold of a device; where nobody tells of blocks, segments are. */
static uint64_t allocated_of(const struct snapshot *snapshot, uint16_t ordinal)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < snapshot->end.segment_count; i++) {
        const struct segment *segment = &snapshot->end.segments[i];
        if (segment->device == ordinal && segment->kind != MEMORY_HOST && segment->kind != MEMORY_IMPORTED)
            sum += segment->allocated_size;
    }
    return sum;
}

/* device NULL: it has none yet. */
static void row_out(struct emitter *emitter, const struct top_process *process, const struct device *device)
{
    const char *slash = strrchr(process->facts.program, '/');
    emitter_row(emitter);
    emitter_integer(emitter, NULL, process->facts.pid);
    if (process->facts.rank >= 0)
        emitter_integer(emitter, NULL, process->facts.rank);
    else
        emitter_absent(emitter, NULL);
    if (device) {
        const struct memory_stat *reserved = &device->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
        emitter_count(emitter, NULL, device->ordinal);
        emitter_size(emitter, NULL, (uint64_t)(reserved->current > 0 ? reserved->current : 0));
        emitter_size(emitter, NULL, allocated_of(process->snapshot, device->ordinal));
        emitter_size(emitter, NULL, (uint64_t)(reserved->peak > 0 ? reserved->peak : 0));
    } else {
        for (int i = 0; i < 4; i++)
            emitter_absent(emitter, NULL);
    }
    emitter_count(emitter, NULL, process->facts.events);
    emitter_count(emitter, NULL, (uint64_t)(process->rate + 0.5));
    emitter_count(emitter, NULL, device ? device->lost_entries : 0);
    emitter_text(emitter, NULL, state_of(process));
    emitter_text(emitter, NULL, slash ? slash + 1 : process->facts.program);
}

static void view_out(struct emitter *emitter, const struct top_view *view)
{
    if (view->unread)
        emitter_note(emitter, "%s: %s%s", view->unread_path, view->unread_error.message,
                     view->unread > 1 ? " (and others)" : "");
    if (!view->count && emitter_is_aligned(emitter)) {
        emitter_note(emitter, "nothing is being recorded by this user");
        return;
    }
    emitter_begin_table(emitter, "devices", "", top_columns, sizeof(top_columns) / sizeof(top_columns[0]));
    for (size_t i = 0; i < view->count; i++) {
        const struct top_process *process = &view->processes[i];
        for (size_t d = 0; d < process->snapshot->device_count; d++)
            row_out(emitter, process, &process->snapshot->devices[d]);
        if (!process->snapshot->device_count)
            row_out(emitter, process, NULL);
    }
    emitter_end(emitter);
    emitter_begin_table(emitter, "stacks", "", top_stack_columns,
                        sizeof(top_stack_columns) / sizeof(top_stack_columns[0]));
    for (size_t i = 0; i < view->stack_count; i++) {
        emitter_row(emitter);
        emitter_integer(emitter, NULL, view->stacks[i].pid);
        emitter_size(emitter, NULL, view->stacks[i].bytes);
        emitter_count(emitter, NULL, view->stacks[i].blocks);
        emitter_text(emitter, NULL, view->stacks[i].where);
    }
    emitter_end(emitter);
    if (!view->count)
        emitter_note(emitter, "nothing is being recorded by this user");
}

static int say_not_recorded(const struct top_view *view)
{
    struct error err = {0};
    if (view->unread)
        return command_error(view->unread_path, &view->unread_error);
    error_set(&err, STATUS_NOT_FOUND, "process %" PRId64 " is not being recorded by this user; cudamem top without a number "
              "shows what is", view->pid);
    return command_error(NULL, &err);
}

/* One look, as any report. */
static int look_once(struct command_line *line, struct top_view *view)
{
    struct error err = {0};
    struct output *output;
    if (top_view_look(view, &err))
        return command_error(NULL, &err);
    if (view->pid && !view->count)
        return say_not_recorded(view);
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    struct emitter_options options = command_emitter_options(line);
    struct emitter *emitter = emitter_new(output, &options);
    if (emitter)
        view_out(emitter, view);
    return command_finish(emitter, output, EXIT_DONE);
}

static int draw(struct command_line *line, const struct top_view *view, struct error *err)
{
    struct emitter_options options = command_emitter_options(line);
    struct output *output;
    unsigned char *bytes = NULL;
    size_t length = 0;
    options.layout = EMITTER_LAYOUT_ALIGNED;
    options.width = screen_width();
    int status = output_to_memory(&bytes, &length, &output, err);
    if (status)
        return status;
    struct emitter *emitter = emitter_new(output, &options);
    if (emitter)
        view_out(emitter, view);
    status = emitter ? emitter_finish(emitter, err) : error_no_memory(err);
    if (status)
        output_abandon(output);
    else
        status = output_commit(output, err);
    if (!status)
        screen_draw((const char *)bytes, length);
    free(bytes);
    return status;
}

static int watch(struct command_line *line, struct top_view *view)
{
    unsigned interval = (unsigned)options_number(line, "interval", 1);
    struct error err = {0};
    int status = top_view_look(view, &err);
    if (!status && view->pid && !view->count)
        return say_not_recorded(view);
    screen_enter();
    bool stays = true;
    while (!status && stays) {
        status = draw(line, view, &err);
        stays = !status && screen_wait(interval);
        if (stays)
            status = top_view_look(view, &err);
        if (view->pid && !view->count)
            break;
    }
    screen_leave();
    if (status)
        return command_error(NULL, &err);
    if (stays)
        command_note("process %" PRId64 " has ended", view->pid);
    return EXIT_DONE;
}

static int top_run(struct command_line *line)
{
    struct top_view view = {.most_stacks = options_number(line, "rows", TOP_STACKS)};
    uint64_t interval = options_number(line, "interval", 1);
    if (line->argument_count) {
        char *end;
        errno = 0;
        view.pid = strtoll(line->arguments[0], &end, 10);
        if (errno || *end || end == line->arguments[0] || view.pid <= 0 || view.pid > INT_MAX)
            return command_usage(line->command, "%.80s: a process's number", line->arguments[0]);
    }
    if (interval < 1 || interval > TOP_LONGEST)
        return command_usage(line->command, "--interval: 1 to %d seconds", TOP_LONGEST);
    if (view.most_stacks > TOP_MOST_STACKS)
        return command_usage(line->command, "-n: at most %d stacks", TOP_MOST_STACKS);
    bool once = options_has(line, "once") || options_has(line, "json") || options_has(line, "output") ||
                !isatty(STDOUT_FILENO);
    int status = once ? look_once(line, &view) : watch(line, &view);
    top_view_free(&view);
    return status;
}

const struct command command_top = {
    .name = "top",
    .summary = "what recorded programs hold now: memory a device, event rate, biggest stacks",
    .arguments = "[PID]",
    .most = 1,
    .words = "",
    .options = top_options,
    .run = top_run,
};
