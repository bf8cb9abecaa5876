/*
 * What the program does with a device's own pool, which our stream-ordered blocks stand for, and what other devices may
 * use.  A pool of the program's own, chosen for a device, or one that another device may use, is the driver's affair.
 */
#include "preload/caching_internal.h"

#include "preload/capture.h"

CUcontext caching_context_of(const struct caching_block *block)
{
    return block->async ? NULL : atomic_load(&block->cache->context);
}

CUmemoryPool caching_pool_of(const struct caching_block *block)
{
    CUmemoryPool pool = NULL;
    if (block->async && caching_driver.cuDeviceGetDefaultMemPool)
        caching_driver.cuDeviceGetDefaultMemPool(&pool, block->cache->device);
    return pool;
}

/* The cache of the device that the pool is the own one of. */
static struct cache *cache_of_pool(CUmemoryPool pool)
{
    if (!caching_is_on() || caching_busy || !pool || !caching_driver.cuDeviceGetDefaultMemPool)
        return NULL;
    for (int i = 0; i < CACHING_DEVICES; i++) {
        CUmemoryPool own = NULL;
        struct cache *cache = cache_of_device(i);
        if (cache && caching_driver.cuDeviceGetDefaultMemPool(&own, i) == CUDA_SUCCESS && own == pool)
            return cache;
    }
    return NULL;
}

static uint64_t pool_reserved(const struct cache *cache)
{
    return cache->async_segments + cache->async_in_plain;
}

bool caching_pool_numbers(CUmemoryPool pool, struct caching_pool *numbers)
{
    struct cache *cache = cache_of_pool(pool);
    if (!cache)
        return false;
    caching_busy++;
    pthread_mutex_lock(&cache->lock);
    *numbers = (struct caching_pool){.reserved = pool_reserved(cache), .reserved_high = cache->pool_high,
                                     .used = cache->async_bytes, .used_high = cache->async_high};
    pthread_mutex_unlock(&cache->lock);
    caching_busy--;
    return true;
}

void caching_pool_trim(struct hook *hook, CUmemoryPool pool, uint64_t keep)
{
    struct cache *cache = cache_of_pool(pool);
    struct caching_pool numbers;
    if (cache && caching_pool_numbers(pool, &numbers) && numbers.reserved > keep && !capture_any())
        cache_flush(cache, hook);
}

void caching_pool_reset(CUmemoryPool pool, bool reserved, bool used)
{
    struct cache *cache = cache_of_pool(pool);
    if (!cache)
        return;
    caching_busy++;
    pthread_mutex_lock(&cache->lock);
    if (reserved)
        cache->pool_high = pool_reserved(cache);
    if (used)
        cache->async_high = cache->async_bytes;
    pthread_mutex_unlock(&cache->lock);
    caching_busy--;
}

/* The device that the pool is the own one of; -1: none. */
static CUdevice device_of_pool(CUmemoryPool pool)
{
    CUmemoryPool own = NULL;
    for (CUdevice device = 0; device < CACHING_DEVICES; device++) {
        if (caching_driver.cuDeviceGetDefaultMemPool(&own, device) != CUDA_SUCCESS)
            return -1;
        if (own == pool)
            return device;
    }
    return -1;
}

void caching_pool_chosen(CUdevice device, CUmemoryPool pool)
{
    if (caching_is_on() && device >= 0 && device < CACHING_DEVICES && caching_driver.cuDeviceGetDefaultMemPool)
        cache_other_pool(device, device_of_pool(pool) != device);
}

/* Another device may use the pool: what is in it already by the contexts, what comes later is the driver's own. */
static void share_with(CUdevice device, CUdevice other)
{
    CUcontext theirs = NULL, previous;
    struct cache *cache = cache_of_device(device);
    cache_other_pool(device, true);
    if (!cache || !caching_driver.cuCtxEnablePeerAccess ||
        caching_driver.memory.cuDevicePrimaryCtxRetain(&theirs, other) != CUDA_SUCCESS)
        return;
    if (caching_driver.memory.cuCtxPushCurrent_v2(theirs) == CUDA_SUCCESS) {
        caching_driver.cuCtxEnablePeerAccess(atomic_load(&cache->context), 0);
        caching_peer_enabled(atomic_load(&cache->context));
        caching_driver.memory.cuCtxPopCurrent_v2(&previous);
    }
    caching_driver.memory.cuDevicePrimaryCtxRelease_v2(other);
}

void caching_pool_shared(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    CUdevice device = caching_is_on() && !caching_busy && caching_driver.cuDeviceGetDefaultMemPool ? device_of_pool(pool) : -1;
    for (size_t i = 0; device >= 0 && i < count; i++)
        if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && access[i].location.id != device &&
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            share_with(device, access[i].location.id);
}

void caching_peer_enabled(CUcontext owner)
{
    CUdevice device;
    struct cache *cache = caching_is_on() && !caching_busy && owner ? cache_of_context(owner) : NULL;
    if (!cache || caching_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return;
    atomic_store(&caching_peers, true);
    caching_busy++;
    pthread_mutex_lock(&cache->lock);
    if (cache->memory)
        driver_memory_share(cache->memory, device);
    pthread_mutex_unlock(&cache->lock);
    caching_busy--;
}
