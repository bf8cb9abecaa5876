/*
 * What a cache's allocator stands on: the driver in the device's primary context (device/driver_memory), with what the
 * tables must know of each segment, and waits where the driver promises none.  May use device.
 */
#include "preload/caching_internal.h"

#define NO_EVENT 0 /* it could not be put down, and was waited for instead */

static int segment_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct cache *cache = self;
    int status = cache->under.segment_get(cache->under.self, size, stream, address);
    if (status || ranges_add(cache, *address, size))
        return status;
    cache->under.segment_release(cache->under.self, *address, size);
    return STATUS_NO_MEMORY;
}

/* Work that was given to streams may still come to what is free in their order. */
static void segment_release(void *self, uint64_t address, uint64_t size)
{
    struct cache *cache = self;
    if (cache->is_gone)
        return;
    cache_synchronize(cache);
    ranges_remove(address);
    cache->under.segment_release(cache->under.self, address, size);
}

static int address_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct cache *cache = self;
    int status = cache->under.address_reserve(cache->under.self, size, address);
    if (status || ranges_add(cache, *address, size))
        return status;
    cache->under.address_release(cache->under.self, *address, size);
    return STATUS_NO_MEMORY;
}

static void address_release(void *self, uint64_t address, uint64_t size)
{
    struct cache *cache = self;
    if (cache->is_gone)
        return;
    ranges_remove(address);
    cache->under.address_release(cache->under.self, address, size);
}

static int map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct cache *cache = self;
    return cache->under.map(cache->under.self, address, size, page);
}

static void unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct cache *cache = self;
    if (cache->is_gone)
        return;
    cache_synchronize(cache);
    cache->under.unmap(cache->under.self, address, size, page);
}

/* Always on the stream of the call under way: its handle may mean another stream to another thread. */
static int event_record(void *self, int64_t stream, uint64_t *event)
{
    struct cache *cache = self;
    (void)stream;
    if (cache->under.event_record(cache->under.self, (int64_t)(uintptr_t)cache->stream, event)) {
        *event = NO_EVENT;
        return (int)cache_synchronize(cache); /* if that fails, too, the block is never used again */
    }
    return STATUS_OK;
}

static bool event_done(void *self, uint64_t event)
{
    struct cache *cache = self;
    return cache->is_gone || event == NO_EVENT || cache->under.event_done(cache->under.self, event);
}

static void event_wait(void *self, uint64_t event)
{
    struct cache *cache = self;
    if (!cache->is_gone && event != NO_EVENT)
        cache->under.event_wait(cache->under.self, event);
}

static void memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct cache *cache = self;
    cache->under.memory_info(cache->under.self, free_bytes, total_bytes);
}

struct memory_device cache_device(struct cache *cache)
{
    return (struct memory_device){
        .self = cache, .segment_get = segment_get, .segment_release = segment_release,
        .address_reserve = address_reserve, .address_release = address_release, .map = map, .unmap = unmap,
        .event_record = event_record, .event_done = event_done, .event_wait = event_wait, .memory_info = memory_info};
}
