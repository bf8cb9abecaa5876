/* The naive allocator: requests, frees, pools; see naive.h. */
#include "naive_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- requests: what one call of malloc carries about -------------------------------------------------------------- */

static bool collecting(const struct naive *a)
{
    return a->options.limit != ALLOCATOR_NO_LIMIT && a->conf->garbage_collection_threshold > 0;
}

static uint64_t effective(const struct naive *a, const struct block *b)
{
    const struct block *next = naive_after(a, b);
    return b->size + (next && !next->mapped ? next->size : 0);
}

/* 2.3: where in the set the block is, or the set's count. */
static size_t best_fit(const struct naive *a, const struct set *set, const struct request *r)
{
    size_t i = naive_lower_bound(set, r->stream, r->size);
    if (i == set->count || set->of[i]->stream != r->stream || !naive_is_expandable(set->of[i]))
        return i;
    if (r->expandable) {
        while (naive_is_expandable(set->of[i]) && i + 1 < set->count && set->of[i + 1]->stream == r->stream &&
               effective(a, set->of[i + 1]) < effective(a, set->of[i]))
            i++;
        return i;
    }
    while (i < set->count && set->of[i]->stream == r->stream && naive_is_expandable(set->of[i]))
        i++;
    return i;
}

static struct block *get_free(struct naive *a, const struct request *r)
{
    if (collecting(a))
        r->pool->searches[r->large]++;
    struct set set = naive_set_of(a, r->pool, r->large, true);
    size_t i = best_fit(a, &set, r);
    struct block *b = i < set.count && set.of[i]->stream == r->stream ? set.of[i] : NULL;
    free(set.of);
    if (!b || (r->size < a->conf->max_split_size && b->size >= a->conf->max_split_size) ||
        (r->size >= a->conf->max_split_size && b->size >= r->size + a->conf->max_non_split_rounding))
        return NULL;
    b->in_set = false;
    return b;
}

/* 2.4 */
static bool should_split(const struct naive *a, const struct block *b, const struct request *r)
{
    if (b->pool->no_split)
        return false;
    uint64_t rest = b->size - r->size;
    if (!r->large || r->expandable)
        return rest >= 512;
    return r->size < a->conf->max_split_size && rest > (1 << 20);
}

static struct block *split(struct naive *a, struct block *rest, const struct request *r)
{
    bool was_split = naive_is_split(a, rest);
    uint64_t address = rest->address;
    rest->address += r->size;
    rest->size -= r->size;
    naive_offer(rest);
    if (!naive_is_expandable(rest)) {
        naive_count(a, MEMORY_STAT_INACTIVE_SPLIT_BYTES, rest, was_split ? -(int64_t)r->size : (int64_t)rest->size);
        if (!was_split)
            naive_count(a, MEMORY_STAT_INACTIVE_SPLIT, rest, 1);
    }
    return naive_block_add(a, rest, address, r->size);
}

/* 2.5 */
static uint64_t hand_out(struct naive *a, struct block *b, const struct request *r)
{
    if (should_split(a, b, r)) {
        b = split(a, b, r);
    } else if (naive_is_split(a, b) && !naive_is_expandable(b)) {
        naive_count(a, MEMORY_STAT_INACTIVE_SPLIT, b, -1);
        naive_count(a, MEMORY_STAT_INACTIVE_SPLIT_BYTES, b, -(int64_t)b->size);
    }
    b->allocated = true;
    b->requested = r->requested;
    b->context = r->context;
    naive_tell(a, ALLOCATOR_ALLOC, b->address, r->requested, b->stream, b->pool, r->context);
    naive_count(a, MEMORY_STAT_ALLOCATION, b, 1);
    naive_count(a, MEMORY_STAT_ALLOCATED_BYTES, b, (int64_t)b->size);
    naive_count(a, MEMORY_STAT_ACTIVE, b, 1);
    naive_count(a, MEMORY_STAT_ACTIVE_BYTES, b, (int64_t)b->size);
    naive_count(a, MEMORY_STAT_REQUESTED_BYTES, b, (int64_t)b->requested);
    if (b->size >= a->conf->max_split_size)
        naive_add(&a->stats.oversize_allocations, 1);
    return b->address;
}

