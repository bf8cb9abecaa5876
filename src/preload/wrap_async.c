/*
 * Memory in the order of a stream, and its pools.  During the capture of a graph such a call makes a node of the graph
 * and no memory: it is passed through and not counted.
 */
#include "preload/capture.h"
#include "preload/hook.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#include <stdatomic.h>

#define CALLER __builtin_return_address(0)
#define POOLS 64
#define POOL_ON_HOST UINT32_MAX /* in place of a device */

/* Pools that the program made, on a device other than the current one perhaps, or in the host's memory. */
static struct {
    _Atomic(CUmemoryPool) pool;
    atomic_uint device;
} async_pools[POOLS];

static void pool_is_on(CUmemoryPool pool, unsigned device)
{
    for (int i = 0; i < POOLS; i++) {
        CUmemoryPool none = NULL;
        if (!atomic_compare_exchange_strong(&async_pools[i].pool, &none, pool))
            continue;
        atomic_store(&async_pools[i].device, device);
        return;
    }
}

static void pool_is_gone(CUmemoryPool pool)
{
    for (int i = 0; i < POOLS; i++) {
        CUmemoryPool same = pool;
        if (atomic_compare_exchange_strong(&async_pools[i].pool, &same, NULL))
            return;
    }
}

static bool pool_device(CUmemoryPool pool, unsigned *device)
{
    for (int i = 0; pool && i < POOLS; i++) {
        if (atomic_load(&async_pools[i].pool) != pool)
            continue;
        *device = atomic_load(&async_pools[i].device);
        return true;
    }
    return false;
}

static void allocated(struct hook *hook, CUresult result, const CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                      CUstream stream)
{
    uint8_t kind = pool ? RECORD_POOL : RECORD_ASYNC;
    unsigned device = 0;
    bool known = pool_device(pool, &device), on_host = known && device == POOL_ON_HOST;
    if (!hook->records || capture_of(stream) || (on_host && !preload_records_host()))
        return;
    if (on_host)
        kind = RECORD_HOST;
    hook->stream = stream == CU_STREAM_LEGACY ? 0 : (int64_t)(intptr_t)stream;
    hook->stream_unknown = false;
    hook->pool = (uintptr_t)pool;
    hook->device_known = known && !on_host;
    if (hook->device_known)
        hook->device = (uint16_t)device;
    if (result == CUDA_SUCCESS && address)
        hook_allocated(hook, kind, *address, bytes, RECORD_UNKNOWN);
    else
        hook_failed(hook, result, kind, bytes);
}

CUresult wrap_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocAsync, CALLER);
    CUresult result = driver.cuMemAllocAsync(address, bytes, stream);
    allocated(&hook, result, address, bytes, NULL, capture_stream(stream, false));
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocAsync_ptsz, CALLER);
    CUresult result = driver.cuMemAllocAsync_ptsz(address, bytes, stream);
    allocated(&hook, result, address, bytes, NULL, capture_stream(stream, true));
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocFromPoolAsync, CALLER);
    CUresult result = driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
    allocated(&hook, result, address, bytes, pool, capture_stream(stream, false));
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocFromPoolAsync_ptsz, CALLER);
    CUresult result = driver.cuMemAllocFromPoolAsync_ptsz(address, bytes, pool, stream);
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
    hook_begin(&hook, CALL_cuMemFreeAsync, CALLER);
    will_free(&hook, address, capture_stream(stream, false));
    CUresult result = driver.cuMemFreeAsync(address, stream);
    hook_free_result(&hook, result);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemFreeAsync_ptsz, CALLER);
    will_free(&hook, address, capture_stream(stream, true));
    CUresult result = driver.cuMemFreeAsync_ptsz(address, stream);
    hook_free_result(&hook, result);
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
        pool_is_on(*pool, (unsigned)properties->location.id);
    else if (properties->location.type >= CU_MEM_LOCATION_TYPE_HOST &&
             properties->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        pool_is_on(*pool, POOL_ON_HOST);
    return result;
}

CUresult wrap_cuMemPoolDestroy(CUmemoryPool pool)
{
    preload_saw_call();
    CUresult result = driver.cuMemPoolDestroy(pool);
    if (result == CUDA_SUCCESS)
        pool_is_gone(pool);
    return result;
}
