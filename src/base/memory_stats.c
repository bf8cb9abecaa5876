/* The statistics' names and how a change moves two classes at once; uses only the C library. */
#include "base/memory_stats.h"

#include <string.h>

static const char *const memory_stat_names[MEMORY_STAT_KINDS] = {
    [MEMORY_STAT_ALLOCATION] = "allocation",
    [MEMORY_STAT_SEGMENT] = "segment",
    [MEMORY_STAT_ACTIVE] = "active",
    [MEMORY_STAT_INACTIVE_SPLIT] = "inactive_split",
    [MEMORY_STAT_ALLOCATED_BYTES] = "allocated_bytes",
    [MEMORY_STAT_RESERVED_BYTES] = "reserved_bytes",
    [MEMORY_STAT_ACTIVE_BYTES] = "active_bytes",
    [MEMORY_STAT_INACTIVE_SPLIT_BYTES] = "inactive_split_bytes",
    [MEMORY_STAT_REQUESTED_BYTES] = "requested_bytes",
};

#define ONE(text, member) {text, offsetof(struct memory_stats, member)}
#define FOUR(text, member)                                                                                       \
    ONE(text ".allocated", member.allocated), ONE(text ".current", member.current), ONE(text ".freed", member.freed), \
        ONE(text ".peak", member.peak)
#define TWELVE(text, kind)                                                                                       \
    FOUR(text ".all", kinds[kind][MEMORY_POOL_ALL]), FOUR(text ".large_pool", kinds[kind][MEMORY_POOL_LARGE]),   \
        FOUR(text ".small_pool", kinds[kind][MEMORY_POOL_SMALL])

static const struct memory_stats_key memory_stats_key_table[MEMORY_STATS_KEYS] = {
    TWELVE("active", MEMORY_STAT_ACTIVE),
    TWELVE("active_bytes", MEMORY_STAT_ACTIVE_BYTES),
    TWELVE("allocated_bytes", MEMORY_STAT_ALLOCATED_BYTES),
    TWELVE("allocation", MEMORY_STAT_ALLOCATION),
    TWELVE("inactive_split", MEMORY_STAT_INACTIVE_SPLIT),
    TWELVE("inactive_split_bytes", MEMORY_STAT_INACTIVE_SPLIT_BYTES),
    ONE("max_split_size", max_split_size),
    ONE("num_alloc_retries", num_alloc_retries),
    ONE("num_device_alloc", num_device_alloc),
    ONE("num_device_free", num_device_free),
    ONE("num_ooms", num_ooms),
    ONE("num_sync_all_streams", num_sync_all_streams),
    FOUR("oversize_allocations", oversize_allocations),
    FOUR("oversize_segments", oversize_segments),
    TWELVE("requested_bytes", MEMORY_STAT_REQUESTED_BYTES),
    TWELVE("reserved_bytes", MEMORY_STAT_RESERVED_BYTES),
    TWELVE("segment", MEMORY_STAT_SEGMENT),
};

void memory_stats_init(struct memory_stats *stats)
{
    memset(stats, 0, sizeof(*stats));
    stats->max_split_size = -1;
}

void memory_stats_increase(struct memory_stats *stats, enum memory_stat_kind kind, enum memory_pool_class pool,
                           int64_t amount)
{
    memory_stat_increase(&stats->kinds[kind][MEMORY_POOL_ALL], amount);
    if (pool != MEMORY_POOL_ALL)
        memory_stat_increase(&stats->kinds[kind][pool], amount);
}

void memory_stats_decrease(struct memory_stats *stats, enum memory_stat_kind kind, enum memory_pool_class pool,
                           int64_t amount)
{
    memory_stat_decrease(&stats->kinds[kind][MEMORY_POOL_ALL], amount);
    if (pool != MEMORY_POOL_ALL)
        memory_stat_decrease(&stats->kinds[kind][pool], amount);
}

const struct memory_stats_key *memory_stats_keys(void)
{
    return memory_stats_key_table;
}

const char *memory_stat_kind_name(enum memory_stat_kind kind)
{
    return (unsigned)kind < MEMORY_STAT_KINDS ? memory_stat_names[kind] : "";
}

const char *memory_pool_class_name(enum memory_pool_class pool)
{
    return pool == MEMORY_POOL_ALL ? "all" : pool == MEMORY_POOL_SMALL ? "small_pool" : "large_pool";
}
