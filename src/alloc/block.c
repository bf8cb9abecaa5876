/* Blocks, the sets they stand in, and streams.  Uses src/base. */
#include "alloc/internal.h"

#include "base/array.h"

#include <string.h>

uint32_t block_slot(struct allocator *a)
{
    if (array_reserve(&a->blocks, &a->block_capacity, a->block_count + 1, sizeof(*a->blocks)) ||
        a->block_count >= UINT32_MAX)
        return 0;
    a->blocks[a->block_count].place = 0;
    a->blocks[a->block_count].uses = 0; /* no free block behind it */
    return (uint32_t)a->block_count++;
}

/* The set of one stream, made on first use; sets stand at the stream's index. */
static struct free_set *set_at(struct allocator *a, struct pool *pool, struct free_set **sets, uint32_t stream)
{
    if (stream >= pool->set_capacity) {
        size_t capacity = pool->set_capacity, same = pool->set_capacity;
        if (array_reserve(&pool->sets, &capacity, a->stream_count, sizeof(*pool->sets)) ||
            array_reserve(&pool->unmapped, &same, a->stream_count, sizeof(*pool->unmapped)))
            return NULL;
        memset(pool->sets + pool->set_capacity, 0, (capacity - pool->set_capacity) * sizeof(*pool->sets));
        memset(pool->unmapped + pool->set_capacity, 0, (same - pool->set_capacity) * sizeof(*pool->unmapped));
        pool->set_capacity = capacity < same ? capacity : same;
    }
    return &(*sets)[stream];
}

struct free_set *pool_set(struct allocator *a, uint32_t pool, uint32_t stream)
{
    return set_at(a, &a->pools[pool], &a->pools[pool].sets, stream);
}

struct free_set *pool_unmapped(struct allocator *a, uint32_t pool, uint32_t stream)
{
    return set_at(a, &a->pools[pool], &a->pools[pool].unmapped, stream);
}

int block_put_elsewhere(struct allocator *a, uint32_t index)
{
    struct block *block = &a->blocks[index];
    struct free_set *set = block->mapped ? pool_set(a, block->pool, block->stream)
                                         : pool_unmapped(a, block->pool, block->stream);
    if (!set)
        return STATUS_NO_MEMORY;
    return free_set_insert_near(set, block->mapped ? block->size : 0, block->address, index, &block->place);
}

int block_put(struct allocator *a, uint32_t index)
{
    return block_put_now(a, index, &a->blocks[index], &a->pools[a->blocks[index].pool]);
}

void block_take(struct allocator *a, uint32_t index)
{
    block_take_now(a, &a->blocks[index]);
}

void block_drop(struct allocator *a, uint32_t index)
{
    block_drop_now(a, index, &a->blocks[index]);
}

/* Join the free block behind; the bytes gained. */
static inline uint64_t join_next(struct allocator *a, uint32_t into, struct block *dst)
{
    uint32_t from = dst->next;
    struct block *src = &a->blocks[from];
    uint64_t gained = src->size;
    block_take_now(a, src);
    dst->next = src->next;
    if (dst->next)
        a->blocks[dst->next].previous = into;
    dst->size += gained;
    block_drop_now(a, from, src);
    return gained;
}

/* Join the free block before; the bytes gained. */
static inline uint64_t join_previous(struct allocator *a, uint32_t into, struct block *dst)
{
    uint32_t from = dst->previous;
    struct block *src = &a->blocks[from];
    block_take_now(a, src);
    /* the entry of the address that stays goes over to the survivor */
    if (dst->named)
        address_map_remove(&a->by_address, dst->address);
    dst->named = src->named;
    src->named = false;
    if (dst->named)
        address_map_move(&a->by_address, src->address, into);
    dst->address = src->address;
    dst->previous = src->previous;
    if (dst->previous)
        a->blocks[dst->previous].next = into;
    else if (dst->space != NO_SPACE)
        a->spaces[dst->space].first = into;
    dst->segment_context = src->segment_context;
    uint64_t gained = src->size;
    dst->size += gained;
    block_drop_now(a, from, src);
    return gained;
}

