/*
 * What an allocator does, as entries of the recording: its segments as driver calls, its blocks with what was asked for
 * and the stream; all of one call share their context.  Its statistics go along, after each call.
 */
#include "preload/caching_internal.h"

#include "base/array.h"

#include <string.h>

void cache_begin(struct cache *cache, const struct hook *hook, CUstream stream)
{
    cache->flushes = cache->allocator ? allocator_stats(cache->allocator)->num_sync_all_streams : 0;
    cache->hook = hook;
    cache->told = false;
    cache->stream = stream;
    cache->freed_size = RECORD_UNKNOWN;
}

static void tell(struct cache *cache, struct record_event *event)
{
    if (!cache->hook->records)
        return;
    event->device = (uint16_t)cache->device;
    event->call = cache->hook->call;
    event->skip = cache->hook->caller;
    event->same_call = cache->told;
    cache->told = true;
    hook_record(event);
}

void cache_tell(struct cache *cache, uint8_t action, uint64_t address, uint64_t size, uint64_t requested, int64_t stream)
{
    struct record_event event = {.action = action, .kind = RECORD_PLAIN, .address = address, .size = size,
                                 .requested = requested, .stream = stream, .is_cached = true};
    if (action == RECORD_SEGMENT_MAP || action == RECORD_SEGMENT_UNMAP)
        event.kind = RECORD_VIRTUAL;
    if (action == RECORD_OOM)
        event.result = CUDA_ERROR_OUT_OF_MEMORY;
    tell(cache, &event);
}

/* Is this end of a free one that a request found before it looked for memory, not one that it waited for? */
static bool was_over(const struct cache *cache)
{
    return cache->freed_size == RECORD_UNKNOWN &&
           cache->flushes == allocator_stats(cache->allocator)->num_sync_all_streams;
}

/* Frees that have not ended, in the order in which they were asked for. */
static void note_waiting(struct cache *cache, const struct allocator_event *event)
{
    if (array_reserve(&cache->waiting, &cache->waiting_capacity, cache->waiting_count + 1, sizeof(*cache->waiting)))
        cache->waiting_lost = true;
    else
        cache->waiting[cache->waiting_count++] = *event;
}

static void tell_end(struct cache *cache, const struct allocator_event *event)
{
    cache_tell(cache, RECORD_FREE_COMPLETED, event->address, RECORD_UNKNOWN, event->size, event->stream);
}

/* What a request waits for ends all at once: told in the order of the frees, so that a replay need not know which
 * streams they waited for. */
static void tell_completed(struct cache *cache, const struct allocator_event *event)
{
    size_t place = cache->waiting_count;
    bool over = was_over(cache);
    if (!over && cache->freed_size == RECORD_UNKNOWN && !cache->waiting_lost) {
        for (size_t i = 0; i < cache->waiting_count; i++)
            tell_end(cache, &cache->waiting[i]);
        cache->waiting_count = 0;
        return;
    }
    while (place > 0 && cache->waiting[place - 1].address != event->address)
        place--;
    if (place > 0)
        memmove(&cache->waiting[place - 1], &cache->waiting[place],
                (cache->waiting_count-- - place) * sizeof(*cache->waiting));
    tell_end(cache, event);
    if (over) /* a context of its own tells that */
        cache->told = false;
}

void cache_trace(void *self, const struct allocator_event *event)
{
    struct cache *cache = self;
    bool comes = event->action == ALLOCATOR_SEGMENT_ALLOC || event->action == ALLOCATOR_SEGMENT_MAP;
    bool goes = event->action == ALLOCATOR_SEGMENT_FREE || event->action == ALLOCATOR_SEGMENT_UNMAP;
    if ((comes || goes) && event->stream != PLAIN_ID)
        cache->async_segments += comes ? event->size : -event->size;
    switch (event->action) {
    case ALLOCATOR_ALLOC: /* the block's size is known when the allocator has come back */
        cache->served = *event;
        break;
    case ALLOCATOR_FREE_REQUESTED:
        note_waiting(cache, event);
        cache_tell(cache, RECORD_FREE_REQUESTED, event->address, cache->freed_size, event->size, event->stream);
        break;
    case ALLOCATOR_FREE_COMPLETED:
        tell_completed(cache, event);
        break;
    case ALLOCATOR_SNAPSHOT:
        break;
    default:
        cache_tell(cache, (uint8_t)event->action, event->address, event->size, RECORD_UNKNOWN, event->stream);
        break;
    }
}

void cache_served(struct cache *cache, uint64_t size)
{
    cache_tell(cache, RECORD_ALLOC, cache->served.address, size, cache->served.size, cache->served.stream);
}

void cache_end(struct cache *cache)
{
    const struct memory_stats *stats = allocator_stats(cache->allocator);
    uint64_t in_pool = cache->async_segments + cache->async_in_plain;
    if (in_pool > cache->pool_high)
        cache->pool_high = in_pool;
    if (cache->async_bytes > cache->async_high)
        cache->async_high = cache->async_bytes;
    if (cache->hook->records && cache->told)
        recorder_allocator((uint16_t)cache->device, stats);
    cache->hook = NULL;
}
