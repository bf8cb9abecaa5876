/* How much a process could have had when a request failed, and which kind of failure it was.  May use src/snapshot,
 * src/alloc and src/base. */
#include "analyze/explain_internal.h"

#include "analyze/moment.h"

const char *explain_room_key(enum explain_room_kind kind)
{
    static const char *const keys[] = {[EXPLAIN_ROOM_UNKNOWN] = "unknown", [EXPLAIN_ROOM_DEVICE] = "device",
                                       [EXPLAIN_ROOM_TOLD] = "limit_told", [EXPLAIN_ROOM_RECORDED] = "limit_recorded",
                                       [EXPLAIN_ROOM_INFERRED] = "limit_inferred"};
    return keys[kind];
}

/* The most that was reserved at a time, up to the failure: so much the limit had let it have.  The process has one device
 * of this number only, but a merged file may have others: then the moment's own is all that is sure. */
static uint64_t most_reserved(const struct explain *explain)
{
    struct moment_peak reserved = {0};
    bool is_alone = explain->snapshot->process_count < 2;
    for (size_t i = 0; i < explain->snapshot->end.segment_count && is_alone; i++)
        is_alone = !explain->snapshot->end.segments[i].is_outside;
    if (is_alone)
        moment_peaks(explain->snapshot, explain->device, NULL, &reserved, NULL);
    return reserved.bytes > explain->memory.reserved ? reserved.bytes : explain->memory.reserved;
}

/* A limit that is told refuses if the segment goes beyond it; where the limit had room, it was the device. */
static bool would_refuse(const struct explain *explain, uint64_t limit)
{
    uint64_t wanted;
    return __builtin_add_overflow(explain->memory.reserved, explain->request.segment_size, &wanted) || wanted > limit;
}

static uint64_t recorded_limit(const struct explain *explain, const struct settings *settings)
{
    uint64_t limit = replay_recorded_limit(explain->snapshot, explain->process);
    double fraction = settings->per_process_memory_fraction;
    if (fraction < 1 && explain->outside.total && (uint64_t)(fraction * (double)explain->outside.total) < limit)
        limit = (uint64_t)(fraction * (double)explain->outside.total);
    return limit;
}

void explain_room(struct explain *explain, const struct settings *settings, const struct explain_options *options)
{
    const struct explain_request *request = &explain->request;
    struct explain_room *room = &explain->room;
    uint64_t told = explain->is_cached ? options->replay.limit : REPLAY_NO_LIMIT, limit = recorded_limit(explain, settings);
    uint64_t reserved = explain->memory.reserved;
    if (!explain->is_failure)
        return;
    bool is_told = told != REPLAY_NO_LIMIT && request->entry >= options->replay.limit_entry;
    if (is_told && would_refuse(explain, told)) {
        *room = (struct explain_room){EXPLAIN_ROOM_TOLD, told, told, false};
    } else if (limit != REPLAY_NO_LIMIT && explain->is_cached && would_refuse(explain, limit)) {
        *room = (struct explain_room){EXPLAIN_ROOM_RECORDED, limit, limit, false};
    } else if (request->has_device_free && request->device_free < request->segment_size) {
        *room = (struct explain_room){EXPLAIN_ROOM_DEVICE, reserved + request->device_free,
                                      reserved + request->device_free, false};
    } else if (request->has_device_free && explain->is_cached) {
        *room = (struct explain_room){EXPLAIN_ROOM_INFERRED, most_reserved(explain), reserved + request->segment_size,
                                      false};
        if (room->low >= room->high) /* the limit came later than its most */
            room->low = reserved;
    }
    room->refuted = is_told && room->kind != EXPLAIN_ROOM_TOLD;
}

/* --- the cause --------------------------------------------------------------------------------------------------- */

const char *explain_cause_key(enum explain_cause cause)
{
    static const char *const keys[EXPLAIN_CAUSES] = {
        [EXPLAIN_NO_FAILURE] = "no_failure",     [EXPLAIN_TOO_BIG] = "too_big",
        [EXPLAIN_FRAGMENTED] = "fragmentation",  [EXPLAIN_OTHER_STREAM] = "other_stream",
        [EXPLAIN_OTHER_POOL] = "other_pool",     [EXPLAIN_UNSPLITTABLE] = "unsplittable",
        [EXPLAIN_PENDING] = "pending_frees",     [EXPLAIN_OUTSIDE] = "memory_outside",
        [EXPLAIN_GROWTH] = "growth",             [EXPLAIN_FULL] = "full",
        [EXPLAIN_REFUSED] = "refused_by_driver", [EXPLAIN_UNKNOWN] = "unknown"};
    return keys[cause];
}

const char *explain_hole_key(enum explain_hole_reason reason)
{
    static const char *const keys[EXPLAIN_HOLE_REASONS] = {
        [EXPLAIN_HOLE_TOO_SMALL] = "too_small",     [EXPLAIN_HOLE_OTHER_STREAM] = "other_stream",
        [EXPLAIN_HOLE_OTHER_POOL] = "other_pool",   [EXPLAIN_HOLE_OTHER_CLASS] = "other_class",
        [EXPLAIN_HOLE_UNSPLITTABLE] = "unsplittable", [EXPLAIN_HOLE_FITS] = "fits"};
    return keys[reason];
}

/* Together there was enough: what kept the pieces apart? */
static enum explain_cause apart(const struct explain *explain)
{
    uint64_t size = explain->request.size;
    const struct explain_sum *reasons = explain->reasons;
    if (reasons[EXPLAIN_HOLE_UNSPLITTABLE].count)
        return EXPLAIN_UNSPLITTABLE;
    if (reasons[EXPLAIN_HOLE_OTHER_STREAM].largest >= size)
        return EXPLAIN_OTHER_STREAM;
    if (reasons[EXPLAIN_HOLE_OTHER_POOL].largest >= size)
        return EXPLAIN_OTHER_POOL;
    return EXPLAIN_FRAGMENTED;
}

/* Together there was too little: what had it? */
static enum explain_cause full(const struct explain *explain)
{
    const struct explain_memory *memory = &explain->memory;
    if (memory->pending >= explain->lacks && memory->pending)
        return EXPLAIN_PENDING;
    if (explain->room.kind == EXPLAIN_ROOM_DEVICE && explain->outside.is_known && explain->outside.bytes > memory->reserved)
        return EXPLAIN_OUTSIDE;
    return explain->growing_bytes >= explain->lacks ? EXPLAIN_GROWTH : EXPLAIN_FULL;
}

void explain_judge_cause(struct explain *explain)
{
    const struct explain_memory *memory = &explain->memory;
    const struct explain_room *room = &explain->room;
    uint64_t size = explain->request.size, used = memory->reserved - memory->free;
    if (!explain->is_failure) {
        explain->cause = EXPLAIN_NO_FAILURE;
        return;
    }
    if (room->kind == EXPLAIN_ROOM_UNKNOWN) {
        explain->cause = explain->request.has_device_free ? EXPLAIN_REFUSED : EXPLAIN_UNKNOWN;
        return;
    }
    uint64_t left = room->low > used ? room->low - used : 0;
    explain->lacks = size > left ? size - left : 0;
    uint64_t most = room->kind == EXPLAIN_ROOM_DEVICE && explain->outside.total ? explain->outside.total : room->high;
    if (size > most)
        explain->cause = EXPLAIN_TOO_BIG;
    else
        explain->cause = explain->lacks ? full(explain) : apart(explain);
}
