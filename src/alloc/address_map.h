/*
 * Address -> block, for giving back what was handed out: open addressing, one multiplication to hash.  A block's entry
 * stays while its address does, so a block that comes and goes costs one look.  Not thread safe.
 */
#ifndef ALLOC_ADDRESS_MAP_H
#define ALLOC_ADDRESS_MAP_H

#include <stddef.h>
#include <stdint.h>

struct address_slot {
    uint64_t address;
    uint64_t block; /* 0: free slot */
};

struct address_map {
    struct address_slot *slots;
    struct address_slot *last;
    size_t count;
    unsigned shift; /* 64 - log2 of the slots */
};

void address_map_free(struct address_map *map);
int address_map_set(struct address_map *map, uint64_t address, uint32_t block); /* 0 or STATUS_NO_MEMORY */
void address_map_remove(struct address_map *map, uint64_t address);

static inline size_t address_hash(const struct address_map *map, uint64_t address)
{
    return (size_t)((address >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> map->shift);
}

/* Another block for an address that is there. */
static inline void address_map_move(struct address_map *map, uint64_t address, uint32_t block)
{
    size_t mask = ((size_t)1 << (64 - map->shift)) - 1, at = address_hash(map, address);
    while (map->slots[at].address != address)
        at = (at + 1) & mask;
    map->slots[at].block = block;
}

/* The block, 0 if there is none.  A free slot may keep an address of before, with block 0. */
static inline uint32_t address_map_get(const struct address_map *map, uint64_t address)
{
    if (!map->slots)
        return 0;
    const struct address_slot *slot = &map->slots[address_hash(map, address)];
    while (slot->address != address) {
        if (!slot->block)
            return 0;
        slot = slot == map->last ? map->slots : slot + 1;
    }
    return (uint32_t)slot->block;
}

#endif
