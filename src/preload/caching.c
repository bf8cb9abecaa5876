/*
 * Memory served by our caching allocator: settings, the caches of devices, the calls.  May use alloc, device, base.
 */
#include "preload/caching_internal.h"

#include "alloc/settings.h"
#include "base/size.h"
#include "preload/capture.h"
#include "preload/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUT_OFF 256 /* frees that could not be done where they were asked for */

atomic_bool caching_switch;
struct caching_functions caching_driver;
__thread unsigned caching_busy;

static struct settings settings;
static uint64_t limit = ALLOCATOR_NO_LIMIT;
static struct cache caches[CACHING_DEVICES];
atomic_bool caching_exports, caching_peers;

/* --- settings, start, forks --------------------------------------------------------------------------------------- */

/* A child must not find a lock held by a thread that it does not have. */
static __thread bool fork_held;

static void before_fork(void)
{
    fork_held = !caching_busy; /* else a signal handler forks in the midst of a call of ours, which goes on afterwards */
    if (!fork_held)
        return;
    for (int i = 0; i < CACHING_DEVICES; i++)
        pthread_mutex_lock(&caches[i].lock);
    ranges_hold(true);
    lanes_hold(true);
    imports_hold(true);
}

static void after_fork(void)
{
    if (!fork_held)
        return;
    imports_hold(false);
    lanes_hold(false);
    ranges_hold(false);
    for (int i = 0; i < CACHING_DEVICES; i++)
        pthread_mutex_unlock(&caches[i].lock);
}

bool caching_start(char *message, size_t message_size)
{
    const char *word = secure_getenv("CUDAMEM_ALLOCATOR"), *conf = secure_getenv("CUDAMEM_ALLOC_CONF");
    const char *most = secure_getenv("CUDAMEM_MEMORY_LIMIT");
    struct error err = {0};
    settings_init(&settings);
    if (!word || !*word || strcmp(word, "observe") == 0)
        return true;
    if (strcmp(word, "caching") != 0)
        error_set(&err, STATUS_USAGE, "CUDAMEM_ALLOCATOR: observe or caching");
    else if (conf && settings_parse(&settings, conf, &err))
        error_prefix(&err, "CUDAMEM_ALLOC_CONF: ");
    else if (most && *most && size_parse(most, &limit, &err))
        error_prefix(&err, "CUDAMEM_MEMORY_LIMIT: ");
    if (err.status) {
        snprintf(message, message_size, "%s; memory is not served by the caching allocator", err.message);
        return false;
    }
    for (int i = 0; i < CACHING_DEVICES; i++) {
        pthread_mutex_init(&caches[i].lock, NULL);
        caches[i].device = i;
    }
    atomic_store(&caching_switch, true);
    return true;
}

