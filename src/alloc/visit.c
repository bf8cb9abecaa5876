/* Looking at an allocator: segments and blocks in order, one block, and whether everything agrees.  Uses src/base. */
#include "alloc/internal.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>

struct start {
    uint64_t address;
    uint32_t block;
};

static int start_compare(const void *left, const void *right)
{
    const struct start *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* The first blocks of segments (of expandable ones: of each mapped range), by address. */
static int starts_list(const struct allocator *a, struct start **starts, size_t *count)
{
    size_t capacity = 0;
    *starts = NULL;
    *count = 0;
    for (uint32_t i = 1; i < a->block_count; i++) {
        const struct block *block = &a->blocks[i];
        if (!block->live || !block->mapped || (block->previous && a->blocks[block->previous].mapped))
            continue;
        if (array_reserve(starts, &capacity, *count + 1, sizeof(**starts))) {
            return STATUS_NO_MEMORY;
        }
        (*starts)[(*count)++] = (struct start){block->address, i};
    }
    if (*count)
        qsort(*starts, *count, sizeof(**starts), start_compare);
    return STATUS_OK;
}

static struct allocator_block block_view(const struct block *block)
{
    return (struct allocator_block){
        .address = block->address,
        .size = block->size,
        .requested = block->requested,
        .context = block->context,
        .allocated = block->allocated,
        .active = block->allocated || block->event_count || block->uses,
    };
}

static struct allocator_segment segment_view(const struct allocator *a, uint32_t first)
{
    const struct block *head = &a->blocks[first];
    struct allocator_segment segment = {
        .address = head->address,
        .context = head->segment_context,
        .stream = a->streams[head->stream].handle,
        .pool = a->owners[a->pools[head->pool].owner].id,
        .is_large = !a->pools[head->pool].is_small,
        .is_expandable = head->space != NO_SPACE,
    };
    for (uint32_t b = first; b && a->blocks[b].mapped; b = a->blocks[b].next)
        segment.size += a->blocks[b].size;
    return segment;
}

static int visit_segment(const struct allocator *a, uint32_t first, const struct allocator_visitor *visitor)
{
    struct allocator_segment segment = segment_view(a, first);
    int status = visitor->segment(visitor->self, &segment);
    for (uint32_t b = first; !status && b && a->blocks[b].mapped; b = a->blocks[b].next) {
        struct allocator_block block = block_view(&a->blocks[b]);
        status = visitor->block(visitor->self, &block);
    }
    return status;
}

int allocator_visit(const struct allocator *a, const struct allocator_visitor *visitor)
{
    struct start *starts;
    size_t count;
    int status = starts_list(a, &starts, &count);
    for (size_t i = 0; !status && i < count; i++)
        status = visit_segment(a, starts[i].block, visitor);
    free(starts);
    return status;
}

bool allocator_find(const struct allocator *a, uint64_t address, struct allocator_block *block)
{
    uint32_t exact = block_at(a, address);
    for (uint32_t i = exact ? exact : 1; i < a->block_count; i++) {
        const struct block *at = &a->blocks[i];
        if (at->live && at->mapped && address >= at->address && address - at->address < at->size) {
            *block = block_view(at);
            return true;
        }
    }
    return false;
}

bool allocator_has(const struct allocator *a, uint64_t address)
{
    return block_at(a, address) != 0;
}

bool allocator_segment_of(const struct allocator *a, uint64_t address, struct allocator_segment *segment)
{
    uint32_t first = block_at(a, address);
    if (!first)
        return false;
    while (a->blocks[first].previous && a->blocks[a->blocks[first].previous].mapped)
        first = a->blocks[first].previous;
    *segment = segment_view(a, first);
    return true;
}

uint64_t allocator_context(const struct allocator *a, uint64_t address)
{
    uint32_t block = block_at(a, address);
    return block ? a->blocks[block].context : 0;
}

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) \
            return error_set(err, STATUS_INPUT, __VA_ARGS__), false; \
    } while (0)

