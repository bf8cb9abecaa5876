/* Who holds memory at a moment, by stack, and which stacks only ever hold more.  May use src/snapshot and src/base. */
#include "analyze/explain_internal.h"

#include "analyze/allocations.h"
#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>

#define FREED_PART 10   /* of a stack that only grows less than a tenth of what it allocated was freed */
#define LEAST_BLOCKS 4  /* and it holds so many */
#define BEFORE NONE32   /* the key of what no entry tells of */

struct growth {
    struct explain *explain;
    const uint32_t *contents;   /* by stack node */
    struct table index;         /* content -> row */
    struct explain_stack *rows;
    size_t count, capacity;
};

static struct explain_stack *row_of(struct growth *growth, uint32_t context, bool is_before)
{
    uint32_t content = growth->contents[snapshot_context_stack(growth->explain->snapshot, context)];
    uint64_t key = is_before ? BEFORE : content;
    uint32_t *slot = table_at(&growth->index, key, NONE32);
    if (!slot)
        return NULL;
    if (*slot == NONE32) {
        if (array_reserve(&growth->rows, &growth->capacity, growth->count + 1, sizeof(*growth->rows)))
            return NULL;
        growth->rows[growth->count] = (struct explain_stack){.context = context, .is_before = is_before};
        *slot = (uint32_t)growth->count++;
    }
    return &growth->rows[*slot];
}

static int count_blocks(struct growth *growth)
{
    const struct state *state = &growth->explain->snapshot->end;
    for (size_t i = 0; i < state->block_count; i++) {
        const struct block *block = &state->blocks[i];
        if (!explain_is_live(block) || !explain_is_ours(growth->explain, &state->segments[block->segment]))
            continue;
        bool is_before = block->flags & BLOCK_BEFORE_RECORDING && snapshot_context_stack(growth->explain->snapshot,
                                                                                         block->context) == STACK_EMPTY;
        struct explain_stack *row = row_of(growth, block->context, is_before);
        if (!row)
            return STATUS_NO_MEMORY;
        row->bytes += block->size;
        row->blocks++;
    }
    return STATUS_OK;
}

static int count_allocation(void *context, const struct allocation *allocation)
{
    struct growth *growth = context;
    const struct explain *explain = growth->explain;
    uint64_t entries = explain->snapshot->entries.count;
    if (allocation->made == ALLOCATION_NO_ENTRY || allocation->process != explain->process ||
        allocation->device != explain->device)
        return STATUS_OK;
    struct explain_stack *row = row_of(growth, allocation->context, false);
    if (!row)
        return STATUS_NO_MEMORY;
    row->allocated += allocation->size;
    row->freed += allocation->freed != ALLOCATION_NO_ENTRY ? allocation->size : 0;
    for (unsigned quarter = 0; quarter < EXPLAIN_QUARTERS; quarter++) {
        uint64_t then = entries / EXPLAIN_QUARTERS * (quarter + 1);
        if (quarter + 1 == EXPLAIN_QUARTERS)
            then = entries;
        if (allocation->made < then && (allocation->freed == ALLOCATION_NO_ENTRY || allocation->freed >= then))
            row->quarters[quarter] += allocation->size;
    }
    return STATUS_OK;
}

static bool only_grows(const struct explain_stack *row)
{
    for (unsigned quarter = 1; quarter < EXPLAIN_QUARTERS; quarter++)
        if (row->quarters[quarter] <= row->quarters[quarter - 1])
            return false;
    return row->blocks >= LEAST_BLOCKS && row->freed < row->allocated / FREED_PART && !row->is_before;
}

static int compare_rows(const void *a, const void *b)
{
    const struct explain_stack *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->context < y->context ? -1 : x->context > y->context;
}

static int take_rows(struct growth *growth)
{
    struct explain *explain = growth->explain;
    size_t kept = 0;
    if (growth->count > 1) /* else there may be no array */
        qsort(growth->rows, growth->count, sizeof(*growth->rows), compare_rows);
    while (kept < growth->count && growth->rows[kept].bytes)
        kept++;
    explain->holders = growth->rows;
    explain->holder_count = kept;
    explain->growing = calloc(kept + 1, sizeof(*explain->growing));
    if (!explain->growing)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < kept; i++) {
        if (!only_grows(&growth->rows[i]))
            continue;
        explain->growing[explain->growing_count++] = growth->rows[i];
        explain->growing_bytes += growth->rows[i].bytes;
    }
    return STATUS_OK;
}

int explain_stacks(struct explain *explain)
{
    uint32_t *contents = snapshot_stack_contents(explain->snapshot);
    struct growth growth = {.explain = explain, .contents = contents};
    int status = contents ? count_blocks(&growth) : STATUS_NO_MEMORY;
    if (!status)
        status = allocations_walk(explain->snapshot, explain->snapshot->entries.count, false, count_allocation, &growth);
    if (!status)
        status = take_rows(&growth);
    if (explain->holders != growth.rows)
        free(growth.rows);
    table_free(&growth.index);
    free(contents);
    return status;
}
