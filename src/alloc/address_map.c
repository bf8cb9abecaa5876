/* Address -> block.  Uses src/base. */
#include "alloc/address_map.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { ADDRESS_MAP_FIRST = 6 }; /* log2 of the slots at the start */

void address_map_free(struct address_map *map)
{
    free(map->slots);
    memset(map, 0, sizeof(*map));
}

static struct address_slot *slot_of(const struct address_map *map, uint64_t address)
{
    size_t mask = ((size_t)1 << (64 - map->shift)) - 1, at = address_hash(map, address);
    while (map->slots[at].block && map->slots[at].address != address)
        at = (at + 1) & mask;
    return &map->slots[at];
}

static int address_map_grow(struct address_map *map)
{
    size_t slots = map->slots ? (size_t)1 << (64 - map->shift) : 0;
    struct address_map bigger = {.count = map->count, .shift = map->slots ? map->shift - 1 : 64 - ADDRESS_MAP_FIRST};
    bigger.slots = calloc((size_t)1 << (64 - bigger.shift), sizeof(*bigger.slots));
    if (!bigger.slots)
        return STATUS_NO_MEMORY;
    bigger.last = &bigger.slots[((size_t)1 << (64 - bigger.shift)) - 1];
    for (size_t i = 0; i < slots; i++)
        if (map->slots[i].block)
            *slot_of(&bigger, map->slots[i].address) = map->slots[i];
    free(map->slots);
    *map = bigger;
    return STATUS_OK;
}

int address_map_set(struct address_map *map, uint64_t address, uint32_t block)
{
    if ((!map->slots || map->count * 2 >= (size_t)1 << (64 - map->shift)) && address_map_grow(map))
        return STATUS_NO_MEMORY;
    struct address_slot *slot = slot_of(map, address);
    map->count += !slot->block;
    *slot = (struct address_slot){address, block};
    return STATUS_OK;
}

void address_map_remove(struct address_map *map, uint64_t address)
{
    if (!map->slots)
        return;
    size_t mask = ((size_t)1 << (64 - map->shift)) - 1;
    size_t hole = (size_t)(slot_of(map, address) - map->slots);
    if (!map->slots[hole].block)
        return;
    for (size_t next = (hole + 1) & mask; map->slots[next].block; next = (next + 1) & mask) {
        size_t home = address_hash(map, map->slots[next].address);
        if (((next - home) & mask) < ((next - hole) & mask))
            continue;
        map->slots[hole] = map->slots[next];
        hole = next;
    }
    map->slots[hole].block = 0;
    map->count--;
}
