/* Where a request is served from: a free block, a new segment, another pool.  Uses src/base, src/device's interface. */
#include "alloc/internal.h"

/* A free block's size with what could be mapped right behind it. */
static uint64_t size_with_room(const struct allocator *a, uint32_t block)
{
    uint32_t next = a->blocks[block].next;
    return a->blocks[block].size + (next && !a->blocks[next].mapped ? a->blocks[next].size : 0);
}

struct free_position find_step_over_expandable(const struct allocator *a, bool expandable, const struct free_set *set,
                                               struct free_position at)
{
    if (!expandable) {
        do {
            if (!free_set_next(set, &at))
                return (struct free_position){NULL, 0};
        } while (a->blocks[free_set_block(set, at)].space != NO_SPACE);
        return at;
    }
    struct free_position next = at;
    while (a->blocks[free_set_block(set, at)].space != NO_SPACE && free_set_next(set, &next) &&
           size_with_room(a, free_set_block(set, next)) < size_with_room(a, free_set_block(set, at)))
        at = next;
    return at;
}

/* From where the pool has its segments. */
static int segment_get(struct allocator *a, const struct request *request, uint64_t *address)
{
    const struct pool_source *source = pool_owner(a, request->pool)->source;
    int64_t stream = a->streams[request->stream].handle;
    pool_owner(a, request->pool)->asking++;
    int status = source ? source->segment_get(source->self, request->segment_size, stream, address)
                        : a->device.segment_get(a->device.self, request->segment_size, stream, address);
    pool_owner(a, request->pool)->asking--;
    return status;
}

void segment_return(struct allocator *a, uint32_t pool, uint32_t stream, uint64_t address, uint64_t size)
{
    const struct pool_source *source = pool_owner(a, pool)->source;
    if (source)
        source->segment_release(source->self, address, size, a->streams[stream].handle);
    else
        a->device.segment_release(a->device.self, address, size);
}

int find_segment(struct allocator *a, const struct request *request, bool retry, uint32_t *found)
{
    if (a->device.settle) {
        pool_owner(a, request->pool)->asking++;
        a->device.settle(a->device.self);
        pool_owner(a, request->pool)->asking--;
    }
    if (retry)
        a->stats.num_alloc_retries++;
    if (a->limit != ALLOCATOR_NO_LIMIT &&
        (request->segment_size > a->limit || a->reserved > a->limit - request->segment_size))
        return ALLOCATOR_OUT_OF_MEMORY;
    if (request->expandable)
        return expandable_allocate(a, request, found);
    uint64_t address;
    int status = segment_get(a, request, &address);
    if (status)
        return status == MEMORY_DEVICE_FULL ? ALLOCATOR_OUT_OF_MEMORY : status;
    uint32_t index = block_new(a, request->pool, request->stream, address, request->segment_size);
    if (!index) {
        segment_return(a, request->pool, request->stream, address, request->segment_size);
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
    for (size_t i = 0; i < a->owner_count; i++) {
        uint32_t owner = a->owner_order[i], pool = 2 * owner + (request->pool & 1);
        if (!owner || !a->owners[owner].use_on_oom || a->owners[owner].uses <= 0)
            continue;
        uint32_t found = find_free(a, &a->pools[pool], request->stream, request->size, false);
        if (!found)
            continue;
        request->pool = pool; /* split as that pool's */
        request->expandable = false;
        return found;
    }
    return 0;
}
