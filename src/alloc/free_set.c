/* Ordered free blocks: what is seldom gone through.  Uses src/base. */
#include "alloc/free_set.h"

#include "base/array.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define ABOVE_ALL ((struct free_key){UINT64_MAX, UINT64_MAX})
#define ALL_LIVE ((UINT64_C(1) << FREE_SET_LEAF) - 1)
enum {
    SPARSE = FREE_SET_LEAF / 2, /* a leaf with at most so many blocks takes in a neighbour's last one */
    NEAR = 1 << FREE_SET_NEAR_BITS,
};

void free_set_free(struct free_set *set)
{
    for (size_t i = 0; i < set->leaf_count; i++)
        free(set->leaves[i]);
    free(set->leaves);
    free(set->highs);
    free(set->by_id);
    free(set->near);
    memset(set, 0, sizeof(*set));
}

static inline bool key_less(struct free_key a, struct free_key b)
{
    __extension__ typedef unsigned __int128 wide; /* compared without a branch */
    return ((wide)a.size << 64 | a.address) < ((wide)b.size << 64 | b.address);
}

/* The first slot whose key is not below key; FREE_SET_LEAF if there is none. */
static inline uint32_t leaf_slot(const struct free_leaf *leaf, struct free_key key)
{
    const struct free_key *base = leaf->keys + 1;
    base = key_less(base[31], key) ? base + 32 : base;
    base = key_less(base[15], key) ? base + 16 : base;
    base = key_less(base[7], key) ? base + 8 : base;
    base = key_less(base[3], key) ? base + 4 : base;
    base = key_less(base[1], key) ? base + 2 : base;
    base = key_less(base[0], key) ? base + 1 : base;
    return (uint32_t)(base - leaf->keys - 1);
}

/* The index of the leaf that key belongs to: the first whose upper bound is not below it. */
static inline size_t leaf_index(const struct free_set *set, struct free_key key)
{
    const struct free_key *base = set->highs;
    size_t left = set->leaf_count;
    while (left > 1) { /* the halves are chosen without a branch */
        size_t half = left / 2;
        base = key_less(base[half - 1], key) ? base + half : base;
        left -= half;
    }
    return (size_t)(base - set->highs);
}

static bool belongs_to(const struct free_leaf *leaf, struct free_key key)
{
    return key_less(leaf->keys[0], key) && !key_less(leaf->keys[FREE_SET_LEAF + 1], key);
}

/* The leaf that key belongs to; there is at least one. */
static inline struct free_leaf *leaf_of(const struct free_set *set, struct free_key key, struct free_leaf *likely)
{
    return belongs_to(likely, key) ? likely : set->leaves[leaf_index(set, key)];
}

/* The first block of this leaf or of one behind it. */
static bool first_from(struct free_leaf *leaf, struct free_position *position)
{
    while (leaf && !leaf->live)
        leaf = leaf->next;
    position->leaf = leaf;
    if (leaf)
        position->slot = (uint32_t)__builtin_ctzll(leaf->live);
    return leaf;
}

/* The first slot whose key is of at least this size. */
static inline uint32_t leaf_slot_of_size(const struct free_leaf *leaf, uint64_t size)
{
    const struct free_key *base = leaf->keys + 1;
    base = base[31].size < size ? base + 32 : base;
    base = base[15].size < size ? base + 16 : base;
    base = base[7].size < size ? base + 8 : base;
    base = base[3].size < size ? base + 4 : base;
    base = base[1].size < size ? base + 2 : base;
    base = base[0].size < size ? base + 1 : base;
    return (uint32_t)(base - leaf->keys - 1);
}

static inline struct free_leaf *leaf_of_size(const struct free_set *set, uint64_t size)
{
    const struct free_key *base = set->highs;
    size_t left = set->leaf_count;
    while (left > 1) {
        size_t half = left / 2;
        base = base[half - 1].size < size ? base + half : base;
        left -= half;
    }
    return set->leaves[base - set->highs];
}

struct free_position free_set_search_size(struct free_set *set, uint64_t size)
{
    struct free_position *near = free_set_near(set, size), found = {NULL, 0};
    struct free_leaf *leaf = near->leaf;
    if (!set->count)
        return found;
    if (leaf->keys[0].size >= size || leaf->keys[FREE_SET_LEAF + 1].size < size)
        near->leaf = leaf = leaf_of_size(set, size);
    uint32_t slot = leaf_slot_of_size(leaf, size);
    uint64_t rest = leaf->live >> slot;
    near->slot = slot;
    if (rest)
        return (struct free_position){leaf, slot + (uint32_t)__builtin_ctzll(rest)};
    first_from(leaf->next, &found);
    return found;
}

