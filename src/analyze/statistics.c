/* Statistics at a moment, with bounds.  May use src/snapshot and src/base. */
#include "analyze/statistics.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_REQUEST (INT64_C(1) << 20) /* what comes from the small pool */
#define SMALL_SEGMENT (INT64_C(2) << 20) /* and its segments */
#define LARGE_PAGE (INT64_C(20) << 20)

/* What the pass over the entries keeps for a device: changes since the first entry, so "current" may fall below zero;
 * bytes of blocks are requested bytes here. */
struct tally {
    struct memory_stats changes;
    struct memory_stats now; /* from the state: current values only; bytes of blocks are what they are */
    int64_t requested_allocated[MEMORY_POOL_CLASSES]; /* requested bytes of blocks whose free was not requested */
    bool seen;
    bool is_padded; /* some memory took more than was asked for, which the entries do not tell */
};

struct collection {
    const struct snapshot *snapshot;
    const struct state *state;
    struct statistics_list *list;
    struct tally *tallies;
    size_t tally_capacity;
    struct table index; /* process, device -> list index */
    struct table maps;  /* place and address of a mapping -> whether it is large */
    uint64_t moment;
    bool completes;     /* the trace tells when frees complete */
    uint64_t weight;    /* bytes counted so far: sums that would leave 63 bits are nobody's memory and stop here */
};

static int64_t weigh(struct collection *c, uint64_t size)
{
    if (size > (uint64_t)INT64_MAX / 2 - c->weight)
        return 0;
    c->weight += size;
    return (int64_t)size;
}

static bool is_implied(const struct snapshot *snapshot, uint16_t process)
{
    return process < snapshot->process_count && snapshot->processes[process].implied_blocks;
}

/* The number of a device's set, made when first seen; NONE32: no memory. */
static uint32_t find_set(struct collection *c, uint16_t process, uint16_t device)
{
    uint32_t *slot = table_at(&c->index, (uint64_t)process << 16 | device, NONE32);
    if (!slot)
        return NONE32;
    if (*slot != NONE32)
        return *slot;
    struct statistics_list *list = c->list;
    if (array_reserve(&list->items, &list->capacity, list->count + 1, sizeof(*list->items)) ||
        array_reserve(&c->tallies, &c->tally_capacity, list->count + 1, sizeof(*c->tallies)))
        return NONE32;
    struct statistics *added = &list->items[list->count];
    memset(added, 0, sizeof(*added));
    memset(&c->tallies[list->count], 0, sizeof(*c->tallies));
    added->process = process;
    added->device = device;
    memory_stats_init(&added->values);
    return *slot = (uint32_t)list->count++;
}

/* --- the state: current values ---------------------------------------------------------------------------------- */

static void add_now(struct memory_stats *now, enum memory_stat_kind kind, enum memory_pool_class pool, int64_t amount)
{
    now->kinds[kind][pool].current += amount;
    now->kinds[kind][MEMORY_POOL_ALL].current += amount;
}

static void add_block(struct collection *c, struct tally *tally, const struct segment *segment, const struct block *block,
                      int64_t max_split)
{
    struct memory_stats *now = &tally->now;
    enum memory_pool_class pool = segment->is_large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL;
    int64_t size = weigh(c, block->size);
    int64_t requested = block->flags & BLOCK_REQUESTED_UNKNOWN ? size : weigh(c, block->requested);
    bool is_allocated = block->state == BLOCK_ACTIVE_ALLOCATED;
    if (!is_allocated && block->state != BLOCK_ACTIVE_PENDING_FREE) {
        if (!segment->is_expandable && segment->block_count > 1) {
            add_now(now, MEMORY_STAT_INACTIVE_SPLIT, pool, 1);
            add_now(now, MEMORY_STAT_INACTIVE_SPLIT_BYTES, pool, size);
        }
        return;
    }
    add_now(now, MEMORY_STAT_ACTIVE, pool, 1);
    add_now(now, MEMORY_STAT_ACTIVE_BYTES, pool, size);
    add_now(now, MEMORY_STAT_REQUESTED_BYTES, pool, requested);
    if (!is_allocated)
        return;
    add_now(now, MEMORY_STAT_ALLOCATION, pool, 1);
    add_now(now, MEMORY_STAT_ALLOCATED_BYTES, pool, size);
    tally->requested_allocated[pool] += requested;
    tally->requested_allocated[MEMORY_POOL_ALL] += requested;
    if (max_split > 0 && block->size >= (uint64_t)max_split)
        now->oversize_allocations.current++;
}

