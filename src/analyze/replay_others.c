/*
 * What others take from the driver beside the allocator, where the recording tells of it: libraries with memory of their
 * own, in the same address space.  Small pieces share a page of the driver's.  May use src/snapshot, src/base.
 */
#include "analyze/replay_plan.h"

#include "base/array.h"
#include "device/placement.h"

#include <stdlib.h>

#define SMALL_PIECE (UINT64_C(1) << 20) /* smaller ones share pages */

struct others {
    struct replay_plan *plan;
    struct table live;  /* address -> its own, of large pieces */
    struct table pages; /* page -> pieces in it */
    struct table small; /* address of a small piece -> 1 */
};

static bool is_others(const struct replay_plan *plan, size_t entry)
{
    const struct entries *entries = &plan->snapshot->entries;
    uint8_t kind = entries->kind ? entries->kind[entry] : MEMORY_PLAIN;
    return (entries->flags[entry] & ENTRY_OUTSIDE) && !(entries->flags[entry] & (ENTRY_FAILED | ENTRY_BAD)) &&
           (entries->process ? entries->process[entry] : 0) == plan->options.process &&
           entries->device[entry] == plan->options.device && (kind == MEMORY_PLAIN || kind == MEMORY_PITCHED) &&
           (entries->action[entry] == ACTION_SEGMENT_ALLOC || entries->action[entry] == ACTION_SEGMENT_FREE);
}

static int add(struct replay_plan *plan, size_t at, uint64_t address, uint64_t size, uint32_t begins)
{
    if (array_reserve(&plan->others, &plan->other_capacity, plan->other_count + 1, sizeof(*plan->others)))
        return STATUS_NO_MEMORY;
    plan->others[plan->other_count++] = (struct replay_other){(uint32_t)at, begins, address, size};
    return STATUS_OK;
}

static int take(struct others *others, size_t at, uint64_t address, uint64_t size)
{
    uint64_t page = address / PLACEMENT_PAGE * PLACEMENT_PAGE;
    if (size >= SMALL_PIECE)
        return table_set(&others->live, address, (uint32_t)others->plan->other_count) ||
               add(others->plan, at, address, placement_round(size), NONE32) ? STATUS_NO_MEMORY : STATUS_OK;
    uint32_t *pieces = table_at(&others->pages, page, 0);
    if (!pieces || table_set(&others->small, address, 1))
        return STATUS_NO_MEMORY;
    if ((*pieces)++)
        return STATUS_OK;
    return table_set(&others->live, page, (uint32_t)others->plan->other_count) ||
           add(others->plan, at, page, PLACEMENT_PAGE, NONE32) ? STATUS_NO_MEMORY : STATUS_OK;
}

static int give_back(struct others *others, size_t at, uint64_t address)
{
    uint64_t page = address / PLACEMENT_PAGE * PLACEMENT_PAGE;
    if (table_has(&others->small, address)) {
        uint32_t *pieces = table_at(&others->pages, page, 1);
        if (!pieces)
            return STATUS_NO_MEMORY;
        table_remove(&others->small, address);
        if (--*pieces)
            return STATUS_OK;
        address = page;
    }
    uint32_t begins = table_get(&others->live, address, NONE32);
    if (begins == NONE32) /* it was there before */
        return STATUS_OK;
    table_remove(&others->live, address);
    return add(others->plan, at, address, 0, begins);
}

int replay_find_others(struct replay_plan *plan)
{
    const struct entries *entries = &plan->snapshot->entries;
    struct others others = {.plan = plan};
    size_t at = 0;
    int status = STATUS_OK;
    for (size_t i = 0; i < entries->count && !status; i++) {
        for (; at < plan->count && plan->list[at] < i; at++)
            ;
        if (!is_others(plan, i))
            continue;
        status = entries->action[i] == ACTION_SEGMENT_ALLOC ? take(&others, at, entries->address[i], entries->size[i])
                                                            : give_back(&others, at, entries->address[i]);
    }
    table_free(&others.live);
    table_free(&others.pages);
    table_free(&others.small);
    return status;
}
