/* The naive allocator: sizes, statistics, blocks and the sets in which they are looked for. */
#include "naive_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void *naive_must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

uint64_t naive_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

uint64_t naive_round_size(const struct settings *conf, uint64_t n)
{
    if (n < 512)
        return 512;
    uint64_t power = 1;
    int log = 0;
    while (power * 2 <= n)
        power *= 2, log++;
    int entry = log < 20 ? 0 : log > 35 ? 15 : log - 20;
    uint64_t divisions = conf->roundup_divisions[entry];
    if (divisions > 1 && n > 512 * divisions)
        return naive_up(n, power / divisions);
    return naive_up(n, 512);
}

uint64_t naive_segment_size(const struct settings *conf, uint64_t size)
{
    if (size <= (1 << 20))
        return 2 << 20;
    return size < (10 << 20) ? conf->large_segment_size : naive_up(size, 2 << 20);
}

/* --- statistics and events ---------------------------------------------------------------------------------------- */

void naive_add(struct memory_stat *stat, int64_t amount)
{
    stat->current += amount;
    if (amount > 0)
        stat->allocated += amount;
    else
        stat->freed -= amount;
    if (stat->peak < stat->current)
        stat->peak = stat->current;
}

void naive_count(struct naive *a, enum memory_stat_kind kind, const struct block *b, int64_t amount)
{
    naive_add(&a->stats.kinds[kind][MEMORY_POOL_ALL], amount);
    naive_add(&a->stats.kinds[kind][b->large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL], amount);
}

void naive_tell(struct naive *a, enum allocator_action action, uint64_t address, uint64_t size, int64_t stream,
                const struct pool *pool, uint64_t context)
{
    struct allocator_event event = {action, address, size, stream, pool->id, context};
    if (a->options.trace)
        a->options.trace(a->options.trace_self, &event);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

struct block *naive_block_add(struct naive *a, const struct block *like, uint64_t address, uint64_t size)
{
    struct block *b = naive_must(calloc(1, sizeof(*b)));
    b->stream = like->stream;
    b->span = like->span;
    b->pool = like->pool;
    b->large = like->large;
    b->mapped = like->mapped;
    b->address = address;
    b->size = size;
    assert(a->block_count < MAX_BLOCKS);
    a->blocks[a->block_count++] = b;
    return b;
}

void naive_block_remove(struct naive *a, struct block *b)
{
    size_t i = 0;
    while (a->blocks[i] != b)
        i++;
    a->blocks[i] = a->blocks[--a->block_count];
    free(b);
}

struct block *naive_after(const struct naive *a, const struct block *b)
{
    for (size_t i = 0; i < a->block_count; i++)
        if (a->blocks[i]->span == b->span && a->blocks[i]->address == b->address + b->size)
            return a->blocks[i];
    return NULL;
}

struct block *naive_before(const struct naive *a, const struct block *b)
{
    for (size_t i = 0; i < a->block_count; i++)
        if (a->blocks[i]->span == b->span && a->blocks[i]->address + a->blocks[i]->size == b->address)
            return a->blocks[i];
    return NULL;
}

bool naive_is_split(const struct naive *a, const struct block *b)
{
    return naive_before(a, b) || naive_after(a, b);
}

struct block *naive_block_at(const struct naive *a, uint64_t address)
{
    for (size_t i = 0; i < a->block_count; i++)
        if (a->blocks[i]->address == address)
            return a->blocks[i];
    return NULL;
}

void naive_offer(struct block *b) /* into the set */
{
    b->in_set = true;
    b->searches_then = b->pool->searches[b->large];
}

/* 2.7 */
uint64_t naive_try_merge(struct naive *a, struct block *to, struct block *from)
{
    if (!from || from->allocated || naive_is_waiting(from) || from->mapped != to->mapped)
        return 0;
    uint64_t size = from->size;
    if (from->address < to->address) {
        to->address = from->address;
        to->segment_context = from->segment_context;
    }
    to->size += size;
    naive_block_remove(a, from);
    return size;
}

/* --- sets --------------------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right) /* 2.2; unmapped blocks have one stream, and are by address */
{
    const struct block *x = *(struct block *const *)left, *y = *(struct block *const *)right;
    if (x->stream != y->stream)
        return (uint64_t)x->stream < (uint64_t)y->stream ? -1 : 1;
    if (x->mapped && x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->address < y->address ? -1 : 1;
}

struct set naive_set_of(const struct naive *a, const struct pool *pool, int large, bool mapped)
{
    struct set set = {naive_must(malloc((a->block_count + 1) * sizeof(struct block *))), 0};
    for (size_t i = 0; i < a->block_count; i++) {
        struct block *b = a->blocks[i];
        if (b->pool == pool && b->large == large && b->in_set && b->mapped == mapped)
            set.of[set.count++] = b;
    }
    qsort(set.of, set.count, sizeof(set.of[0]), compare);
    return set;
}

size_t naive_lower_bound(const struct set *set, int64_t stream, uint64_t size)
{
    size_t i = 0;
    while (i < set->count && ((uint64_t)set->of[i]->stream < (uint64_t)stream ||
                              (set->of[i]->stream == stream && set->of[i]->size < size)))
        i++;
    return i;
}
