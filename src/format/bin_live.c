/* Ranks among what is live, by a Fenwick tree.  Uses src/snapshot's names of actions. */
#include "format/bin_live.h"

#include <stdlib.h>
#include <string.h>

void bin_live_clear(struct bin_live *live, size_t entries)
{
    live->count = 0;
    live->size = 1;
    while (live->size < entries)
        live->size *= 2;
    memset(live->sums, 0, (live->size + 1) * sizeof(*live->sums));
}

void bin_live_add(struct bin_live *live, uint32_t entry)
{
    for (uint32_t i = entry + 1; i <= live->size; i += i & (0 - i))
        live->sums[i]++;
    live->count++;
}

void bin_live_remove(struct bin_live *live, uint32_t entry)
{
    for (uint32_t i = entry + 1; i <= live->size; i += i & (0 - i))
        live->sums[i]--;
    live->count--;
}

uint32_t bin_live_younger(const struct bin_live *live, uint32_t entry)
{
    uint32_t older = 0; /* and itself */
    for (uint32_t i = entry + 1; i; i -= i & (0 - i))
        older += live->sums[i];
    return live->count - older;
}

uint32_t bin_live_find(const struct bin_live *live, uint32_t younger)
{
    uint32_t wanted = live->count - younger; /* the entry up to which there are that many */
    uint32_t at = 0;
    for (uint32_t step = live->size; step; step >>= 1)
        if (at + step <= live->size && live->sums[at + step] < wanted) {
            at += step;
            wanted -= live->sums[at];
        }
    return at;
}

int bin_list_made_by(unsigned action)
{
    switch (action) {
    case ACTION_ALLOC:
        return BIN_LIST_ALLOCATIONS;
    case ACTION_FREE_REQUESTED:
        return BIN_LIST_PENDING;
    case ACTION_SEGMENT_ALLOC:
    case ACTION_SEGMENT_MAP:
        return BIN_LIST_SEGMENTS;
    default:
        return -1;
    }
}

int bin_list_released_by(unsigned action)
{
    switch (action) {
    case ACTION_FREE_REQUESTED:
        return BIN_LIST_ALLOCATIONS;
    case ACTION_FREE_COMPLETED:
        return BIN_LIST_PENDING;
    case ACTION_SEGMENT_FREE:
    case ACTION_SEGMENT_UNMAP:
        return BIN_LIST_SEGMENTS;
    default:
        return -1;
    }
}

int bin_work_reserve(struct bin_work *work, size_t entries)
{
    if (work->memory && entries <= work->capacity)
        return STATUS_OK;
    size_t size = 1;
    while (size < entries)
        size *= 2;
    bin_work_free(work);
    uint64_t *numbers = malloc(size * 3 * sizeof(uint64_t) + size * sizeof(uint32_t) +
                               BIN_LIST_COUNT * (size + 1) * sizeof(uint32_t));
    if (!numbers)
        return STATUS_NO_MEMORY;
    *work = (struct bin_work){.numbers = numbers, .others = numbers + size, .more = numbers + 2 * size,
                              .partner = (uint32_t *)(numbers + 3 * size), .memory = numbers, .capacity = size};
    for (size_t list = 0; list < BIN_LIST_COUNT; list++)
        work->lists[list].sums = work->partner + size + list * (size + 1);
    return STATUS_OK;
}

void bin_work_free(struct bin_work *work)
{
    free(work->memory);
    memset(work, 0, sizeof(*work));
}
