/* The least that would have to go for a request to be served: blocks between which a hole would be large enough, or that
 * keep segments from being given back.  May use src/snapshot, src/alloc and src/base. */
#include "analyze/explain_internal.h"

#include <stdlib.h>
#include <string.h>

/* Neighbouring blocks of one segment, with what is free around them. */
struct window {
    uint32_t first, last; /* blocks, both included */
    uint64_t size, live;  /* bytes: of all of them, and of those alive */
    bool is_found;
};

struct candidate {
    uint32_t segment;
    uint64_t live;
};

static const struct block *block_at(const struct explain *explain, uint32_t number)
{
    return &explain->snapshot->end.blocks[number];
}

static bool is_usable(const struct explain *explain, const struct segment *segment)
{
    const struct pool *pool = segment->pool == NONE32 ? NULL : &explain->snapshot->pools[segment->pool];
    const struct explain_request *request = &explain->request;
    return explain_is_ours(explain, segment) && segment->is_large != request->is_small &&
           (!request->has_stream || segment->stream == request->stream) &&
           (pool ? pool->id[0] : 0) == request->pool.id[0] && (pool ? pool->id[1] : 0) == request->pool.id[1];
}

/* A merged hole must be one that best fit would take. */
static bool would_serve(const struct explain *explain, const struct settings *settings, uint64_t size)
{
    uint64_t request = explain->request.size;
    if (size < request)
        return false;
    if (settings->max_split_size == SETTINGS_UNLIMITED)
        return true;
    return request < settings->max_split_size ? size < settings->max_split_size
                                              : size - request < settings->max_non_split_rounding;
}

static void consider(const struct explain *explain, const struct settings *settings, const struct window *window,
                     struct window *best)
{
    if (would_serve(explain, settings, window->size) && (!best->is_found || window->live < best->live)) {
        *best = *window;
        best->is_found = true;
    }
}

/* Every run of blocks that is as long as the request at least and begins and ends where live ones do. */
static void look_through(const struct explain *explain, const struct settings *settings, const struct segment *segment,
                         struct window *best)
{
    const uint32_t end = segment->first_block + segment->block_count;
    struct window window = {.first = segment->first_block};
    for (uint32_t last = window.first; last < end; last++) {
        const struct block *block = block_at(explain, last);
        window.last = last;
        window.size += block->size;
        window.live += explain_is_live(block) ? block->size : 0;
        while (window.first < last) { /* what is live and not needed stays */
            const struct block *first = block_at(explain, window.first);
            if (window.size - first->size < explain->request.size)
                break;
            window.size -= first->size;
            window.live -= explain_is_live(first) ? first->size : 0;
            window.first++;
        }
        struct window wide = window; /* what is free beside it becomes part of the hole */
        if (wide.first > segment->first_block && !explain_is_live(block_at(explain, wide.first - 1)))
            wide.size += block_at(explain, --wide.first)->size;
        if (wide.last + 1 < end && !explain_is_live(block_at(explain, wide.last + 1)))
            wide.size += block_at(explain, ++wide.last)->size;
        consider(explain, settings, &wide, best);
    }
}

static int compare_candidates(const void *a, const void *b, void *self)
{
    const struct segment *segments = self;
    const struct candidate *x = a, *y = b;
    /* live bytes for each byte that is given back, without fractions */
    unsigned __int128 left = (unsigned __int128)x->live * segments[y->segment].total_size;
    unsigned __int128 right = (unsigned __int128)y->live * segments[x->segment].total_size;
    if (left != right)
        return left < right ? -1 : 1;
    return x->segment < y->segment ? -1 : x->segment > y->segment;
}

static bool is_releasable(const struct explain *explain, const struct segment *segment)
{
    const struct pool *pool = segment->pool == NONE32 ? NULL : &explain->snapshot->pools[segment->pool];
    return explain_is_ours(explain, segment) && !segment->is_expandable && (!pool || (!pool->id[0] && !pool->id[1]));
}

/* Segments that cost least for what they give back, until it is enough.  SIZE_MAX: never enough. */
static size_t cheapest(const struct explain *explain, struct candidate *candidates, size_t count, uint64_t needed,
                       uint64_t *live, uint64_t *opened)
{
    const struct state *state = &explain->snapshot->end;
    if (count > 1) /* else there may be no array */
        qsort_r(candidates, count, sizeof(*candidates), compare_candidates, state->segments);
    *live = *opened = 0;
    for (size_t i = 0; i < count; i++) {
        *live += candidates[i].live;
        *opened += state->segments[candidates[i].segment].total_size;
        if (*opened >= needed)
            return i + 1;
    }
    return SIZE_MAX;
}

static size_t find_candidates(const struct explain *explain, struct candidate *candidates)
{
    const struct state *state = &explain->snapshot->end;
    size_t count = 0;
    for (size_t s = 0; s < state->segment_count; s++) {
        const struct segment *segment = &state->segments[s];
        if (!is_releasable(explain, segment))
            continue;
        candidates[count] = (struct candidate){.segment = (uint32_t)s};
        for (uint32_t i = 0; i < segment->block_count; i++) {
            const struct block *block = block_at(explain, segment->first_block + i);
            candidates[count].live += explain_is_live(block) ? block->size : 0;
        }
        count++;
    }
    return count;
}

static void pin(struct explain_pins *pins, const struct explain *explain, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last && last != NONE32; i++)
        if (explain_is_live(block_at(explain, i))) {
            pins->blocks[pins->count++] = i;
            pins->bytes += block_at(explain, i)->size;
        }
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void choose(struct explain *explain, const struct window *best, const struct candidate *candidates, size_t count,
                   uint64_t live, uint64_t opened)
{
    const struct state *state = &explain->snapshot->end;
    struct explain_pins *pins = &explain->pins;
    if (best->is_found && (count == SIZE_MAX || best->live <= live)) {
        pins->opened = best->size;
        pin(pins, explain, best->first, best->last);
    } else if (count != SIZE_MAX) {
        pins->opened = opened;
        pins->segments = count;
        for (size_t i = 0; i < count; i++) {
            const struct segment *segment = &state->segments[candidates[i].segment];
            if (segment->block_count)
                pin(pins, explain, segment->first_block, segment->first_block + segment->block_count - 1);
        }
        qsort(pins->blocks, pins->count, sizeof(*pins->blocks), compare_numbers);
    }
}

int explain_pins(struct explain *explain, const struct settings *settings)
{
    const struct state *state = &explain->snapshot->end;
    const struct explain_room *room = &explain->room;
    uint64_t live = 0, opened = 0, wanted = explain->memory.reserved + explain->request.segment_size;
    struct window best = {0};
    size_t count = SIZE_MAX;
    struct candidate *candidates = malloc((state->segment_count + 1) * sizeof(*candidates));
    explain->pins.blocks = malloc((state->block_count + 1) * sizeof(*explain->pins.blocks));
    if (!candidates || !explain->pins.blocks) {
        free(candidates);
        return STATUS_NO_MEMORY;
    }
    for (size_t s = 0; s < state->segment_count && explain->is_cached; s++)
        if (is_usable(explain, &state->segments[s]))
            look_through(explain, settings, &state->segments[s], &best);
    if (room->kind != EXPLAIN_ROOM_UNKNOWN && wanted > room->low)
        count = cheapest(explain, candidates, find_candidates(explain, candidates), wanted - room->low, &live, &opened);
    choose(explain, &best, candidates, count, live, opened);
    free(candidates);
    return STATUS_OK;
}
