/* Our CUDA runtime: copies and fills.  May use: the driver. */
#include "sim/runtime.h"

static CUdeviceptr number(const void *address)
{
    return (CUdeviceptr)(uintptr_t)address;
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes, int kind)
{
    (void)kind; /* addresses tell */
    RUNTIME_CALL(bytes ? runtime.cuMemcpy(number(target), number(source), bytes) : CUDA_SUCCESS);
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes, int kind, cudaStream_t stream)
{
    (void)kind;
    RUNTIME_CALL(bytes ? runtime.cuMemcpyAsync(number(target), number(source), bytes, stream) : CUDA_SUCCESS);
}

cudaError_t cudaMemcpyPeer(void *target, int target_device, const void *source, int source_device, size_t bytes)
{
    (void)target_device;
    (void)source_device;
    return cudaMemcpy(target, source, bytes, cudaMemcpyDefault);
}

static CUDA_MEMCPY2D rectangle(void *target, size_t target_pitch, const void *source, size_t source_pitch,
    size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = number(source),
        .srcPitch = source_pitch, .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = number(target),
        .dstPitch = target_pitch, .WidthInBytes = width, .Height = height};
}

cudaError_t cudaMemcpy2D(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
    size_t height, int kind)
{
    CUDA_MEMCPY2D r = rectangle(target, target_pitch, source, source_pitch, width, height);
    (void)kind;
    RUNTIME_CALL(runtime.cuMemcpy2DUnaligned(&r));
}

cudaError_t cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source, size_t source_pitch,
    size_t width, size_t height, int kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D r = rectangle(target, target_pitch, source, source_pitch, width, height);
    (void)kind;
    RUNTIME_CALL(runtime.cuMemcpy2DAsync(&r, stream));
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t target, size_t x, size_t y, const void *source, size_t pitch,
    size_t width, size_t height, int kind)
{
    CUDA_MEMCPY2D r = rectangle(NULL, 0, source, pitch, width, height);
    (void)kind;
    r.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    r.dstArray = target;
    r.dstXInBytes = x;
    r.dstY = y;
    RUNTIME_CALL(runtime.cuMemcpy2DUnaligned(&r));
}

cudaError_t cudaMemcpy2DFromArray(void *target, size_t pitch, cudaArray_t source, size_t x, size_t y, size_t width,
    size_t height, int kind)
{
    CUDA_MEMCPY2D r = rectangle(target, pitch, NULL, 0, width, height);
    (void)kind;
    r.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    r.srcArray = source;
    r.srcXInBytes = x;
    r.srcY = y;
    RUNTIME_CALL(runtime.cuMemcpy2DUnaligned(&r));
}

/* Boxes between pitched memory; widths are bytes then. */
static CUDA_MEMCPY3D box_of(const struct cudaMemcpy3DParms *p)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = p->srcPos.x, .srcY = p->srcPos.y, .srcZ = p->srcPos.z,
        .srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED, .srcArray = p->srcArray,
        .srcDevice = number(p->srcPtr.ptr), .srcPitch = p->srcPtr.pitch, .srcHeight = p->srcPtr.ysize,
        .dstXInBytes = p->dstPos.x, .dstY = p->dstPos.y, .dstZ = p->dstPos.z,
        .dstMemoryType = p->dstArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED, .dstArray = p->dstArray,
        .dstDevice = number(p->dstPtr.ptr), .dstPitch = p->dstPtr.pitch, .dstHeight = p->dstPtr.ysize,
        .WidthInBytes = p->extent.width, .Height = p->extent.height, .Depth = p->extent.depth};
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters)
{
    if (!parameters)
        return runtime_done(cudaErrorInvalidValue);
    CUDA_MEMCPY3D box = box_of(parameters);
    RUNTIME_CALL(runtime.cuMemcpy3D(&box));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream)
{
    if (!parameters)
        return runtime_done(cudaErrorInvalidValue);
    CUDA_MEMCPY3D box = box_of(parameters);
    RUNTIME_CALL(runtime.cuMemcpy3DAsync(&box, stream));
}

cudaError_t cudaMemset(void *address, int value, size_t bytes)
{
    RUNTIME_CALL(runtime.cuMemsetD8(number(address), (unsigned char)value, bytes));
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuMemsetD8Async(number(address), (unsigned char)value, bytes, stream));
}

cudaError_t cudaMemset2D(void *address, size_t pitch, int value, size_t width, size_t height)
{
    RUNTIME_CALL(runtime.cuMemsetD2D8(number(address), pitch, (unsigned char)value, width, height));
}

cudaError_t cudaMemset2DAsync(void *address, size_t pitch, int value, size_t width, size_t height,
    cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuMemsetD2D8Async(number(address), pitch, (unsigned char)value, width, height, stream));
}

/* Symbols. */

static cudaError_t part(const void *symbol, size_t bytes, size_t offset, CUdeviceptr *address)
{
    size_t size;
    cudaError_t error = runtime_enter();
    if (!error)
        error = runtime_symbol(symbol, address, &size);
    if (!error && (offset > size || bytes > size - offset))
        error = cudaErrorInvalidValue;
    if (!error)
        *address += offset;
    return error;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes, size_t offset, int kind)
{
    CUdeviceptr address;
    cudaError_t error = part(symbol, bytes, offset, &address);
    return error ? runtime_done(error) : cudaMemcpy((void *)(uintptr_t)address, source, bytes, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *source, size_t bytes, size_t offset, int kind,
    cudaStream_t stream)
{
    CUdeviceptr address;
    cudaError_t error = part(symbol, bytes, offset, &address);
    return error ? runtime_done(error) : cudaMemcpyAsync((void *)(uintptr_t)address, source, bytes, kind, stream);
}

cudaError_t cudaMemcpyFromSymbol(void *target, const void *symbol, size_t bytes, size_t offset, int kind)
{
    CUdeviceptr address;
    cudaError_t error = part(symbol, bytes, offset, &address);
    return error ? runtime_done(error) : cudaMemcpy(target, (void *)(uintptr_t)address, bytes, kind);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *target, const void *symbol, size_t bytes, size_t offset, int kind,
    cudaStream_t stream)
{
    CUdeviceptr address;
    cudaError_t error = part(symbol, bytes, offset, &address);
    return error ? runtime_done(error) : cudaMemcpyAsync(target, (void *)(uintptr_t)address, bytes, kind, stream);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    CUdeviceptr where = 0;
    cudaError_t error = address ? part(symbol, 0, 0, &where) : cudaErrorInvalidValue;
    if (!error)
        *address = (void *)(uintptr_t)where;
    return runtime_done(error);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    CUdeviceptr where;
    cudaError_t error = bytes ? runtime_enter() : cudaErrorInvalidValue;
    return runtime_done(error ? error : runtime_symbol(symbol, &where, bytes));
}
