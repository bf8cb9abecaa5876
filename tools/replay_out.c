/* Results of replays as rows and notes.  Uses analyze and render. */
#include "tools/replay_out.h"

#include <inttypes.h>
#include <string.h>

static const struct emitter_column columns[] = {
    {"process", "process", EMITTER_NUMBER},
    {"device", "device", EMITTER_NUMBER},
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

const char *replay_out_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void replay_out_retries(struct emitter *emitter, const char *key, const struct replay_result *result)
{
    if (result->refused && !emitter_is_json(emitter))
        emitter_lower_bound(emitter);
    emitter_integer(emitter, key, result->stats.num_alloc_retries);
}

static void name_out(struct emitter *emitter, const char *name)
{
    emitter_item(emitter, name, strlen(name));
}

void replay_out_at_least(struct emitter *emitter, const struct replay_result *result, bool has_stats)
{
    emitter_begin_strings(emitter, "at_least");
    if (result->refused)
        name_out(emitter, "retries");
    if (result->refused && has_stats)
        name_out(emitter, "num_alloc_retries");
    if (has_stats) /* a flush that frees nothing leaves no entry */
        name_out(emitter, "num_sync_all_streams");
    emitter_end_strings(emitter);
}

void replay_out_begin(struct emitter *emitter, enum replay_shown shown)
{
    if (emitter_is_json(emitter))
        emitter_begin_list(emitter, "results", NULL);
    else
        emitter_begin_table(emitter, "results", NULL, columns + (REPLAY_SHOWS_PROCESS - shown),
                            COLUMNS - (REPLAY_SHOWS_PROCESS - shown));
}

static void fields_out(struct emitter *emitter, enum replay_shown shown, const struct replay_place *place,
                       const char *conf, const struct replay_result *result)
{
    const struct memory_stats *stats = &result->stats;
    bool json = emitter_is_json(emitter);
    size_t at = REPLAY_SHOWS_PROCESS - shown;
#define KEY (json ? columns[at++].key : NULL)
    if (shown == REPLAY_SHOWS_PROCESS)
        emitter_integer(emitter, KEY, place->process);
    if (shown != REPLAY_SHOWS_NO_PLACE)
        emitter_integer(emitter, KEY, place->device);
    emitter_text(emitter, KEY, conf ? *conf || json ? conf : "(default)" : replay_options_own_name(result));
    emitter_size(emitter, KEY, (uint64_t)stats->kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak);
    emitter_size(emitter, KEY, (uint64_t)stats->kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].peak);
    emitter_size(emitter, KEY, result->rounding_waste);
    emitter_size(emitter, KEY, result->fragmentation_waste);
    emitter_integer(emitter, KEY, stats->kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL].peak);
    emitter_integer(emitter, KEY, stats->num_device_alloc);
    emitter_integer(emitter, KEY, stats->num_device_free);
    replay_out_retries(emitter, KEY, result);
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

void replay_out_row(struct emitter *emitter, enum replay_shown shown, const struct replay_place *place, const char *conf,
                    const struct replay_result *result)
{
    if (!emitter_is_json(emitter)) {
        emitter_row(emitter);
        fields_out(emitter, shown, place, conf, result);
        return;
    }
    emitter_begin_object(emitter, NULL, NULL);
    fields_out(emitter, shown, place, conf, result);
    const struct memory_stats_key *keys = memory_stats_keys();
    emitter_begin_object(emitter, "stats", NULL);
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        emitter_integer(emitter, keys[i].name, memory_stats_value(&result->stats, &keys[i]));
    emitter_end(emitter);
    replay_out_at_least(emitter, result, true);
    replay_out_facts(emitter, result, !conf);
    emitter_end(emitter);
}

void replay_out_facts(struct emitter *emitter, const struct replay_result *result, bool recorded)
{
    emitter_bool(emitter, "approximate", result->approximate);
    emitter_text(emitter, "ambiguous", result->ambiguous);
    emitter_text(emitter, "idle", result->idle);
    if (recorded && !result->exact) {
        emitter_count(emitter, "difference_entry", result->difference_entry);
        emitter_text(emitter, "difference", result->difference);
    }
    emitter_count(emitter, "contradictions", contradictions(result));
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

void replay_out_notes(struct emitter *emitter, const struct replay_result *result, bool recorded)
{
    if (recorded && !result->exact && result->difference[0])
        difference_out(emitter, result);
    if (result->lacks_limit)
        emitter_note(emitter, "it collects at a share of the memory limit, which the recording does not tell: --memory-limit "
                     "SIZE may make it exact");
    if (result->approximate)
        emitter_note(emitter, "approximate: %s", replay_options_approximate(result));
    if (result->ambiguous[0])
        emitter_note(emitter, "ambiguous: what the pools did fits the recording in several ways; tell %s", result->ambiguous);
    if (result->idle[0])
        emitter_note(emitter, "no request of this device goes to the pool of %s", result->idle);
    contradictions_out(emitter, &result->contradictions);
}

static void verify_json(struct emitter *emitter, const struct replay_result *result)
{
    emitter_bool(emitter, "exact", result->exact);
    emitter_count(emitter, "events", result->events);
    emitter_count(emitter, "placements", result->placements);
    emitter_count(emitter, "placements_explained", result->explained);
    replay_out_facts(emitter, result, result->difference[0]);
}

void replay_out_verified(struct emitter *emitter, const struct replay_result *result)
{
    if (emitter_is_json(emitter)) {
        verify_json(emitter, result);
        return;
    }
    if (result->exact && result->rebuilt_end)
        emitter_note(emitter, "exact: %" PRIu64 " event%s, every address and every block at the end, but for their sizes, which "
                     "were rebuilt when the file was cut at a moment", result->events, replay_out_plural(result->events));
    else if (result->exact)
        emitter_note(emitter, "exact: %" PRIu64 " event%s, every address and every block at the end", result->events,
                     replay_out_plural(result->events));
    else if (result->difference[0])
        difference_out(emitter, result);
    else if (result->lost_beginning)
        emitter_note(emitter, "not exact, as the beginning is lost; what is left comes out as recorded, %" PRIu64 " event%s",
                     result->events, replay_out_plural(result->events));
    else
        emitter_note(emitter, "not exact: the recording has no events of a caching allocator to compare");
    replay_out_notes(emitter, result, false);
    emitter_note(emitter, "the rule for where the driver puts segments explains %" PRIu64 " of %" PRIu64 " placement%s",
                 result->explained, result->placements, replay_out_plural(result->placements));
}
