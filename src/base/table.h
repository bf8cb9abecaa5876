/*
 * A hash table from 64-bit keys to 32-bit values: open addressing, linear probing, no tombstones.
 * 12 bytes a slot at most 7/8 full; every key is allowed.  A zeroed struct is an empty table.
 * Not thread safe.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table {
    uint64_t *keys;
    uint32_t *values;
    uint8_t *used;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void table_free(struct table *table);

/* The value of key, or `absent`. */
uint32_t table_get(const struct table *table, uint64_t key, uint32_t absent);
bool table_has(const struct table *table, uint64_t key);

/* Insert or replace.  0 or STATUS_NO_MEMORY. */
int table_set(struct table *table, uint64_t key, uint32_t value);

/* Where the value of key stands, inserted with `initial` if absent; NULL: no memory.  Valid until the next insertion or
 * removal. */
uint32_t *table_at(struct table *table, uint64_t key, uint32_t initial);

/* Remove; true if it was there. */
bool table_remove(struct table *table, uint64_t key);

/* A good 64-bit mixer, for callers that build keys of their own. */
static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

uint64_t hash_bytes(const void *data, size_t length);

#endif