static int add_state(struct collection *c, int64_t max_split)
{
    for (size_t s = 0; s < c->state->segment_count; s++) {
        const struct segment *segment = &c->state->segments[s];
        if (segment->kind == MEMORY_HOST || segment->is_outside)
            continue;
        uint32_t set = find_set(c, segment->process, segment->device);
        if (set == NONE32)
            return STATUS_NO_MEMORY;
        struct tally *tally = &c->tallies[set];
        enum memory_pool_class pool = segment->is_large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL;
        tally->seen = true;
        add_now(&tally->now, MEMORY_STAT_RESERVED_BYTES, pool, weigh(c, segment->total_size));
        if (!segment->is_expandable || is_implied(c->snapshot, segment->process))
            add_now(&tally->now, MEMORY_STAT_SEGMENT, pool, 1);
        if (max_split > 0 && !segment->is_expandable && segment->total_size >= (uint64_t)max_split)
            tally->now.oversize_segments.current++;
        for (uint32_t b = 0; b < segment->block_count; b++)
            add_block(c, tally, segment, &c->state->blocks[segment->first_block + b], max_split);
    }
    return STATUS_OK;
}

/* --- the entries: changes --------------------------------------------------------------------------------------- */

static void change(struct memory_stats *stats, enum memory_stat_kind kind, enum memory_pool_class pool, int64_t amount,
                   bool grows)
{
    if (grows)
        memory_stats_increase(stats, kind, pool, amount);
    else
        memory_stats_decrease(stats, kind, pool, amount);
}

/* A free that the driver refused after it had been recorded: as if it had not been. */
static void take_back(struct memory_stats *stats, enum memory_stat_kind kind, enum memory_pool_class pool, int64_t amount)
{
    stats->kinds[kind][pool].freed -= amount;
    stats->kinds[kind][pool].current += amount;
    stats->kinds[kind][MEMORY_POOL_ALL].freed -= amount;
    stats->kinds[kind][MEMORY_POOL_ALL].current += amount;
}

static void block_entry(const struct collection *c, struct memory_stats *stats, enum action action, int64_t size)
{
    enum memory_pool_class pool = size <= SMALL_REQUEST ? MEMORY_POOL_SMALL : MEMORY_POOL_LARGE;
    bool grows = action == ACTION_ALLOC;
    if (grows || action == ACTION_FREE_REQUESTED) {
        change(stats, MEMORY_STAT_ALLOCATION, pool, 1, grows);
        change(stats, MEMORY_STAT_ALLOCATED_BYTES, pool, size, grows);
    }
    if (grows || action == ACTION_FREE_COMPLETED || !c->completes) {
        change(stats, MEMORY_STAT_ACTIVE, pool, 1, grows);
        change(stats, MEMORY_STAT_ACTIVE_BYTES, pool, size, grows);
        change(stats, MEMORY_STAT_REQUESTED_BYTES, pool, size, grows);
    }
}

/* The pool that a segment's entry is about.  Neighbouring mappings may go in one unmap, so the mapping at its start tells
 * (the small pool maps pages of one size), or else the size: large pages are ten times as large. */
