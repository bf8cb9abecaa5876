/*
 * A small hash table from 64-bit keys to what the wrappers must remember.  Its memory comes from mmap, because wrappers do
 * not call malloc; it grows by half a fill.  Key 0 is none.  Not thread safe; entries move when one is added or removed.
 */
#ifndef PRELOAD_PLACES_H
#define PRELOAD_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place {
    uint64_t key;
    uint64_t size;
    uint64_t other;
    uint64_t held;
    uint32_t references, mapped;
    uint16_t device;
    uint8_t kind;
};

struct places {
    struct place *slots;
    size_t capacity, count;
};

struct place *places_find(const struct places *places, uint64_t key);
struct place *places_add(struct places *places, uint64_t key); /* zeroed, or what is there; NULL: no memory */
void places_remove(struct places *places, uint64_t key);

/* Walk: the first entry at or after slot *at; NULL at the end. */
struct place *places_next(const struct places *places, size_t *at);

#endif