/* --- frees (3.4) -------------------------------------------------------------------------------------------------- */

static void free_block(struct naive *a, struct block *b, uint64_t context)
{
    int64_t number = 0, bytes = 0, size = (int64_t)b->size;
    naive_tell(a, ALLOCATOR_FREE_COMPLETED, b->address, b->requested, b->stream, b->pool,
               context ? context : b->context);
    b->context = 0;
    b->capture_uses.count = 0;
    for (int side = 0; side < 2; side++) {
        uint64_t merged = naive_try_merge(a, b, side ? naive_after(a, b) : naive_before(a, b));
        number -= merged != 0;
        bytes -= (int64_t)merged;
    }
    naive_offer(b);
    if (naive_is_split(a, b)) {
        number++;
        bytes += (int64_t)b->size;
    }
    if (!naive_is_expandable(b)) {
        naive_count(a, MEMORY_STAT_INACTIVE_SPLIT, b, number);
        naive_count(a, MEMORY_STAT_INACTIVE_SPLIT_BYTES, b, bytes);
    }
    naive_count(a, MEMORY_STAT_ACTIVE, b, -1);
    naive_count(a, MEMORY_STAT_ACTIVE_BYTES, b, -size);
    naive_count(a, MEMORY_STAT_REQUESTED_BYTES, b, -(int64_t)b->requested);
}

static bool streams_have(const struct streams *streams, int64_t stream)
{
    for (int i = 0; i < streams->count; i++)
        if (streams->of[i] == stream)
            return true;
    return false;
}

static void streams_add(struct streams *streams, int64_t stream)
{
    if (streams_have(streams, stream))
        return;
    assert(streams->count < MAX_STREAMS);
    streams->of[streams->count++] = stream;
}

static void insert_events(struct naive *a, struct block *b)
{
    struct streams uses = b->uses;
    b->uses.count = 0;
    for (int i = 0; i < uses.count; i++) {
        struct pending pending = {.stream = uses.of[i], .block = b};
        if (a->options.device.event_record)
            a->options.device.event_record(a->options.device.self, pending.stream, &pending.event);
        b->events++;
        assert(a->pending_count < MAX_EVENTS);
        a->pending[a->pending_count++] = pending;
    }
}

static void insert_deferred(struct naive *a, uint64_t context)
{
    size_t deferred = a->deferred_count;
    a->deferred_count = 0;
    for (size_t i = 0; i < deferred; i++) {
        struct block *b = a->deferred[i];
        struct streams uses = b->uses;
        b->uses.count = 0;
        for (int k = 0; k < uses.count; k++)
            if (!streams_have(&b->capture_uses, uses.of[k]))
                streams_add(&b->uses, uses.of[k]);
        b->capture_uses.count = 0;
        insert_events(a, b);
        if (!b->events)
            free_block(a, b, context);
    }
}

static void pending_drop(struct naive *a, size_t i)
{
    memmove(&a->pending[i], &a->pending[i + 1], (--a->pending_count - i) * sizeof(a->pending[0]));
}

/* The next stream with pending events after one (-1 before the first), ascending; false if there is none. */
static bool next_stream(const struct naive *a, bool first, int64_t *stream)
{
    bool found = false;
    uint64_t best = 0;
    for (size_t i = 0; i < a->pending_count; i++) {
        uint64_t s = (uint64_t)a->pending[i].stream;
        if ((first || s > (uint64_t)*stream) && (!found || s < best)) {
            best = s;
            found = true;
        }
    }
    *stream = found ? (int64_t)best : *stream;
    return found;
}

static void finish(struct naive *a, size_t i, uint64_t context)
{
    struct block *b = a->pending[i].block;
    pending_drop(a, i);
    if (!--b->events)
        free_block(a, b, context);
}

