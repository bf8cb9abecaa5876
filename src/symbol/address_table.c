/* Ranges of addresses, searched.  Uses src/base. */
#include "symbol/address_table.h"

#include "base/array.h"
#include "base/error.h"

#include <stdlib.h>

#define LOOK_BACK 64           /* ranges that may nest inside the one we want and end before the address */
#define UNSIZED_LIMIT 0x10000u /* a symbol without a size reaches no further */

int address_table_add(struct address_table *table, uint64_t start, uint64_t size, uint32_t item, uint32_t rank)
{
    if (array_reserve(&table->ranges, &table->capacity, table->count + 1, sizeof(*table->ranges)))
        return STATUS_NO_MEMORY;
    table->ranges[table->count++] = (struct address_range){start, size, item, rank};
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct address_range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

void address_table_sort(struct address_table *table)
{
    if (table->count)
        qsort(table->ranges, table->count, sizeof(*table->ranges), by_start);
}

uint32_t address_table_find(const struct address_table *table, uint64_t address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t best = UINT32_MAX, unsized = UINT32_MAX;
    uint64_t start = 0;
    for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--) {
        const struct address_range *range = &table->ranges[i - 1];
        if (best != UINT32_MAX && range->start != start)
            break; /* of those that begin where the match does, the first in order wins */
        if (address - range->start < range->size) {
            best = range->item;
            start = range->start;
        } else if (!range->size && i == low && address - range->start < UNSIZED_LIMIT) {
            unsized = range->item;
        }
    }
    return best != UINT32_MAX ? best : unsized;
}

void address_table_free(struct address_table *table)
{
    free(table->ranges);
    *table = (struct address_table){0};
}
