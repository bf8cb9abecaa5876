/* Giving cached memory back to the device: collection, oversize blocks, everything.  Uses src/base. */
#include "alloc/internal.h"

#include "base/array.h"

#include <stdlib.h>

struct block_list {
    uint32_t *items;
    size_t count, capacity;
};

static int list_add(struct block_list *list, uint32_t block)
{
    if (array_reserve(&list->items, &list->capacity, list->count + 1, sizeof(*list->items)))
        return STATUS_NO_MEMORY;
    list->items[list->count++] = block;
    return STATUS_OK;
}

/* The unsplit free blocks of a pool in set order; those of expandable segments (split or not) go to a list of their
 * own, if one is wanted. */
static int list_unsplit(struct allocator *a, uint32_t pool, struct block_list *plain, struct block_list *expandable)
{
    for (size_t i = 0; i < a->stream_count; i++) {
        uint32_t stream = a->stream_order[i];
        if (stream >= a->pools[pool].set_capacity)
            continue;
        const struct free_set *set = &a->pools[pool].sets[stream];
        struct free_position at;
        for (bool more = free_set_first(set, &at); more; more = free_set_next(set, &at)) {
            uint32_t block = free_set_block(set, at);
            struct block_list *list = a->blocks[block].space != NO_SPACE ? expandable
                                      : block_is_split(&a->blocks[block]) ? NULL
                                                                          : plain;
            if (list && list_add(list, block))
                return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

/* An unsplit free block back to the device. */
static void release_block(struct allocator *a, uint32_t index, uint64_t context)
{
    struct block *block = &a->blocks[index];
    a->stats.num_device_free++;
    trace_event(a, ALLOCATOR_SEGMENT_FREE, block->address, block->size, block->stream, block->pool,
                context ? context : block->segment_context);
    block_take(a, index);
    segment_return(a, block->pool, block->stream, block->address, block->size);
    a->reserved -= block->size;
    pool_owner(a, block->pool)->reserved -= block->size;
    stat_sub(a, block->pool, MEMORY_STAT_SEGMENT, 1);
    stat_sub(a, block->pool, MEMORY_STAT_RESERVED_BYTES, (int64_t)block->size);
    if (block->size >= a->settings.max_split_size)
        memory_stat_decrease(&a->stats.oversize_segments, 1);
    block_drop(a, index);
}

void release_collect(struct allocator *a, uint64_t context)
{
    uint64_t threshold = (uint64_t)(a->settings.garbage_collection_threshold * (double)a->limit);
    if (a->reserved <= threshold)
        return;
    uint64_t target = a->reserved - threshold, reclaimed = 0, age_sum = 0;
    struct block_list plain = {0}, expandable = {0};
    int status = list_unsplit(a, 1, &plain, &expandable);
    uint64_t calls = a->pools[1].calls;
    size_t count = plain.count, left = plain.count;
    for (size_t i = 0; i < plain.count; i++)
        age_sum += calls - a->blocks[plain.items[i]].calls_base;
    for (size_t i = 0; i < expandable.count; i++) {
        if (block_is_split(&a->blocks[expandable.items[i]]))
            continue;
        age_sum += calls - a->blocks[expandable.items[i]].calls_base;
        count++;
    }
    bool released = true;
    while (!status && reclaimed < target && released && count) {
        double age = (double)age_sum / (double)count;
        size_t kept = 0;
        released = false;
        for (size_t i = 0; i < left; i++) {
            const struct block *block = &a->blocks[plain.items[i]];
            uint64_t own = calls - block->calls_base;
            if ((double)own < age) {
                plain.items[kept++] = plain.items[i];
                continue;
            }
            released = true;
            reclaimed += block->size;
            age_sum -= own;
            count--;
            release_block(a, plain.items[i], context);
        }
        left = kept;
    }
    free(plain.items);
    free(expandable.items);
}

/* Blocks of max_split bytes are whole unless the setting was another one when they were split. */
static bool is_whole_segment(const struct allocator *a, uint32_t block)
{
    return a->blocks[block].space == NO_SPACE && !block_is_split(&a->blocks[block]);
}

bool release_available(struct allocator *a, const struct request *request)
{
    uint64_t max_split = a->settings.max_split_size;
    if (max_split == SETTINGS_UNLIMITED || request->stream >= a->pools[request->pool].set_capacity)
        return false;
    uint64_t key = request->size > max_split ? request->size : max_split, released = 0;
    struct free_set *set = &a->pools[request->pool].sets[request->stream];
    struct free_position at;
    bool found = free_set_lower_bound(set, key, 0, &at);
    if (found && is_whole_segment(a, free_set_block(set, at))) {
        release_block(a, free_set_block(set, at), request->context);
        return true;
    }
    if (!(found ? free_set_previous(set, &at) : free_set_last(set, &at)))
        return false;
    while (released < key && a->blocks[free_set_block(set, at)].size >= max_split) {
        uint32_t block = free_set_block(set, at);
        uint64_t size = a->blocks[block].size, address = a->blocks[block].address;
        if (is_whole_segment(a, block)) {
            released += size;
            release_block(a, block, request->context);
        }
        /* what stands before it now: a release moved the others */
        if (!free_set_lower_bound(set, size, address, &at) ? !free_set_last(set, &at) : !free_set_previous(set, &at))
            break;
    }
    return released >= key;
}

/* Every cached segment of a pool; pages of expandable ones after the others. */
static int release_pool(struct allocator *a, uint32_t pool, uint64_t context)
{
    struct block_list plain = {0}, expandable = {0};
    int status = list_unsplit(a, pool, &plain, &expandable);
    for (size_t i = 0; !status && i < plain.count; i++)
        release_block(a, plain.items[i], context);
    for (size_t i = 0; !status && i < expandable.count; i++)
        status = expandable_unmap(a, expandable.items[i], context);
    free(plain.items);
    free(expandable.items);
    return status;
}

int release_cached(struct allocator *a, uint64_t context, struct pool_id id)
{
    bool all = !id.first && !id.second;
    int status = STATUS_OK;
    if (all && !a->scope_count) {
        status = events_synchronize(a, context, UINT32_MAX);
        if (!status)
            status = release_pool(a, 1, context);
        if (!status)
            status = release_pool(a, 0, context);
    }
    for (size_t i = 0; !status && i < a->owner_count; i++) {
        uint32_t owner = a->owner_order[i];
        struct owner *private = &a->owners[owner];
        if (!owner || !private->alive || private->uses > 0)
            continue;
        if (!all && (private->id.first != id.first || private->id.second != id.second))
            continue;
        if (!all)
            status = events_synchronize(a, context, owner);
        if (!status)
            status = release_pool(a, 2 * owner, context);
        if (!status)
            status = release_pool(a, 2 * owner + 1, context);
        if (status || a->owners[owner].reserved || a->owners[owner].asking)
            continue;
        expandable_forget(a, 2 * owner);
        expandable_forget(a, 2 * owner + 1);
        a->owners[owner].alive = false;
    }
    return status;
}

int allocator_empty_cache(struct allocator *a, uint64_t context)
{
    return release_cached(a, context, (struct pool_id){0, 0});
}
