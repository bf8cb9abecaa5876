/*
 * What the program asks of pointers and pools, answered for blocks of the caching allocator: as the driver would answer
 * for memory of its own, of just the size that was asked for.  Without the caching mode everything is the driver's.
 */
#include "preload/caching.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#define NOBODYS 8 /* an address that no memory has: for the driver's own words on what lies in no block */

CUresult wrap_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct caching_block block;
    uint64_t start = 0, size = 0;
    preload_saw_call();
    enum caching_place place = caching_find(address, &block);
    CUresult result = driver.cuMemGetAddressRange_v2(base, bytes, place == CACHING_IN_NO_BLOCK ? NOBODYS : address);
    if (result != CUDA_SUCCESS || (place != CACHING_IN_BLOCK && !caching_imported(address, &start, &size)))
        return result;
    if (base)
        *base = place == CACHING_IN_BLOCK ? block.address : start;
    if (bytes)
        *bytes = place == CACHING_IN_BLOCK ? block.requested : size;
    return result;
}

/* What the driver says of the segment becomes what it would say of the block. */
static void correct(void *value, CUpointer_attribute attribute, const struct caching_block *block)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)value = block->address;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)value = block->requested;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = block->id;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)value = caching_pool_of(block);
        break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = caching_context_of(block);
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        if (block->async)
            *(unsigned *)value = 0;
        break;
    default:
        break;
    }
}

CUresult wrap_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct caching_block block;
    preload_saw_call();
    enum caching_place place = caching_find(address, &block);
    CUresult result = driver.cuPointerGetAttribute(data, attribute, place == CACHING_IN_NO_BLOCK ? NOBODYS : address);
    if (result == CUDA_SUCCESS && place == CACHING_IN_BLOCK)
        correct(data, attribute, &block);
    return result;
}

CUresult wrap_cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values,
                                     CUdeviceptr address)
{
    struct caching_block block;
    preload_saw_call();
    enum caching_place place = caching_find(address, &block);
    CUresult result =
        driver.cuPointerGetAttributes(count, attributes, values, place == CACHING_IN_NO_BLOCK ? NOBODYS : address);
    for (unsigned i = 0; result == CUDA_SUCCESS && place == CACHING_IN_BLOCK && i < count; i++)
        correct(values[i], attributes[i], &block);
    return result;
}

CUresult wrap_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    CUresult result;
    preload_saw_call();
    return caching_export(handle, address, &result) ? result : driver.cuIpcGetMemHandle(handle, address);
}

CUresult wrap_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    struct caching_pool ours;
    preload_saw_call();
    CUresult result = driver.cuMemPoolGetAttribute(pool, attribute, value);
    if (result != CUDA_SUCCESS || !caching_pool_numbers(pool, &ours))
        return result;
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        *(cuuint64_t *)value += ours.reserved;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
        *(cuuint64_t *)value += ours.reserved_high;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        *(cuuint64_t *)value += ours.used;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        *(cuuint64_t *)value += ours.used_high;
    return result;
}

CUresult wrap_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    preload_saw_call();
    CUresult result = driver.cuMemPoolSetAttribute(pool, attribute, value);
    bool reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, used = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    if (result == CUDA_SUCCESS && (reserved || used))
        caching_pool_reset(pool, reserved, used);
    return result;
}

CUresult wrap_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    preload_saw_call();
    CUresult result = driver.cuMemPoolSetAccess(pool, access, count);
    if (result == CUDA_SUCCESS && access)
        caching_pool_shared(pool, access, count);
    return result;
}

CUresult wrap_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    preload_saw_call();
    CUresult result = driver.cuDeviceSetMemPool(device, pool);
    if (result == CUDA_SUCCESS)
        caching_pool_chosen(device, pool);
    return result;
}

CUresult wrap_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    preload_saw_call();
    CUresult result = driver.cuMemSetMemPool(location, type, pool);
    if (result == CUDA_SUCCESS && location && location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        caching_pool_chosen(location->id, pool);
    return result;
}

CUresult wrap_cuCtxEnablePeerAccess(CUcontext context, unsigned int flags)
{
    preload_saw_call();
    CUresult result = driver.cuCtxEnablePeerAccess(context, flags);
    if (result == CUDA_SUCCESS)
        caching_peer_enabled(context);
    return result;
}
