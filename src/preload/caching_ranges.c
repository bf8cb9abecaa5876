/*
 * Which addresses are ours: segments by address, each with a bit for every place where a block begins, and the blocks by
 * their addresses.  One lock, held for a search; nothing is called under it.  May use base.
 */
#include "preload/caching_internal.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define UNIT ALLOCATOR_MIN_BLOCK
#define WORD_UNITS 64

struct range {
    uint64_t address, size;
    struct cache *cache;
    uint64_t *starts; /* a bit a unit */
};

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges; /* by address */
static size_t range_count, range_capacity;
static struct caching_block *blocks; /* slots; free ones are linked through `id` */
static size_t block_count, block_capacity, block_free = SIZE_MAX;
static struct table block_index;
static uint64_t next_id;

#define BUFFER_IDS (UINT64_C(1) << 62) /* above those that the driver counts up */

static void lock(void)
{
    caching_busy++;
    pthread_mutex_lock(&ranges_lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&ranges_lock);
    caching_busy--;
}

void ranges_hold(bool hold)
{
    if (hold)
        lock();
    else
        unlock();
}

/* The first range that begins above the address. */
static size_t range_above(uint64_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct range *range_holding(uint64_t address)
{
    size_t above = range_above(address);
    struct range *range = above ? &ranges[above - 1] : NULL;
    return range && address - range->address < range->size ? range : NULL;
}

bool ranges_add(struct cache *cache, uint64_t address, uint64_t size)
{
    uint64_t words = size / UNIT / WORD_UNITS + 1;
    uint64_t *starts = calloc(words, sizeof(*starts)); /* of a big range: pages that are never touched */
    bool added = false;
    lock();
    if (starts && !array_reserve(&ranges, &range_capacity, range_count + 1, sizeof(*ranges))) {
        size_t at = range_above(address);
        memmove(&ranges[at + 1], &ranges[at], (range_count++ - at) * sizeof(*ranges));
        ranges[at] = (struct range){address, size, cache, starts};
        added = true;
    }
    unlock();
    if (!added)
        free(starts);
    return added;
}

void ranges_remove(uint64_t address)
{
    uint64_t *starts = NULL;
    lock();
    struct range *range = range_holding(address);
    if (range && range->address == address) {
        starts = range->starts;
        memmove(range, range + 1, (size_t)(&ranges[--range_count] - range) * sizeof(*range));
    }
    unlock();
    free(starts);
}

static void mark(struct range *range, uint64_t address, bool begins)
{
    uint64_t unit = (address - range->address) / UNIT, bit = UINT64_C(1) << unit % WORD_UNITS;
    uint64_t *word = &range->starts[unit / WORD_UNITS];
    *word = begins ? *word | bit : *word & ~bit;
}

/* The block that begins at or before the address, last of all in its range. */
static bool block_before(const struct range *range, uint64_t address, uint64_t *start)
{
    uint64_t unit = (address - range->address) / UNIT, at = unit / WORD_UNITS;
    uint64_t word = range->starts[at] & (~UINT64_C(0) >> (WORD_UNITS - 1 - unit % WORD_UNITS));
    while (!word && at > 0)
        word = range->starts[--at];
    if (!word)
        return false;
    *start = range->address + (at * WORD_UNITS + (uint64_t)(63 - __builtin_clzll(word))) * UNIT;
    return true;
}

static struct caching_block *block_at(uint64_t address)
{
    uint32_t slot = table_get(&block_index, address, UINT32_MAX);
    return slot == UINT32_MAX ? NULL : &blocks[slot];
}

static bool take_slot(size_t *slot)
{
    *slot = block_free;
    if (block_free != SIZE_MAX) {
        block_free = (size_t)blocks[block_free].id;
        return true;
    }
    if (block_count >= UINT32_MAX || array_reserve(&blocks, &block_capacity, block_count + 1, sizeof(*blocks)))
        return false;
    *slot = block_count++;
    return true;
}

static void leave_slot(size_t slot)
{
    blocks[slot] = (struct caching_block){.id = block_free};
    block_free = slot;
}

bool blocks_add(struct caching_block *block)
{
    size_t slot;
    bool added = false;
    lock();
    struct range *range = range_holding(block->address);
    if (range && take_slot(&slot)) {
        added = !table_set(&block_index, block->address, (uint32_t)slot);
        if (added) {
            block->id = BUFFER_IDS + ++next_id;
            block->segment = range->address;
            blocks[slot] = *block;
            mark(range, block->address, true);
        } else {
            leave_slot(slot);
        }
    }
    unlock();
    return added;
}

static void remove_block(uint64_t address)
{
    uint32_t slot = table_get(&block_index, address, UINT32_MAX);
    struct range *range = range_holding(address);
    if (slot == UINT32_MAX)
        return;
    table_remove(&block_index, address);
    leave_slot(slot);
    if (range)
        mark(range, address, false);
}

void blocks_remove(uint64_t address)
{
    lock();
    remove_block(address);
    unlock();
}

enum caching_place blocks_claim(uint64_t address, struct caching_block *block)
{
    lock();
    enum caching_place place = range_holding(address) ? CACHING_IN_NO_BLOCK : CACHING_ELSEWHERE;
    struct caching_block *found = place == CACHING_IN_NO_BLOCK ? block_at(address) : NULL;
    if (found && !found->leaving) {
        found->leaving = true;
        *block = *found;
        place = CACHING_IN_BLOCK;
    }
    unlock();
    return place;
}

void blocks_unclaim(uint64_t address)
{
    lock();
    struct caching_block *found = block_at(address);
    if (found)
        found->leaving = false;
    unlock();
}

void blocks_exported(uint64_t address)
{
    lock();
    struct caching_block *found = block_at(address);
    if (found)
        found->exported = true;
    unlock();
}

enum caching_place caching_find(uint64_t address, struct caching_block *block)
{
    uint64_t start;
    if (!caching_is_on() || caching_busy)
        return CACHING_ELSEWHERE;
    lock();
    const struct range *range = range_holding(address);
    enum caching_place place = range ? CACHING_IN_NO_BLOCK : CACHING_ELSEWHERE;
    const struct caching_block *found = range && block_before(range, address, &start) ? block_at(start) : NULL;
    if (found && address - found->address < found->requested) {
        *block = *found;
        place = CACHING_IN_BLOCK;
    }
    unlock();
    return place;
}

void ranges_forget(struct cache *cache)
{
    lock();
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i].cache == cache)
            remove_block(blocks[i].address);
    size_t kept = 0;
    for (size_t i = 0; i < range_count; i++) {
        if (ranges[i].cache == cache)
            free(ranges[i].starts);
        else
            ranges[kept++] = ranges[i];
    }
    range_count = kept;
    unlock();
}
