/* What an allocator holds at a moment: its sums, its holes, and why none of them served a request.  May use
 * src/snapshot, src/alloc and src/base. */
#include "analyze/explain_internal.h"

#include "alloc/allocator.h"
#include "analyze/usage.h"

#include <stdlib.h>

bool explain_is_ours(const struct explain *explain, const struct segment *segment)
{
    return segment->process == explain->process && segment->device == explain->device && !segment->is_outside &&
           usage_is_devices(segment->kind);
}

static void add_block(struct explain_memory *memory, const struct block *block)
{
    switch ((enum block_state)block->state) {
    case BLOCK_ACTIVE_ALLOCATED:
        memory->blocks++;
        memory->allocated += block->size;
        memory->requested += block->flags & BLOCK_REQUESTED_UNKNOWN ? block->size : block->requested;
        if (block->flags & BLOCK_BEFORE_RECORDING) {
            memory->before_blocks++;
            memory->before += block->size;
        }
        return;
    case BLOCK_ACTIVE_PENDING_FREE:
        memory->pending_blocks++;
        memory->pending += block->size;
        return;
    case BLOCK_INACTIVE:
        memory->holes++;
        memory->free += block->size;
        memory->largest_hole = block->size > memory->largest_hole ? block->size : memory->largest_hole;
        return;
    case BLOCK_STATE_OTHER:
        return;
    }
}

static void add_segment(struct explain *explain, const struct segment *segment)
{
    const struct state *state = &explain->snapshot->end;
    bool is_empty = segment->block_count > 0;
    explain->memory.segments++;
    explain->memory.reserved += segment->total_size;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const struct block *block = &state->blocks[segment->first_block + i];
        add_block(&explain->memory, block);
        is_empty &= block->state == BLOCK_INACTIVE;
    }
    if (is_empty)
        explain->memory.releasable += segment->total_size;
}

static bool is_requests_pool(const struct explain *explain, const struct segment *segment)
{
    const struct pool *pool = segment->pool == NONE32 ? NULL : &explain->snapshot->pools[segment->pool];
    int64_t first = pool ? pool->id[0] : 0, second = pool ? pool->id[1] : 0;
    return first == explain->request.pool.id[0] && second == explain->request.pool.id[1];
}

/* The rule of best fit: large blocks are not cut for small requests, nor wasted on them. */
static bool is_unsplittable(const struct settings *settings, uint64_t request, uint64_t block)
{
    if (settings->max_split_size == SETTINGS_UNLIMITED)
        return false;
    return request < settings->max_split_size ? block >= settings->max_split_size
                                              : block - request >= settings->max_non_split_rounding;
}

static enum explain_hole_reason reason_of(const struct explain *explain, const struct settings *settings,
                                          const struct segment *segment, const struct block *block)
{
    const struct explain_request *request = &explain->request;
    if (!is_requests_pool(explain, segment))
        return EXPLAIN_HOLE_OTHER_POOL;
    if (segment->is_large == request->is_small)
        return EXPLAIN_HOLE_OTHER_CLASS;
    if (request->has_stream && segment->stream != request->stream)
        return EXPLAIN_HOLE_OTHER_STREAM;
    if (block->size < request->size)
        return EXPLAIN_HOLE_TOO_SMALL;
    return is_unsplittable(settings, request->size, block->size) ? EXPLAIN_HOLE_UNSPLITTABLE : EXPLAIN_HOLE_FITS;
}

/* The live neighbour of a block in its segment, in either direction. */
static uint32_t neighbour(const struct state *state, const struct segment *segment, uint32_t block, int step)
{
    int64_t first = segment->first_block, last = first + segment->block_count;
    for (int64_t i = (int64_t)block + step; i >= first && i < last; i += step)
        if (explain_is_live(&state->blocks[i]))
            return (uint32_t)i;
    return NONE32;
}

static void add_hole(struct explain *explain, const struct settings *settings, uint32_t number, size_t *count)
{
    const struct state *state = &explain->snapshot->end;
    const struct block *block = &state->blocks[number];
    const struct segment *segment = &state->segments[block->segment];
    struct explain_hole *hole = &explain->holes[(*count)++];
    *hole = (struct explain_hole){.block = number, .before = neighbour(state, segment, number, -1),
                                  .after = neighbour(state, segment, number, 1)};
    if (!explain->is_failure)
        return;
    hole->reason = reason_of(explain, settings, segment, block);
    struct explain_sum *sum = &explain->reasons[hole->reason];
    sum->count++;
    sum->bytes += block->size;
    sum->largest = block->size > sum->largest ? block->size : sum->largest;
}

static int compare_holes(const void *a, const void *b, void *self)
{
    const struct block *blocks = self;
    const struct block *x = &blocks[((const struct explain_hole *)a)->block];
    const struct block *y = &blocks[((const struct explain_hole *)b)->block];
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

int explain_holes(struct explain *explain, const struct settings *settings)
{
    const struct state *state = &explain->snapshot->end;
    size_t count = 0;
    for (size_t i = 0; i < state->segment_count; i++)
        if (explain_is_ours(explain, &state->segments[i]))
            add_segment(explain, &state->segments[i]);
    explain->holes = calloc(explain->memory.holes + 1, sizeof(*explain->holes));
    if (!explain->holes)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < state->block_count; i++)
        if (state->blocks[i].state == BLOCK_INACTIVE && explain_is_ours(explain, &state->segments[state->blocks[i].segment]))
            add_hole(explain, settings, (uint32_t)i, &count);
    if (count > 1) /* else there may be no array */
        qsort_r(explain->holes, count, sizeof(*explain->holes), compare_holes, state->blocks);
    return STATUS_OK;
}