bool free_set_lower_bound(struct free_set *set, uint64_t size, uint64_t address, struct free_position *position)
{
    const struct free_key key = {size, address};
    if (!set->count)
        return false;
    struct free_leaf *leaf = set->leaves[leaf_index(set, key)];
    uint32_t slot = leaf_slot(leaf, key);
    uint64_t rest = leaf->live >> slot;
    if (!rest)
        return first_from(leaf->next, position);
    *position = (struct free_position){leaf, slot + (uint32_t)__builtin_ctzll(rest)};
    return true;
}

static void set_high(struct free_set *set, size_t at, struct free_key high)
{
    set->leaves[at]->keys[FREE_SET_LEAF + 1] = high;
    set->highs[at] = high;
}

/* An empty leaf at index `at`, between its neighbours; its bounds are the caller's to set. */
static struct free_leaf *leaf_add(struct free_set *set, size_t at)
{
    size_t count = set->leaf_count;
    if (array_reserve(&set->leaves, &set->leaf_capacity, count + 1, sizeof(*set->leaves)) ||
        array_reserve(&set->highs, &set->high_capacity, count + 1, sizeof(*set->highs)) ||
        array_reserve(&set->by_id, &set->id_capacity, count + 1, sizeof(*set->by_id)))
        return NULL;
    struct free_leaf *leaf = calloc(1, sizeof(*leaf));
    if (!leaf)
        return NULL;
    for (uint32_t i = 1; i <= FREE_SET_LEAF; i++)
        leaf->keys[i] = ABOVE_ALL;
    memmove(set->leaves + at + 1, set->leaves + at, (count - at) * sizeof(*set->leaves));
    memmove(set->highs + at + 1, set->highs + at, (count - at) * sizeof(*set->highs));
    set->leaves[at] = leaf;
    leaf->previous = at ? set->leaves[at - 1] : NULL;
    leaf->next = at < count ? set->leaves[at + 1] : NULL;
    if (leaf->previous)
        leaf->previous->next = leaf;
    if (leaf->next)
        leaf->next->previous = leaf;
    leaf->id = (uint32_t)count;
    set->by_id[count] = leaf;
    set->leaf_count++;
    return leaf;
}

static int leaf_add_first(struct free_set *set)
{
    struct free_position *near = calloc(NEAR, sizeof(*near));
    if (!near || !leaf_add(set, 0)) {
        free(near);
        return STATUS_NO_MEMORY;
    }
    set_high(set, 0, ABOVE_ALL);
    for (size_t i = 0; i < NEAR; i++)
        near[i].leaf = set->leaves[0];
    set->near = near;
    return STATUS_OK;
}

/* Free a leaf without blocks; the keys that belonged to it go to a neighbour. */
static void leaf_drop(struct free_set *set, struct free_leaf *leaf, struct free_leaf *heir)
{
    size_t at = leaf_index(set, leaf->keys[FREE_SET_LEAF + 1]);
    if (heir == leaf->next)
        heir->keys[0] = leaf->keys[0];
    else
        set_high(set, at - 1, leaf->keys[FREE_SET_LEAF + 1]);
    if (leaf->previous)
        leaf->previous->next = leaf->next;
    if (leaf->next)
        leaf->next->previous = leaf->previous;
    set->leaf_count--;
    memmove(set->leaves + at, set->leaves + at + 1, (set->leaf_count - at) * sizeof(*set->leaves));
    memmove(set->highs + at, set->highs + at + 1, (set->leaf_count - at) * sizeof(*set->highs));
    set->by_id[leaf->id] = set->by_id[set->leaf_count];
    set->by_id[leaf->id]->id = leaf->id;
    for (size_t i = 0; i < NEAR; i++)
        if (set->near[i].leaf == leaf)
            set->near[i] = (struct free_position){heir, 0};
    if (set->empty == leaf)
        set->empty = NULL;
    free(leaf);
}

