/*
 * Ranges of addresses and what lies there, to be filled, sorted once and searched many times: symbols of a module,
 * compilation units, functions of a unit.  Items are numbers of the caller's.  Where ranges nest, the one that begins
 * last wins; where two begin at one address, the one of higher rank, then the longer, then the one added first.
 *
 * A zeroed struct is an empty table.  Not thread safe.  Cost: 24 bytes a range; O(log n) a search, plus a few steps.
 */
#ifndef SYMBOL_ADDRESS_TABLE_H
#define SYMBOL_ADDRESS_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct address_range {
    uint64_t start, size; /* size 0: up to the next range */
    uint32_t item;
    uint32_t rank;
};

struct address_table {
    struct address_range *ranges;
    size_t count, capacity;
};

int address_table_add(struct address_table *table, uint64_t start, uint64_t size, uint32_t item, uint32_t rank);
void address_table_sort(struct address_table *table);
uint32_t address_table_find(const struct address_table *table, uint64_t address); /* UINT32_MAX: nothing */
void address_table_free(struct address_table *table);

#endif