static int segment_class(struct collection *c, size_t i, bool implied, int64_t size, enum memory_pool_class *pool)
{
    const struct entries *entries = &c->snapshot->entries;
    enum action action = entries->action[i];
    bool is_large = size > (implied ? SMALL_REQUEST : SMALL_SEGMENT);
    uint64_t place = (uint64_t)(entries->process ? entries->process[i] : 0) << 16 | entries->device[i];
    uint64_t key = hash_mix(place + 1) ^ entries->address[i];
    if (!implied && action == ACTION_SEGMENT_MAP && table_set(&c->maps, key, is_large))
        return STATUS_NO_MEMORY;
    if (!implied && action == ACTION_SEGMENT_UNMAP)
        is_large = table_get(&c->maps, key, is_large && size % LARGE_PAGE == 0) != 0;
    *pool = is_large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL;
    return STATUS_OK;
}

static void segment_entry(struct memory_stats *stats, enum action action, enum memory_pool_class pool, bool failed,
                          bool implied, int64_t size)
{
    static const enum memory_stat_kind counts[] = {MEMORY_STAT_ALLOCATION, MEMORY_STAT_ACTIVE};
    static const enum memory_stat_kind bytes[] = {MEMORY_STAT_ALLOCATED_BYTES, MEMORY_STAT_ACTIVE_BYTES,
                                                  MEMORY_STAT_REQUESTED_BYTES};
    bool grows = action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP;
    bool is_mapping = action == ACTION_SEGMENT_MAP || action == ACTION_SEGMENT_UNMAP;
    if (failed && !grows) {
        take_back(stats, MEMORY_STAT_RESERVED_BYTES, pool, size);
        if (!is_mapping || implied)
            take_back(stats, MEMORY_STAT_SEGMENT, pool, 1);
        for (size_t i = 0; i < 2 && implied; i++)
            take_back(stats, counts[i], pool, 1);
        for (size_t i = 0; i < 3 && implied; i++)
            take_back(stats, bytes[i], pool, size);
        stats->num_device_free--;
        return;
    }
    change(stats, MEMORY_STAT_RESERVED_BYTES, pool, size, grows);
    if (!is_mapping || implied)
        change(stats, MEMORY_STAT_SEGMENT, pool, 1, grows);
    for (size_t i = 0; i < 2 && implied; i++)
        change(stats, counts[i], pool, 1, grows);
    for (size_t i = 0; i < 3 && implied; i++)
        change(stats, bytes[i], pool, size, grows);
    ++*(grows ? &stats->num_device_alloc : &stats->num_device_free);
}

static int count_entry(struct collection *c, struct tally *tally, size_t i, bool implied)
{
    const struct entries *entries = &c->snapshot->entries;
    enum action action = entries->action[i];
    int64_t size = weigh(c, entries->size[i]);
    enum memory_pool_class pool;
    enum memory_kind kind = entries->kind ? (enum memory_kind)entries->kind[i] : MEMORY_PLAIN;
    tally->is_padded |= kind == MEMORY_PITCHED || kind == MEMORY_ARRAY || kind == MEMORY_MIPMAPPED;
    if (action < ACTION_SEGMENT_ALLOC) {
        if (!implied)
            block_entry(c, &tally->changes, action, size);
        return STATUS_OK;
    }
    if (segment_class(c, i, implied, size, &pool))
        return STATUS_NO_MEMORY;
    segment_entry(&tally->changes, action, pool, entries->flags[i] & ENTRY_FAILED, implied, size);
    return STATUS_OK;
}

