/* The naive allocator: memory from the device and back. */
#include "naive_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- expandable segments (4) -------------------------------------------------------------------------------------- */

static bool can_grow_over(const struct block *b)
{
    return b && !b->allocated && !naive_is_waiting(b);
}

static struct block *find_expandable(struct naive *a, const struct request *r)
{
    struct set set = naive_set_of(a, r->pool, r->large, false);
    struct block *found = NULL;
    for (size_t i = 0; i < set.count && !found; i++) {
        if (set.of[i]->stream != r->stream)
            continue;
        struct block *start = naive_before(a, set.of[i]);
        if (!can_grow_over(start))
            start = set.of[i];
        uint64_t room = 0;
        for (struct block *b = start; room < r->size && can_grow_over(b); b = naive_after(a, b))
            room += b->size;
        if (room >= r->size)
            found = start;
    }
    free(set.of);
    return found;
}

static int reserve(struct naive *a, const struct request *r, struct block **made)
{
    uint64_t unused, total, address, page = r->large ? a->conf->large_segment_size : 2 << 20;
    a->options.device.memory_info(a->options.device.self, &unused, &total);
    uint64_t size = naive_up(total + total / 8, page);
    int status = a->options.device.address_reserve(a->options.device.self, size, &address);
    if (status)
        return status;
    struct span *span = naive_must(malloc(sizeof(*span)));
    *span = (struct span){address, size, page};
    struct block like = {.stream = r->stream, .span = span, .pool = r->pool, .large = r->large};
    *made = naive_block_add(a, &like, address, size);
    (*made)->in_set = true;
    return 0;
}

static int map(struct naive *a, struct block *b, uint64_t wanted, uint64_t context)
{
    uint64_t address = b->address, got = naive_up(wanted, b->span->page);
    int status = a->options.device.map(a->options.device.self, address, got, b->span->page);
    if (status)
        return status;
    b->in_set = false;
    if (got < b->size)
        naive_block_add(a, b, address + got, b->size - got)->in_set = true;
    b->size = got;
    b->mapped = true;
    naive_try_merge(a, b, naive_before(a, b));
    naive_try_merge(a, b, naive_after(a, b));
    naive_offer(b);
    a->reserved += got;
    naive_count(a, MEMORY_STAT_RESERVED_BYTES, b, (int64_t)got);
    a->stats.num_device_alloc++;
    naive_tell(a, ALLOCATOR_SEGMENT_MAP, address, got, b->stream, b->pool, context);
    if (!naive_before(a, b) && !b->segment_context)
        b->segment_context = context;
    return 0;
}

