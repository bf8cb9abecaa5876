/* cudamem tune: allocator settings under which a recording's requests need less.  Uses analyze, render and base. */
#include "analyze/tune.h"
#include "base/size.h"
#include "base/text.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/progress.h"
#include "tools/replay_options.h"
#include "tools/replay_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 5

static const struct option_spec tune_options[] = {
    OPTIONS_LIMIT,
    {"rows", 'n', "N", OPTION_NUMBER, "at most N settings besides the recorded ones (default: 5)"},
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    OPTIONS_POOLS,
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

#define CONF(kind) {"conf", "settings", kind}
#define NUMBERS                                                                                                  \
    {"peak_reserved_bytes", "peak reserved", EMITTER_NUMBER}, {"saved_bytes", "saved", EMITTER_NUMBER},          \
    {"peak_allocated_bytes", "peak allocated", EMITTER_NUMBER},                                                  \
    {"rounding_waste_bytes", "rounding", EMITTER_NUMBER},                                                        \
    {"fragmentation_waste_bytes", "fragmentation", EMITTER_NUMBER},                                              \
    {"device_allocs", "allocs", EMITTER_NUMBER}, {"extra_device_calls", "calls", EMITTER_NUMBER},                \
    {"retries", "retries", EMITTER_NUMBER}, {"ooms", "OOMs", EMITTER_NUMBER}, {"fits", "fits", EMITTER_NUMBER}

static const struct emitter_column columns[] = {CONF(EMITTER_STRING), NUMBERS};
static const struct emitter_column columns_json[] = {CONF(EMITTER_STRING), NUMBERS, {"at_least", NULL, EMITTER_LIST}};
/* On a terminal: settings are long and must be whole, so they stand below. */
static const struct emitter_column columns_wide[] = {NUMBERS, CONF(EMITTER_LIST)};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct report {
    struct load load;
    struct replay_options options;
    struct tune_result result;
    uint64_t rows;
};

/* What was recorded is known: the recording is reproduced as far as it goes. */
static bool is_known(const struct tune_result *result)
{
    return result->recorded.events && !result->recorded.difference[0];
}

static uint64_t peak_reserved(const struct replay_result *result)
{
    return (uint64_t)result->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
}

static bool is_limited(const struct report *report)
{
    return report->options.limit != REPLAY_NO_LIMIT;
}

/* The setting to take: the best, if it is worth it. */
static const struct tune_row *chosen(const struct report *report)
{
    const struct tune_result *result = &report->result;
    return result->gains && (result->fits || !is_limited(report)) ? &result->rows[0] : NULL;
}

static void numbers_out(struct emitter *emitter, const struct tune_row *row)
{
    const struct memory_stats *stats = &row->replay.stats;
    emitter_size(emitter, "peak_reserved_bytes", tune_peak(row));
    if (row->saved >= 0)
        emitter_size(emitter, "saved_bytes", (uint64_t)row->saved);
    else
        emitter_delta(emitter, "saved_bytes", row->saved);
    emitter_size(emitter, "peak_allocated_bytes",
                 (uint64_t)stats->kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].peak);
    emitter_size(emitter, "rounding_waste_bytes", row->replay.rounding_waste);
    emitter_size(emitter, "fragmentation_waste_bytes", row->replay.fragmentation_waste);
    emitter_integer(emitter, "device_allocs", stats->num_device_alloc);
    emitter_count_delta(emitter, "extra_device_calls", row->extra_calls);
    replay_out_retries(emitter, "retries", &row->replay);
    emitter_integer(emitter, "ooms", stats->num_ooms);
    emitter_bool(emitter, "fits", row->fits);
    if (emitter_is_json(emitter))
        replay_out_at_least(emitter, &row->replay, false);
}

/* The recorded settings, predicted like the others: not what was recorded. */
static const char *baseline_name(const struct tune_result *result)
{
    bool is_default = result->recorded.approximate && !result->recorded.lost_beginning;
    return is_default ? replay_options_own_name(&result->recorded) : "(recorded settings)";
}

static void fields_out(struct emitter *emitter, const char *name, const struct tune_row *row)
{
    bool below = emitter_is_aligned(emitter);
    if (!below)
        emitter_text(emitter, "conf", name);
    numbers_out(emitter, row);
    if (below) {
        emitter_begin_strings(emitter, "conf");
        emitter_item(emitter, name, strlen(name));
        emitter_end_strings(emitter);
    }
}