static int add_entries(struct collection *c)
{
    const struct entries *entries = &c->snapshot->entries;
    c->completes = entries->count && memchr(entries->action, ACTION_FREE_COMPLETED, entries->count);
    uint32_t last = UINT32_MAX, set = NONE32;
    for (size_t i = 0; i < entries->count && i < c->moment; i++) {
        enum action action = entries->action[i];
        if (entries->flags[i] & (ENTRY_BAD | ENTRY_OUTSIDE) || (entries->kind && entries->kind[i] == MEMORY_HOST) ||
            action == ACTION_SNAPSHOT || action == ACTION_OTHER)
            continue;
        uint16_t process = entries->process ? entries->process[i] : 0;
        uint32_t place = (uint32_t)process << 16 | entries->device[i];
        if (place != last || set == NONE32) {
            set = find_set(c, process, entries->device[i]);
            last = place;
        }
        if (set == NONE32)
            return STATUS_NO_MEMORY;
        struct tally *tally = &c->tallies[set];
        tally->seen = true;
        if (action == ACTION_OOM)
            tally->changes.num_ooms++;
        else if (count_entry(c, tally, i, is_implied(c->snapshot, process)))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* --- together --------------------------------------------------------------------------------------------------- */

/* A value that lived `base` before the first entry, then went as the changes say, and is `now`. */
static void settle(struct memory_stat *stat, struct memory_stat *bound, const struct memory_stat *changes, int64_t base,
                   int64_t now, bool is_complete, enum statistics_bound now_bound)
{
    if (base < 0)
        base = 0;
    stat->current = now;
    stat->peak = base + changes->peak > now ? base + changes->peak : now;
    stat->freed = changes->freed;
    stat->allocated = base + changes->allocated;
    if (stat->allocated < now) /* an inconsistent trace */
        stat->allocated = now;
    bool exact = is_complete && !base;
    bound->current = now_bound;
    bound->peak = bound->freed = bound->allocated = exact ? STATISTICS_EXACT : STATISTICS_AT_LEAST;
}

static bool is_block_bytes(enum memory_stat_kind kind)
{
    return kind == MEMORY_STAT_ALLOCATED_BYTES || kind == MEMORY_STAT_ACTIVE_BYTES;
}

static void settle_splits(struct statistics *result, const struct tally *tally, enum memory_stat_kind kind, bool implied,
                          bool is_complete, bool is_exact)
{
    for (int pool = 0; pool < MEMORY_POOL_CLASSES; pool++) {
        struct memory_stat *stat = &result->values.kinds[kind][pool], *bound = &result->bounds.kinds[kind][pool];
        memset(stat, 0, sizeof(*stat));
        memset(bound, 0, sizeof(*bound));
        if (implied) {
            bound->peak = bound->allocated = bound->freed = is_complete ? STATISTICS_EXACT : STATISTICS_AT_LEAST;
            continue;
        }
        stat->current = tally->now.kinds[kind][pool].current;
        bound->current = is_exact ? STATISTICS_EXACT : STATISTICS_AT_MOST;
        stat->peak = stat->allocated = is_exact ? stat->current : 0;
        bound->peak = bound->allocated = bound->freed = STATISTICS_AT_LEAST;
    }
}

static void settle_set(struct collection *c, size_t set, bool is_complete, int64_t max_split, bool knows_split)
{
    struct statistics *result = &c->list->items[set];
    const struct tally *tally = &c->tallies[set];
    bool implied = is_implied(c->snapshot, result->process), is_exact = c->state->exact;
    for (int kind = 0; kind < MEMORY_STAT_KINDS; kind++) {
        if (kind == MEMORY_STAT_INACTIVE_SPLIT || kind == MEMORY_STAT_INACTIVE_SPLIT_BYTES) {
            settle_splits(result, tally, (enum memory_stat_kind)kind, implied, is_complete, is_exact);
            continue;
        }
        bool is_told = implied || !is_block_bytes((enum memory_stat_kind)kind);
        for (int pool = 0; pool < MEMORY_POOL_CLASSES; pool++) {
            const struct memory_stat *changes = &tally->changes.kinds[kind][pool];
            int64_t now = tally->now.kinds[kind][pool].current, known = now;
            if (!is_told) /* of these bytes the trace tells the requested ones */
                known = kind == MEMORY_STAT_ALLOCATED_BYTES
                            ? tally->requested_allocated[pool]
                            : tally->now.kinds[MEMORY_STAT_REQUESTED_BYTES][pool].current;
            settle(&result->values.kinds[kind][pool], &result->bounds.kinds[kind][pool], changes,
                   known - changes->current, now, is_complete && is_told,
                   is_exact || is_told ? STATISTICS_EXACT : STATISTICS_AT_LEAST);
            struct memory_stat *bound = &result->bounds.kinds[kind][pool];
            if (kind == MEMORY_STAT_REQUESTED_BYTES && tally->is_padded)
                bound->peak = bound->allocated = bound->freed = is_complete ? STATISTICS_AT_MOST : STATISTICS_UNKNOWN;
        }
    }
    int64_t other = is_complete && implied ? STATISTICS_EXACT : STATISTICS_AT_LEAST;
    struct memory_stat *over[] = {&result->values.oversize_allocations, &result->values.oversize_segments};
    struct memory_stat *over_bound[] = {&result->bounds.oversize_allocations, &result->bounds.oversize_segments};
    const struct memory_stat *over_now[] = {&tally->now.oversize_allocations, &tally->now.oversize_segments};
    for (int i = 0; i < 2; i++) {
        over[i]->current = over[i]->peak = over[i]->allocated = over_now[i]->current;
        over_bound[i]->peak = over_bound[i]->allocated = over_bound[i]->freed = other;
        over_bound[i]->current = implied || knows_split ? STATISTICS_EXACT : STATISTICS_AT_LEAST;
    }
    result->values.num_ooms = tally->changes.num_ooms;
    result->values.num_device_alloc = tally->changes.num_device_alloc;
    result->values.num_device_free = tally->changes.num_device_free;
    result->bounds.num_ooms = result->bounds.num_device_alloc = result->bounds.num_device_free =
        is_complete ? STATISTICS_EXACT : STATISTICS_AT_LEAST;
    result->bounds.num_alloc_retries = result->bounds.num_sync_all_streams = other;
    result->values.max_split_size = knows_split ? max_split : -1;
    result->bounds.max_split_size = implied || knows_split ? STATISTICS_EXACT : STATISTICS_UNKNOWN;
}

static const struct device *find_device(const struct snapshot *snapshot, uint16_t process, uint16_t ordinal)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == process && snapshot->devices[i].ordinal == ordinal)
            return &snapshot->devices[i];
    return NULL;
}