static void process_events(struct naive *a, uint64_t context)
{
    int64_t stream = 0;
    insert_deferred(a, context);
    if (!a->options.device.event_done)
        return;
    for (bool more = next_stream(a, true, &stream); more; more = next_stream(a, false, &stream))
        for (size_t i = 0; i < a->pending_count;) {
            if (a->pending[i].stream != stream) {
                i++;
                continue;
            }
            if (!a->options.device.event_done(a->options.device.self, a->pending[i].event))
                break;
            finish(a, i, context);
        }
}

void naive_synchronize(struct naive *a, const struct pool *only, uint64_t context)
{
    int64_t stream = 0;
    a->stats.num_sync_all_streams++;
    insert_deferred(a, context);
    for (bool more = next_stream(a, true, &stream); more; more = next_stream(a, false, &stream))
        for (size_t i = 0; i < a->pending_count;) {
            if (a->pending[i].stream != stream || (only && a->pending[i].block->pool != only)) {
                i++;
                continue;
            }
            if (a->options.device.event_wait)
                a->options.device.event_wait(a->options.device.self, a->pending[i].event);
            finish(a, i, context);
        }
}

/* --- malloc (3.1) ------------------------------------------------------------------------------------------------- */

static struct pool *pool_for(struct naive *a, int64_t stream)
{
    for (size_t i = a->scope_count; i-- > 0;)
        if (!a->scopes[i].filter || a->scopes[i].filter(a->scopes[i].self, stream))
            return a->scopes[i].pool;
    return &a->pools[0];
}

/* 6.4: the block found is handed out by the pool's own rules, with expandable segments off. */
static struct block *borrow(struct naive *a, struct request *r)
{
    struct block *b = NULL;
    if (r->pool != &a->pools[0])
        return NULL;
    for (struct pool *p = naive_next_pool(a, NULL); p && !b; p = naive_next_pool(a, p)) {
        if (!p->lends || !p->uses)
            continue;
        struct request lent = *r;
        lent.pool = p;
        lent.expandable = false;
        b = get_free(a, &lent);
        if (b)
            *r = lent;
    }
    return b;
}

static int find(struct naive *a, struct request *r, struct block **found)
{
    *found = get_free(a, r);
    if (*found)
        return 0;
    if (collecting(a))
        naive_collect(a, r->context);
    int status = naive_alloc_block(a, r, false, found);
    if (status == MEMORY_DEVICE_FULL)
        *found = borrow(a, r), status = *found ? 0 : MEMORY_DEVICE_FULL;
    if (status == MEMORY_DEVICE_FULL && naive_release_available(a, r))
        status = naive_alloc_block(a, r, false, found);
    if (status == MEMORY_DEVICE_FULL && !a->scope_count) {
        naive_release_cached(a, NULL, r->context);
        status = naive_alloc_block(a, r, true, found);
    }
    return status;
}

int naive_malloc(struct naive *a, uint64_t requested, int64_t stream, uint64_t context, uint64_t *address)
{
    if (requested >= ALLOCATOR_MAX_REQUEST)
        return ALLOCATOR_OUT_OF_MEMORY;
    if (!a->scope_count)
        process_events(a, context);
    struct request r = {.requested = requested, .size = naive_round_size(a->conf, requested), .context = context,
                        .stream = stream, .pool = pool_for(a, stream), .expandable = a->conf->expandable_segments};
    r.large = r.size > (1 << 20);
    r.segment = naive_segment_size(a->conf, r.size);
    struct block *b;
    int status = find(a, &r, &b);
    if (status == MEMORY_DEVICE_FULL) {
        uint64_t free_bytes, total;
        a->options.device.memory_info(a->options.device.self, &free_bytes, &total);
        naive_tell(a, ALLOCATOR_OOM, free_bytes, r.size, stream, r.pool, context);
        a->stats.num_ooms++;
        return ALLOCATOR_OUT_OF_MEMORY;
    }
    if (!status)
        *address = hand_out(a, b, &r);
    return status;
}

