/*
 * Memory in the order of a stream, and its pools.  During the capture of a graph such a call makes a node of the graph
 * and no memory: it is passed through and not counted.
 */
#include "preload/caching.h"
#include "preload/capture.h"
#include "preload/graph_memory.h"
#include "preload/hook.h"
#include "preload/measure.h"
#include "preload/pools.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#define CALLER __builtin_return_address(0)
static void allocated(struct hook *hook, CUresult result, const CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                      CUstream stream)
{
    uint8_t kind = pool ? RECORD_POOL : RECORD_ASYNC;
    unsigned device = 0;
    bool known = pools_find(pool, &device), on_host = known && device == POOL_ON_HOST;
    if (!hook->records || (on_host && !preload_records_host()))
        return;
    if (capture_of(stream)) {
        graph_memory_captured();
        return;
    }
    if (on_host)
        kind = RECORD_HOST;
    hook->stream = stream == CU_STREAM_LEGACY ? 0 : (int64_t)(intptr_t)stream;
    hook->stream_unknown = false;
    hook->pool = (uintptr_t)pool;
    hook->device_known = known && !on_host;
    if (hook->device_known)
        hook->device = (uint16_t)device;
    if (result != CUDA_SUCCESS || !address) {
        hook_failed(hook, result, kind, bytes);
        return;
    }
    hook_allocated(hook, kind, *address, bytes, RECORD_UNKNOWN);
    if (!on_host)
        measure_has_pools(hook->device);
}

CUresult wrap_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    struct hook hook;
    CUresult result;
    hook_begin(&hook, CALL_cuMemAllocAsync, CALLER);
    if (!caching_alloc_async(&hook, address, bytes, capture_stream(stream, false), &result)) {
        result = driver.cuMemAllocAsync(address, bytes, stream);
        if (caching_makes_room(&hook, result))
            result = driver.cuMemAllocAsync(address, bytes, stream);
        allocated(&hook, result, address, bytes, NULL, capture_stream(stream, false));
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    struct hook hook;
    CUresult result;
    hook_begin(&hook, CALL_cuMemAllocAsync_ptsz, CALLER);
    if (!caching_alloc_async(&hook, address, bytes, capture_stream(stream, true), &result)) {
        result = driver.cuMemAllocAsync_ptsz(address, bytes, stream);
        if (caching_makes_room(&hook, result))
            result = driver.cuMemAllocAsync_ptsz(address, bytes, stream);
        allocated(&hook, result, address, bytes, NULL, capture_stream(stream, true));
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocFromPoolAsync, CALLER);
    CUresult result = driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
    if (caching_makes_room(&hook, result))
        result = driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
    allocated(&hook, result, address, bytes, pool, capture_stream(stream, false));
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocFromPoolAsync_ptsz, CALLER);
    CUresult result = driver.cuMemAllocFromPoolAsync_ptsz(address, bytes, pool, stream);
    if (caching_makes_room(&hook, result))
        result = driver.cuMemAllocFromPoolAsync_ptsz(address, bytes, pool, stream);
    allocated(&hook, result, address, bytes, pool, capture_stream(stream, true));
    hook_end(&hook);
    return result;
}

static void will_free(struct hook *hook, CUdeviceptr address, CUstream stream)
{
    hook->stream = stream == CU_STREAM_LEGACY ? 0 : (int64_t)(intptr_t)stream;
    hook->stream_unknown = false;
    hook_free(hook, address);
}

CUresult wrap_cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    struct hook hook;
    CUresult result;
    hook_begin(&hook, CALL_cuMemFreeAsync, CALLER);
    if (!caching_free_async(&hook, address, capture_stream(stream, false), &result)) {
        will_free(&hook, address, capture_stream(stream, false));
        result = driver.cuMemFreeAsync(address, stream);
        hook_free_result(&hook, result);
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    struct hook hook;
    CUresult result;
    hook_begin(&hook, CALL_cuMemFreeAsync_ptsz, CALLER);
    if (!caching_free_async(&hook, address, capture_stream(stream, true), &result)) {
        will_free(&hook, address, capture_stream(stream, true));
        result = driver.cuMemFreeAsync_ptsz(address, stream);
        hook_free_result(&hook, result);
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    preload_saw_call();
    CUresult result = driver.cuMemPoolCreate(pool, properties);
    if (result != CUDA_SUCCESS || !pool || !properties)
        return result;
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && properties->location.id >= 0)
        pools_add(*pool, (unsigned)properties->location.id);
    else if (properties->location.type >= CU_MEM_LOCATION_TYPE_HOST &&
             properties->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        pools_add(*pool, POOL_ON_HOST);
    return result;
}

/* Out of the table first: afterwards nobody may ask for it.  What it had handed out lives on until it is freed. */
CUresult wrap_cuMemPoolDestroy(CUmemoryPool pool)
{
    struct hook hook;
    unsigned device = 0;
    hook_begin(&hook, CALL_cuMemPoolDestroy, CALLER);
    bool known = pools_take(pool, &device);
    CUresult result = driver.cuMemPoolDestroy(pool);
    if (result != CUDA_SUCCESS && known)
        pools_add(pool, device);
    if (result == CUDA_SUCCESS && hook.records && !capture_any())
        measure_now(hook_device());
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemPoolTrimTo, CALLER);
    CUresult result = driver.cuMemPoolTrimTo(pool, keep);
    if (result == CUDA_SUCCESS)
        caching_pool_trim(&hook, pool, keep);
    if (result == CUDA_SUCCESS && hook.records && !capture_any())
        measure_now(hook_device());
    hook_end(&hook);
    return result;
}