/* Lay `count` sorted keys into a leaf with holes spread among them. */
static void leaf_lay(struct free_leaf *leaf, const struct free_key *keys, const uint32_t *blocks, uint32_t count)
{
    leaf->live = leaf->kept = 0;
    for (uint32_t slot = 0; slot < FREE_SET_LEAF; slot++) {
        uint32_t item = slot / 2;
        leaf->keys[slot + 1] = keys[item < count ? item : count - 1];
        leaf->blocks[slot] = blocks[item < count ? item : count - 1];
        if (slot % 2 == 0 && item < count)
            leaf->live |= UINT64_C(1) << slot;
    }
}

/* Make two of a full leaf; if key is above all, leave the old one as it is: keys that come in order fill their leaves.
 * Returns the one that key belongs to. */
static struct free_leaf *leaf_split(struct free_set *set, struct free_leaf *leaf, struct free_key key)
{
    size_t at = leaf_index(set, leaf->keys[FREE_SET_LEAF + 1]);
    struct free_leaf *upper = leaf_add(set, at + 1);
    if (!upper)
        return NULL;
    struct free_key all[FREE_SET_LEAF + 2], *keys = all + 1;
    uint32_t blocks[FREE_SET_LEAF], half = FREE_SET_LEAF / 2;
    memcpy(all, leaf->keys, sizeof(all));
    memcpy(blocks, leaf->blocks, sizeof(blocks));
    if (!upper->next && key_less(keys[FREE_SET_LEAF - 1], key)) {
        half = FREE_SET_LEAF;
    } else {
        leaf_lay(leaf, keys, blocks, half);
        leaf_lay(upper, keys + half, blocks + half, FREE_SET_LEAF - half);
    }
    set_high(set, at, keys[half - 1]);
    set_high(set, at + 1, all[FREE_SET_LEAF + 1]);
    upper->keys[0] = keys[half - 1];
    return key_less(keys[half - 1], key) ? upper : leaf;
}

/* Free the slot before or at `slot` for a key that belongs between the two: what stands up to the nearest hole moves,
 * and if possible not to one whose block may come back. */
static uint32_t slot_open(struct free_leaf *leaf, uint32_t slot)
{
    uint64_t holes = ~(leaf->live | leaf->kept) & ALL_LIVE;
    if (!holes) {
        holes = ~leaf->live & ALL_LIVE;
        leaf->kept = 0;
    }
    uint64_t above = holes >> slot << slot, below = holes & ~above, kept = leaf->kept;
    uint32_t from = slot - 1, up = above ? (uint32_t)__builtin_ctzll(above) : 0;
    uint32_t down = below ? 63 - (uint32_t)__builtin_clzll(below) : 0;
    if (above && (!below || up - slot <= from - down)) {
        uint64_t moved = (UINT64_C(1) << up) - (UINT64_C(1) << slot);
        memmove(leaf->keys + slot + 2, leaf->keys + slot + 1, (up - slot) * sizeof(*leaf->keys));
        memmove(leaf->blocks + slot + 1, leaf->blocks + slot, (up - slot) * sizeof(*leaf->blocks));
        leaf->live = (leaf->live & ~(moved << 1)) | (leaf->live & moved) << 1;
        leaf->kept = (kept & ~(moved << 1)) | (kept & moved) << 1;
        return slot;
    }
    uint64_t moved = (UINT64_C(1) << slot) - (UINT64_C(2) << down);
    memmove(leaf->keys + down + 1, leaf->keys + down + 2, (from - down) * sizeof(*leaf->keys));
    memmove(leaf->blocks + down, leaf->blocks + down + 1, (from - down) * sizeof(*leaf->blocks));
    leaf->live = (leaf->live & ~(moved >> 1)) | (leaf->live & moved) >> 1;
    leaf->kept = (kept & ~(moved >> 1)) | (kept & moved) >> 1;
    return from;
}

static inline void slot_fill(struct free_set *set, struct free_leaf *leaf, uint32_t slot, struct free_key key,
                             uint32_t block, uint32_t *place)
{
    leaf->keys[slot + 1] = key;
    leaf->blocks[slot] = block;
    leaf->live |= UINT64_C(1) << slot;
    leaf->kept |= UINT64_C(1) << slot;
    set->count++;
    *place = leaf->id << 6 | slot;
}

