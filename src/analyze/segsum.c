/* PyTorch's segment summary.  Uses src/snapshot, src/base and the requested sizes of analyze/flame. */
#include "analyze/segsum.h"

#include "analyze/flame.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct order {
    uint32_t segment;
    uint64_t size, active;
};

struct segsum {
    const struct snapshot *snapshot;
    const struct state *state;
    struct order *order;
    size_t next;
    struct segsum_bytes totals;
    double reserved;
    char *pages;
    size_t page_capacity;
    double *fractions;
    size_t fraction_capacity;
};

static int by_size(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    if (x->active != y->active)
        return x->active < y->active ? -1 : 1;
    return (x->segment > y->segment) - (x->segment < y->segment);
}

/* Sums are kept as integers until they are shown, as Python's are. */
struct sums {
    __int128 allocated, external, internal;
};

static void add_block(const struct segsum *segsum, size_t number, struct sums *sums)
{
    const struct block *block = &segsum->state->blocks[number];
    if (block->state != BLOCK_ACTIVE_ALLOCATED) {
        sums->external += block->size;
        return;
    }
    uint64_t requested = flame_block_requested(segsum->snapshot, segsum->state, number);
    sums->allocated += requested;
    sums->internal += (__int128)block->size - requested;
}

static struct segsum_bytes as_doubles(const struct sums *sums)
{
    return (struct segsum_bytes){(double)sums->allocated, (double)sums->external, (double)sums->internal};
}

int segsum_new(const struct snapshot *snapshot, const struct state *state, struct segsum **result, struct error *err)
{
    struct segsum *segsum = calloc(1, sizeof(*segsum));
    *result = NULL;
    if (!segsum)
        return error_no_memory(err);
    segsum->snapshot = snapshot;
    segsum->state = state;
    segsum->order = calloc(state->segment_count + 1, sizeof(*segsum->order));
    if (!segsum->order) {
        segsum_free(segsum);
        return error_no_memory(err);
    }
    struct sums sums = {0};
    __int128 reserved = 0;
    for (size_t i = 0; i < state->segment_count; i++) {
        const struct segment *segment = &state->segments[i];
        struct order *order = &segsum->order[i];
        *order = (struct order){.segment = (uint32_t)i, .size = segment->total_size};
        reserved += segment->total_size;
        for (size_t b = segment->first_block; b < segment->first_block + (size_t)segment->block_count; b++) {
            add_block(segsum, b, &sums);
            if (state->blocks[b].state == BLOCK_ACTIVE_ALLOCATED)
                order->active += state->blocks[b].size;
        }
    }
    segsum->totals = as_doubles(&sums);
    segsum->reserved = (double)reserved;
    qsort(segsum->order, state->segment_count, sizeof(*segsum->order), by_size);
    *result = segsum;
    return 0;
}

void segsum_free(struct segsum *segsum)
{
    if (!segsum)
        return;
    free(segsum->order);
    free(segsum->pages);
    free(segsum->fractions);
    free(segsum);
}

/* A block fills [start, start + size) of its segment: the first block on a page leaves its letter, from the second on
 * the page shows its tenths. */
static void draw_block(struct segsum *segsum, uint64_t page_count, uint64_t start, uint64_t size, char letter)
{
    uint64_t finish = start + size;
    if (finish < start || finish == 0)
        return;
    uint64_t last = (finish - 1) / SEGSUM_PAGE + 1;
    for (uint64_t page = start / SEGSUM_PAGE; page < last && page < page_count; page++) {
        uint64_t from = page * SEGSUM_PAGE, to = from + SEGSUM_PAGE;
        from = start > from ? start : from;
        to = finish < to ? finish : to;
        segsum->fractions[page] += ((double)to - (double)from) / (double)SEGSUM_PAGE;
        if (segsum->pages[page] == ' ') {
            segsum->pages[page] = letter;
        } else {
            int tenths = (int)(segsum->fractions[page] * 10);
            segsum->pages[page] = "0123456789*"[tenths < 0 ? 0 : tenths > 10 ? 10 : tenths];
        }
    }
}

static int draw_segment(struct segsum *segsum, const struct segment *segment, struct segsum_row *row)
{
    uint64_t count = (segment->total_size - 1) / SEGSUM_PAGE + 1; /* at least one page is here */
    row->is_cut = count > SEGSUM_MAX_PAGES;
    row->page_count = count = row->is_cut ? SEGSUM_MAX_PAGES : count;
    if (array_reserve(&segsum->pages, &segsum->page_capacity, count + 1, 1) ||
        array_reserve(&segsum->fractions, &segsum->fraction_capacity, count, sizeof(double)))
        return STATUS_NO_MEMORY;
    memset(segsum->pages, ' ', count);
    segsum->pages[count] = '\0';
    memset(segsum->fractions, 0, count * sizeof(double));
    struct sums sums = {0};
    uint64_t offset = 0;
    unsigned active = 0;
    for (size_t b = segment->first_block; b < segment->first_block + (size_t)segment->block_count; b++) {
        const struct block *block = &segsum->state->blocks[b];
        add_block(segsum, b, &sums);
        if (block->state == BLOCK_ACTIVE_ALLOCATED) {
            uint64_t requested = flame_block_requested(segsum->snapshot, segsum->state, b);
            draw_block(segsum, count, offset, requested, (char)('a' + active % 26));
            active++;
        }
        offset += block->size;
    }
    row->bytes = as_doubles(&sums);
    row->pages = segsum->pages;
    return 1;
}

int segsum_next(struct segsum *segsum, struct segsum_row *row)
{
    while (segsum->next < segsum->state->segment_count) {
        const struct segment *segment = &segsum->state->segments[segsum->order[segsum->next++].segment];
        if (segment->total_size < SEGSUM_PAGE)
            continue;
        *row = (struct segsum_row){.segment = segment};
        return draw_segment(segsum, segment, row);
    }
    return 0;
}

struct segsum_bytes segsum_totals(const struct segsum *segsum)
{
    return segsum->totals;
}

double segsum_reserved(const struct segsum *segsum)
{
    return segsum->reserved;
}
