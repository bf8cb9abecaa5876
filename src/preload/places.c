/*
 * A small hash table in memory from mmap: open addressing, linear probing, removal by shifting back.
 */
#include "preload/places.h"

#include <string.h>
#include <sys/mman.h>

#define PLACES_FIRST 128 /* slots; a power of two */

static size_t home_of(const struct places *places, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (places->capacity - 1);
}

static struct place *slot_for(const struct places *places, uint64_t key)
{
    size_t at = home_of(places, key);
    while (places->slots[at].key && places->slots[at].key != key)
        at = (at + 1) & (places->capacity - 1);
    return &places->slots[at];
}

struct place *places_find(const struct places *places, uint64_t key)
{
    if (!places->capacity || !key)
        return NULL;
    struct place *slot = slot_for(places, key);
    return slot->key ? slot : NULL;
}

static bool grow(struct places *places)
{
    struct places bigger = {NULL, places->capacity ? 2 * places->capacity : PLACES_FIRST, places->count};
    size_t bytes = bigger.capacity * sizeof(struct place);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    bigger.slots = memory;
    for (size_t i = 0; i < places->capacity; i++)
        if (places->slots[i].key)
            *slot_for(&bigger, places->slots[i].key) = places->slots[i];
    if (places->slots)
        munmap(places->slots, places->capacity * sizeof(struct place));
    *places = bigger;
    return true;
}

struct place *places_add(struct places *places, uint64_t key)
{
    if (!key || (2 * (places->count + 1) > places->capacity && !grow(places)))
        return NULL;
    struct place *slot = slot_for(places, key);
    if (!slot->key) {
        slot->key = key;
        places->count++;
    }
    return slot;
}

void places_remove(struct places *places, uint64_t key)
{
    struct place *found = places_find(places, key);
    if (!found)
        return;
    size_t mask = places->capacity - 1;
    size_t hole = (size_t)(found - places->slots);
    for (size_t at = (hole + 1) & mask; places->slots[at].key; at = (at + 1) & mask) {
        size_t home = home_of(places, places->slots[at].key);
        /* may move back if its home does not lie between the hole and where it stands */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            places->slots[hole] = places->slots[at];
            hole = at;
        }
    }
    memset(&places->slots[hole], 0, sizeof(struct place));
    places->count--;
}

struct place *places_next(const struct places *places, size_t *at)
{
    for (; *at < places->capacity; ++*at)
        if (places->slots[*at].key)
            return &places->slots[(*at)++];
    return NULL;
}
