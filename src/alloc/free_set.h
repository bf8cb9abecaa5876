/*
 * The free blocks of one pool and stream in order of (size, address).
 *
 * Keys stand in sorted chunks of at most FREE_SET_CHUNK; a list of chunks is searched by the largest key of each, after
 * the place that was used last.  So the pairs of take and give back that make up a program's life cost the same among
 * ten blocks and among a hundred thousand.  Positions are valid until the next change.  Not thread safe.
 */
#ifndef ALLOC_FREE_SET_H
#define ALLOC_FREE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FREE_SET_CHUNK 64u

struct free_key {
    uint64_t size, address;
};

struct free_item {
    struct free_key key;
    uint64_t block;
};

struct free_chunk {
    uint32_t count;
    struct free_item items[FREE_SET_CHUNK];
};

struct free_set {
    struct free_chunk **chunks;
    struct free_key *last; /* of each chunk */
    size_t chunk_count, chunk_capacity, last_capacity;
    size_t count;
    size_t recent; /* the chunk used last, and the slot in it: tried before any search */
    uint32_t recent_slot;
};

struct free_position {
    size_t chunk;
    uint32_t slot;
};

void free_set_free(struct free_set *set);

/* 0 or STATUS_NO_MEMORY.  The key must not be there. */
int free_set_insert(struct free_set *set, uint64_t size, uint64_t address, uint32_t block);

void free_set_remove(struct free_set *set, uint64_t size, uint64_t address);
void free_set_remove_at(struct free_set *set, struct free_position position);

/* The first block at or after (size, address); false if there is none. */
bool free_set_lower_bound(struct free_set *set, uint64_t size, uint64_t address, struct free_position *position);
bool free_set_first(const struct free_set *set, struct free_position *position);
bool free_set_last(const struct free_set *set, struct free_position *position);
bool free_set_next(const struct free_set *set, struct free_position *position);
bool free_set_previous(const struct free_set *set, struct free_position *position);

static inline uint32_t free_set_block(const struct free_set *set, struct free_position position)
{
    return (uint32_t)set->chunks[position.chunk]->items[position.slot].block;
}

#endif