uint64_t block_merge(struct allocator *a, uint32_t into, uint32_t from)
{
    struct block *dst = &a->blocks[into];
    if (!block_joins(a, dst, from))
        return 0;
    return dst->previous == from ? join_previous(a, into, dst) : join_next(a, into, dst);
}

void block_join(struct allocator *a, uint32_t index, struct memory_stat *stats)
{
    struct block *block = &a->blocks[index];
    int64_t count = 0, bytes = 0;
    if (block_joins(a, block, block->previous)) {
        bytes -= (int64_t)join_previous(a, index, block);
        count--;
    }
    if (block_joins(a, block, block->next)) {
        bytes -= (int64_t)join_next(a, index, block);
        count--;
    }
    if (block->space != NO_SPACE)
        return;
    if (block_is_split(block)) {
        count++;
        bytes += (int64_t)block->size;
    }
    if (count < 0)
        class_sub(a, stats, MEMORY_STAT_INACTIVE_SPLIT, -count);
    if (bytes > 0)
        class_add(a, stats, MEMORY_STAT_INACTIVE_SPLIT_BYTES, bytes);
    else if (bytes < 0)
        class_sub(a, stats, MEMORY_STAT_INACTIVE_SPLIT_BYTES, -bytes);
}

int block_uses_add(struct allocator *a, struct block *block, uint32_t stream)
{
    for (uint32_t use = block->uses; use; use = a->uses[use].next)
        if (a->uses[use].stream == stream) {
            a->uses[use].in_scope |= a->scope_count > 0;
            return STATUS_OK;
        }
    uint32_t added = a->free_uses;
    if (added) {
        a->free_uses = a->uses[added].next;
    } else {
        if (array_reserve(&a->uses, &a->use_capacity, a->use_count + 2, sizeof(*a->uses)))
            return STATUS_NO_MEMORY;
        if (!a->use_count)
            a->use_count = 1; /* 0 ends a list */
        added = (uint32_t)a->use_count++;
    }
    a->uses[added] = (struct stream_use){stream, block->uses, a->scope_count > 0};
    block->uses = added;
    return STATUS_OK;
}

void block_uses_clear(struct allocator *a, struct block *block)
{
    while (block->uses) {
        uint32_t use = block->uses;
        block->uses = a->uses[use].next;
        a->uses[use].next = a->free_uses;
        a->free_uses = use;
    }
}

uint32_t stream_find_new(struct allocator *a, int64_t handle)
{
    uint32_t index = table_get(&a->stream_index, (uint64_t)handle, UINT32_MAX);
    if (index == UINT32_MAX) {
        if (array_reserve(&a->streams, &a->stream_capacity, a->stream_count + 1, sizeof(*a->streams)) ||
            array_reserve(&a->stream_order, &a->order_capacity, a->stream_count + 1, sizeof(*a->stream_order)) ||
            table_set(&a->stream_index, (uint64_t)handle, (uint32_t)a->stream_count))
            return UINT32_MAX;
        index = (uint32_t)a->stream_count++;
        a->streams[index] = (struct stream){.handle = handle};
        size_t at = index;
        for (; at && (uint64_t)a->streams[a->stream_order[at - 1]].handle > (uint64_t)handle; at--)
            a->stream_order[at] = a->stream_order[at - 1];
        a->stream_order[at] = index;
    }
    a->recent_stream = index;
    a->recent_handle = handle;
    return index;
}

void trace_always(struct allocator *a, enum allocator_action action, uint64_t address, uint64_t size, uint32_t stream,
                  uint32_t pool, uint64_t context)
{
    struct allocator_event event = {action, address, size, a->streams[stream].handle, pool_owner(a, pool)->id, context};
    a->trace(a->trace_self, &event);
}

void trace_free(struct allocator *a, enum allocator_action action, const struct block *block, uint64_t context)
{
    trace_always(a, action, block->address, block->requested, block->stream, block->pool,
                 context ? context : block->context);
}
