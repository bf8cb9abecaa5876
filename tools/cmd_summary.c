/* cudamem summary: PyTorch's memory_summary table, one a device and file.  Uses analyze, render and base. */
#include "analyze/statistics.h"
#include "base/array.h"
#include "base/text.h"
#include "render/summary_text.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/replay_options.h"
#include "tools/statistics_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec summary_options[] = {
    {"abbreviated", 'a', NULL, OPTION_FLAG, "without the rows of the large and the small pool"},
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    OPTIONS_LIMIT,
    {"no-traces", 0, NULL, OPTION_FLAG, "do not read the trace: only what the segments and the file's statistics say"},
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

/* What the lines under several tables need of each file. */
struct summary_line {
    char *file, *host;
    int64_t rank, pid;
    struct statistics set;
};

struct summary {
    const struct command_line *line;
    struct emitter *emitter;
    struct summary_line *lines;
    size_t count, capacity;
    bool has_processes; /* some file holds several */
};

static int remember(struct summary *summary, const struct load *load, const struct statistics *set)
{
    if (array_reserve(&summary->lines, &summary->capacity, summary->count + 1, sizeof(*summary->lines)))
        return STATUS_NO_MEMORY;
    const struct snapshot *snapshot = load->snapshot;
    const struct process *process = set->process < snapshot->process_count ? &snapshot->processes[set->process] : NULL;
    struct summary_line *added = &summary->lines[summary->count++];
    memset(added, 0, sizeof(*added));
    added->set = *set;
    added->rank = process ? process->rank : -1;
    added->pid = process ? process->pid : 0;
    summary->has_processes |= snapshot->process_count > 1;
    added->file = strdup(load->file);
    added->host = strdup(process ? snapshot_content_text(snapshot, process->host, NULL) : "");
    return added->file && added->host ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Whose table it is, of a file with several processes. */
static void process_out(struct emitter *emitter, const struct load *load, uint16_t number)
{
    const struct process *process = &load->snapshot->processes[number];
    char rank[32] = "";
    if (process->rank >= 0)
        snprintf(rank, sizeof(rank), ", rank %" PRId64, process->rank);
    emitter_note(emitter, "%s: process %u%s, pid %" PRId64, load->file, number, rank, process->pid);
}

static int table_out(struct summary *summary, const struct load *load, const struct statistics *set)
{
    if (emitter_is_json(summary->emitter))
        return STATUS_OK;
    struct text text = {0};
    summary_text(set, options_has(summary->line, "abbreviated"), &text);
    if (load->snapshot->process_count > 1)
        process_out(summary->emitter, load, set->process);
    else if (summary->line->argument_count > 1)
        emitter_note(summary->emitter, "%s", load->file);
    emitter_verbatim(summary->emitter, text_string(&text), text.length);
    bool failed = text_failed(&text);
    text_free(&text);
    statistics_notes(summary->emitter, load, set);
    return failed ? STATUS_NO_MEMORY : STATUS_OK;
}

static int file_out(struct summary *summary, const char *argument)
{
    struct load load;
    struct error err = {0};
    struct statistics_list list = {0};
    struct replay_options replay = {0};
    int exit_status = replay_options_limit(summary->line, &replay);
    if (!exit_status)
        exit_status = load_open(summary->line, argument, options_has(summary->line, "no-traces") ? LOAD_STATE | LOAD_NO_TRACES : LOAD_STATE, &load);
    if (exit_status)
        return exit_status;
    if (!load.is_part && (exit_status = replay_options_check(summary->line, &load, &replay))) {
        load_close(&load);
        return exit_status;
    }
    int status = statistics_collect(load.snapshot, load.state, replay_statistics, &replay, &list, &err);
    if (!status)
        replay_options_tell_refuted(summary->line, &load, &list);
    if (!status && emitter_is_json(summary->emitter)) {
        emitter_begin_object(summary->emitter, NULL, NULL);
        statistics_out(summary->emitter, &load, &list, NULL);
        emitter_end(summary->emitter);
    }
    for (size_t i = 0; i < list.count && !status; i++) {
        if (!statistics_are_selected(&load, &list.items[i]))
            continue;
        status = remember(summary, &load, &list.items[i]);
        if (!status)
            status = table_out(summary, &load, &list.items[i]);
        if (status)
            error_no_memory(&err);
    }
    if (status)
        exit_status = command_error(load.file, &err);
    statistics_free(&list);
    load_close(&load);
    return exit_status;
}

static void stat_out(struct emitter *emitter, const struct statistics *set, enum memory_stat_kind kind, bool is_peak)
{
    const struct memory_stat *stat = &set->values.kinds[kind][MEMORY_POOL_ALL];
    const struct memory_stat *bound = &set->bounds.kinds[kind][MEMORY_POOL_ALL];
    int64_t number = is_peak ? stat->peak : stat->current;
    if ((is_peak ? bound->peak : bound->current) == STATISTICS_AT_LEAST)
        emitter_lower_bound(emitter);
    emitter_size(emitter, NULL, number < 0 ? 0 : (uint64_t)number);
}

static int64_t peak_reserved(const struct summary_line *line)
{
    return line->set.values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
}

/* "max" and "min" for the peaks at both ends, if they differ. */
static const char *standing(const struct summary *summary, const struct summary_line *line)
{
    int64_t most = peak_reserved(line), least = most;
    for (size_t i = 0; i < summary->count; i++) {
        int64_t other = peak_reserved(&summary->lines[i]);
        most = other > most ? other : most;
        least = other < least ? other : least;
    }
    if (most == least)
        return NULL;
    return peak_reserved(line) == most ? "max" : peak_reserved(line) == least ? "min" : NULL;
}

/* One line a rank (or file): several files are compared at a glance. */
static void lines_out(struct summary *summary)
{
    static const struct emitter_column columns[] = {
        {"rank", NULL, EMITTER_NUMBER},           {"pid", NULL, EMITTER_NUMBER},
        {"host", NULL, EMITTER_STRING},
        {"process", NULL, EMITTER_NUMBER},        {"device", NULL, EMITTER_NUMBER},
        {"allocated", NULL, EMITTER_NUMBER},      {"peak_allocated", NULL, EMITTER_NUMBER},
        {"reserved", NULL, EMITTER_NUMBER},       {"peak_reserved", NULL, EMITTER_NUMBER},
        {"peak_is", NULL, EMITTER_STRING},        {"ooms", NULL, EMITTER_NUMBER},
        {"lost_entries", NULL, EMITTER_NUMBER},   {"file", NULL, EMITTER_STRING},
    };
    struct emitter *emitter = summary->emitter;
    emitter_begin_table(emitter, "ranks", "", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < summary->count; i++) {
        const struct summary_line *line = &summary->lines[i];
        emitter_row(emitter);
        if (line->rank >= 0)
            emitter_integer(emitter, NULL, line->rank);
        else
            emitter_absent(emitter, NULL);
        if (line->pid)
            emitter_integer(emitter, NULL, line->pid);
        else
            emitter_absent(emitter, NULL);
        emitter_text(emitter, NULL, *line->host ? line->host : NULL);
        emitter_count(emitter, NULL, line->set.process);
        emitter_count(emitter, NULL, line->set.device);
        stat_out(emitter, &line->set, MEMORY_STAT_ALLOCATED_BYTES, false);
        stat_out(emitter, &line->set, MEMORY_STAT_ALLOCATED_BYTES, true);
        stat_out(emitter, &line->set, MEMORY_STAT_RESERVED_BYTES, false);
        stat_out(emitter, &line->set, MEMORY_STAT_RESERVED_BYTES, true);
        emitter_text(emitter, NULL, standing(summary, line));
        if (line->set.bounds.num_ooms == STATISTICS_AT_LEAST)
            emitter_lower_bound(emitter);
        emitter_integer(emitter, NULL, line->set.values.num_ooms);
        emitter_count(emitter, NULL, line->set.lost_entries);
        emitter_text(emitter, NULL, line->file);
    }
    emitter_end(emitter);
}

static int summary_run(struct command_line *line)
{
    struct summary summary = {.line = line};
    struct output *output;
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    struct emitter_options options = command_emitter_options(line);
    summary.emitter = emitter_new(output, &options);
    if (!summary.emitter)
        return command_finish(NULL, output, EXIT_DONE);
    emitter_begin_list(summary.emitter, "files", "");
    for (size_t i = 0; i < (line->argument_count ? line->argument_count : 1) && !status; i++)
        status = file_out(&summary, line->argument_count ? line->arguments[i] : NULL);
    emitter_end(summary.emitter);
    if (!status && (line->argument_count > 1 || summary.has_processes || emitter_is_json(summary.emitter)))
        lines_out(&summary);
    for (size_t i = 0; i < summary.count; i++) {
        free(summary.lines[i].file);
        free(summary.lines[i].host);
    }
    free(summary.lines);
    if (!status)
        return command_finish(summary.emitter, output, EXIT_DONE);
    emitter_finish(summary.emitter, NULL);
    output_abandon(output);
    return status;
}

const struct command command_summary = {
    .name = "summary",
    .summary = "PyTorch's memory_summary table: current, peak, allocated, freed",
    .arguments = "[FILE[@MOMENT]...]",
    .least = 0,
    .most = ARGUMENTS_ANY,
    .options = summary_options,
    .run = summary_run,
};
