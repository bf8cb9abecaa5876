/*
 * What every cached allocation and its free go through, inline: statistics of a pool's class, blocks made, dropped, put
 * into their sets, merged and found.  Part of internal.h.
 */
#ifndef ALLOC_HOT_H
#define ALLOC_HOT_H

#include "alloc/internal.h"

#define HOT static inline __attribute__((always_inline))

/* --- statistics ------------------------------------------------------------------------------------------------- */

/* A class's statistics of every kind, MEMORY_POOL_CLASSES apart; a change moves those of all classes, too. */
HOT struct memory_stat *class_stats(struct allocator *a, const struct pool *pool)
{
    return (struct memory_stat *)(void *)((char *)a + pool->stats_at);
}

HOT void class_add(struct allocator *a, struct memory_stat *stats, enum memory_stat_kind kind, int64_t amount)
{
    memory_stat_increase(&a->stats.kinds[kind][MEMORY_POOL_ALL], amount);
    memory_stat_increase(&stats[kind * MEMORY_POOL_CLASSES], amount);
}

HOT void class_sub(struct allocator *a, struct memory_stat *stats, enum memory_stat_kind kind, int64_t amount)
{
    memory_stat_decrease(&a->stats.kinds[kind][MEMORY_POOL_ALL], amount);
    memory_stat_decrease(&stats[kind * MEMORY_POOL_CLASSES], amount);
}

static inline void stat_add(struct allocator *a, uint32_t pool, enum memory_stat_kind kind, int64_t amount)
{
    class_add(a, class_stats(a, &a->pools[pool]), kind, amount);
}

static inline void stat_sub(struct allocator *a, uint32_t pool, enum memory_stat_kind kind, int64_t amount)
{
    class_sub(a, class_stats(a, &a->pools[pool]), kind, amount);
}

/* --- blocks ----------------------------------------------------------------------------------------------------- */

/* 0: no memory. */
HOT uint32_t block_new(struct allocator *a, uint32_t pool, uint32_t stream, uint64_t address, uint64_t size)
{
    uint32_t index = a->free_blocks ? a->free_blocks : block_slot(a);
    if (!index)
        return 0;
    struct block *block = &a->blocks[index];
    a->free_blocks = block->uses;
    *block = (struct block){.address = address, .size = size, .pool = pool, .stream = stream, .space = NO_SPACE,
                            .live = true, .mapped = true, .place = block->place};
    return index;
}

HOT void block_drop_now(struct allocator *a, uint32_t index, struct block *block)
{
    if (block->named)
        address_map_remove(&a->by_address, block->address);
    block->live = false;
    block->active = true; /* whatever still points here must not merge with it */
    block->uses = a->free_blocks;
    a->free_blocks = index;
}

/* block_put() where the block is known. */
HOT int block_put_now(struct allocator *a, uint32_t index, struct block *block, const struct pool *pool)
{
    block->calls_base = pool->calls;
    if (!block->mapped || block->stream >= pool->set_capacity)
        return block_put_elsewhere(a, index);
    return free_set_insert_near(&pool->sets[block->stream], block->size, block->address, index, &block->place);
}

HOT void block_take_now(struct allocator *a, const struct block *block)
{
    struct pool *pool = &a->pools[block->pool];
    free_set_remove_near(block->mapped ? &pool->sets[block->stream] : &pool->unmapped[block->stream],
                         block->mapped ? block->size : 0, block->address, block->place);
}

/* May a neighbour (0, no block, counts as active) be joined? */
HOT bool block_joins(const struct allocator *a, const struct block *into, uint32_t from)
{
    return !a->blocks[from].active && a->blocks[from].mapped == into->mapped;
}

/* A free block for `size` bytes, out of its set; 0 if there is none. */
HOT uint32_t find_free(struct allocator *a, struct pool *pool, uint32_t stream, uint64_t size, bool expandable)
{
    pool->calls += a->collects;
    if (stream >= pool->set_capacity)
        return 0;
    struct free_set *set = &pool->sets[stream];
    struct free_position at = free_set_lower_size(set, size);
    if (!at.leaf)
        return 0;
    uint32_t found = free_set_block(set, at);
    if (a->blocks[found].space != NO_SPACE) {
        at = find_step_over_expandable(a, expandable, set, at);
        if (!at.leaf)
            return 0;
        found = free_set_block(set, at);
    }
    uint64_t whole = a->blocks[found].size, max_split = a->settings.max_split_size;
    if (whole >= (size < max_split ? max_split : size + a->settings.max_non_split_rounding))
        return 0;
    free_set_remove_at(set, at);
    return found;
}

/* A block that nobody uses any more joins its neighbours and goes into its set. */
HOT int free_block_now(struct allocator *a, uint32_t index, struct block *block, const struct pool *pool,
                       uint64_t context)
{
    struct memory_stat *stats = class_stats(a, pool);
    if (a->trace)
        trace_free(a, ALLOCATOR_FREE_COMPLETED, block, context);
    block->context = 0;
    block->active = false;
    class_sub(a, stats, MEMORY_STAT_ACTIVE, 1);
    class_sub(a, stats, MEMORY_STAT_ACTIVE_BYTES, (int64_t)block->size);
    class_sub(a, stats, MEMORY_STAT_REQUESTED_BYTES, (int64_t)block->requested);
    if (block_is_split(block)) {
        if (block_joins(a, block, block->previous) || block_joins(a, block, block->next)) {
            block_join(a, index, stats);
        } else if (block->space == NO_SPACE) {
            class_add(a, stats, MEMORY_STAT_INACTIVE_SPLIT, 1);
            class_add(a, stats, MEMORY_STAT_INACTIVE_SPLIT_BYTES, (int64_t)block->size);
        }
    }
    return block_put_now(a, index, block, pool);
}

#endif
