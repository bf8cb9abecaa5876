/* The difference of two states by stack.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/diff.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

struct building {
    struct diff *diff;
    struct table row_of; /* node -> row */
    bool is_after;
};

static int count_block(void *context, uint32_t node, const struct block *block, uint64_t requested)
{
    struct building *b = context;
    struct diff *diff = b->diff;
    uint32_t *slot = table_at(&b->row_of, node, NONE32);
    if (!slot)
        return STATUS_NO_MEMORY;
    if (*slot == NONE32) {
        if (array_reserve(&diff->rows, &diff->capacity, diff->count + 1, sizeof(*diff->rows)))
            return STATUS_NO_MEMORY;
        diff->rows[diff->count] = (struct diff_row){.stack = node};
        *slot = (uint32_t)diff->count++;
    }
    struct diff_row *row = &diff->rows[*slot];
    struct diff_amount *amounts[] = {b->is_after ? &row->after : &row->before, b->is_after ? &diff->after : &diff->before};
    for (int i = 0; i < 2; i++) {
        amounts[i]->bytes += block->size;
        amounts[i]->requested += requested;
        amounts[i]->blocks++;
    }
    return STATUS_OK;
}

const char *diff_frame(const struct diff *diff, uint32_t *node, size_t *length)
{
    return stack_tree_frame(&diff->stacks, node, length);
}

static uint64_t magnitude(uint64_t before, uint64_t after)
{
    return after > before ? after - before : before - after;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct diff_row *x = a, *y = b;
    const struct diff *diff = context;
    uint64_t keys[][2] = {{magnitude(x->before.bytes, x->after.bytes), magnitude(y->before.bytes, y->after.bytes)},
                          {magnitude(x->before.blocks, x->after.blocks), magnitude(y->before.blocks, y->after.blocks)},
                          {x->after.bytes, y->after.bytes}};
    for (size_t i = 0; i < 3; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    return stack_tree_compare(&diff->stacks, x->stack, y->stack);
}

int diff_states(const struct diff_side *before, const struct diff_side *after, const struct diff_options *options,
                struct diff *result, struct error *err)
{
    struct building b = {.diff = result};
    memset(result, 0, sizeof(*result));
    result->stacks.ignore_lines = options->ignore_lines;
    result->stacks.user_frames = options->user_frames;
    int status = stack_tree_open(&result->stacks);
    if (!status)
        status = diff_side_walk(&result->stacks, before, options, count_block, &b);
    b.is_after = true;
    if (!status)
        status = diff_side_walk(&result->stacks, after, options, count_block, &b);
    table_free(&b.row_of);
    if (status) {
        diff_free(result);
        return error_no_memory(err);
    }
    if (result->count > 1)
        qsort_r(result->rows, result->count, sizeof(*result->rows), compare_rows, result);
    return STATUS_OK;
}

void diff_free(struct diff *diff)
{
    free(diff->rows);
    stack_tree_close(&diff->stacks);
    memset(diff, 0, sizeof(*diff));
}
