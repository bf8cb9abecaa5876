/* The allocator's life, malloc, and its private pools.  Uses src/base, src/device's interface. */
#include "alloc/allocator.h"

#include "alloc/internal.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static bool id_is_less(struct pool_id x, struct pool_id y)
{
    return x.first != y.first ? x.first < y.first : x.second < y.second;
}

static int owner_add(struct allocator *a, struct pool_id id, const struct pool_options *options)
{
    uint32_t owner = 0;
    for (uint32_t i = 1; i < a->owner_count; i++)
        if (!a->owners[i].alive && a->owners[i].id.first == id.first && a->owners[i].id.second == id.second)
            owner = i; /* the same pool again: its sets are empty */
    if (!owner) {
        if (array_reserve(&a->owners, &a->owner_capacity, a->owner_count + 1, sizeof(*a->owners)) ||
            array_reserve(&a->owner_order, &a->owner_order_capacity, a->owner_count + 1, sizeof(*a->owner_order)) ||
            array_reserve(&a->pools, &a->pool_capacity, 2 * (a->owner_count + 1), sizeof(*a->pools)))
            return STATUS_NO_MEMORY;
        owner = (uint32_t)a->owner_count++;
        size_t at = owner;
        for (; at && id_is_less(id, a->owners[a->owner_order[at - 1]].id); at--)
            a->owner_order[at] = a->owner_order[at - 1];
        a->owner_order[at] = owner;
        memset(&a->pools[2 * owner], 0, 2 * sizeof(*a->pools));
        a->pools[2 * owner].is_small = true;
        a->pools[2 * owner].stats_at = offsetof(struct allocator, stats.kinds[0][MEMORY_POOL_SMALL]);
        a->pools[2 * owner + 1].stats_at = offsetof(struct allocator, stats.kinds[0][MEMORY_POOL_LARGE]);
        a->pools[2 * owner].owner = a->pools[2 * owner + 1].owner = owner;
    }
    a->owners[owner] = (struct owner){
        .id = id, .alive = true, .uses = 1, .use_on_oom = options->use_on_oom, .source = options->source};
    a->pools[2 * owner].no_split = a->pools[2 * owner + 1].no_split = options->no_split;
    return STATUS_OK;
}

struct allocator *allocator_new(const struct allocator_options *options)
{
    struct allocator *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->device = options->device;
    a->limit = options->limit;
    allocator_set_settings(a, &options->settings);
    a->trace = options->trace;
    a->trace_self = options->trace_self;
    memory_stats_init(&a->stats);
    if (options->settings.max_split_size != SETTINGS_UNLIMITED)
        a->stats.max_split_size = (int64_t)options->settings.max_split_size;
    const struct pool_options plain = {false, false, NULL};
    if (array_reserve(&a->blocks, &a->block_capacity, 64, sizeof(*a->blocks)) ||
        owner_add(a, (struct pool_id){0, 0}, &plain) || stream_find_new(a, 0) == UINT32_MAX) {
        allocator_free(a);
        return NULL;
    }
    a->blocks[0] = (struct block){.active = true};
    a->block_count = 1;
    return a;
}

static void sets_free(struct pool *pool)
{
    for (size_t i = 0; i < pool->set_capacity; i++) {
        free_set_free(&pool->sets[i]);
        free_set_free(&pool->unmapped[i]);
    }
    free(pool->sets);
    free(pool->unmapped);
}

void allocator_free(struct allocator *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < 2 * a->owner_count; i++)
        sets_free(&a->pools[i]);
    for (size_t i = 0; i < a->stream_count; i++)
        free(a->streams[i].queue);
    free(a->pools);
    free(a->owners);
    free(a->owner_order);
    free(a->streams);
    free(a->stream_order);
    table_free(&a->stream_index);
    address_map_free(&a->by_address);
    free(a->blocks);
    free(a->uses);
    free(a->spaces);
    free(a->deferred);
    free(a->scopes);
    free(a);
}

