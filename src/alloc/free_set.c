/* Ordered free blocks.  Uses src/base. */
#include "alloc/free_set.h"

#include "base/array.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static inline bool key_less(struct free_key a, struct free_key b)
{
    return a.size != b.size ? a.size < b.size : a.address < b.address;
}

void free_set_free(struct free_set *set)
{
    for (size_t i = 0; i < set->chunk_count; i++)
        free(set->chunks[i]);
    free(set->chunks);
    free(set->last);
    memset(set, 0, sizeof(*set));
}

/* The first chunk whose last key is not below key; chunk_count if there is none. */
static size_t chunk_find(const struct free_set *set, struct free_key key)
{
    size_t low = 0, high = set->chunk_count, recent = set->recent;
    if (recent < high) {
        if (key_less(set->last[recent], key))
            low = recent + 1;
        else if (recent == 0 || key_less(set->last[recent - 1], key))
            return recent;
        else
            high = recent;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (key_less(set->last[middle], key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first slot whose key is not below key. */
static inline uint32_t slot_find(const struct free_chunk *chunk, struct free_key key)
{
    const struct free_item *base = chunk->items;
    uint32_t left = chunk->count;
    while (left > 1) { /* the halves are chosen without a branch */
        uint32_t half = left / 2;
        base = key_less(base[half - 1].key, key) ? base + half : base;
        left -= half;
    }
    return (uint32_t)(base - chunk->items) + (left && key_less(base->key, key));
}

/* Is the place used last the one that a search for key would end at? */
static inline bool hint_is_right(const struct free_set *set, struct free_key key)
{
    if (set->recent >= set->chunk_count)
        return false;
    const struct free_chunk *chunk = set->chunks[set->recent];
    uint32_t slot = set->recent_slot;
    return slot && slot < chunk->count && key_less(chunk->items[slot - 1].key, key) &&
           !key_less(chunk->items[slot].key, key);
}

/* An empty chunk at index `at`. */
static struct free_chunk *chunk_add(struct free_set *set, size_t at)
{
    if (array_reserve(&set->chunks, &set->chunk_capacity, set->chunk_count + 1, sizeof(*set->chunks)) ||
        array_reserve(&set->last, &set->last_capacity, set->chunk_count + 1, sizeof(*set->last)))
        return NULL;
    struct free_chunk *chunk = malloc(sizeof(*chunk));
    if (!chunk)
        return NULL;
    chunk->count = 0;
    memmove(set->chunks + at + 1, set->chunks + at, (set->chunk_count - at) * sizeof(*set->chunks));
    memmove(set->last + at + 1, set->last + at, (set->chunk_count - at) * sizeof(*set->last));
    set->chunks[at] = chunk;
    set->chunk_count++;
    return chunk;
}

static void chunk_update_last(struct free_set *set, size_t at)
{
    const struct free_chunk *chunk = set->chunks[at];
    set->last[at] = chunk->items[chunk->count - 1].key;
}

/* Move the upper half of a full chunk into a new one behind it. */
static int chunk_split(struct free_set *set, size_t at)
{
    struct free_chunk *upper = chunk_add(set, at + 1);
    if (!upper)
        return STATUS_NO_MEMORY;
    struct free_chunk *lower = set->chunks[at];
    uint32_t half = lower->count / 2;
    upper->count = lower->count - half;
    memcpy(upper->items, lower->items + half, upper->count * sizeof(*upper->items));
    lower->count = half;
    chunk_update_last(set, at);
    chunk_update_last(set, at + 1);
    return STATUS_OK;
}

/* Where a new key belongs, with room for it. */
static int place_find(struct free_set *set, struct free_key key, struct free_position *position)
{
    if (!set->chunk_count && !chunk_add(set, 0))
        return STATUS_NO_MEMORY;
    position->chunk = chunk_find(set, key);
    if (position->chunk == set->chunk_count)
        position->chunk--;
    if (set->chunks[position->chunk]->count == FREE_SET_CHUNK) {
        if (chunk_split(set, position->chunk))
            return STATUS_NO_MEMORY;
        if (key_less(set->last[position->chunk], key))
            position->chunk++;
    }
    position->slot = slot_find(set->chunks[position->chunk], key);
    return STATUS_OK;
}

int free_set_insert(struct free_set *set, uint64_t size, uint64_t address, uint32_t block)
{
    struct free_key key = {size, address};
    struct free_position at = {set->recent, set->recent_slot};
    if ((!hint_is_right(set, key) || set->chunks[at.chunk]->count == FREE_SET_CHUNK) && place_find(set, key, &at))
        return STATUS_NO_MEMORY;
    struct free_chunk *chunk = set->chunks[at.chunk];
    struct free_item *item = &chunk->items[at.slot];
    memmove(item + 1, item, (chunk->count - at.slot) * sizeof(*item));
    *item = (struct free_item){key, block};
    if (at.slot == chunk->count++)
        set->last[at.chunk] = key;
    set->count++;
    set->recent = at.chunk;
    set->recent_slot = at.slot;
    return STATUS_OK;
}

void free_set_remove_at(struct free_set *set, struct free_position position)
{
    struct free_chunk *chunk = set->chunks[position.chunk];
    uint32_t rest = --chunk->count - position.slot;
    memmove(chunk->items + position.slot, chunk->items + position.slot + 1, rest * sizeof(*chunk->items));
    set->count--;
    set->recent = position.chunk;
    set->recent_slot = position.slot;
    if (chunk->count) {
        if (!rest)
            chunk_update_last(set, position.chunk);
    } else if (set->chunk_count > 1) { /* an empty set keeps its chunk for the next one */
        free(chunk);
        set->chunk_count--;
        memmove(set->chunks + position.chunk, set->chunks + position.chunk + 1,
                (set->chunk_count - position.chunk) * sizeof(*set->chunks));
        memmove(set->last + position.chunk, set->last + position.chunk + 1,
                (set->chunk_count - position.chunk) * sizeof(*set->last));
        set->recent = 0;
    }
}

void free_set_remove(struct free_set *set, uint64_t size, uint64_t address)
{
    struct free_position position;
    if (free_set_lower_bound(set, size, address, &position))
        free_set_remove_at(set, position);
}

bool free_set_lower_bound(struct free_set *set, uint64_t size, uint64_t address, struct free_position *position)
{
    struct free_key key = {size, address};
    if (!set->count)
        return false;
    if (hint_is_right(set, key)) {
        *position = (struct free_position){set->recent, set->recent_slot};
        return true;
    }
    position->chunk = chunk_find(set, key);
    if (position->chunk == set->chunk_count)
        return false;
    position->slot = slot_find(set->chunks[position->chunk], key);
    set->recent = position->chunk;
    set->recent_slot = position->slot;
    return true;
}

bool free_set_first(const struct free_set *set, struct free_position *position)
{
    position->chunk = 0;
    position->slot = 0;
    return set->count != 0;
}

bool free_set_last(const struct free_set *set, struct free_position *position)
{
    if (!set->count)
        return false;
    position->chunk = set->chunk_count - 1;
    position->slot = set->chunks[position->chunk]->count - 1;
    return true;
}

bool free_set_next(const struct free_set *set, struct free_position *position)
{
    if (++position->slot < set->chunks[position->chunk]->count)
        return true;
    position->slot = 0;
    return ++position->chunk < set->chunk_count;
}

bool free_set_previous(const struct free_set *set, struct free_position *position)
{
    if (position->slot) {
        position->slot--;
        return true;
    }
    if (!position->chunk)
        return false;
    position->slot = set->chunks[--position->chunk]->count - 1;
    return true;
}
