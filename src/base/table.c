/* Hash table u64 -> u32; uses only the C library. */
#include "base/table.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void table_free(struct table *table)
{
    free(table->keys);
    free(table->values);
    free(table->used);
    memset(table, 0, sizeof(*table));
}

uint64_t hash_bytes(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint64_t hash = 0x9e3779b97f4a7c15u ^ length;
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = hash_mix(hash ^ word);
        bytes += 8;
        length -= 8;
    }
    uint64_t rest = 0;
    if (length)
        memcpy(&rest, bytes, length);
    return hash_mix(hash ^ rest);
}

/* The slot of key, or the free slot where it would go; the table has at least one free slot. */
static size_t table_slot(const struct table *table, uint64_t key)
{
    size_t mask = table->capacity - 1;
    size_t slot = hash_mix(key) & mask;
    while (table->used[slot] && table->keys[slot] != key)
        slot = (slot + 1) & mask;
    return slot;
}

static int table_grow(struct table *table)
{
    struct table bigger = {0};
    bigger.capacity = table->capacity ? table->capacity * 2 : 16;
    bigger.keys = calloc(bigger.capacity, sizeof(*bigger.keys));
    bigger.values = calloc(bigger.capacity, sizeof(*bigger.values));
    bigger.used = calloc(bigger.capacity, 1);
    if (!bigger.keys || !bigger.values || !bigger.used) {
        table_free(&bigger);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (!table->used[i])
            continue;
        size_t slot = table_slot(&bigger, table->keys[i]);
        bigger.used[slot] = 1;
        bigger.keys[slot] = table->keys[i];
        bigger.values[slot] = table->values[i];
    }
    bigger.count = table->count;
    table_free(table);
    *table = bigger;
    return STATUS_OK;
}

uint32_t table_get(const struct table *table, uint64_t key, uint32_t absent)
{
    if (!table->capacity)
        return absent;
    size_t slot = table_slot(table, key);
    return table->used[slot] ? table->values[slot] : absent;
}

bool table_has(const struct table *table, uint64_t key)
{
    return table->capacity && table->used[table_slot(table, key)];
}

uint32_t *table_at(struct table *table, uint64_t key, uint32_t initial)
{
    if (table->count + 1 > table->capacity - table->capacity / 8 && table_grow(table))
        return NULL;
    size_t slot = table_slot(table, key);
    if (!table->used[slot]) {
        table->used[slot] = 1;
        table->keys[slot] = key;
        table->values[slot] = initial;
        table->count++;
    }
    return &table->values[slot];
}

int table_set(struct table *table, uint64_t key, uint32_t value)
{
    uint32_t *place = table_at(table, key, value);
    if (!place)
        return STATUS_NO_MEMORY;
    *place = value;
    return STATUS_OK;
}

bool table_remove(struct table *table, uint64_t key)
{
    if (!table->capacity)
        return false;
    size_t mask = table->capacity - 1;
    size_t hole = table_slot(table, key);
    if (!table->used[hole])
        return false;
    /* Move back what the hole would cut off from its home slot. */
    for (size_t next = (hole + 1) & mask; table->used[next]; next = (next + 1) & mask) {
        size_t home = hash_mix(table->keys[next]) & mask;
        if (((next - home) & mask) < ((next - hole) & mask))
            continue;
        table->keys[hole] = table->keys[next];
        table->values[hole] = table->values[next];
        hole = next;
    }
    table->used[hole] = 0;
    table->count--;
    return true;
}