/* Which pool's owner a request on this stream goes to: the newest scope that takes it, else the default. */
static uint32_t request_owner(const struct allocator *a, int64_t stream)
{
    for (size_t i = a->scope_count; i-- > 0;)
        if (!a->scopes[i].filter || a->scopes[i].filter(a->scopes[i].self, stream))
            return a->scopes[i].owner;
    return 0;
}

HOT bool should_split(const struct allocator *a, const struct pool *pool, uint64_t rest, uint64_t size, bool lent)
{
    if (pool->no_split)
        return false;
    if (pool->is_small || (a->settings.expandable_segments && !lent))
        return rest >= ALLOCATOR_MIN_BLOCK;
    return size < a->settings.max_split_size && rest > ALLOCATOR_SMALL_LIMIT;
}

/* Hand out the front of a block: the old object becomes the rest, as there (stale fields stay with it).  Also counts
 * what that does to the inactive pieces of a plain segment.  The front; 0: no memory. */
static uint32_t split(struct allocator *a, uint32_t rest, uint64_t size)
{
    uint32_t front = block_new(a, a->blocks[rest].pool, a->blocks[rest].stream, a->blocks[rest].address, size);
    if (!front)
        return 0;
    struct block *tail = &a->blocks[rest], *head = &a->blocks[front];
    const struct pool *pool = &a->pools[tail->pool];
    bool was_split = block_is_split(tail);
    head->space = tail->space;
    head->previous = tail->previous;
    head->next = rest;
    if (head->previous)
        a->blocks[head->previous].next = front;
    else if (head->space != NO_SPACE)
        a->spaces[head->space].first = front;
    tail->previous = front;
    if (tail->named) /* the address is the front's now */
        address_map_move(&a->by_address, tail->address, front);
    head->named = tail->named;
    tail->named = false;
    uint32_t place = head->place; /* of the rest of an earlier one, likely; and the whole comes back to where it was */
    head->place = tail->place;
    tail->place = place;
    tail->address += size;
    tail->size -= size;
    if (block_put_now(a, rest, tail, pool))
        return 0;
    if (tail->space != NO_SPACE)
        return front;
    struct memory_stat *stats = class_stats(a, pool);
    if (was_split) {
        class_sub(a, stats, MEMORY_STAT_INACTIVE_SPLIT_BYTES, (int64_t)size);
    } else {
        class_add(a, stats, MEMORY_STAT_INACTIVE_SPLIT_BYTES, (int64_t)tail->size);
        class_add(a, stats, MEMORY_STAT_INACTIVE_SPLIT, 1);
    }
    return front;
}

/* lent: by a pool for emergencies or a source of its own, which split as if no segments were expandable */
HOT int hand_out(struct allocator *a, uint32_t index, const struct pool *pool, uint64_t requested, uint64_t size,
                 bool lent, uint64_t context, uint64_t *address)
{
    struct block *block = &a->blocks[index];
    struct memory_stat *stats = class_stats(a, pool);
    if (block->size != size && should_split(a, pool, block->size - size, size, lent)) {
        index = split(a, index, size);
        if (!index)
            return STATUS_NO_MEMORY;
        block = &a->blocks[index];
    } else if (block_is_split(block) && block->space == NO_SPACE) {
        class_sub(a, stats, MEMORY_STAT_INACTIVE_SPLIT_BYTES, (int64_t)block->size);
        class_sub(a, stats, MEMORY_STAT_INACTIVE_SPLIT, 1);
    }
    block->allocated = block->active = true;
    block->requested = requested;
    block->context = context;
    *address = block->address;
    trace_event(a, ALLOCATOR_ALLOC, block->address, requested, block->stream, block->pool, context);
    class_add(a, stats, MEMORY_STAT_ALLOCATION, 1);
    class_add(a, stats, MEMORY_STAT_ALLOCATED_BYTES, (int64_t)block->size);
    class_add(a, stats, MEMORY_STAT_ACTIVE, 1);
    class_add(a, stats, MEMORY_STAT_ACTIVE_BYTES, (int64_t)block->size);
    class_add(a, stats, MEMORY_STAT_REQUESTED_BYTES, (int64_t)requested);
    if (block->size >= a->settings.max_split_size)
        memory_stat_increase(&a->stats.oversize_allocations, 1);
    return block_name(a, index);
}

