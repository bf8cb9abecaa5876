/* Our CUDA runtime: memory.  May use: the driver. */
#include <string.h>

#include "sim/runtime.h"

static CUdeviceptr number(const void *address)
{
    return (CUdeviceptr)(uintptr_t)address;
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    CUdeviceptr where = 0;
    cudaError_t error = address ? runtime_enter() : cudaErrorInvalidValue;
    if (!error && bytes)
        error = (cudaError_t)runtime.cuMemAlloc(&where, bytes);
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaFree(void *address)
{
    RUNTIME_CALL(address ? runtime.cuMemFree(number(address)) : CUDA_SUCCESS);
}

cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr where = 0;
    cudaError_t error = address && pitch ? runtime_enter() : cudaErrorInvalidValue;
    if (!error && width && height)
        error = (cudaError_t)runtime.cuMemAllocPitch(&where, pitch, width, height, 4);
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *address, struct cudaExtent extent)
{
    size_t rows;
    if (!address || __builtin_mul_overflow(extent.height, extent.depth, &rows))
        return runtime_done(cudaErrorInvalidValue);
    memset(address, 0, sizeof *address);
    address->xsize = extent.width;
    address->ysize = extent.height;
    return cudaMallocPitch(&address->ptr, &address->pitch, extent.width, rows);
}

cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags)
{
    CUdeviceptr where = 0;
    cudaError_t error = address && bytes ? runtime_enter() : cudaErrorInvalidValue;
    if (!error)
        error = (cudaError_t)runtime.cuMemAllocManaged(&where, bytes, flags);
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaMallocHost(void **host, size_t bytes)
{
    RUNTIME_CALL(runtime.cuMemAllocHost(host, bytes));
}

cudaError_t cudaHostAlloc(void **host, size_t bytes, unsigned flags)
{
    RUNTIME_CALL(runtime.cuMemHostAlloc(host, bytes, flags));
}

cudaError_t cudaFreeHost(void *host)
{
    RUNTIME_CALL(host ? runtime.cuMemFreeHost(host) : CUDA_SUCCESS);
}

cudaError_t cudaHostRegister(void *host, size_t bytes, unsigned flags)
{
    RUNTIME_CALL(runtime.cuMemHostRegister(host, bytes, flags));
}

cudaError_t cudaHostUnregister(void *host)
{
    RUNTIME_CALL(runtime.cuMemHostUnregister(host));
}

cudaError_t cudaHostGetDevicePointer(void **address, void *host, unsigned flags)
{
    CUdeviceptr where = 0;
    cudaError_t error = address ? runtime_enter() : cudaErrorInvalidValue;
    if (!error)
        error = (cudaError_t)runtime.cuMemHostGetDevicePointer(&where, host, flags);
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host)
{
    RUNTIME_CALL(runtime.cuMemHostGetFlags(flags, host));
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    RUNTIME_CALL(runtime.cuMemGetInfo(available, total));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    unsigned type = 0, managed = 0;
    int device = CU_DEVICE_INVALID;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &device};
    cudaError_t error = attributes ? runtime_enter() : cudaErrorInvalidValue;
    if (!error)
        error = (cudaError_t)runtime.cuPointerGetAttributes(3, which, values, number(address));
    if (error)
        return runtime_done(error);
    memset(attributes, 0, sizeof *attributes);
    attributes->type = managed                       ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                       : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                      : cudaMemoryTypeUnregistered;
    attributes->device = device;
    void *same = (void *)(uintptr_t)address;
    if (attributes->type != cudaMemoryTypeUnregistered)
        attributes->devicePointer = same;
    if (attributes->type != cudaMemoryTypeDevice)
        attributes->hostPointer = same;
    return runtime_done(cudaSuccess);
}

/* Arrays. */

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}