static void table_out(struct emitter *emitter, const struct report *report)
{
    const struct tune_result *result = &report->result;
    if (emitter_is_json(emitter))
        emitter_begin_table(emitter, "results", NULL, columns_json, COLUMNS + 1);
    else
        emitter_begin_table(emitter, "results", NULL, emitter_is_aligned(emitter) ? columns_wide : columns, COLUMNS);
    if (!emitter_is_json(emitter)) {
        emitter_row(emitter);
        fields_out(emitter, baseline_name(result), &result->baseline);
    }
    for (size_t i = 0; i < result->count && i < report->rows; i++) {
        const struct tune_row *row = &result->rows[i];
        emitter_row(emitter);
        fields_out(emitter, *row->conf || emitter_is_json(emitter) ? row->conf : "(default)", row);
    }
    emitter_end(emitter);
}

/* Settings have no quote among their characters, the line is fit for a shell. */
static void export_line(const char *conf, struct text *text)
{
    const char *quote = *conf && !strpbrk(conf, "[]>") ? "" : "'";
    text_printf(text, "export PYTORCH_CUDA_ALLOC_CONF=%s%s%s", quote, conf, quote);
}

/* What there is only if nothing fits. */
static void least_out(struct emitter *emitter, const char *key, const char *conf_key, uint64_t bytes, const char *conf)
{
    if (conf)
        emitter_size(emitter, key, bytes);
    else
        emitter_absent(emitter, key);
    emitter_text(emitter, conf_key, conf);
}

static void json_out(struct emitter *emitter, const struct report *report, const char *export)
{
    const struct tune_result *result = &report->result;
    emitter_begin_object(emitter, "baseline", NULL);
    fields_out(emitter, result->baseline.conf, &result->baseline);
    emitter_end(emitter);
    table_out(emitter, report);
    emitter_count(emitter, "tried", result->tried);
    if (is_limited(report))
        emitter_size(emitter, "memory_limit_bytes", report->options.limit);
    else
        emitter_absent(emitter, "memory_limit_bytes");
    emitter_bool(emitter, "fits", result->fits);
    emitter_text(emitter, "export", export);
    least_out(emitter, "smallest_limit_bytes", "smallest_limit_conf", result->least_limit, result->least_limit_conf);
    least_out(emitter, "smallest_peak_bytes", "smallest_peak_conf", result->least_peak, result->least_conf);
    emitter_count(emitter, "recorded_ooms", result->recorded_ooms);
    if (is_known(result))
        emitter_size(emitter, "recorded_peak_reserved_bytes", peak_reserved(&result->recorded));
    else
        emitter_absent(emitter, "recorded_peak_reserved_bytes");
    emitter_bool(emitter, "exact", result->recorded.exact);
    replay_out_facts(emitter, &result->recorded, true);
}

static void add_change(struct text *text, const char *what, int64_t before, int64_t now)
{
    if (now != before)
        text_printf(text, "; %s: %" PRId64 " instead of %" PRId64, what, now, before);
}

static int64_t device_calls(const struct tune_row *row)
{
    return row->replay.stats.num_device_alloc + row->replay.stats.num_device_free;
}

/* What the best saves and what it costs. */
static void gain_out(struct emitter *emitter, const struct report *report, const struct tune_row *row)
{
    const struct tune_row *baseline = &report->result.baseline;
    const struct memory_stats *stats = &row->replay.stats, *before = &baseline->replay.stats;
    double peak = (double)tune_peak(baseline), part = peak > 0 ? 100 * (double)llabs(row->saved) / peak : 0;
    char size[SIZE_TEXT];
    struct text text = {0};
    size_format((uint64_t)llabs(row->saved), size);
    if (row->saved >= 0)
        text_printf(&text, "saves %s (%.1f%%) of the peak", size, part);
    else
        text_printf(&text, "reserves %s (%.1f%%) more at the peak", size, part);
    add_change(&text, "failed requests", before->num_ooms, stats->num_ooms);
    add_change(&text, "retries", before->num_alloc_retries, stats->num_alloc_retries);
    add_change(&text, "device calls", device_calls(baseline), device_calls(row));
    emitter_note(emitter, "the best of %zu settings tried %s", report->result.tried, text_string(&text));
    text_free(&text);
}

static const char *shown(const char *conf)
{
    return *conf ? conf : "the default settings";
}