static int out_of_memory(struct allocator *a, const struct request *request)
{
    uint64_t free_bytes = 0, total = 0;
    a->device.memory_info(a->device.self, &free_bytes, &total);
    trace_event(a, ALLOCATOR_OOM, free_bytes, request->size, request->stream, request->pool, request->context);
    a->stats.num_ooms++;
    return ALLOCATOR_OUT_OF_MEMORY;
}

/* No free block fits: every way to get one, each only if the one before failed. */
static int find_elsewhere(struct allocator *a, struct request *request, uint32_t *found)
{
    if (a->collects)
        release_collect(a, request->context);
    int status = find_segment(a, request, false, found);
    if (status != ALLOCATOR_OUT_OF_MEMORY)
        return status;
    *found = find_on_oom(a, request);
    if (*found)
        return STATUS_OK;
    if (release_available(a, request)) {
        status = find_segment(a, request, false, found);
        if (status != ALLOCATOR_OUT_OF_MEMORY)
            return status;
    }
    if (a->scope_count)
        return out_of_memory(a, request);
    status = release_cached(a, request->context, (struct pool_id){0, 0});
    if (!status)
        status = find_segment(a, request, true, found);
    return status == ALLOCATOR_OUT_OF_MEMORY ? out_of_memory(a, request) : status;
}

static __attribute__((noinline)) int malloc_elsewhere(struct allocator *a, const struct request *asked,
                                                      uint64_t *address)
{
    struct request request = *asked;
    uint32_t found;
    request.segment_size = settings_segment_size(&a->settings, request.size);
    int status = find_elsewhere(a, &request, &found);
    return status ? status
                  : hand_out(a, found, &a->pools[a->blocks[found].pool], request.requested, request.size,
                             !request.expandable, request.context, address);
}

HOT int malloc_now(struct allocator *a, uint64_t requested, uint64_t size, int64_t handle, uint32_t owner,
                   uint64_t context, uint64_t *address)
{
    uint32_t stream = stream_find(a, handle), pool = 2 * owner + (size > ALLOCATOR_SMALL_LIMIT);
    if (stream == UINT32_MAX)
        return STATUS_NO_MEMORY;
    bool lent = owner && a->owners[owner].source, expandable = a->settings.expandable_segments && !lent;
    uint32_t found = find_free(a, &a->pools[pool], stream, size, expandable);
    if (found)
        return hand_out(a, found, &a->pools[pool], requested, size, lent, context, address);
    const struct request request = {.requested = requested, .size = size, .context = context, .stream = stream,
                                    .pool = pool, .expandable = expandable};
    return malloc_elsewhere(a, &request, address);
}

/* Sizes are rounded in some other way, a scope may send the request elsewhere, frees may have ended by now. */
static __attribute__((noinline)) int malloc_unusual(struct allocator *a, uint64_t requested, int64_t handle,
                                                    uint64_t context, uint64_t *address)
{
    int status = a->scope_count ? STATUS_OK : events_process(a, context);
    a->is_unusual = a->rounds_otherwise || a->scope_count || a->pending_count || a->deferred_count;
    if (status)
        return status;
    uint64_t size = settings_round(&a->settings, requested);
    return malloc_now(a, requested, size, handle, request_owner(a, handle), context, address);
}

int allocator_malloc(struct allocator *a, uint64_t requested, int64_t handle, uint64_t context, uint64_t *address)
{
    if (requested >= ALLOCATOR_MAX_REQUEST)
        return ALLOCATOR_OUT_OF_MEMORY;
    if (a->is_unusual)
        return malloc_unusual(a, requested, handle, context, address);
    uint64_t size = (requested + !requested + ALLOCATOR_MIN_BLOCK - 1) & ~(ALLOCATOR_MIN_BLOCK - 1);
    return malloc_now(a, requested, size, handle, 0, context, address);
}

