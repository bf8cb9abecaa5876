/* cudamem replay: the requests of a recording under its own and other settings.  Uses analyze, render and base. */
#include "analyze/replay.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/replay_options.h"

#include <inttypes.h>

static const struct option_spec replay_options[] = {
    {"conf", 0, "SETTINGS", OPTION_TEXT, "as PYTORCH_CUDA_ALLOC_CONF; may be repeated (default: the recorded ones)"},
    OPTIONS_LIMIT,
    {"verify", 0, NULL, OPTION_FLAG, "does everything come out as recorded? exit status 1 if not"},
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

static const struct emitter_column columns[] = {
    {"conf", "settings", EMITTER_STRING},
    {"peak_reserved_bytes", "peak reserved", EMITTER_NUMBER},
    {"peak_allocated_bytes", "peak allocated", EMITTER_NUMBER},
    {"rounding_waste_bytes", "rounding", EMITTER_NUMBER},
    {"fragmentation_waste_bytes", "fragmentation", EMITTER_NUMBER},
    {"segments", "segments", EMITTER_NUMBER},
    {"device_allocs", "device allocs", EMITTER_NUMBER},
    {"device_frees", "device frees", EMITTER_NUMBER},
    {"retries", "retries", EMITTER_NUMBER},
    {"ooms", "OOMs", EMITTER_NUMBER},
    {"first_oom_entry", "first OOM", EMITTER_NUMBER},
    {"exact", "exact", EMITTER_NUMBER},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void fields_out(struct emitter *emitter, const char *conf, const struct replay_result *result)
{
    const struct memory_stats *stats = &result->stats;
    bool json = emitter_is_json(emitter);
    size_t at = 0;
#define KEY (json ? columns[at++].key : NULL)
    emitter_text(emitter, KEY, conf ? *conf || json ? conf : "(default)" : "(recorded)");
    emitter_size(emitter, KEY, (uint64_t)stats->kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak);
    emitter_size(emitter, KEY, (uint64_t)stats->kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].peak);
    emitter_size(emitter, KEY, result->rounding_waste);
    emitter_size(emitter, KEY, result->fragmentation_waste);
    emitter_integer(emitter, KEY, stats->kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL].peak);
    emitter_integer(emitter, KEY, stats->num_device_alloc);
    emitter_integer(emitter, KEY, stats->num_device_free);
    if (result->refused && !conf && !json)
        emitter_lower_bound(emitter);
    emitter_integer(emitter, KEY, stats->num_alloc_retries);
    emitter_integer(emitter, KEY, stats->num_ooms);
    if (result->ooms)
        emitter_count(emitter, KEY, result->first_oom);
    else
        emitter_absent(emitter, KEY);
    emitter_bool(emitter, KEY, result->exact);
#undef KEY
}

static void result_out(struct emitter *emitter, const char *conf, const struct replay_result *result)
{
    if (!emitter_is_json(emitter)) {
        emitter_row(emitter);
        fields_out(emitter, conf, result);
        return;
    }
    emitter_begin_object(emitter, NULL, NULL);
    fields_out(emitter, conf, result);
    const struct memory_stats_key *keys = memory_stats_keys();
    emitter_begin_object(emitter, "stats", NULL);
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        emitter_integer(emitter, keys[i].name, memory_stats_value(&result->stats, &keys[i]));
    emitter_end(emitter);
    if (!conf && !result->exact) {
        emitter_count(emitter, "difference_entry", result->difference_entry);
        emitter_text(emitter, "difference", result->difference);
    }
    emitter_count(emitter, "contradictions", result->contradictions);
    emitter_end(emitter);
}

static void notes_out(struct emitter *emitter, const struct replay_result *result, bool recorded)
{
    if (recorded && !result->exact)
        emitter_note(emitter, "not exact: entry %" PRIu64 ": %s", result->difference_entry, result->difference);
    if (result->contradictions)
        emitter_note(emitter, "%" PRIu64 " entries contradict others and were left out, the first is %" PRIu64,
                     result->contradictions, result->first_contradiction);
}

/* The device to look at: the selected one, or that of the first entry. */
static void choose_device(const struct load *load, struct replay_options *options)
{
    const struct entries *entries = &load->snapshot->entries;
    options->moment = load->moment;
    if (entries->count) {
        options->process = entries->process ? entries->process[0] : 0;
        options->device = entries->device[0];
    }
    if (load->selection.device >= 0)
        options->device = (uint16_t)load->selection.device;
}

static int verify_out(const struct load *load, const struct replay_options *options, struct emitter *emitter, bool *exact)
{
    struct replay_result result;
    struct error err = {0};
    if (replay_run(load->snapshot, options, &result, &err))
        return command_error(load->file, &err);
    *exact = result.exact;
    if (emitter_is_json(emitter)) {
        emitter_bool(emitter, "exact", result.exact);
        emitter_count(emitter, "events", result.events);
        if (!result.exact) {
            emitter_count(emitter, "difference_entry", result.difference_entry);
            emitter_text(emitter, "difference", result.difference);
        }
    } else if (result.exact) {
        emitter_note(emitter, "exact: %" PRIu64 " events, every address and every block at the end", result.events);
    } else {
        emitter_note(emitter, "entry %" PRIu64 ": %s", result.difference_entry, result.difference);
    }
    return EXIT_DONE;
}

static int table_out(const struct command_line *line, const struct load *load, struct replay_options *options,
                     struct emitter *emitter)
{
    struct replay_result result;
    struct error err = {0};
    size_t count = 0;
    if (emitter_is_json(emitter))
        emitter_begin_list(emitter, "results", NULL);
    else
        emitter_begin_table(emitter, "results", NULL, columns, COLUMNS);
    do {
        const struct option_given *given = options_nth(line, "conf", count++);
        options->conf = given ? given->text : NULL;
        if (replay_run(load->snapshot, options, &result, &err))
            return command_error(err.status == STATUS_USAGE ? "--conf" : load->file, &err);
        result_out(emitter, options->conf, &result);
    } while (options_nth(line, "conf", count));
    emitter_end(emitter);
    if (!emitter_is_json(emitter))
        notes_out(emitter, &result, !options->conf);
    return EXIT_DONE;
}

static int replay_command(struct command_line *line)
{
    struct replay_options options = {0};
    struct output *output = NULL;
    struct load load;
    bool exact = true, verify = options_has(line, "verify");
    if (verify && options_has(line, "conf"))
        return command_usage(line->command, "--verify is about the recorded settings, without --conf");
    int status = replay_options_limit(line, &options);
    if (!status)
        status = load_open(line, line->arguments[0], 0, &load);
    if (status)
        return status;
    choose_device(&load, &options);
    status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options emitter_options = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &emitter_options);
        if (emitter)
            status = verify ? verify_out(&load, &options, emitter, &exact) : table_out(line, &load, &options, emitter);
        if (!status) {
            status = command_finish(emitter, output, exact ? EXIT_DONE : EXIT_NO);
        } else {
            emitter_finish(emitter, NULL);
            output_abandon(output);
        }
    }
    load_close(&load);
    return status;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "a recording's requests under its own or other allocator settings",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = replay_options,
    .run = replay_command,
};
