/*
 * The statistics of torch.cuda.memory_stats(): their struct, their key names and the two rules by which they move.
 * Shared by the allocator (which keeps them), the recorder and the snapshot (which carry them).
 */
#ifndef BASE_MEMORY_STATS_H
#define BASE_MEMORY_STATS_H

#include <stddef.h>
#include <stdint.h>

struct memory_stat {
    int64_t current, peak, allocated, freed;
};

enum memory_pool_class { MEMORY_POOL_ALL, MEMORY_POOL_SMALL, MEMORY_POOL_LARGE, MEMORY_POOL_CLASSES };

enum memory_stat_kind { /* in PyTorch's order */
    MEMORY_STAT_ALLOCATION,
    MEMORY_STAT_SEGMENT,
    MEMORY_STAT_ACTIVE,
    MEMORY_STAT_INACTIVE_SPLIT,
    MEMORY_STAT_ALLOCATED_BYTES,
    MEMORY_STAT_RESERVED_BYTES,
    MEMORY_STAT_ACTIVE_BYTES,
    MEMORY_STAT_INACTIVE_SPLIT_BYTES,
    MEMORY_STAT_REQUESTED_BYTES,
    MEMORY_STAT_KINDS
};

struct memory_stats {
    struct memory_stat kinds[MEMORY_STAT_KINDS][MEMORY_POOL_CLASSES];
    struct memory_stat oversize_allocations, oversize_segments;
    int64_t num_alloc_retries, num_ooms, max_split_size, num_sync_all_streams, num_device_alloc, num_device_free;
};

/* An empty set: zeroes, max_split_size -1 (unlimited). */
void memory_stats_init(struct memory_stats *stats);

static inline void memory_stat_increase(struct memory_stat *stat, int64_t amount)
{
    stat->current += amount;
    stat->allocated += amount;
    if (stat->current > stat->peak)
        stat->peak = stat->current;
}

static inline void memory_stat_decrease(struct memory_stat *stat, int64_t amount)
{
    stat->current -= amount;
    stat->freed += amount;
}

/* Move a kind for a pool class and for "all" together. */
void memory_stats_increase(struct memory_stats *stats, enum memory_stat_kind kind, enum memory_pool_class pool,
                           int64_t amount);
void memory_stats_decrease(struct memory_stats *stats, enum memory_stat_kind kind, enum memory_pool_class pool,
                           int64_t amount);

#define MEMORY_STATS_KEYS 122

/* The flat keys of memory_stats(), sorted as plain strings ("active.all.allocated", ...), and where each one lives as
 * an offset of an int64_t in struct memory_stats. */
struct memory_stats_key {
    char name[48];
    size_t offset;
};
const struct memory_stats_key *memory_stats_keys(void); /* MEMORY_STATS_KEYS of them; thread safe */

static inline int64_t memory_stats_value(const struct memory_stats *stats, const struct memory_stats_key *key)
{
    return *(const int64_t *)(const void *)((const char *)stats + key->offset);
}

const char *memory_stat_kind_name(enum memory_stat_kind kind);       /* "allocated_bytes" */
const char *memory_pool_class_name(enum memory_pool_class pool);     /* "all", "small_pool", "large_pool" */

#endif
