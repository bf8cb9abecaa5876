/*
 * Cached memory that goes back to the driver: when other memory is refused, by the program's word, with a context; and
 * what of it the program may count as free.  May use alloc, base.
 */
#include "preload/caching_internal.h"

#include "base/array.h"
#include "preload/capture.h"

#include <stdlib.h>

bool cache_flush(struct cache *cache, const struct hook *hook)
{
    cache_lock(cache, hook, NULL);
    uint64_t before = cache->allocator ? allocator_reserved(cache->allocator) : 0;
    if (atomic_load(&cache->context))
        allocator_empty_cache(cache->allocator, 0);
    bool less = cache->allocator && allocator_reserved(cache->allocator) < before;
    cache_unlock(cache);
    return less;
}

bool caching_makes_room(struct hook *hook, CUresult result)
{
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !caching_is_on() || caching_busy || !caching_driver.ready || capture_any())
        return false;
    struct cache *cache = cache_current();
    return cache && cache_flush(cache, hook);
}

/* Segments of which nothing is used, by the walk's own count. */
struct unused {
    uint64_t segment, bytes;
    bool used;
};

static int unused_segment(void *self, const struct allocator_segment *segment)
{
    struct unused *unused = self;
    unused->bytes += unused->used ? 0 : unused->segment;
    unused->segment = segment->is_expandable ? 0 : segment->size;
    unused->used = false;
    return 0;
}

static int unused_block(void *self, const struct allocator_block *block)
{
    struct unused *unused = self;
    unused->used |= block->active;
    if (!unused->segment && !block->active)
        unused->bytes += block->size / ALLOCATOR_LARGE_ROUNDING * ALLOCATOR_LARGE_ROUNDING;
    return 0;
}

void caching_add_free(size_t *free_bytes)
{
    struct cache *cache = caching_is_on() && caching_driver.ready && !caching_busy && !capture_any() ? cache_current() : NULL;
    struct unused unused = {0};
    const struct allocator_visitor visitor = {.segment = unused_segment, .block = unused_block, .self = &unused};
    if (!cache)
        return;
    caching_busy++;
    pthread_mutex_lock(&cache->lock);
    if (atomic_load(&cache->context) && !allocator_visit(cache->allocator, &visitor)) {
        uint64_t reserved = allocator_reserved(cache->allocator);
        *free_bytes += unused.bytes + (unused.used ? 0 : unused.segment);
        uint64_t allowed = cache->limit == ALLOCATOR_NO_LIMIT || reserved > cache->limit ? 0 : cache->limit - reserved;
        allowed += unused.bytes + (unused.used ? 0 : unused.segment);
        if (cache->limit != ALLOCATOR_NO_LIMIT && *free_bytes > allowed)
            *free_bytes = allowed;
    }
    pthread_mutex_unlock(&cache->lock);
    caching_busy--;
}

/* --- a context goes ----------------------------------------------------------------------------------------------- */

struct allocated { /* blocks */
    struct allocator_block *items;
    size_t count, capacity;
};

static int note_allocated(void *self, const struct allocator_block *block)
{
    struct allocated *allocated = self;
    if (!block->allocated)
        return 0;
    if (array_reserve(&allocated->items, &allocated->capacity, allocated->count + 1, sizeof(*allocated->items)))
        return STATUS_NO_MEMORY;
    allocated->items[allocated->count++] = *block;
    return 0;
}

static int any_segment(void *self, const struct allocator_segment *segment)
{
    (void)self;
    (void)segment;
    return 0;
}

/* As if every block were freed and all of the cache given back, while the driver is asked nothing. */
static void let_all_go(struct cache *cache)
{
    struct allocated allocated = {0};
    const struct allocator_visitor visitor = {.segment = any_segment, .block = note_allocated, .self = &allocated};
    int status = allocator_visit(cache->allocator, &visitor);
    for (size_t i = 0; i < allocated.count; i++) {
        cache->freed_size = allocated.items[i].size;
        allocator_release(cache->allocator, allocated.items[i].address, 0);
    }
    free(allocated.items);
    if (!status)
        status = allocator_empty_cache(cache->allocator, 0);
    if (status) { /* no memory for all that: begin anew */
        allocator_free(cache->allocator);
        cache->allocator = NULL;
    }
}

void caching_context_gone(struct hook *hook, CUdevice device)
{
    struct cache *cache = caching_is_on() && !caching_busy ? cache_of_device(device) : NULL;
    if (!cache)
        return;
    cache_lock(cache, hook, NULL);
    cache->is_gone = true;
    let_all_go(cache);
    ranges_forget(cache);
    lanes_forget(cache);
    atomic_store(&cache->context, NULL);
    cache->generation++;
    cache->async_bytes = cache->async_in_plain = cache->legacy_until = 0;
    driver_memory_forget(cache->memory);
    cache->memory = NULL;
    cache_unlock(cache);
}