static void verdict_out(struct emitter *emitter, const struct report *report)
{
    const struct tune_result *result = &report->result;
    const struct tune_row *row = chosen(report);
    char size[SIZE_TEXT];
    if (row) {
        gain_out(emitter, report, row);
    } else if (is_limited(report) && !result->fits) {
        emitter_note(emitter, "nothing fits in %s: some request fails under each of the %zu settings tried",
                     size_format(report->options.limit, size), result->tried);
        if (result->least_limit_conf)
            emitter_note(emitter, "it fits in about %s, perhaps in less, with %s",
                         size_format(result->least_limit, size), shown(result->least_limit_conf));
        if (result->least_conf)
            emitter_note(emitter, "the smallest peak of some setting without a limit is %s: %s",
                         size_format(result->least_peak, size), shown(result->least_conf));
        else
            emitter_note(emitter, "nor is the device large enough");
    } else {
        emitter_note(emitter, "the recorded settings are already %s of %zu tried%s",
                     result->count ? "within 1% of the best" : "the best", result->tried,
                     is_limited(report) ? ", and fit" : "");
    }
}

/* Rows are predictions, the first one as well: without the recording's limit other requests fail, or none. */
static void failures_out(struct emitter *emitter, const struct report *report)
{
    const struct tune_result *result = &report->result;
    int64_t predicted = result->baseline.replay.stats.num_ooms;
    if (!result->recorded_ooms || is_limited(report))
        return;
    emitter_note(emitter, "%" PRIu64 " request%s failed in the recording, under a limit that it does not tell; without it %"
                 PRId64 " would fail; --memory-limit finds settings that avoid it", result->recorded_ooms,
                 replay_out_plural(result->recorded_ooms), predicted);
}

static void notes_out(struct emitter *emitter, const struct report *report)
{
    const struct tune_result *result = &report->result;
    char size[SIZE_TEXT];
    if (is_known(result))
        emitter_note(emitter, "recorded: %s; the peak reserved was %s", shown(result->baseline.conf),
                     size_format(peak_reserved(&result->recorded), size));
    else
        emitter_note(emitter, "recorded: %s", shown(result->baseline.conf));
    replay_out_notes(emitter, &result->recorded, true);
    failures_out(emitter, report);
}

static int report_out(struct emitter *emitter, const struct report *report)
{
    const struct tune_row *row = chosen(report);
    struct text text = {0};
    if (row)
        export_line(row->conf, &text);
    if (emitter_is_json(emitter)) {
        json_out(emitter, report, row ? text_string(&text) : NULL);
    } else {
        table_out(emitter, report);
        notes_out(emitter, report);
        verdict_out(emitter, report);
        if (row) {
            text_char(&text, '\n');
            emitter_verbatim(emitter, text_string(&text), text.length);
        }
    }
    bool failed = text_failed(&text);
    text_free(&text);
    return failed ? STATUS_NO_MEMORY : STATUS_OK;
}

static int search(struct report *report)
{
    const struct tune_options options = {.replay = report->options, .progress = progress_at};
    struct error err = {0};
    progress_start("trying settings", TUNE_MOST);
    int status = tune_run(report->load.snapshot, &options, &report->result, &err);
    progress_stop();
    return status ? replay_options_error(&report->load, &err) : EXIT_DONE;
}

static int write_out(const struct command_line *line, const struct report *report)
{
    struct output *output = NULL;
    struct error err = {0};
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    struct emitter_options emitter_options = command_emitter_options(line);
    struct emitter *emitter = emitter_new(output, &emitter_options);
    if (emitter && report_out(emitter, report)) {
        emitter_finish(emitter, NULL);
        output_abandon(output);
        error_no_memory(&err);
        return command_error(NULL, &err);
    }
    return command_finish(emitter, output, is_limited(report) && !report->result.fits ? EXIT_NO : EXIT_DONE);
}

static int tune_command(struct command_line *line)
{
    struct report report = {.rows = options_number(line, "rows", ROWS)};
    int status = replay_options_limit(line, &report.options);
    if (!status)
        status = replay_options_pools(line, &report.options);
    if (!status)
        status = load_open(line, line->arguments[0], 0, &report.load);
    if (status)
        return status;
    replay_options_device(&report.load, &report.options);
    status = load_one_process(line, &report.load);
    if (!status)
        status = replay_options_check(line, &report.load, &report.options);
    if (!status)
        status = search(&report);
    if (!status) {
        status = write_out(line, &report);
        tune_free(&report.result);
    }
    load_close(&report.load);
    return status;
}

const struct command command_tune = {
    .name = "tune",
    .summary = "allocator settings under which a recording's requests need less",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = tune_options,
    .run = tune_command,
};
