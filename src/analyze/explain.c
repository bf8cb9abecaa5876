/* The explanation of a moment, put together.  May use src/snapshot, src/alloc and src/base. */
#include "analyze/explain.h"

#include "alloc/allocator.h"
#include "analyze/explain_internal.h"
#include "analyze/moment.h"

#include <stdlib.h>
#include <string.h>

static uint16_t process_of(const struct entries *entries, size_t entry)
{
    return entries->process ? entries->process[entry] : 0;
}

static bool is_failure(const struct entries *entries, size_t entry, int device)
{
    return entries->action[entry] == ACTION_OOM && !(entries->flags[entry] & ENTRY_OUTSIDE) &&
           (device < 0 || entries->device[entry] == device);
}

int explain_moment(const struct snapshot *snapshot, int device, uint64_t *moment, struct error *err)
{
    struct moment_peak allocated;
    for (size_t i = snapshot->entries.count; i > 0; i--)
        if (is_failure(&snapshot->entries, i - 1, device)) {
            *moment = i;
            return STATUS_OK;
        }
    int status = moment_peaks(snapshot, device, &allocated, NULL, err);
    *moment = allocated.moment || snapshot->entries.count ? allocated.moment : 0;
    return status;
}

void explain_place(const struct snapshot *snapshot, int device, uint16_t *process, uint16_t *ordinal)
{
    const struct entries *entries = &snapshot->entries;
    const struct state *state = &snapshot->end;
    uint64_t most = 0;
    *process = 0;
    *ordinal = (uint16_t)(device < 0 ? 0 : device);
    if (entries->count && is_failure(entries, entries->count - 1, device)) {
        *process = process_of(entries, entries->count - 1);
        *ordinal = entries->device[entries->count - 1];
        return;
    }
    for (size_t i = 0, next; i < state->segment_count; i = next) { /* those of one place stand together */
        const struct segment *one = &state->segments[i];
        uint64_t sum = 0;
        for (next = i; next < state->segment_count && state->segments[next].process == one->process &&
                       state->segments[next].device == one->device; next++)
            sum += state->segments[next].total_size;
        if (sum > most && (device < 0 || one->device == device)) {
            most = sum;
            *process = one->process;
            *ordinal = one->device;
        }
    }
}

static void take_request(struct explain *explain, const struct settings *settings)
{
    const struct snapshot *snapshot = explain->snapshot;
    const struct entries *entries = &snapshot->entries;
    const struct entry entry = snapshot_entry(snapshot, entries->count - 1);
    struct explain_request *request = &explain->request;
    request->entry = snapshot->first_entry + entries->count - 1;
    request->size = entry.size;
    request->is_rounded = explain->is_cached;
    request->is_small = explain->is_cached && entry.size <= ALLOCATOR_SMALL_LIMIT;
    request->segment_size = explain->is_cached ? settings_segment_size(settings, entry.size) : entry.size;
    request->has_stream = !(entry.flags & ENTRY_STREAM_UNKNOWN);
    request->stream = entry.stream;
    request->time = entry.flags & ENTRY_NO_TIME ? 0 : entry.time;
    request->has_pool = entry.pool != NONE32;
    request->pool = request->has_pool ? snapshot->pools[entry.pool] : (struct pool){{0, 0}};
    request->has_device_free = snapshot->source != SOURCE_RMM;
    request->device_free = request->has_device_free ? entry.address : 0;
    request->context = entry.context;
    for (size_t i = 0; i < entries->count; i++)
        request->number += is_failure(entries, i, explain->device) && process_of(entries, i) == explain->process;
}

static void take_losses(struct explain *explain, const struct explain_options *options)
{
    const struct snapshot *snapshot = explain->snapshot;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == explain->process && snapshot->devices[i].ordinal == explain->device)
            explain->lost_entries = snapshot->devices[i].lost_entries;
    if (explain->process < snapshot->process_count) {
        explain->unrecorded = snapshot->processes[explain->process].unrecorded;
        explain->is_cached = !snapshot->processes[explain->process].implied_blocks;
    }
    explain->has_entries = snapshot->entries.count > 0 || options->has_trace;
    explain->is_rebuilt = !snapshot->end.exact && explain->is_cached && snapshot->source == SOURCE_TORCH;
}

static int collect(struct explain *explain, const struct explain_options *options, struct error *err)
{
    const struct entries *entries = &explain->snapshot->entries;
    struct settings settings;
    settings_init(&settings);
    take_losses(explain, options);
    if (explain->is_cached)
        settings_parse(&settings, replay_recorded_conf(explain->snapshot, explain->process), NULL);
    explain->is_failure = entries->count && is_failure(entries, entries->count - 1, explain->device) &&
                          process_of(entries, entries->count - 1) == explain->process;
    if (explain->is_failure)
        take_request(explain, &settings);
    if (explain_holes(explain, &settings) || explain_stacks(explain))
        return error_no_memory(err);
    int status = explain_outside(explain, err);
    if (status)
        return status;
    explain_room(explain, &settings, options);
    explain_judge_cause(explain);
    if (explain->is_failure && explain->cause != EXPLAIN_TOO_BIG && explain_pins(explain, &settings))
        return error_no_memory(err);
    return explain_settings(explain, options, err);
}

int explain_collect(const struct snapshot *snapshot, const struct explain_options *options, struct explain *explain,
                    struct error *err)
{
    memset(explain, 0, sizeof(*explain));
    explain->snapshot = snapshot;
    explain->process = options->replay.process;
    explain->device = options->replay.device;
    int status = collect(explain, options, err);
    if (status)
        explain_free(explain);
    return status;
}

void explain_free(struct explain *explain)
{
    for (size_t i = 0; i < explain->settings.count; i++)
        free(explain->settings.trials[i].conf);
    free(explain->settings.least_conf);
    free(explain->holes);
    free(explain->pins.blocks);
    free(explain->outside.rows);
    free(explain->holders);
    free(explain->growing);
    memset(explain, 0, sizeof(*explain));
}
