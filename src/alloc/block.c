/* Blocks, the sets they stand in, and streams.  Uses src/base. */
#include "alloc/internal.h"

#include "base/array.h"

#include <string.h>

uint32_t block_new(struct allocator *a, uint32_t pool, uint32_t stream, uint64_t address, uint64_t size)
{
    uint32_t index = a->free_blocks;
    if (index) {
        a->free_blocks = a->blocks[index].uses;
    } else {
        if (array_reserve(&a->blocks, &a->block_capacity, a->block_count + 1, sizeof(*a->blocks)) ||
            a->block_count >= UINT32_MAX)
            return 0;
        index = (uint32_t)a->block_count++;
    }
    a->blocks[index] = (struct block){
        .address = address, .size = size, .pool = pool, .stream = stream, .space = NO_SPACE, .live = true, .mapped = true};
    return index;
}

void block_drop(struct allocator *a, uint32_t block)
{
    if (a->blocks[block].named)
        address_map_remove(&a->by_address, a->blocks[block].address);
    a->blocks[block].live = false;
    a->blocks[block].uses = a->free_blocks;
    a->free_blocks = block;
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

int block_put(struct allocator *a, uint32_t index)
{
    struct block *block = &a->blocks[index];
    struct free_set *set = block->mapped ? pool_set(a, block->pool, block->stream)
                                         : pool_unmapped(a, block->pool, block->stream);
    block->calls_base = a->pools[block->pool].calls;
    return set ? free_set_insert(set, block->mapped ? block->size : 0, block->address, index) : STATUS_NO_MEMORY;
}

void block_take(struct allocator *a, uint32_t index)
{
    struct block *block = &a->blocks[index];
    if (block->mapped)
        free_set_remove(&a->pools[block->pool].sets[block->stream], block->size, block->address);
    else
        free_set_remove(&a->pools[block->pool].unmapped[block->stream], 0, block->address);
}

uint64_t block_merge(struct allocator *a, uint32_t into, uint32_t from)
{
    struct block *dst = &a->blocks[into], *src = &a->blocks[from];
    if (!from || src->allocated || src->event_count || src->uses || src->mapped != dst->mapped)
        return 0;
    block_take(a, from);
    if (dst->previous == from) {
        /* the entry of the address that stays goes over to the survivor */
        if (dst->named)
            address_map_remove(&a->by_address, dst->address);
        dst->named = src->named;
        src->named = false;
        if (dst->named)
            address_map_set(&a->by_address, src->address, into); /* it is there: no memory needed */
        dst->address = src->address;
        dst->previous = src->previous;
        if (dst->previous)
            a->blocks[dst->previous].next = into;
        else if (dst->space != NO_SPACE)
            a->spaces[dst->space].first = into;
        dst->segment_context = src->segment_context;
    } else {
        dst->next = src->next;
        if (dst->next)
            a->blocks[dst->next].previous = into;
    }
    uint64_t gained = src->size;
    dst->size += gained;
    block_drop(a, from);
    return gained;
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

uint32_t stream_find(struct allocator *a, int64_t handle)
{
    if (a->recent_stream < a->stream_count && a->streams[a->recent_stream].handle == handle)
        return a->recent_stream;
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
    return index;
}

void trace_always(struct allocator *a, enum allocator_action action, uint64_t address, uint64_t size, uint32_t stream,
                  uint32_t pool, uint64_t context)
{
    struct allocator_event event = {action, address, size, a->streams[stream].handle, pool_owner(a, pool)->id, context};
    a->trace(a->trace_self, &event);
}
