/*
 * The free blocks of one pool and stream in order of (size, address).
 *
 * Keys stand in sorted leaves of FREE_SET_LEAF slots.  A slot that loses its block keeps its key as a hole, so a block
 * that comes back to where it was moves nothing and needs no search: its last place is tried first.  Other keys look
 * for their leaf where their size was last looked for, then in the directory of the leaves' bounds; the search for a size
 * starts where the last one for it ended.  So the pairs of take and give back that make up a program's life cost about
 * the same among ten blocks and among a hundred thousand.  A leaf takes 1.4 KiB.
 * Positions are valid until the next change.  Not thread safe.
 */
#ifndef ALLOC_FREE_SET_H
#define ALLOC_FREE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FREE_SET_LEAF 63u /* slots; a search takes six steps without a branch */
#define FREE_SET_NEAR_BITS 6u

struct free_key {
    uint64_t size, address;
};

struct free_leaf {
    uint64_t live; /* the slots with a block; the others are holes, whose keys are in order too */
    uint64_t kept; /* the slots whose block, if it left, may come back: other holes are filled first */
    struct free_key keys[FREE_SET_LEAF + 2]; /* of the slots, between the leaf's bounds: above low, up to high */
    struct free_leaf *previous, *next;
    uint32_t id;   /* index into by_id */
    uint32_t blocks[FREE_SET_LEAF];
};

struct free_position {
    struct free_leaf *leaf;
    uint32_t slot;
};

struct free_set {
    struct free_leaf **leaves; /* in order */
    struct free_key *highs;    /* the upper bounds; the last one is above every key */
    struct free_leaf **by_id;
    size_t leaf_count, leaf_capacity, high_capacity, id_capacity;
    size_t count;
    struct free_leaf *empty;   /* a leaf that may have lost its last block; there is no other one */
    struct free_position *near; /* 1 << FREE_SET_NEAR_BITS: where a size like this was looked for; NULL: no leaf yet */
};

void free_set_free(struct free_set *set);

/* 0 or STATUS_NO_MEMORY.  The key must not be there. */
int free_set_insert(struct free_set *set, uint64_t size, uint64_t address, uint32_t block);

void free_set_remove(struct free_set *set, uint64_t size, uint64_t address);

/* The first block at or after (size, address); false if there is none. */
bool free_set_lower_bound(struct free_set *set, uint64_t size, uint64_t address, struct free_position *position);
/* The first one of at least that size; leaf NULL: there is none. */
static inline struct free_position free_set_lower_size(struct free_set *set, uint64_t size);
static inline void free_set_remove_at(struct free_set *set, struct free_position position);

bool free_set_first(const struct free_set *set, struct free_position *position);
bool free_set_last(const struct free_set *set, struct free_position *position);
bool free_set_next(const struct free_set *set, struct free_position *position);
bool free_set_previous(const struct free_set *set, struct free_position *position);

static inline uint32_t free_set_block(const struct free_set *set, struct free_position position)
{
    (void)set;
    return position.leaf->blocks[position.slot];
}

/* A place is a position that a block's owner may keep for as long as it likes, 0 at first: one that is wrong by now, or
 * another set's, costs a search.  These do as their namesakes; the first keeps the place right. */
static inline int free_set_insert_near(struct free_set *set, uint64_t size, uint64_t address, uint32_t block,
                                       uint32_t *place);
static inline void free_set_remove_near(struct free_set *set, uint64_t size, uint64_t address, uint32_t place);
static inline uint32_t free_set_place(struct free_position position)
{
    return position.leaf->id << 6 | position.slot;
}

/* --- what is inline -------------------------------------------------------------------------------------------- */

/* The parts of the above that are seldom gone through. */
struct free_position free_set_search_size(struct free_set *set, uint64_t size);
int free_set_insert_far(struct free_set *set, uint64_t size, uint64_t address, uint32_t block, uint32_t *place);
void free_set_thin(struct free_set *set, struct free_leaf *leaf);

static inline struct free_position *free_set_near(struct free_set *set, uint64_t size)
{
    return &set->near[(uint32_t)(size >> 9) * 0x9e3779b1u >> (32 - FREE_SET_NEAR_BITS)];
}

static inline struct free_position free_set_lower_size(struct free_set *set, uint64_t size)
{
    if (!set->near)
        return (struct free_position){NULL, 0};
    const struct free_position *near = free_set_near(set, size);
    struct free_leaf *leaf = near->leaf;
    const struct free_key *keys = &leaf->keys[near->slot]; /* the one before, and the one there */
    uint64_t rest = leaf->live >> near->slot;
    if (keys[0].size >= size || keys[1].size < size || !rest)
        return free_set_search_size(set, size);
    return (struct free_position){leaf, near->slot + (uint32_t)__builtin_ctzll(rest)};
}

static inline void free_set_remove_at(struct free_set *set, struct free_position position)
{
    uint64_t live = position.leaf->live & ~(UINT64_C(1) << position.slot);
    position.leaf->live = live;
    set->count--;
    if (!(live & (live - 1)) && set->leaf_count > 1)
        free_set_thin(set, position.leaf);
}

static inline int free_set_insert_near(struct free_set *set, uint64_t size, uint64_t address, uint32_t block,
                                       uint32_t *place)
{
    uint32_t at = *place, slot = at & 63;
    if (at >> 6 >= set->leaf_count)
        return free_set_insert_far(set, size, address, block, place);
    struct free_leaf *leaf = set->by_id[at >> 6];
    const struct free_key *there = &leaf->keys[slot + 1];
    uint64_t live = leaf->live;
    if (live >> slot & 1 || there->address != address || there->size != size)
        return free_set_insert_far(set, size, address, block, place);
    leaf->live = live | UINT64_C(1) << slot;
    leaf->blocks[slot] = block;
    set->count++;
    return 0;
}

static inline void free_set_remove_near(struct free_set *set, uint64_t size, uint64_t address, uint32_t place)
{
    uint32_t slot = place & 63;
    if (place >> 6 < set->leaf_count) {
        struct free_leaf *leaf = set->by_id[place >> 6];
        const struct free_key *there = &leaf->keys[slot + 1];
        if (there->address == address && there->size == size && leaf->live >> slot & 1) {
            free_set_remove_at(set, (struct free_position){leaf, slot});
            return;
        }
    }
    free_set_remove(set, size, address);
}

#endif
