/* cudamem replay: the requests of a recording under its own and other settings.  Uses analyze, render and base. */
#include "analyze/replay.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/replay_options.h"

#include <inttypes.h>

static const struct option_spec replay_options[] = {
    {"conf", 0, "SETTINGS", OPTION_TEXT, "as PYTORCH_CUDA_ALLOC_CONF; may be repeated (default: the recorded ones)"},
    OPTIONS_LIMIT,
    OPTIONS_POOLS,
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
    emitter_text(emitter, KEY, conf ? *conf || json ? conf : "(default)" : replay_options_own_name(result));
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

static uint64_t contradictions(const struct replay_result *result)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < REPLAY_CONTRADICTIONS; kind++)
        sum += result->contradictions.counts[kind];
    return sum;
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
    emitter_count(emitter, "contradictions", contradictions(result));
    emitter_end(emitter);
}

/* What was left out, once a kind. */
static void contradictions_out(struct emitter *emitter, const struct replay_contradictions *contradictions)
{
    static const char *const what[REPLAY_CONTRADICTIONS] = {
        [REPLAY_UNKNOWN_FREE] = "a free of what nothing holds", [REPLAY_UNKNOWN_SEGMENT] = "a release of a segment that is not there",
        [REPLAY_OVERLAP] = "an allocation over another one",
        [REPLAY_SENSELESS] = "a size or an address that no memory has"};
    for (int kind = 0; kind < REPLAY_CONTRADICTIONS; kind++)
        if (contradictions->counts[kind])
            emitter_note(emitter, "left out: %s: %" PRIu64 " of them, the first is entry %" PRIu64, what[kind],
                         contradictions->counts[kind], contradictions->first[kind]);
}

static void difference_out(struct emitter *emitter, const struct replay_result *result)
{
    if (result->at_end)
        emitter_note(emitter, "not exact: at the end: %s", result->difference);
    else
        emitter_note(emitter, "not exact: entry %" PRIu64 ": %s", result->difference_entry, result->difference);
}

static void notes_out(struct emitter *emitter, const struct replay_result *result, bool recorded)
{
    if (recorded && !result->exact && result->difference[0])
        difference_out(emitter, result);
    if (result->approximate)
        emitter_note(emitter, "approximate: %s", replay_options_approximate(result));
    if (result->ambiguous[0])
        emitter_note(emitter, "ambiguous: what the pools did fits the recording in several ways; tell %s", result->ambiguous);
    contradictions_out(emitter, &result->contradictions);
}

static void verify_json(struct emitter *emitter, const struct replay_result *result)
{
    emitter_bool(emitter, "exact", result->exact);
    emitter_bool(emitter, "approximate", result->approximate);
    emitter_text(emitter, "ambiguous", result->ambiguous);
    emitter_count(emitter, "events", result->events);
    emitter_count(emitter, "placements", result->placements);
    emitter_count(emitter, "placements_explained", result->explained);
    emitter_count(emitter, "contradictions", contradictions(result));
    if (!result->exact && result->difference[0]) {
        emitter_count(emitter, "difference_entry", result->difference_entry);
        emitter_text(emitter, "difference", result->difference);
    }
}

/* Is everything as recorded, and does nothing else fit the recording as well? */
static int verify_out(const struct replay_plan *plan, const struct replay_options *options, struct emitter *emitter,
                      bool *exact)
{
    const struct replay_trial recorded = {.limit = options->limit, .limit_entry = options->limit_entry};
    struct replay_result result;
    struct error err = {0};
    if (replay_plan_run(plan, &recorded, &result, &err))
        return command_error("replay", &err);
    *exact = result.exact && !result.ambiguous[0];
    if (emitter_is_json(emitter)) {
        verify_json(emitter, &result);
        return EXIT_DONE;
    }
    if (result.exact)
        emitter_note(emitter, "exact: %" PRIu64 " events, every address and every block at the end", result.events);
    else if (result.difference[0])
        difference_out(emitter, &result);
    else
        emitter_note(emitter, "not exact: the recording has no events of a caching allocator to compare");
    notes_out(emitter, &result, false);
    if (result.placements)
        emitter_note(emitter, "the rule for where the driver puts segments explains %" PRIu64 " of %" PRIu64 " placements",
                     result.explained, result.placements);
    return EXIT_DONE;
}

static int table_out(const struct command_line *line, const struct load *load, const struct replay_plan *plan,
                     const struct replay_options *options, struct emitter *emitter)
{
    struct replay_result result;
    struct error err = {0};
    size_t count = 0;
    const struct option_given *given = options_nth(line, "conf", count);
    if (emitter_is_json(emitter))
        emitter_begin_list(emitter, "results", NULL);
    else
        emitter_begin_table(emitter, "results", NULL, columns, COLUMNS);
    do {
        const struct replay_trial trial = {given ? given->text : NULL, options->limit, options->limit_entry};
        if (replay_plan_run(plan, &trial, &result, &err))
            return command_error(err.status == STATUS_USAGE ? "--conf" : load->file, &err);
        result_out(emitter, trial.conf, &result);
        given = options_nth(line, "conf", ++count);
    } while (given);
    emitter_end(emitter);
    if (!emitter_is_json(emitter))
        notes_out(emitter, &result, !options_has(line, "conf"));
    return EXIT_DONE;
}

static int replay_out(const struct command_line *line, const struct load *load, const struct replay_options *options,
                      struct emitter *emitter, bool *exact)
{
    struct replay_plan *plan;
    struct error err = {0};
    if (replay_plan_new(load->snapshot, options, &plan, &err))
        return command_error(load->file, &err);
    int status = options_has(line, "verify") ? verify_out(plan, options, emitter, exact)
                                             : table_out(line, load, plan, options, emitter);
    replay_plan_free(plan);
    return status;
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
        status = replay_options_pools(line, &options);
    if (!status)
        status = load_open(line, line->arguments[0], 0, &load);
    if (status)
        return status;
    replay_options_device(&load, &options);
    status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options emitter_options = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &emitter_options);
        if (emitter)
            status = replay_out(line, &load, &options, emitter, &exact);
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