int naive_release(struct naive *a, uint64_t address, uint64_t context)
{
    struct block *b = naive_block_at(a, address);
    if (!b || !b->allocated)
        return ALLOCATOR_INVALID;
    b->allocated = false;
    naive_count(a, MEMORY_STAT_ALLOCATION, b, -1);
    naive_count(a, MEMORY_STAT_ALLOCATED_BYTES, b, -(int64_t)b->size);
    naive_tell(a, ALLOCATOR_FREE_REQUESTED, address, b->requested, b->stream, b->pool, context ? context : b->context);
    if (b->size >= a->conf->max_split_size)
        naive_add(&a->stats.oversize_allocations, -1);
    if (!b->uses.count)
        free_block(a, b, context);
    else if (a->scope_count)
        a->deferred[a->deferred_count++] = b;
    else
        insert_events(a, b);
    return 0;
}

int naive_record_stream(struct naive *a, uint64_t address, int64_t stream)
{
    struct block *b = naive_block_at(a, address);
    if (!b || !b->allocated)
        return ALLOCATOR_INVALID;
    if (stream == b->stream)
        return 0;
    streams_add(&b->uses, stream);
    if (a->scope_count)
        streams_add(&b->capture_uses, stream);
    return 0;
}

int naive_empty_cache(struct naive *a, uint64_t context)
{
    naive_release_cached(a, NULL, context);
    return 0;
}

int naive_complete_free(struct naive *a, uint64_t address, uint64_t context)
{
    struct block *b = naive_block_at(a, address);
    if (!b || b->allocated || !naive_is_waiting(b))
        return ALLOCATOR_INVALID;
    for (size_t i = 0; i < a->deferred_count; i++)
        if (a->deferred[i] == b)
            memmove(&a->deferred[i], &a->deferred[i + 1], (--a->deferred_count - i) * sizeof(a->deferred[0]));
    for (size_t i = a->pending_count; i-- > 0;)
        if (a->pending[i].block == b)
            pending_drop(a, i);
    b->uses.count = b->events = 0;
    free_block(a, b, context);
    return 0;
}

void naive_set_settings(struct naive *a, const struct settings *settings)
{
    *a->conf = *settings;
}

void naive_set_limit(struct naive *a, uint64_t limit)
{
    a->options.limit = limit;
}

/* --- pools and scopes (6) ----------------------------------------------------------------------------------------- */

static struct pool *pool_find(const struct naive *a, struct pool_id id)
{
    for (const struct pool *p = &a->pools[1]; p < &a->pools[MAX_POOLS]; p++)
        if (p->there && p->id.first == id.first && p->id.second == id.second)
            return (struct pool *)p;
    return NULL;
}

int naive_pool_create(struct naive *a, struct pool_id id, const struct pool_options *options)
{
    if (pool_find(a, id) || (!id.first && !id.second))
        return ALLOCATOR_INVALID;
    for (struct pool *p = &a->pools[1]; p < &a->pools[MAX_POOLS]; p++)
        if (!p->there) {
            *p = (struct pool){.id = id, .uses = 1, .there = true, .lends = options->use_on_oom,
                               .no_split = options->no_split};
            return 0;
        }
    abort();
}

int naive_pool_retain(struct naive *a, struct pool_id id)
{
    struct pool *p = pool_find(a, id);
    if (!p)
        return ALLOCATOR_INVALID;
    p->uses++;
    return 0;
}

static bool has_scope(const struct naive *a, const struct pool *p)
{
    for (size_t i = 0; i < a->scope_count; i++)
        if (a->scopes[i].pool == p)
            return true;
    return false;
}

int naive_pool_release(struct naive *a, struct pool_id id)
{
    struct pool *p = pool_find(a, id);
    if (!p || !p->uses || (p->uses == 1 && has_scope(a, p))) /* 6.3: the scope's own use is the last to go */
        return ALLOCATOR_INVALID;
    p->uses--;
    return 0;
}

int naive_pool_flush(struct naive *a, struct pool_id id, uint64_t context)
{
    struct pool *p = pool_find(a, id);
    if (!id.first && !id.second)
        return naive_empty_cache(a, context);
    if (!p)
        return 0;
    naive_release_cached(a, p, context);
    return 0;
}

