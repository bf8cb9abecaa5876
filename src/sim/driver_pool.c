/*
 * The simulated driver: memory in stream order and pools, virtual memory.  May
 * use: the simulated device.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/driver.h"

#define GRANULE (2u << 20)

/* Pools. */

CUresult driver_pool_new(unsigned device, uint64_t maximum, bool is_default, CUmemoryPool *pool)
{
    CUmemoryPool fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *fresh = (struct CUmemPoolHandle_st){.magic = MAGIC_POOL, .is_default = is_default, .reuse = {0, 1, 1, 1},
        .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE, .pool = sim_pool_new(driver.sim, device, maximum)};
    if (!fresh->pool) {
        free(fresh);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pool = fresh;
    return CUDA_SUCCESS;
}

static bool is_pool(CUmemoryPool pool)
{
    return pool && pool->magic == MAGIC_POOL;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    ENTER(cuMemPoolCreate, NEED_INIT);
    if (!pool || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !driver_device(properties->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_pool_new((unsigned)properties->location.id, properties->maxSize, false, pool);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    ENTER(cuMemPoolDestroy, NEED_INIT);
    if (!is_pool(pool) || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < SIM_DEVICES_MAX; i++)
        if (driver.pool[i] == pool)
            driver.pool[i] = driver.default_pool[i];
    sim_pool_free(pool->pool);
    pool->magic = 0;
    free(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    ENTER(cuMemPoolTrimTo, NEED_INIT);
    if (!is_pool(pool))
        return CUDA_ERROR_INVALID_VALUE;
    sim_pool_trim(pool->pool, keep);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    ENTER(cuMemPoolSetAttribute, NEED_INIT);
    if (!is_pool(pool) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute] = *(int *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        sim_pool_set(pool->pool, &(uint64_t){*(cuuint64_t *)value}, false, false);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value != 0)
            return CUDA_ERROR_INVALID_VALUE;
        sim_pool_set(pool->pool, NULL, attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
            attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    struct sim_pool_numbers numbers;
    ENTER(cuMemPoolGetAttribute, NEED_INIT);
    if (!is_pool(pool) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    sim_pool_numbers(pool->pool, &numbers);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[attribute];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = numbers.threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = numbers.reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = numbers.reserved_high;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = numbers.used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = numbers.used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    ENTER(cuMemPoolSetAccess, NEED_INIT);
    if (!is_pool(pool) || (count && !access))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !driver_device(access[i].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    ENTER(cuMemPoolGetAccess, NEED_INIT);
    if (!flags || !is_pool(pool) || !location)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = location->id == (int)sim_pool_device(pool->pool) ? pool->access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* Pools are not shared between simulated processes. */
CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type,
    unsigned long long flags)
{
    (void)shareable;
    (void)pool;
    (void)type;
    (void)flags;
    ENTER(cuMemPoolExportToShareableHandle, NEED_INIT);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable, CUmemAllocationHandleType type,
    unsigned long long flags)
{
    (void)pool;
    (void)shareable;
    (void)type;
    (void)flags;
    ENTER(cuMemPoolImportFromShareableHandle, NEED_INIT);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
    (void)data;
    (void)address;
    ENTER(cuMemPoolExportPointer, NEED_INIT);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    (void)address;
    (void)pool;
    (void)data;
    ENTER(cuMemPoolImportPointer, NEED_INIT);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* A device's own pool. */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    ENTER(cuDeviceGetDefaultMemPool, NEED_INIT);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = driver.default_pool[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    ENTER(cuDeviceGetMemPool, NEED_INIT);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = driver.pool[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    ENTER(cuDeviceSetMemPool, NEED_INIT);
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!is_pool(pool) || sim_pool_device(pool->pool) != (unsigned)device)
        return CUDA_ERROR_INVALID_VALUE;
    driver.pool[device] = pool;
    return CUDA_SUCCESS;
}

static bool device_location(const CUmemLocation *location, CUmemAllocationType type)
{
    return location && type == CU_MEM_ALLOCATION_TYPE_PINNED && location->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    if (!device_location(location, type))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    if (!device_location(location, type))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    if (!device_location(location, type))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuDeviceSetMemPool(location->id, pool);
}

/* In stream order. */

static CUresult get_async(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    uint64_t where;
    CUstream s = driver_stream(stream);
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pool)
        pool = driver.pool[s->context->device];
    if (!is_pool(pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) { /* allowed; nothing comes of it */
        *address = 0;
        return CUDA_SUCCESS;
    }
    driver_lock();
    CUgraph graph = s->capture ? s->capture->graph : NULL;
    driver_unlock();
    if (graph)
        return driver_graph_alloc(graph, NULL, bytes, s->context->device, address);
    CUresult result = sim_pool_get(pool->pool, bytes, pool, &where);
    if (!result)
        *address = where;
    return result;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    ENTER(cuMemAllocAsync, NEED_CONTEXT);
    return get_async(address, bytes, NULL, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    ENTER(cuMemAllocFromPoolAsync, NEED_CONTEXT);
    return pool ? get_async(address, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

static void put_async(void *data)
{
    sim_pool_put(driver.sim, (uint64_t)(uintptr_t)data);
}

static void release_plain(void *data)
{
    sim_release(driver.sim, (uint64_t)(uintptr_t)data);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    struct sim_range range;
    CUresult result;
    ENTER(cuMemFreeAsync, NEED_CONTEXT);
    CUstream s = driver_stream(stream);
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!address)
        return CUDA_SUCCESS;
    driver_lock();
    CUgraph graph = s->capture ? s->capture->graph : NULL;
    driver_unlock();
    if (graph)
        return driver_graph_free(graph, NULL, address);
    if (driver_graph_release(address, &result))
        return result;
    if (!sim_find(driver.sim, address, &range) || range.address != address)
        return CUDA_ERROR_INVALID_VALUE;
    if (range.kind == SIM_ASYNC)
        return sim_stream_call(s->work, put_async, (void *)(uintptr_t)address);
    if (range.kind == SIM_PLAIN || range.kind == SIM_PITCHED || range.kind == SIM_MANAGED)
        return sim_stream_call(s->work, release_plain, (void *)(uintptr_t)address);
    return CUDA_ERROR_INVALID_VALUE;
}

/* Virtual memory. */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted,
    unsigned long long flags)
{
    uint64_t where;
    ENTER(cuMemAddressReserve, NEED_INIT);
    if (!address || flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_reserve(driver.sim, bytes, alignment, wanted, &where);
    if (!result)
        *address = where;
    return result;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    ENTER(cuMemAddressFree, NEED_INIT);
    return sim_unreserve(driver.sim, address, bytes);
}

static bool device_properties(const CUmemAllocationProp *p)
{
    return p && p->type == CU_MEM_ALLOCATION_TYPE_PINNED && p->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           driver_device(p->location.id);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
    unsigned long long flags)
{
    uint64_t made;
    ENTER(cuMemCreate, NEED_INIT);
    if (!handle || flags || !device_properties(properties))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_create(driver.sim, (unsigned)properties->location.id, bytes, &made);
    if (!result)
        *handle = made;
    return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER(cuMemRelease, NEED_INIT);
    return sim_drop(driver.sim, handle);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags)
{
    ENTER(cuMemMap, NEED_INIT);
    return flags ? CUDA_ERROR_INVALID_VALUE : sim_map(driver.sim, address, bytes, offset, handle);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    ENTER(cuMemUnmap, NEED_INIT);
    return sim_unmap(driver.sim, address, bytes);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    ENTER(cuMemSetAccess, NEED_INIT);
    if (!access || !count)
        return CUDA_ERROR_INVALID_VALUE;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return sim_allow(driver.sim, address, bytes, any);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    struct sim_range range;
    ENTER(cuMemGetAccess, NEED_INIT);
    if (!flags || !location || !sim_find(driver.sim, address, &range) || range.kind != SIM_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
    CUmemAllocationGranularity_flags option)
{
    ENTER(cuMemGetAllocationGranularity, NEED_INIT);
    if (!granularity || !device_properties(properties) || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
    unsigned device;
    uint64_t bytes;
    ENTER(cuMemGetAllocationPropertiesFromHandle, NEED_INIT);
    if (!properties)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_handle(driver.sim, handle, &device, &bytes);
    if (result)
        return result;
    memset(properties, 0, sizeof *properties);
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, (int)device};
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    struct sim_range range;
    ENTER(cuMemRetainAllocationHandle, NEED_INIT);
    if (!handle || !sim_find(driver.sim, (uint64_t)(uintptr_t)address, &range) || range.kind != SIM_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_retain(driver.sim, range.handle);
    if (!result)
        *handle = range.handle;
    return result;
}
