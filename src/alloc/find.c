/* Where a request is served from: a free block, a new segment, another pool.  Uses src/base, src/device's interface. */
#include "alloc/internal.h"

/* A free block's size with what could be mapped right behind it. */
static uint64_t size_with_room(const struct allocator *a, uint32_t block)
{
    uint32_t next = a->blocks[block].next;
    return a->blocks[block].size + (next && !a->blocks[next].mapped ? a->blocks[next].size : 0);
}

/* Of equal use: among expandable blocks prefer the one that can grow least; with the setting off skip them. */
static bool step_over_expandable(const struct allocator *a, const struct request *request, const struct free_set *set,
                                 struct free_position *at)
{
    if (a->blocks[free_set_block(set, *at)].space == NO_SPACE)
        return true;
    if (!request->expandable) {
        do {
            if (!free_set_next(set, at))
                return false;
        } while (a->blocks[free_set_block(set, *at)].space != NO_SPACE);
        return true;
    }
    struct free_position next = *at;
    while (a->blocks[free_set_block(set, *at)].space != NO_SPACE && free_set_next(set, &next) &&
           size_with_room(a, free_set_block(set, next)) < size_with_room(a, free_set_block(set, *at)))
        *at = next;
    return true;
}

uint32_t find_free(struct allocator *a, const struct request *request)
{
    struct pool *pool = &a->pools[request->pool];
    if (a->limit != ALLOCATOR_NO_LIMIT && a->settings.garbage_collection_threshold > 0)
        pool->calls++;
    if (request->stream >= pool->set_capacity)
        return 0;
    struct free_set *set = &pool->sets[request->stream];
    struct free_position at;
    if (!free_set_lower_bound(set, request->size, 0, &at) || !step_over_expandable(a, request, set, &at))
        return 0;
    uint32_t found = free_set_block(set, at);
    uint64_t size = a->blocks[found].size, max_split = a->settings.max_split_size;
    if (request->size < max_split && size >= max_split)
        return 0;
    if (request->size >= max_split && size >= request->size + a->settings.max_non_split_rounding)
        return 0;
    free_set_remove_at(set, at);
    return found;
}

int find_segment(struct allocator *a, const struct request *request, bool retry, uint32_t *found)
{
    if (retry)
        a->stats.num_alloc_retries++;
    if (a->limit != ALLOCATOR_NO_LIMIT &&
        (request->segment_size > a->limit || a->reserved > a->limit - request->segment_size))
        return ALLOCATOR_OUT_OF_MEMORY;
    if (request->expandable)
        return expandable_allocate(a, request, found);
    uint64_t address;
    int status = a->device.segment_get(a->device.self, request->segment_size, a->streams[request->stream].handle,
                                       &address);
    if (status)
        return status == MEMORY_DEVICE_FULL ? ALLOCATOR_OUT_OF_MEMORY : status;
    uint32_t index = block_new(a, request->pool, request->stream, address, request->segment_size);
    if (!index) {
        a->device.segment_release(a->device.self, address, request->segment_size);
        return STATUS_NO_MEMORY;
    }
    a->reserved += request->segment_size;
    pool_owner(a, request->pool)->reserved += request->segment_size;
    stat_add(a, request->pool, MEMORY_STAT_SEGMENT, 1);
    stat_add(a, request->pool, MEMORY_STAT_RESERVED_BYTES, (int64_t)request->segment_size);
    if (request->segment_size >= a->settings.max_split_size)
        memory_stat_increase(&a->stats.oversize_segments, 1);
    a->stats.num_device_alloc++;
    trace_event(a, ALLOCATOR_SEGMENT_ALLOC, address, request->segment_size, request->stream, request->pool,
                request->context);
    a->blocks[index].segment_context = request->context;
    *found = index;
    return STATUS_OK;
}

uint32_t find_on_oom(struct allocator *a, struct request *request)
{
    if (a->pools[request->pool].owner)
        return 0;
    struct request borrowed = *request;
    borrowed.expandable = false;
    for (size_t i = 0; i < a->owner_count; i++) {
        uint32_t owner = a->owner_order[i];
        if (!owner || !a->owners[owner].use_on_oom || a->owners[owner].uses <= 0)
            continue;
        borrowed.pool = 2 * owner + (request->pool & 1);
        uint32_t found = find_free(a, &borrowed);
        if (!found)
            continue;
        *request = borrowed; /* split as that pool's */
        return found;
    }
    return 0;
}
