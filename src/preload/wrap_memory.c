/*
 * Plain, pitched and managed memory, and the memory of the host.  The functions without _v2 are those of the first,
 * 32-bit interface.
 */
#include "preload/caching.h"
#include "preload/hook.h"
#include "preload/measure.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#define CALLER __builtin_return_address(0)

CUresult wrap_cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAlloc, CALLER);
    CUresult result = driver.cuMemAlloc(address, bytes);
    if (result == CUDA_SUCCESS && address)
        hook_allocated(&hook, RECORD_PLAIN, *address, bytes, RECORD_UNKNOWN);
    else
        hook_failed(&hook, result, RECORD_PLAIN, bytes);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    struct hook hook;
    CUresult result;
    hook_begin(&hook, CALL_cuMemAlloc_v2, CALLER);
    if (!caching_alloc(&hook, address, bytes, &result)) {
        result = driver.cuMemAlloc_v2(address, bytes);
        if (caching_makes_room(&hook, result))
            result = driver.cuMemAlloc_v2(address, bytes);
        if (result == CUDA_SUCCESS && address)
            hook_allocated(&hook, RECORD_PLAIN, *address, bytes, RECORD_UNKNOWN);
        else
            hook_failed(&hook, result, RECORD_PLAIN, bytes);
    }
    hook_end(&hook);
    return result;
}

static uint64_t area(uint64_t width, uint64_t height)
{
    uint64_t bytes;
    return __builtin_mul_overflow(width, height, &bytes) ? RECORD_UNKNOWN - 1 : bytes;
}

CUresult wrap_cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width, unsigned int height,
                              unsigned int element)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocPitch, CALLER);
    CUresult result = driver.cuMemAllocPitch(address, pitch, width, height, element);
    if (result == CUDA_SUCCESS && address && pitch)
        hook_allocated(&hook, RECORD_PITCHED, *address, area(*pitch, height), area(width, height));
    else
        hook_failed(&hook, result, RECORD_PITCHED, area(width, height));
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocPitch_v2, CALLER);
    CUresult result = driver.cuMemAllocPitch_v2(address, pitch, width, height, element);
    if (caching_makes_room(&hook, result))
        result = driver.cuMemAllocPitch_v2(address, pitch, width, height, element);
    if (result == CUDA_SUCCESS && address && pitch)
        hook_allocated(&hook, RECORD_PITCHED, *address, area(*pitch, height), area(width, height));
    else
        hook_failed(&hook, result, RECORD_PITCHED, area(width, height));
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocManaged, CALLER);
    CUresult result = driver.cuMemAllocManaged(address, bytes, flags);
    if (caching_makes_room(&hook, result))
        result = driver.cuMemAllocManaged(address, bytes, flags);
    if (result == CUDA_SUCCESS && address)
        hook_allocated(&hook, RECORD_MANAGED, *address, bytes, RECORD_UNKNOWN);
    else
        hook_failed(&hook, result, RECORD_MANAGED, bytes);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemFree(CUdeviceptr_v1 address)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemFree, CALLER);
    hook_free(&hook, address);
    CUresult result = driver.cuMemFree(address);
    hook_free_result(&hook, result);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemFree_v2(CUdeviceptr address)
{
    struct hook hook;
    CUresult result;
    hook_begin(&hook, CALL_cuMemFree_v2, CALLER);
    if (!caching_free(&hook, address, &result)) {
        hook_free(&hook, address);
        result = driver.cuMemFree_v2(address);
        hook_free_result(&hook, result);
    }
    hook_end(&hook);
    return result;
}

/* Passed through bit for bit (but for what we have cached ourselves); what it says is worth keeping. */
CUresult wrap_cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    preload_saw_call();
    return driver.cuMemGetInfo(free, total);
}

CUresult wrap_cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemGetInfo_v2, CALLER);
    CUresult result = driver.cuMemGetInfo_v2(free, total);
    if (result == CUDA_SUCCESS && free && hook.records)
        measure_seen(hook_device(), *free);
    if (result == CUDA_SUCCESS && free)
        caching_add_free(free);
    hook_end(&hook);
    return result;
}

static void host_allocated(struct hook *hook, CUresult result, void *const *host, size_t bytes)
{
    if (!preload_records_host())
        return;
    if (result == CUDA_SUCCESS && host)
        hook_allocated(hook, RECORD_HOST, (uintptr_t)*host, bytes, RECORD_UNKNOWN);
    else
        hook_failed(hook, result, RECORD_HOST, bytes);
}

CUresult wrap_cuMemAllocHost(void **host, unsigned int bytes)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocHost, CALLER);
    CUresult result = driver.cuMemAllocHost(host, bytes);
    host_allocated(&hook, result, host, bytes);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemAllocHost_v2(void **host, size_t bytes)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemAllocHost_v2, CALLER);
    CUresult result = driver.cuMemAllocHost_v2(host, bytes);
    host_allocated(&hook, result, host, bytes);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemHostAlloc, CALLER);
    CUresult result = driver.cuMemHostAlloc(host, bytes, flags);
    host_allocated(&hook, result, host, bytes);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemHostRegister(void *host, size_t bytes, unsigned int flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemHostRegister, CALLER);
    CUresult result = driver.cuMemHostRegister(host, bytes, flags);
    host_allocated(&hook, result, &host, bytes);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemHostRegister_v2, CALLER);
    CUresult result = driver.cuMemHostRegister_v2(host, bytes, flags);
    host_allocated(&hook, result, &host, bytes);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemFreeHost(void *host)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemFreeHost, CALLER);
    if (preload_records_host())
        hook_free(&hook, (uintptr_t)host);
    CUresult result = driver.cuMemFreeHost(host);
    hook_free_result(&hook, result);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemHostUnregister(void *host)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemHostUnregister, CALLER);
    if (preload_records_host())
        hook_free(&hook, (uintptr_t)host);
    CUresult result = driver.cuMemHostUnregister(host);
    hook_free_result(&hook, result);
    hook_end(&hook);
    return result;
}
