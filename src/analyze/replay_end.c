/* Final blocks and pools' sizes against the recording.  May use src/snapshot, src/alloc, src/base. */
#include "analyze/replay_end.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A segment or a block, to be compared as bytes: all members are equally wide. */
struct piece {
    uint64_t address, size, requested; /* of a segment: its pool as a number, 0 where the recording does not tell */
    int64_t state;                     /* enum block_state; of a segment -1 and less, by its class and kind */
    int64_t stream;                    /* of a segment */
};
struct pieces {
    const struct replay_plan *plan;
    bool has_pools;
    struct piece *items;
    size_t count, capacity;
};

static int add_piece(struct pieces *pieces, uint64_t address, uint64_t size, int state, uint64_t requested)
{
    if (array_reserve(&pieces->items, &pieces->capacity, pieces->count + 1, sizeof(*pieces->items)))
        return STATUS_NO_MEMORY;
    pieces->items[pieces->count++] =
        (struct piece){.address = address, .size = size, .requested = state == BLOCK_INACTIVE ? 0 : requested, .state = state};
    return STATUS_OK;
}

static uint32_t pool_number(const struct replay_plan *plan, int64_t first, int64_t second)
{
    for (uint32_t i = 0; i < plan->pool_count; i++)
        if (plan->pools[i].id.first == first && plan->pools[i].id.second == second)
            return i + 1;
    return 0;
}

static int segment_state(bool is_large, bool is_expandable)
{
    return -1 - is_large - 2 * is_expandable;
}

static int add_segment_piece(struct pieces *pieces, const struct piece *piece)
{
    int status = add_piece(pieces, piece->address, piece->size, (int)piece->state, piece->requested);
    if (!status)
        pieces->items[pieces->count - 1].stream = piece->stream;
    return status;
}

static int piece_segment(void *self, const struct allocator_segment *segment)
{
    struct pieces *pieces = self;
    const struct piece piece = {
        .address = segment->address, .size = segment->size, .stream = segment->stream,
        .state = segment_state(segment->is_large, segment->is_expandable),
        .requested = pieces->has_pools ? pool_number(pieces->plan, segment->pool.first, segment->pool.second) : 0};
    return add_segment_piece(pieces, &piece);
}

static int piece_block(void *self, const struct allocator_block *block)
{
    return add_piece(self, block->address, block->size,
                     block->allocated ? BLOCK_ACTIVE_ALLOCATED
                     : block->active  ? BLOCK_ACTIVE_PENDING_FREE
                                      : BLOCK_INACTIVE,
                     block->requested);
}

static int piece_compare(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->state < b->state ? -1 : a->state > b->state;
}

static void sort_pieces(struct pieces *pieces)
{
    if (pieces->count)
        qsort(pieces->items, pieces->count, sizeof(*pieces->items), piece_compare);
}

static int recorded_pieces(const struct replay_plan *plan, struct pieces *pieces)
{
    const struct state *end = &plan->snapshot->end;
    int status = STATUS_OK;
    for (size_t s = 0; s < end->segment_count && !status; s++) {
        const struct segment *segment = &end->segments[s];
        if (!replay_is_our_segment(plan, segment))
            continue;
        const struct pool *pool = segment->pool == NONE32 ? NULL : &plan->snapshot->pools[segment->pool];
        pieces->has_pools |= pool != NULL;
        const struct piece piece = {
            .address = segment->address, .size = segment->total_size, .stream = segment->stream,
            .state = segment_state(segment->is_large, segment->is_expandable),
            .requested = pool ? pool_number(plan, pool->id[0], pool->id[1]) : 0};
        status = add_segment_piece(pieces, &piece);
        for (uint32_t b = 0; b < segment->block_count && !status; b++) {
            const struct block *block = &end->blocks[segment->first_block + b];
            status = add_piece(pieces, block->address, block->size, block->state, block->requested);
        }
    }
    return status;
}

int replay_compare_end(const struct replay_plan *plan, const struct allocator *allocator, char *text, size_t size)
{
    struct pieces ours = {.plan = plan}, theirs = {.plan = plan};
    const struct allocator_visitor visitor = {piece_segment, piece_block, &ours};
    int status = recorded_pieces(plan, &theirs);
    ours.has_pools = theirs.has_pools;
    if (!status)
        status = allocator_visit(allocator, &visitor);
    sort_pieces(&ours);
    sort_pieces(&theirs);
    for (size_t i = 0; !status && (i < ours.count || i < theirs.count); i++) {
        if (i < ours.count && i < theirs.count && memcmp(&ours.items[i], &theirs.items[i], sizeof(ours.items[i])) == 0)
            continue;
        const struct piece *piece = i < theirs.count ? &theirs.items[i] : &ours.items[i];
        snprintf(text, size, "the recording's end has other blocks or segments, first at %#" PRIx64, piece->address);
        break;
    }
    free(ours.items);
    free(theirs.items);
    return status;
}

/* --- snapshots of one pool -------------------------------------------------------------------------------------- */

struct tally {
    const struct replay_plan *plan;
    uint64_t *bytes; /* by pool */
    uint32_t pool;   /* of the segment that is visited */
};

static int tally_segment(void *self, const struct allocator_segment *segment)
{
    struct tally *tally = self;
    uint32_t number = pool_number(tally->plan, segment->pool.first, segment->pool.second);
    tally->pool = number ? number - 1 : 0;
    return 0;
}

static int tally_block(void *self, const struct allocator_block *block)
{
    struct tally *tally = self;
    tally->bytes[tally->pool] += block->active ? block->size : 0;
    return 0;
}

int replay_is_pools_size(const struct replay_plan *plan, const struct allocator *allocator, uint64_t size, bool *result)
{
    struct tally tally = {.plan = plan, .bytes = calloc(plan->pool_count + 1, sizeof(*tally.bytes))};
    const struct allocator_visitor visitor = {tally_segment, tally_block, &tally};
    if (!tally.bytes)
        return STATUS_NO_MEMORY;
    int status = plan->pool_count > 1 ? allocator_visit(allocator, &visitor) : STATUS_OK;
    for (size_t i = 0; i < plan->pool_count; i++)
        *result |= plan->pool_count > 1 && tally.bytes[i] == size;
    free(tally.bytes);
    return status;
}