/* A recording that lost nothing says everything; a trace of PyTorch may have begun at any time. */
static bool is_complete(const struct snapshot *snapshot, const struct statistics *set, const struct device *device)
{
    const struct process *process = set->process < snapshot->process_count ? &snapshot->processes[set->process] : NULL;
    return snapshot->source == SOURCE_RECORDED && process && !process->incomplete && !process->lost_state &&
           !process->unrecorded && (!device || !device->lost_entries);
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* An allocator that tells of its blocks: not when a free that waits ends, what was asked for, nor of free blocks. */
static enum statistics_bound bound_of_blocks(const char *key, bool is_lossless)
{
    bool is_now = strstr(key, ".current") != NULL;
    if (begins(key, "requested_bytes"))
        return is_now || is_lossless ? STATISTICS_AT_MOST : STATISTICS_UNKNOWN;
    if (begins(key, "inactive_split"))
        return is_now ? STATISTICS_EXACT : STATISTICS_AT_LEAST;
    if (begins(key, "active") || begins(key, "oversize") || begins(key, "num_sync") ||
        (begins(key, "num_alloc_retries") && !is_lossless))
        return STATISTICS_AT_LEAST;
    return begins(key, "max_split") ? STATISTICS_UNKNOWN : STATISTICS_EXACT;
}

static void take_recorded(struct statistics *result, const struct device *device, bool has_blocks)
{
    result->values = device->stats;
    memset(&result->bounds, 0, sizeof(result->bounds));
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int i = 0; i < MEMORY_STATS_KEYS && has_blocks; i++)
        *(int64_t *)(void *)((char *)&result->bounds + keys[i].offset) =
            bound_of_blocks(keys[i].name, !device->lost_entries);
    for (int i = 0; i < MEMORY_STATS_KEYS && !device->stats_exact; i++) {
        bool is_now = strstr(keys[i].name, ".current") || strcmp(keys[i].name, "max_split_size") == 0;
        if (has_blocks && is_now)
            continue;
        *(int64_t *)(void *)((char *)&result->bounds + keys[i].offset) = is_now ? STATISTICS_EXACT : STATISTICS_AT_LEAST;
    }
}