static bool shape_of(CUDA_ARRAY3D_DESCRIPTOR *shape, const struct cudaChannelFormatDesc *format,
    struct cudaExtent extent, unsigned flags)
{
    static const CUarray_format formats[3][3] = {
        {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
        {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32},
        {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT}};
    int size = format->x == 8 ? 0 : format->x == 16 ? 1 : format->x == 32 ? 2 : -1;
    if (size < 0 || format->f < 0 || format->f > 2 || !formats[format->f][size])
        return false;
    *shape = (CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width, .Height = extent.height, .Depth = extent.depth,
        .Format = formats[format->f][size], .NumChannels = format->w ? 4 : format->z ? 3 : format->y ? 2 : 1,
        .Flags = flags};
    return true;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
    struct cudaExtent extent, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR shape;
    if (!array || !format || !shape_of(&shape, format, extent, flags))
        return runtime_done(cudaErrorInvalidValue);
    RUNTIME_CALL(runtime.cuArray3DCreate(array, &shape));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, size_t width,
    size_t height, unsigned flags)
{
    return cudaMalloc3DArray(array, format, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    RUNTIME_CALL(array ? runtime.cuArrayDestroy(array) : CUDA_SUCCESS);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const struct cudaChannelFormatDesc *format,
    struct cudaExtent extent, unsigned levels, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR shape;
    if (!array || !format || !shape_of(&shape, format, extent, flags))
        return runtime_done(cudaErrorInvalidValue);
    RUNTIME_CALL(runtime.cuMipmappedArrayCreate(array, &shape, levels));
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *level_array, cudaMipmappedArray_t array, unsigned level)
{
    RUNTIME_CALL(runtime.cuMipmappedArrayGetLevel(level_array, array, level));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
    RUNTIME_CALL(array ? runtime.cuMipmappedArrayDestroy(array) : CUDA_SUCCESS);
}

/* In stream order. */

cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
    CUdeviceptr where = 0;
    cudaError_t error = address ? runtime_enter() : cudaErrorInvalidValue;
    if (!error)
        error = (cudaError_t)runtime.cuMemAllocAsync(&where, bytes, stream);
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    CUdeviceptr where = 0;
    cudaError_t error = address ? runtime_enter() : cudaErrorInvalidValue;
    if (!error)
        error = (cudaError_t)runtime.cuMemAllocFromPoolAsync(&where, bytes, pool, stream);
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuMemFreeAsync(number(address), stream));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const CUmemPoolProps *properties)
{
    RUNTIME_CALL(runtime.cuMemPoolCreate(pool, properties));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    RUNTIME_CALL(runtime.cuMemPoolDestroy(pool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    RUNTIME_CALL(runtime.cuMemPoolTrimTo(pool, keep));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    RUNTIME_CALL(runtime.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    RUNTIME_CALL(runtime.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const CUmemAccessDesc *access, size_t count)
{
    RUNTIME_CALL(runtime.cuMemPoolSetAccess(pool, access, count));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    RUNTIME_CALL(runtime.cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    RUNTIME_CALL(runtime.cuDeviceGetMemPool(pool, device));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    RUNTIME_CALL(runtime.cuDeviceSetMemPool(device, pool));
}

cudaError_t cudaMemAdvise(const void *address, size_t bytes, int advice, CUmemLocation location)
{
    RUNTIME_CALL(runtime.cuMemAdvise(number(address), bytes, (CUmem_advise)advice, location));
}

cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, CUmemLocation location, unsigned flags,
    cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuMemPrefetchAsync(number(address), bytes, location, flags, stream));
}

/* Of other processes. */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *address)
{
    RUNTIME_CALL(runtime.cuIpcGetMemHandle(handle, number(address)));
}

cudaError_t cudaIpcOpenMemHandle(void **address, cudaIpcMemHandle_t handle, unsigned flags)
{
    CUdeviceptr where = 0;
    cudaError_t error = address ? runtime_enter() : cudaErrorInvalidValue;
    if (!error)
        error = (cudaError_t)runtime.cuIpcOpenMemHandle(&where, handle, flags);
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaIpcCloseMemHandle(void *address)
{
    RUNTIME_CALL(runtime.cuIpcCloseMemHandle(number(address)));
}
