/* Growth over several states.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/growth.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

struct making {
    struct growth *growth;
    struct table row_of; /* node -> row */
    size_t side;
};

static int count_block(void *context, uint32_t node, const struct block *block, uint64_t requested)
{
    struct making *m = context;
    struct growth *growth = m->growth;
    uint32_t *slot = table_at(&m->row_of, node, NONE32);
    if (!slot)
        return STATUS_NO_MEMORY;
    if (*slot == NONE32) {
        size_t first = growth->count * growth->sides;
        if (array_reserve(&growth->rows, &growth->capacity, growth->count + 1, sizeof(*growth->rows)) ||
            array_reserve(&growth->bytes, &growth->bytes_capacity, first + growth->sides, sizeof(*growth->bytes)))
            return STATUS_NO_MEMORY;
        memset(&growth->bytes[first], 0, growth->sides * sizeof(*growth->bytes));
        growth->rows[growth->count] = (struct growth_row){.first = first, .stack = node};
        *slot = (uint32_t)growth->count++;
    }
    growth->bytes[growth->rows[*slot].first + m->side] += block->size;
    growth->totals[m->side].bytes += block->size;
    growth->totals[m->side].requested += requested;
    growth->totals[m->side].blocks++;
    return STATUS_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void judge(const struct growth *growth, struct growth_row *row, uint64_t *sorted)
{
    const uint64_t *bytes = growth_bytes(growth, row);
    for (size_t s = 1; s < growth->sides; s++) {
        row->rises += bytes[s] > bytes[s - 1];
        row->falls += bytes[s] < bytes[s - 1];
    }
    memcpy(sorted, bytes, growth->sides * sizeof(*sorted));
    if (growth->sides > 1) /* else there may be no array */
        qsort(sorted, growth->sides, sizeof(*sorted), compare_numbers);
    row->median = sorted[(growth->sides - 1) / 2];
    for (size_t s = 0; s < growth->sides; s++)
        if (distance(bytes[s], row->median) > row->apart) {
            row->apart = distance(bytes[s], row->median);
            row->side = s;
        }
}

static int compare_growth(const void *a, const void *b, void *context)
{
    const struct growth_row *x = a, *y = b;
    const struct growth *growth = context;
    bool x_grows = growth_only_grows(x), y_grows = growth_only_grows(y);
    if (x_grows != y_grows)
        return x_grows ? -1 : 1;
    if (x_grows && x->rises != y->rises)
        return x->rises > y->rises ? -1 : 1;
    const uint64_t *first = growth_bytes(growth, x), *second = growth_bytes(growth, y);
    uint64_t x_by = distance(first[growth->sides - 1], first[0]), y_by = distance(second[growth->sides - 1], second[0]);
    if (x_by != y_by)
        return x_by > y_by ? -1 : 1;
    return stack_tree_compare(&growth->stacks, x->stack, y->stack);
}

static int compare_apart(const void *a, const void *b, void *context)
{
    const struct growth_row *x = a, *y = b;
    const struct growth *growth = context;
    if (x->apart != y->apart)
        return x->apart > y->apart ? -1 : 1;
    return stack_tree_compare(&growth->stacks, x->stack, y->stack);
}

void growth_order_apart(struct growth *growth)
{
    if (growth->count > 1)
        qsort_r(growth->rows, growth->count, sizeof(*growth->rows), compare_apart, growth);
}

int growth_make(const struct diff_side *sides, size_t count, const struct diff_options *options, struct growth *growth,
                struct error *err)
{
    struct making m = {.growth = growth};
    memset(growth, 0, sizeof(*growth));
    growth->sides = count;
    growth->stacks.ignore_lines = options->ignore_lines;
    growth->stacks.user_frames = options->user_frames;
    growth->totals = calloc(count + 1, sizeof(*growth->totals));
    uint64_t *sorted = malloc((count + 1) * sizeof(*sorted));
    int status = growth->totals && sorted ? stack_tree_open(&growth->stacks) : STATUS_NO_MEMORY;
    for (m.side = 0; m.side < count && !status; m.side++)
        status = diff_side_walk(&growth->stacks, &sides[m.side], options, count_block, &m);
    for (size_t i = 0; i < growth->count && !status; i++)
        judge(growth, &growth->rows[i], sorted);
    free(sorted);
    table_free(&m.row_of);
    if (status) {
        growth_free(growth);
        return error_no_memory(err);
    }
    if (growth->count > 1)
        qsort_r(growth->rows, growth->count, sizeof(*growth->rows), compare_growth, growth);
    return STATUS_OK;
}

void growth_free(struct growth *growth)
{
    free(growth->rows);
    free(growth->bytes);
    free(growth->totals);
    stack_tree_close(&growth->stacks);
    memset(growth, 0, sizeof(*growth));
}