int naive_pool_uses(const struct naive *a, struct pool_id id)
{
    const struct pool *p = pool_find(a, id);
    if (!id.first && !id.second)
        return a->pools[0].uses;
    return p ? p->uses : 0;
}

int naive_scope_begin(struct naive *a, struct pool_id id, bool (*filter)(void *self, int64_t stream), void *self)
{
    struct pool *p = pool_find(a, id);
    if (!p)
        return ALLOCATOR_INVALID;
    p->uses++;
    if (has_scope(a, p))
        return ALLOCATOR_INVALID; /* 6.3: the use stays counted */
    assert(a->scope_count < MAX_SCOPES);
    a->scopes[a->scope_count++] = (struct scope){p, filter, self};
    return 0;
}

int naive_scope_end(struct naive *a, struct pool_id id)
{
    for (size_t i = 0; i < a->scope_count; i++)
        if (a->scopes[i].pool == pool_find(a, id)) {
            memmove(&a->scopes[i], &a->scopes[i + 1], (--a->scope_count - i) * sizeof(a->scopes[0]));
            return 0;
        }
    return ALLOCATOR_INVALID;
}

/* --- to be looked at ---------------------------------------------------------------------------------------------- */

static int by_address(const void *left, const void *right)
{
    const struct block *x = *(struct block *const *)left, *y = *(struct block *const *)right;
    return x->address < y->address ? -1 : 1;
}

static struct allocator_block seen_block(const struct block *b)
{
    return (struct allocator_block){b->address, b->size, b->requested, b->context, b->allocated,
                                    b->allocated || naive_is_waiting(b)};
}

static void visit_segment(const struct allocator_visitor *visitor, struct block **blocks, size_t number)
{
    const struct block *head = blocks[0];
    struct allocator_segment segment = {head->address, 0, head->segment_context, head->stream, head->pool->id,
                                        head->large, naive_is_expandable(head)};
    for (size_t i = 0; i < number; i++)
        segment.size += blocks[i]->size;
    visitor->segment(visitor->self, &segment);
    for (size_t i = 0; i < number; i++) {
        struct allocator_block block = seen_block(blocks[i]);
        visitor->block(visitor->self, &block);
    }
}

void naive_visit(const struct naive *a, const struct allocator_visitor *visitor)
{
    struct block **sorted = naive_must(malloc((a->block_count + 1) * sizeof(sorted[0])));
    memcpy(sorted, a->blocks, a->block_count * sizeof(sorted[0]));
    qsort(sorted, a->block_count, sizeof(sorted[0]), by_address);
    for (size_t i = 0, number; i < a->block_count; i += number) {
        number = 1;
        if (!sorted[i]->mapped)
            continue;
        while (i + number < a->block_count && sorted[i + number]->span == sorted[i]->span && sorted[i + number]->mapped)
            number++;
        visit_segment(visitor, &sorted[i], number);
    }
    free(sorted);
}

bool naive_find(const struct naive *a, uint64_t address, struct allocator_block *block)
{
    for (size_t i = 0; i < a->block_count; i++)
        if (a->blocks[i]->mapped && address - a->blocks[i]->address < a->blocks[i]->size) {
            *block = seen_block(a->blocks[i]);
            return true;
        }
    return false;
}

const struct memory_stats *naive_stats(const struct naive *a)
{
    return &a->stats;
}

uint64_t naive_reserved(const struct naive *a)
{
    return a->reserved;
}

struct naive *naive_new(const struct allocator_options *options)
{
    struct naive *a = naive_must(calloc(1, sizeof(*a)));
    a->options = *options;
    a->conf = &a->options.settings;
    a->stats.max_split_size = (int64_t)a->conf->max_split_size;
    a->pools[0] = (struct pool){.uses = 1, .there = true};
    return a;
}

void naive_free(struct naive *a)
{
    while (a->block_count) {
        struct block *b = a->blocks[0];
        struct span *span = b->span;
        for (size_t i = a->block_count; i-- > 0;)
            if (a->blocks[i]->span == span)
                naive_block_remove(a, a->blocks[i]);
        free(span);
    }
    free(a);
}
