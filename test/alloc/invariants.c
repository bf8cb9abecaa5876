/* See invariants.h. */
#include "invariants.h"

/* The current values that a visit tells. */
struct recount {
    int64_t now[MEMORY_STAT_KINDS][MEMORY_POOL_CLASSES];
};

static void recounted(struct recount *recount, enum memory_stat_kind kind, bool is_large, uint64_t amount)
{
    recount->now[kind][MEMORY_POOL_ALL] += (int64_t)amount;
    recount->now[kind][is_large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL] += (int64_t)amount;
}

static void recount_block(struct recount *recount, const struct allocator_segment *segment,
                          const struct allocator_block *block)
{
    bool large = segment->is_large;
    if (block->allocated) {
        recounted(recount, MEMORY_STAT_ALLOCATION, large, 1);
        recounted(recount, MEMORY_STAT_ALLOCATED_BYTES, large, block->size);
    }
    if (block->active) {
        recounted(recount, MEMORY_STAT_ACTIVE, large, 1);
        recounted(recount, MEMORY_STAT_ACTIVE_BYTES, large, block->size);
        recounted(recount, MEMORY_STAT_REQUESTED_BYTES, large, block->requested);
    } else if (!segment->is_expandable && block->size != segment->size) {
        recounted(recount, MEMORY_STAT_INACTIVE_SPLIT, large, 1);
        recounted(recount, MEMORY_STAT_INACTIVE_SPLIT_BYTES, large, block->size);
    }
}

static const char *walk(const struct side *side, struct recount *recount)
{
    const struct allocator_segment *segment = NULL;
    const struct allocator_block *last = NULL;
    uint64_t end = 0, segment_end = 0;
    for (size_t i = 0; i < side->item_count; i++) {
        const struct view_item *item = &side->items[i];
        if (item->is_segment) {
            if (segment && end != segment_end)
                return "blocks do not fill their segment";
            if (item->segment.address < segment_end)
                return "segments overlap or are out of order";
            segment = &item->segment;
            end = segment->address;
            segment_end = end + segment->size;
            last = NULL;
            recounted(recount, MEMORY_STAT_SEGMENT, segment->is_large, !segment->is_expandable);
            recounted(recount, MEMORY_STAT_RESERVED_BYTES, segment->is_large, segment->size);
            continue;
        }
        if (!segment || item->block.address != end || !item->block.size || item->block.size % ALLOCATOR_MIN_BLOCK)
            return "blocks do not tile their segment";
        if (last && !last->active && !item->block.active)
            return "two free neighbours were not merged";
        if (item->block.allocated && (!item->block.active || item->block.requested > item->block.size))
            return "an allocated block is not active or is too small";
        last = &item->block;
        end += last->size;
        recount_block(recount, segment, last);
    }
    return end == segment_end ? NULL : "blocks do not fill the last segment";
}

static const char *statistic_broken(const struct memory_stat *stat, int64_t now)
{
    if (stat->current != now)
        return "a statistic's current value is not the recounted one";
    if (stat->current != stat->allocated - stat->freed || stat->peak < stat->current || stat->current < 0)
        return "a statistic's four values do not agree";
    return NULL;
}

const char *invariants_broken(const struct side *side, const struct memory_stats *stats)
{
    struct recount recount = {0};
    const char *broken = walk(side, &recount);
    for (int kind = 0; kind < MEMORY_STAT_KINDS; kind++)
        for (int of = 0; of < MEMORY_POOL_CLASSES && !broken; of++)
            broken = statistic_broken(&stats->kinds[kind][of], recount.now[kind][of]);
    if (!broken && (uint64_t)recount.now[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL] != side->device.used)
        broken = "the device has given another amount than is reserved";
    return broken ? broken : side->device.fault;
}