static void prepare(struct allocator *a)
{
    a->collects = a->limit != ALLOCATOR_NO_LIMIT && a->settings.garbage_collection_threshold > 0;
    a->rounds_otherwise = false;
    for (size_t i = 0; i < SETTINGS_ROUNDUP_ENTRIES; i++)
        a->rounds_otherwise |= a->settings.roundup_divisions[i] > 1;
    a->is_unusual |= a->rounds_otherwise;
}

void allocator_set_settings(struct allocator *a, const struct settings *settings)
{
    a->settings = *settings;
    prepare(a);
}

void allocator_set_limit(struct allocator *a, uint64_t limit)
{
    a->limit = limit;
    prepare(a);
}

void allocator_set_trace(struct allocator *a, void (*trace)(void *self, const struct allocator_event *event), void *self)
{
    a->trace = trace;
    a->trace_self = self;
}

uint64_t allocator_limit(const struct allocator *a)
{
    return a->limit;
}

struct memory_stats *allocator_stats(struct allocator *a)
{
    return &a->stats;
}

uint64_t allocator_reserved(const struct allocator *a)
{
    return a->reserved;
}

/* A private pool; NULL for the default one too. */
static struct owner *owner_find(const struct allocator *a, struct pool_id id)
{
    for (uint32_t i = 1; i < a->owner_count; i++)
        if (a->owners[i].alive && a->owners[i].id.first == id.first && a->owners[i].id.second == id.second)
            return &a->owners[i];
    return NULL;
}

static bool has_scope(const struct allocator *a, const struct owner *owner)
{
    for (size_t i = 0; i < a->scope_count; i++)
        if (a->scopes[i].owner == (uint32_t)(owner - a->owners))
            return true;
    return false;
}

int allocator_pool_create(struct allocator *a, struct pool_id id, const struct pool_options *options)
{
    return owner_find(a, id) || (!id.first && !id.second) ? ALLOCATOR_INVALID : owner_add(a, id, options);
}

int allocator_pool_retain(struct allocator *a, struct pool_id id)
{
    struct owner *owner = owner_find(a, id);
    if (!owner)
        return ALLOCATOR_INVALID;
    owner->uses++;
    return STATUS_OK;
}

int allocator_pool_release(struct allocator *a, struct pool_id id)
{
    struct owner *owner = owner_find(a, id);
    if (!owner || owner->uses <= 0 || (owner->uses == 1 && has_scope(a, owner)))
        return ALLOCATOR_INVALID;
    owner->uses--;
    return STATUS_OK;
}

int allocator_pool_flush(struct allocator *a, struct pool_id id, uint64_t context)
{
    return release_cached(a, context, id);
}

int allocator_pool_uses(const struct allocator *a, struct pool_id id)
{
    const struct owner *owner = id.first || id.second ? owner_find(a, id) : &a->owners[0];
    return owner ? owner->uses : 0;
}

int allocator_scope_begin(struct allocator *a, struct pool_id id, bool (*filter)(void *self, int64_t stream),
                          void *self)
{
    struct owner *owner = owner_find(a, id);
    if (!owner || array_reserve(&a->scopes, &a->scope_capacity, a->scope_count + 1, sizeof(*a->scopes)))
        return owner ? STATUS_NO_MEMORY : ALLOCATOR_INVALID;
    owner->uses++;
    if (has_scope(a, owner))
        return ALLOCATOR_INVALID; /* the use stays counted, as there */
    a->scopes[a->scope_count++] =
        (struct scope){.id = id, .owner = (uint32_t)(owner - a->owners), .filter = filter, .self = self};
    a->is_unusual = true;
    return STATUS_OK;
}

int allocator_scope_end(struct allocator *a, struct pool_id id)
{
    for (size_t i = a->scope_count; i-- > 0;) {
        if (a->scopes[i].id.first != id.first || a->scopes[i].id.second != id.second)
            continue;
        memmove(a->scopes + i, a->scopes + i + 1, (a->scope_count - i - 1) * sizeof(*a->scopes));
        a->scope_count--;
        return STATUS_OK;
    }
    return ALLOCATOR_INVALID;
}