/* Put a key into a leaf that has a hole, before what stands at `slot`; blocks may have to move. */
static inline void leaf_insert(struct free_set *set, struct free_leaf *leaf, uint32_t slot, struct free_key key,
                               uint32_t block, uint32_t *place)
{
    uint64_t taken = leaf->live | leaf->kept;
    if (taken >> slot & 1 || slot == FREE_SET_LEAF)
        slot = slot && !(taken >> (slot - 1) & 1) ? slot - 1 : slot_open(leaf, slot);
    slot_fill(set, leaf, slot, key, block, place);
}

int free_set_insert_far(struct free_set *set, uint64_t size, uint64_t address, uint32_t block, uint32_t *place)
{
    const struct free_key key = {size, address};
    if (!set->leaf_count && leaf_add_first(set))
        return STATUS_NO_MEMORY;
    struct free_leaf *likely = set->by_id[*place >> 6 < set->leaf_count ? *place >> 6 : 0];
    uint32_t slot = *place & 63;
    if (!(likely->live >> slot & 1) && key_less(likely->keys[slot], key) && key_less(key, likely->keys[slot + 2])) {
        slot_fill(set, likely, slot, key, block, place); /* it belongs where another one has left a hole */
        return STATUS_OK;
    }
    struct free_leaf *leaf = belongs_to(likely, key) ? likely : leaf_of(set, key, free_set_near(set, size)->leaf);
    if (leaf->live == ALL_LIVE) {
        leaf = leaf_split(set, leaf, key);
        if (!leaf)
            return STATUS_NO_MEMORY;
    }
    leaf_insert(set, leaf, leaf_slot(leaf, key), key, block, place);
    return STATUS_OK;
}

static bool has_room(const struct free_leaf *leaf)
{
    return leaf && __builtin_popcountll(leaf->live) <= SPARSE;
}

/*
 * A leaf has one block left, or none.  One goes to a neighbour that has room.  An empty leaf stays, because its block
 * may come back; but only one of them, so that nobody has to step over many.
 */
void free_set_thin(struct free_set *set, struct free_leaf *leaf)
{
    if (leaf->live) {
        struct free_leaf *heir = has_room(leaf->next) ? leaf->next : has_room(leaf->previous) ? leaf->previous : NULL;
        if (!heir)
            return;
        uint32_t slot = (uint32_t)__builtin_ctzll(leaf->live), place;
        struct free_key key = leaf->keys[slot + 1];
        set->count--;
        leaf_insert(set, heir, leaf_slot(heir, key), key, leaf->blocks[slot], &place);
        leaf_drop(set, leaf, heir);
        return;
    }
    struct free_leaf *other = set->empty;
    if (other && other != leaf && !other->live)
        leaf_drop(set, other, other->next ? other->next : other->previous);
    set->empty = leaf;
}

int free_set_insert(struct free_set *set, uint64_t size, uint64_t address, uint32_t block)
{
    uint32_t place = 0;
    return free_set_insert_near(set, size, address, block, &place);
}

void free_set_remove(struct free_set *set, uint64_t size, uint64_t address)
{
    struct free_position position;
    if (free_set_lower_bound(set, size, address, &position))
        free_set_remove_at(set, position);
}

static bool last_from(struct free_leaf *leaf, struct free_position *position)
{
    while (leaf && !leaf->live)
        leaf = leaf->previous;
    position->leaf = leaf;
    if (leaf)
        position->slot = 63 - (uint32_t)__builtin_clzll(leaf->live);
    return leaf;
}

bool free_set_first(const struct free_set *set, struct free_position *position)
{
    return set->leaf_count && first_from(set->leaves[0], position);
}

bool free_set_last(const struct free_set *set, struct free_position *position)
{
    return set->leaf_count && last_from(set->leaves[set->leaf_count - 1], position);
}

bool free_set_next(const struct free_set *set, struct free_position *position)
{
    (void)set;
    uint64_t above = position->leaf->live >> position->slot >> 1;
    if (!above)
        return first_from(position->leaf->next, position);
    position->slot += 1 + (uint32_t)__builtin_ctzll(above);
    return true;
}

bool free_set_previous(const struct free_set *set, struct free_position *position)
{
    (void)set;
    uint64_t below = position->leaf->live & ((UINT64_C(1) << position->slot) - 1);
    if (!below)
        return last_from(position->leaf->previous, position);
    position->slot = 63 - (uint32_t)__builtin_clzll(below);
    return true;
}