void caching_found_driver(void *(*find)(void *self, const char *name), void *self)
{
    struct caching_functions *found = &caching_driver;
    void *address;
#define FIND(name)                             \
    address = find(self, #name);               \
    memcpy(&found->name, &address, sizeof(address))
    FIND(cuCtxGetCurrent);
    FIND(cuCtxGetDevice);
    FIND(cuDevicePrimaryCtxGetState);
    FIND(cuStreamGetCtx);
    FIND(cuDeviceGetDefaultMemPool);
    FIND(cuCtxEnablePeerAccess);
#undef FIND
    found->ready = !driver_memory_look_up(&found->memory, find, self, NULL) && found->cuCtxGetCurrent &&
                   found->cuCtxGetDevice && found->cuDevicePrimaryCtxGetState && found->cuStreamGetCtx;
}

/* --- caches ------------------------------------------------------------------------------------------------------- */

CUresult cache_enter(struct cache *cache, bool *pushed)
{
    CUcontext context = atomic_load(&cache->context), current = NULL;
    *pushed = false;
    if (caching_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && current == context)
        return CUDA_SUCCESS;
    CUresult result = context ? caching_driver.memory.cuCtxPushCurrent_v2(context) : CUDA_ERROR_INVALID_CONTEXT;
    *pushed = result == CUDA_SUCCESS;
    return result;
}

void cache_leave(bool pushed)
{
    CUcontext own;
    if (pushed)
        caching_driver.memory.cuCtxPopCurrent_v2(&own);
}

CUresult cache_synchronize(struct cache *cache)
{
    bool pushed;
    unsigned long long turn = atomic_fetch_add(&cache->sync_begun, 1) + 1, done = 0;
    CUresult result = cache_enter(cache, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    result = caching_driver.memory.cuCtxSynchronize();
    cache_leave(pushed);
    while (result == CUDA_SUCCESS && done < turn)
        if (atomic_compare_exchange_weak(&cache->sync_done, &done, turn))
            break;
    return result;
}

static uint64_t limit_of(struct cache *cache)
{
    uint64_t free_bytes = 0, total = 0;
    if (settings.per_process_memory_fraction >= 1)
        return limit;
    cache->under.memory_info(cache->under.self, &free_bytes, &total);
    uint64_t share = (uint64_t)(settings.per_process_memory_fraction * (double)total);
    return share < limit ? share : limit;
}

/* The lock is held.  An allocator goes on with the next context: its numbers are the device's. */
static bool open_cache(struct cache *cache, CUcontext context)
{
    if (driver_memory_attach(&caching_driver.memory, cache->device, context, &cache->memory, NULL))
        return false;
    cache->under = driver_memory_table(cache->memory);
    cache->limit = limit_of(cache);
    const struct allocator_options options = {.device = cache_device(cache), .settings = settings, .limit = cache->limit,
                                              .trace = cache_trace, .trace_self = cache};
    if (!cache->allocator)
        cache->allocator = allocator_new(&options);
    if (!cache->allocator) {
        driver_memory_forget(cache->memory);
        cache->memory = NULL;
        return false;
    }
    cache->is_gone = false;
    cache->generation++;
    atomic_store(&cache->context, context);
    return true;
}

/* Only primary contexts are served: those that the program makes end with all of their memory at any time. */
static bool is_primary(CUdevice device, CUcontext context)
{
    unsigned flags = 0;
    int active = 0;
    CUcontext primary = NULL;
    if (context_is_own(context) ||
        caching_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
        caching_driver.memory.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
        return false;
    caching_driver.memory.cuDevicePrimaryCtxRelease_v2(device);
    return primary == context;
}

/* After the driver, which has started by now: at a fork the locks that were minded last are taken first, and who holds
 * ours may be about to take the driver's. */
static void mind_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static struct cache *new_cache(CUdevice device, CUcontext context)
{
    struct cache *cache = device >= 0 && device < CACHING_DEVICES ? &caches[device] : NULL;
    if (!cache || !is_primary(device, context))
        return NULL;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, mind_forks);
    caching_busy++;
    pthread_mutex_lock(&cache->lock);
    bool open = atomic_load(&cache->context) == context || open_cache(cache, context);
    pthread_mutex_unlock(&cache->lock);
    caching_busy--;
    return open ? cache : NULL;
}

static struct cache *cache_there(CUcontext context)
{
    for (int i = 0; i < CACHING_DEVICES; i++)
        if (atomic_load_explicit(&caches[i].context, memory_order_acquire) == context)
            return &caches[i];
    return NULL;
}

struct cache *cache_current(void)
{
    CUcontext context = NULL;
    CUdevice device;
    if (caching_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
        return NULL;
    struct cache *cache = cache_there(context);
    if (cache || caching_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return cache;
    return new_cache(device, context);
}

struct cache *cache_of_context(CUcontext context)
{
    CUdevice device;
    struct cache *cache = context ? cache_there(context) : NULL;
    CUcontext own;
    if (cache || !context || caching_driver.memory.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
        return cache;
    if (caching_driver.cuCtxGetDevice(&device) == CUDA_SUCCESS)
        cache = new_cache(device, context);
    caching_driver.memory.cuCtxPopCurrent_v2(&own);
    return cache;
}

struct cache *cache_of_device(CUdevice device)
{
    bool there = device >= 0 && device < CACHING_DEVICES && atomic_load(&caches[device].context);
    return there ? &caches[device] : NULL;
}

void cache_other_pool(CUdevice device, bool other)
{
    atomic_store(&caches[device].other_pool, other);
}

void cache_lock(struct cache *cache, const struct hook *hook, CUstream stream)
{
    caching_busy++;
    pthread_mutex_lock(&cache->lock);
    cache_begin(cache, hook, stream);
}

void cache_unlock(struct cache *cache)
{
    if (cache->allocator)
        cache_end(cache);
    pthread_mutex_unlock(&cache->lock);
    caching_busy--;
}

static void say_not_served(void)
{
    static const char line[] = "cudamem: the caching allocator needs a newer driver; memory is the driver's own\n";
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&said))
        recorder_write(line, sizeof(line) - 1);
}

/* --- allocations -------------------------------------------------------------------------------------------------- */

static CUresult result_of(int status)
{
    return status < 0 ? CUDA_ERROR_OUT_OF_MEMORY : (CUresult)status;
}

/* What is free in the plain lane may have been freed in the order of the legacy stream. */
static CUresult settle_plain(struct cache *cache)
{
    if (cache->legacy_until <= atomic_load(&cache->sync_done))
        return CUDA_SUCCESS;
    CUresult result = caching_driver.memory.cuStreamSynchronize(CU_STREAM_LEGACY);
    if (result == CUDA_SUCCESS)
        cache->legacy_until = 0;
    return result;
}

/* The lock is held. */
static CUresult serve(struct cache *cache, size_t bytes, uint32_t lane, bool async, CUdeviceptr *address)
{
    uint64_t got = 0;
    int status = allocator_malloc(cache->allocator, bytes, lane_id(lane), 0, &got);
    struct allocator_block found = {0};
    if (status == ALLOCATOR_OUT_OF_MEMORY && cache->hook->records)
        recorder_keep_oom();
    if (status)
        return result_of(status);
    allocator_find(cache->allocator, got, &found);
    struct caching_block block = {.address = got, .requested = bytes, .size = found.size, .cache = cache,
                                  .generation = cache->generation, .lane = lane, .async = async};
    cache_served(cache, found.size);
    if (!blocks_add(&block)) {
        cache->freed_size = found.size;
        allocator_release(cache->allocator, got, 0);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    cache->async_bytes += async ? bytes : 0;
    cache->async_in_plain += async && lane == LANE_PLAIN ? found.size : 0;
    *address = got;
    return CUDA_SUCCESS;
}

static bool may_serve(const CUdeviceptr *address, size_t bytes)
{
    if (!caching_is_on() || caching_busy || !hook_is_outermost())
        return false;
    if (!caching_driver.ready)
        say_not_served();
    return caching_driver.ready && address && bytes && bytes < ALLOCATOR_MAX_REQUEST && !capture_any();
}

static void do_put_off(struct hook *hook);

bool caching_alloc(struct hook *hook, CUdeviceptr *address, size_t bytes, CUresult *result)
{
    if (!may_serve(address, bytes) || atomic_load(&caching_exports))
        return false;
    struct cache *cache = cache_current();
    if (!cache)
        return false;
    hook_device(); /* its name and size are learnt now */
    do_put_off(hook);
    cache_lock(cache, hook, CU_STREAM_LEGACY);
    bool there = atomic_load(&cache->context) != NULL;
    *result = there ? settle_plain(cache) : CUDA_SUCCESS;
    if (there && *result == CUDA_SUCCESS)
        *result = serve(cache, bytes, LANE_PLAIN, false, address);
    cache_unlock(cache);
    return there;
}

bool caching_alloc_async(struct hook *hook, CUdeviceptr *address, size_t bytes, CUstream stream, CUresult *result)
{
    uint32_t lane;
    if (!may_serve(address, bytes))
        return false;
    struct cache *cache = lane_of(stream, &lane);
    if (!cache || atomic_load(&cache->other_pool))
        return false;
    hook_device();
    do_put_off(hook);
    cache_lock(cache, hook, stream);
    bool there = atomic_load(&cache->context) != NULL;
    if (there)
        *result = serve(cache, bytes, lane, true, address);
    cache_unlock(cache);
    return there;
}

/* --- frees -------------------------------------------------------------------------------------------------------- */

/* The block is claimed.  stream: where the free is in order, NULL if nothing uses the block any more. */
static void give_back(struct hook *hook, const struct caching_block *block, CUstream stream, uint32_t lane)
{
    struct cache *cache = block->cache;
    cache_lock(cache, hook, stream);
    if (cache->generation == block->generation && atomic_load(&cache->context)) {
        blocks_remove(block->address);
        cache->async_bytes -= block->async ? block->requested : 0;
        cache->async_in_plain -= block->async && block->lane == LANE_PLAIN ? block->size : 0;
        cache->freed_size = block->size;
        bool waits = stream && lane != block->lane;
        if (waits && allocator_record_stream(cache->allocator, block->address, lane_id(lane)))
            cache_synchronize(cache);
        if (!waits && stream == CU_STREAM_LEGACY)
            cache->legacy_until = atomic_load(&cache->sync_begun) + 1;
        allocator_release(cache->allocator, block->address, 0);
        if (block->exported && !capture_any())
            allocator_empty_cache(cache->allocator, 0);
    }
    cache_unlock(cache);
}

/* Frees put off: where the thread was inside us already, or a capture was under way. */
static _Atomic(uint64_t) put_off[PUT_OFF];
static atomic_uint put_off_count;

static CUresult free_later(uint64_t address)
{
    for (int i = 0; i < PUT_OFF; i++) {
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong(&put_off[i], &none, address))
            continue;
        atomic_fetch_add(&put_off_count, 1);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_UNKNOWN; /* it stays */
}

/* All work that could use the block is done. */
static CUresult wait_for_all(struct cache *cache)
{
    CUresult result = cache_synchronize(cache);
    for (int i = 0; i < CACHING_DEVICES && result == CUDA_SUCCESS && atomic_load(&caching_peers); i++)
        if (&caches[i] != cache && atomic_load(&caches[i].context))
            result = cache_synchronize(&caches[i]);
    return result;
}

static void free_elsewhere(const struct hook *hook, uint64_t address)
{
    struct hook own = *hook;
    hook_free(&own, address);
    hook_free_result(&own, driver.cuMemFree_v2(address));
}

static void do_put_off(struct hook *hook)
{
    for (int i = 0; i < PUT_OFF && atomic_load(&put_off_count) && !capture_any(); i++) {
        struct caching_block block;
        uint64_t address = atomic_exchange(&put_off[i], 0);
        if (!address)
            continue;
        atomic_fetch_sub(&put_off_count, 1);
        enum caching_place place = blocks_claim(address, &block);
        if (place == CACHING_ELSEWHERE)
            free_elsewhere(hook, address);
        else if (place == CACHING_IN_BLOCK && wait_for_all(block.cache) == CUDA_SUCCESS)
            give_back(hook, &block, NULL, 0);
        else if (place == CACHING_IN_BLOCK)
            blocks_unclaim(address);
    }
}

/* The driver's own word on a free that it would refuse: no allocation begins at an odd address. */
static CUresult refused_free(CUdeviceptr address)
{
    return driver.cuMemFree_v2(address | 1);
}

bool caching_free(struct hook *hook, CUdeviceptr address, CUresult *result)
{
    struct caching_block block;
    if (!caching_is_on() || !address || !caching_driver.ready)
        return false;
    if (caching_busy) {
        *result = free_later(address);
        return true;
    }
    enum caching_place place = blocks_claim(address, &block);
    if (place == CACHING_ELSEWHERE)
        return false;
    bool captures = capture_any();
    *result = place == CACHING_IN_NO_BLOCK || captures ? refused_free(address) : wait_for_all(block.cache);
    if (place == CACHING_IN_NO_BLOCK)
        return true;
    if (captures) { /* one in a mode that forbids it has said so by another error */
        blocks_unclaim(address);
        if (*result == CUDA_ERROR_INVALID_VALUE)
            *result = free_later(address);
    } else if (*result == CUDA_SUCCESS) {
        give_back(hook, &block, NULL, 0);
        do_put_off(hook);
    } else {
        blocks_unclaim(address);
    }
    return true;
}

/* In the order of a stream that is not of the block's device, or none that we know. */
static CUresult free_behind(struct hook *hook, const struct caching_block *block, CUstream stream)
{
    CUresult result = caching_driver.memory.cuStreamSynchronize(stream);
    if (result == CUDA_SUCCESS)
        result = wait_for_all(block->cache);
    if (result == CUDA_SUCCESS)
        give_back(hook, block, NULL, 0);
    else
        blocks_unclaim(block->address);
    return result;
}

bool caching_free_async(struct hook *hook, CUdeviceptr address, CUstream stream, CUresult *result)
{
    struct caching_block block;
    uint32_t lane;
    if (!caching_is_on() || !address || !caching_driver.ready)
        return false;
    if (caching_busy) {
        *result = free_later(address);
        return true;
    }
    enum caching_place place = blocks_claim(address, &block);
    if (place == CACHING_ELSEWHERE)
        return false;
    if (place == CACHING_IN_NO_BLOCK || capture_of(stream)) {
        *result = driver.cuMemFreeAsync(address | 1, stream);
        if (place == CACHING_IN_BLOCK)
            blocks_unclaim(address);
        return true;
    }
    struct cache *cache = lane_of(stream, &lane);
    *result = CUDA_SUCCESS;
    if (capture_any() && (cache != block.cache || lane != block.lane || stream == CU_STREAM_LEGACY)) {
        blocks_unclaim(address); /* nothing can be put down or waited for now */
        *result = free_later(address);
        return true;
    }
    if (cache == block.cache)
        give_back(hook, &block, stream, lane);
    else
        *result = free_behind(hook, &block, stream);
    return true;
}