static bool set_is_valid(const struct allocator *a, uint32_t pool, uint32_t stream, bool mapped, size_t *found,
                         struct error *err)
{
    const struct free_set *set = mapped ? &a->pools[pool].sets[stream] : &a->pools[pool].unmapped[stream];
    struct free_position at;
    uint64_t size = 0, address = 0;
    size_t count = 0;
    for (bool more = free_set_first(set, &at); more; more = free_set_next(set, &at), count++) {
        const struct block *block = &a->blocks[free_set_block(set, at)];
        uint64_t key = mapped ? block->size : 0;
        CHECK(block->live && block->mapped == mapped && !block->allocated && !block->event_count && !block->uses,
              "block %#" PRIx64 " stands in the wrong set", block->address);
        CHECK(block->pool == pool && block->stream == stream, "block %#" PRIx64 " stands in a foreign set",
              block->address);
        CHECK(!count || key > size || (key == size && block->address > address), "a set is out of order");
        size = key;
        address = block->address;
    }
    CHECK(count == set->count, "a set has %zu blocks and counts %zu", count, set->count);
    *found += count;
    return true;
}

/* Neighbours touch, point at each other, and two free ones of equal mapping do not stand side by side. */
static bool links_are_valid(const struct allocator *a, uint32_t index, struct error *err)
{
    const struct block *block = &a->blocks[index];
    CHECK(block->size && block->size % ALLOCATOR_MIN_BLOCK == 0, "block %#" PRIx64 " has an odd size", block->address);
    if (!block->next)
        return true;
    const struct block *next = &a->blocks[block->next];
    CHECK(next->live && next->previous == index && next->address == block->address + block->size,
          "block %#" PRIx64 " and the next do not meet", block->address);
    bool block_free = !block->allocated && !block->event_count && !block->uses;
    bool next_free = !next->allocated && !next->event_count && !next->uses;
    CHECK(!(block_free && next_free && block->mapped == next->mapped), "two free neighbours at %#" PRIx64,
          next->address);
    return true;
}

static bool counts_are_valid(const struct allocator *a, struct error *err)
{
    int64_t active = 0, allocated = 0, active_bytes = 0, reserved = 0, requested = 0, split = 0, split_bytes = 0;
    for (uint32_t i = 1; i < a->block_count; i++) {
        const struct block *block = &a->blocks[i];
        if (!block->live || !block->mapped)
            continue;
        bool is_active = block->allocated || block->event_count || block->uses;
        reserved += (int64_t)block->size;
        active += is_active;
        allocated += block->allocated;
        active_bytes += is_active ? (int64_t)block->size : 0;
        requested += is_active ? (int64_t)block->requested : 0;
        if (!is_active && block_is_split(block) && block->space == NO_SPACE) {
            split++;
            split_bytes += (int64_t)block->size;
        }
    }
    const struct memory_stats *stats = &a->stats;
#define EQUAL(kind, counted) \
    CHECK(stats->kinds[kind][MEMORY_POOL_ALL].current == (counted), "%s is %" PRId64 ", counted %" PRId64, \
          memory_stat_kind_name(kind), stats->kinds[kind][MEMORY_POOL_ALL].current, (counted))
    EQUAL(MEMORY_STAT_ACTIVE, active);
    EQUAL(MEMORY_STAT_ALLOCATION, allocated);
    EQUAL(MEMORY_STAT_ACTIVE_BYTES, active_bytes);
    EQUAL(MEMORY_STAT_REQUESTED_BYTES, requested);
    EQUAL(MEMORY_STAT_RESERVED_BYTES, reserved);
    EQUAL(MEMORY_STAT_INACTIVE_SPLIT, split);
    EQUAL(MEMORY_STAT_INACTIVE_SPLIT_BYTES, split_bytes);
    CHECK(reserved == (int64_t)a->reserved, "reserved is %" PRIu64 ", counted %" PRId64, a->reserved, reserved);
    return true;
}

bool allocator_is_valid(const struct allocator *a, struct error *err)
{
    size_t in_sets = 0, free_blocks = 0;
    for (uint32_t pool = 0; pool < 2 * a->owner_count; pool++)
        for (uint32_t stream = 0; stream < a->pools[pool].set_capacity; stream++)
            if (!set_is_valid(a, pool, stream, true, &in_sets, err) ||
                !set_is_valid(a, pool, stream, false, &in_sets, err))
                return false;
    for (uint32_t i = 1; i < a->block_count; i++) {
        const struct block *block = &a->blocks[i];
        if (!block->live)
            continue;
        free_blocks += !block->allocated && !block->event_count && !block->uses;
        if (!links_are_valid(a, i, err))
            return false;
    }
    CHECK(in_sets == free_blocks, "%zu free blocks, %zu in sets", free_blocks, in_sets);
    return counts_are_valid(a, err);
}