static int settle_all(struct collection *c, statistics_replay *replay, void *context, struct error *err)
{
    const struct snapshot *snapshot = c->snapshot;
    const struct memory_stats_key *keys = memory_stats_keys();
    int64_t max_split = -1;
    value content;
    bool knows_split = snapshot_get_setting(snapshot, "max_split_size", &content) &&
                       values_get_int(snapshot->values, content, &max_split);
    if (add_state(c, max_split))
        return error_no_memory(err);
    c->weight = 0;
    if (add_entries(c))
        return error_no_memory(err);
    for (size_t i = 0; i < c->list->count; i++) {
        struct statistics *set = &c->list->items[i];
        const struct device *device = find_device(snapshot, set->process, set->device);
        set->lost_entries = device ? device->lost_entries : 0;
        int status = 1;
        if (device && device->has_stats && c->moment == snapshot->entries.count) {
            take_recorded(set, device, snapshot->source == SOURCE_RECORDED && !is_implied(snapshot, set->process) &&
                                           !snapshot_is_cached(snapshot, set->process));
            status = STATUS_OK;
        } else if (replay) {
            status = replay(context, snapshot, c->moment, set, err);
        }
        if (status < 0)
            return status;
        if (status)
            settle_set(c, i, is_complete(snapshot, set, device), max_split, knows_split);
        set->is_exact = true;
        for (int k = 0; k < MEMORY_STATS_KEYS; k++)
            set->is_exact = set->is_exact && statistics_bound(set, &keys[k]) == STATISTICS_EXACT;
    }
    return STATUS_OK;
}

static int compare_sets(const void *a, const void *b)
{
    const struct statistics *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->device < y->device ? -1 : x->device > y->device;
}

/* Devices without memory and without entries are not worth a table, unless there is nothing else: a fresh process has
 * a set of zeros. */
static void drop_unused(struct collection *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->list->count; i++) {
        const struct statistics *set = &c->list->items[i];
        const struct device *device = find_device(c->snapshot, set->process, set->device);
        if (c->tallies[i].seen || (device && device->has_stats))
            c->list->items[kept++] = *set;
    }
    c->list->count = kept ? kept : 1;
    if (kept)
        return;
    struct statistics *set = &c->list->items[0];
    memset(&set->bounds, 0, sizeof(set->bounds));
    set->is_exact = true;
}

int statistics_collect(const struct snapshot *snapshot, const struct state *state, statistics_replay *replay, void *context,
                       struct statistics_list *result, struct error *err)
{
    struct collection c = {.snapshot = snapshot, .state = state, .list = result};
    c.moment = state == &snapshot->end ? snapshot->entries.count : state->moment;
    memset(result, 0, sizeof(*result));
    int status = STATUS_OK;
    for (size_t i = 0; i < snapshot->device_count && !status; i++)
        if (find_set(&c, snapshot->devices[i].process, snapshot->devices[i].ordinal) == NONE32)
            status = error_no_memory(err);
    if (!status)
        status = settle_all(&c, replay, context, err);
    if (!status && !result->count && find_set(&c, 0, 0) == NONE32)
        status = error_no_memory(err);
    if (!status) {
        drop_unused(&c);
        qsort(result->items, result->count, sizeof(*result->items), compare_sets);
    }
    table_free(&c.index);
    table_free(&c.maps);
    free(c.tallies);
    if (status)
        statistics_free(result);
    return status;
}

void statistics_free(struct statistics_list *list)
{
    free(list->items);
    memset(list, 0, sizeof(*list));
}
