/* Final blocks and pools' sizes against the recording, and what they tell of an end that was only rebuilt.  May use
 * src/snapshot, src/alloc, src/base. */
#include "analyze/replay_end.h"

#include "base/array.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A segment or a block. */
struct piece {
    uint64_t address, size, requested; /* of a segment: its pool as a number, 0 where the recording does not tell */
    int64_t state;                     /* enum block_state; of a segment -1 and less, by its class and kind */
    int64_t stream;                    /* of a segment */
};
struct pieces {
    const struct replay_plan *plan;
    bool has_pools;
    bool is_rebuilt; /* the recording's end is: sizes of blocks are guesses, so what is free is one, too */
    struct piece *items;
    size_t count, capacity;
};

static int add_piece(struct pieces *pieces, uint64_t address, uint64_t size, int state, uint64_t requested)
{
    if (pieces->is_rebuilt && state == BLOCK_INACTIVE)
        return STATUS_OK;
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

static bool is_same(const struct pieces *pieces, const struct piece *ours, const struct piece *theirs)
{
    bool is_segment = theirs->state < 0, is_untold = is_segment && !theirs->requested;
    return ours->address == theirs->address && ours->state == theirs->state && ours->stream == theirs->stream &&
           (ours->size == theirs->size || (pieces->is_rebuilt && !is_segment)) &&
           (ours->requested == theirs->requested || is_untold);
}

int replay_compare_end(const struct replay_plan *plan, const struct allocator *allocator, char *text, size_t size)
{
    struct pieces ours = {.plan = plan, .is_rebuilt = !plan->snapshot->end.exact}, theirs = ours;
    const struct allocator_visitor visitor = {piece_segment, piece_block, &ours};
    int status = recorded_pieces(plan, &theirs);
    ours.has_pools = theirs.has_pools;
    if (!status)
        status = allocator_visit(allocator, &visitor);
    sort_pieces(&ours);
    sort_pieces(&theirs);
    for (size_t i = 0; !status && (i < ours.count || i < theirs.count); i++) {
        if (i < ours.count && i < theirs.count && is_same(&ours, &ours.items[i], &theirs.items[i]))
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

/* --- an end that was rebuilt ------------------------------------------------------------------------------------ */

/* What the allocator has at the end, in address order. */
struct seen {
    struct allocator_segment *segments;
    size_t segment_count, segment_capacity;
    size_t *first_blocks; /* by segment */
    size_t first_capacity;
    struct allocator_block *blocks;
    size_t block_count, block_capacity;
};

static int see_segment(void *self, const struct allocator_segment *segment)
{
    struct seen *seen = self;
    if (array_reserve(&seen->segments, &seen->segment_capacity, seen->segment_count + 1, sizeof(*seen->segments)) ||
        array_reserve(&seen->first_blocks, &seen->first_capacity, seen->segment_count + 1, sizeof(*seen->first_blocks)))
        return STATUS_NO_MEMORY;
    seen->first_blocks[seen->segment_count] = seen->block_count;
    seen->segments[seen->segment_count++] = *segment;
    return STATUS_OK;
}

static int see_block(void *self, const struct allocator_block *block)
{
    struct seen *seen = self;
    if (array_reserve(&seen->blocks, &seen->block_capacity, seen->block_count + 1, sizeof(*seen->blocks)))
        return STATUS_NO_MEMORY;
    seen->blocks[seen->block_count++] = *block;
    return STATUS_OK;
}

static void seen_free(struct seen *seen)
{
    free(seen->segments);
    free(seen->first_blocks);
    free(seen->blocks);
}

static int mend_block(struct state *made, const struct allocator_block *now, const struct block *old)
{
    struct segment *segment = &made->segments[made->segment_count - 1];
    struct block block = {.address = now->address, .size = now->size, .context = CONTEXT_NONE, .state = BLOCK_INACTIVE,
                          .flags = BLOCK_REQUESTED_UNKNOWN};
    if (now->active) {
        block = *old;
        block.size = now->size;
        segment->active_size += now->size;
        segment->allocated_size += now->allocated ? now->size : 0;
    }
    return state_add_block(made, &block);
}

/* A segment whose active blocks are known to be those that the replay has. */
static int mend_segment(struct snapshot *snapshot, const struct seen *seen, size_t at, const struct segment *old,
                        struct state *made)
{
    struct segment segment = *old;
    segment.allocated_size = segment.active_size = 0;
    if (segment.pool == NONE32)
        segment.pool = snapshot_pool(snapshot, seen->segments[at].pool.first, seen->segments[at].pool.second);
    int status = state_add_segment(made, &segment);
    size_t end = at + 1 < seen->segment_count ? seen->first_blocks[at + 1] : seen->block_count;
    const struct block *next = &snapshot->end.blocks[old->first_block], *last = next + old->block_count;
    for (size_t i = seen->first_blocks[at]; i < end && !status; i++) {
        while (next + 1 < last && next->address < seen->blocks[i].address)
            next++;
        status = mend_block(made, &seen->blocks[i], next);
    }
    return status;
}

static int keep_segment(const struct state *end, const struct segment *segment, struct state *made)
{
    int status = state_add_segment(made, segment);
    for (uint32_t i = 0; i < segment->block_count && !status; i++)
        status = state_add_block(made, &end->blocks[segment->first_block + i]);
    return status;
}

/* The end once more, with the plan's device as it was seen. */
static int mend_with(const struct replay_plan *plan, struct snapshot *snapshot, const struct seen *seen)
{
    struct state made = {.moment = snapshot->end.moment};
    struct table index = {0};
    int status = STATUS_OK;
    for (size_t i = 0; i < seen->segment_count && !status; i++)
        status = table_set(&index, seen->segments[i].address, (uint32_t)i);
    for (size_t i = 0; i < snapshot->end.segment_count && !status; i++) {
        const struct segment *segment = &snapshot->end.segments[i];
        uint32_t at = replay_is_our_segment(plan, segment) ? table_get(&index, segment->address, NONE32) : NONE32;
        status = at == NONE32 ? keep_segment(&snapshot->end, segment, &made)
                              : mend_segment(snapshot, seen, at, segment, &made);
    }
    table_free(&index);
    if (status) {
        state_free(&made);
        return status;
    }
    state_free(&snapshot->end);
    snapshot->end = made;
    return STATUS_OK;
}

int replay_mend_place(struct replay_plan *plan, struct snapshot *snapshot, struct error *err)
{
    struct seen seen = {0};
    struct replay_result result;
    const struct allocator_visitor visitor = {see_segment, see_block, &seen};
    plan->end_visitor = &visitor;
    int status = replay_run_once(plan, &plan->trial, &result, NULL, NULL, err);
    plan->end_visitor = NULL;
    if (!status && result.exact && mend_with(plan, snapshot, &seen))
        status = error_no_memory(err);
    seen_free(&seen);
    return status;
}