static uint64_t smaller(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

static int try_allocate_expandable(struct naive *a, const struct request *r, struct block **found)
{
    struct block *b = find_expandable(a, r);
    int status = b ? 0 : reserve(a, r, &b);
    if (!status && !b->mapped)
        status = map(a, b, smaller(b->size, r->size), r->context);
    while (!status && b->size < r->size) {
        struct block *next = naive_after(a, b);
        assert(!next->mapped);
        status = map(a, next, smaller(r->size - b->size, next->size), r->context);
        b = next;
    }
    if (status)
        return status;
    b->in_set = false;
    *found = b;
    return 0;
}

static void unmap(struct naive *a, struct block *b, uint64_t context)
{
    struct span *span = b->span;
    uint64_t begin = span->address + naive_up(b->address - span->address, span->page);
    uint64_t end = span->address + (b->address + b->size - span->address) / span->page * span->page;
    if (begin >= end)
        return;
    if (a->options.device.stream_wait)
        a->options.device.stream_wait(a->options.device.self, b->stream);
    a->options.device.unmap(a->options.device.self, begin, end - begin, span->page);
    b->in_set = false;
    if (begin > b->address)
        naive_offer(naive_block_add(a, b, b->address, begin - b->address));
    if (end < b->address + b->size)
        naive_offer(naive_block_add(a, b, end, b->address + b->size - end));
    b->address = begin;
    b->size = end - begin;
    b->mapped = false;
    naive_try_merge(a, b, naive_before(a, b));
    naive_try_merge(a, b, naive_after(a, b));
    b->in_set = true;
    a->reserved -= end - begin;
    naive_count(a, MEMORY_STAT_RESERVED_BYTES, b, -(int64_t)(end - begin));
    a->stats.num_device_free++;
    naive_tell(a, ALLOCATOR_SEGMENT_UNMAP, begin, end - begin, b->stream, b->pool,
               context ? context : b->segment_context);
    if (naive_is_split(a, b))
        return;
    a->options.device.address_release(a->options.device.self, span->address, span->size);
    naive_block_remove(a, b);
    free(span);
}

/* --- asking the device (3.2) -------------------------------------------------------------------------------------- */

int naive_alloc_block(struct naive *a, const struct request *r, bool retry, struct block **found)
{
    uint64_t address;
    a->stats.num_alloc_retries += retry;
    if (a->options.limit != ALLOCATOR_NO_LIMIT && a->reserved + r->segment > a->options.limit)
        return MEMORY_DEVICE_FULL;
    if (r->expandable)
        return try_allocate_expandable(a, r, found);
    int status = a->options.device.segment_get(a->options.device.self, r->segment, r->stream, &address);
    if (status)
        return status;
    struct span *span = naive_must(malloc(sizeof(*span)));
    *span = (struct span){address, r->segment, 0};
    struct block like = {.stream = r->stream, .span = span, .pool = r->pool, .large = r->large, .mapped = true};
    struct block *b = *found = naive_block_add(a, &like, address, r->segment);
    a->reserved += b->size;
    naive_count(a, MEMORY_STAT_SEGMENT, b, 1);
    naive_count(a, MEMORY_STAT_RESERVED_BYTES, b, (int64_t)b->size);
    if (b->size >= a->conf->max_split_size)
        naive_add(&a->stats.oversize_segments, 1);
    a->stats.num_device_alloc++;
    naive_tell(a, ALLOCATOR_SEGMENT_ALLOC, address, b->size, b->stream, b->pool, r->context);
    b->segment_context = r->context;
    return 0;
}

/* --- giving back (3.6 - 3.8) -------------------------------------------------------------------------------------- */

static void release_block(struct naive *a, struct block *b, uint64_t context)
{
    a->stats.num_device_free++;
    naive_tell(a, ALLOCATOR_SEGMENT_FREE, b->address, b->size, b->stream, b->pool,
               context ? context : b->segment_context);
    a->options.device.segment_release(a->options.device.self, b->address, b->size);
    a->reserved -= b->size;
    naive_count(a, MEMORY_STAT_SEGMENT, b, -1);
    naive_count(a, MEMORY_STAT_RESERVED_BYTES, b, -(int64_t)b->size);
    if (b->size >= a->conf->max_split_size)
        naive_add(&a->stats.oversize_segments, -1);
    free(b->span);
    naive_block_remove(a, b);
}

static void release_blocks(struct naive *a, const struct pool *pool, int large, uint64_t context)
{
    struct set set = naive_set_of(a, pool, large, true);
    for (size_t i = 0; i < set.count; i++)
        if (!naive_is_expandable(set.of[i])) {
            if (!naive_is_split(a, set.of[i]))
                release_block(a, set.of[i], context);
            set.of[i] = NULL;
        }
    for (size_t i = 0; i < set.count; i++)
        if (set.of[i])
            unmap(a, set.of[i], context);
    free(set.of);
}

/* A pool without uses and without blocks is forgotten, with the address space that it may still hold. */
static void forget_if_empty(struct naive *a, struct pool *pool)
{
    for (size_t i = 0; i < a->block_count; i++)
        if (a->blocks[i]->pool == pool && a->blocks[i]->mapped)
            return;
    for (size_t i = a->block_count; i-- > 0;) {
        struct block *b = a->blocks[i];
        if (b->pool == pool) {
            a->options.device.address_release(a->options.device.self, b->span->address, b->span->size);
            free(b->span);
            naive_block_remove(a, b);
        }
    }
    pool->there = false;
}

struct pool *naive_next_pool(struct naive *a, const struct pool *last) /* ascending; last NULL: the first */
{
    struct pool *best = NULL;
    for (struct pool *p = &a->pools[1]; p < &a->pools[MAX_POOLS]; p++)
        if (p->there && (!last || p->id.first > last->id.first ||
                         (p->id.first == last->id.first && p->id.second > last->id.second)))
            if (!best || p->id.first < best->id.first ||
                (p->id.first == best->id.first && p->id.second < best->id.second))
                best = p;
    return best;
}

void naive_release_cached(struct naive *a, struct pool *only, uint64_t context)
{
    if (!only && !a->scope_count) {
        naive_synchronize(a, NULL, context);
        release_blocks(a, &a->pools[0], 1, context);
        release_blocks(a, &a->pools[0], 0, context);
    }
    for (struct pool *p = naive_next_pool(a, NULL); p; p = naive_next_pool(a, p)) {
        if (p->uses || (only && p != only))
            continue;
        if (only)
            naive_synchronize(a, p, context);
        release_blocks(a, p, 0, context);
        release_blocks(a, p, 1, context);
        forget_if_empty(a, p);
    }
}

void naive_collect(struct naive *a, uint64_t context)
{
    uint64_t threshold = (uint64_t)(a->conf->garbage_collection_threshold * (double)a->options.limit);
    if (a->reserved <= threshold)
        return;
    uint64_t target = a->reserved - threshold, reclaimed = 0, now = a->pools[0].searches[1];
    double age = 0;
    int number = 0;
    struct set set = naive_set_of(a, &a->pools[0], 1, true);
    for (size_t i = 0; i < set.count; i++)
        if (!naive_is_split(a, set.of[i])) {
            age += (double)(now - set.of[i]->searches_then);
            number++;
        }
    for (bool freed = true; reclaimed < target && freed && number > 0;) {
        double old = age / number;
        freed = false;
        for (size_t i = 0; i < set.count; i++) {
            struct block *b = set.of[i];
            if (!b || naive_is_split(a, b) || naive_is_expandable(b) || (double)(now - b->searches_then) < old)
                continue;
            reclaimed += b->size;
            age -= (double)(now - b->searches_then);
            number--;
            freed = true;
            release_block(a, b, context);
            set.of[i] = NULL;
        }
    }
    free(set.of);
}

/* Only a whole segment can be given back; a change of settings can leave pieces of max_split bytes and more. */
static bool is_releasable(const struct naive *a, const struct block *b)
{
    return !naive_is_expandable(b) && !naive_is_split(a, b);
}

bool naive_release_available(struct naive *a, const struct request *r)
{
    if (a->conf->max_split_size == SETTINGS_UNLIMITED)
        return false;
    uint64_t key = r->size > a->conf->max_split_size ? r->size : a->conf->max_split_size, released = 0;
    struct set set = naive_set_of(a, r->pool, r->large, true);
    size_t i = naive_lower_bound(&set, r->stream, key);
    if (i < set.count && set.of[i]->stream == r->stream && is_releasable(a, set.of[i])) {
        release_block(a, set.of[i], r->context);
        free(set.of);
        return true;
    }
    while (i > 0 && released < key) {
        struct block *b = set.of[--i];
        if (b->size < a->conf->max_split_size || b->stream != r->stream)
            break;
        if (is_releasable(a, b)) {
            released += b->size;
            release_block(a, b, r->context);
        }
    }
    free(set.of);
    return released >= key;
}
