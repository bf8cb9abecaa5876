/*
 * The simulated driver: copies and fills.  May use: the simulated device.
 *
 * Each becomes one or more operations in the order of a stream; they are done
 * at the call, since nothing can tell the difference but the events that come
 * after them.
 */
#include "sim/driver.h"

static CUresult copy(CUstream stream, uint64_t target, uint64_t source, size_t bytes)
{
    struct operation operation = {.kind = OPERATION_COPY, .target = target, .source = source, .bytes = bytes,
        .rows = 1};
    if (bytes && (!target || !source))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_operate(stream, &operation);
}

/* The default stream, waited for. */
static CUresult copy_now(uint64_t target, uint64_t source, size_t bytes)
{
    CUresult result = copy(NULL, target, source, bytes);
    if (!result)
        sim_stream_finish(driver_current()->legacy->work);
    return result;
}

static uint64_t host(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    ENTER(cuMemcpy, NEED_SAFE);
    return copy_now(target, source, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyAsync, NEED_CONTEXT);
    return copy(stream, target, source, bytes);
}

CUresult cuMemcpyPeer(CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context,
    size_t bytes)
{
    ENTER(cuMemcpyPeer, NEED_SAFE);
    if (!driver_context_ok(target_context) || !driver_context_ok(source_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_now(target, source, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
    CUcontext source_context, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyPeerAsync, NEED_CONTEXT);
    if (!driver_context_ok(target_context) || !driver_context_ok(source_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy(stream, target, source, bytes);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes)
{
    ENTER(cuMemcpyHtoD_v2, NEED_SAFE);
    return copy_now(target, host(source), bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyHtoDAsync_v2, NEED_CONTEXT);
    return copy(stream, target, host(source), bytes);
}

CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes)
{
    ENTER(cuMemcpyDtoH_v2, NEED_SAFE);
    return copy_now(host(target), source, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoHAsync_v2, NEED_CONTEXT);
    return copy(stream, host(target), source, bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    ENTER(cuMemcpyDtoD_v2, NEED_SAFE);
    return copy_now(target, source, bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoDAsync_v2, NEED_CONTEXT);
    return copy(stream, target, source, bytes);
}

/* Rectangles and boxes. */

struct side {
    uint64_t address, pitch, height; /* of a row, and rows of a plane */
};

static CUresult side_of(struct side *side, CUmemorytype type, uint64_t address, CUarray array, uint64_t pitch,
    uint64_t height, const uint64_t at[3], const CUDA_MEMCPY3D *box)
{
    uint64_t bytes = 0;
    bool ok = true;
    if (type == CU_MEMORYTYPE_ARRAY) {
        if (!driver_array(array, &side->address, &side->pitch, &side->height, &bytes))
            return CUDA_ERROR_INVALID_HANDLE;
        ok = at[0] + box->WidthInBytes <= side->pitch && at[1] + box->Height <= side->height &&
             (at[2] + box->Depth) * side->pitch * side->height <= bytes;
    } else {
        side->address = address;
        side->pitch = pitch ? pitch : box->WidthInBytes;
        side->height = height ? height : box->Height;
        ok = address && side->pitch >= box->WidthInBytes && side->height >= box->Height;
    }
    side->address += (at[2] * side->height + at[1]) * side->pitch + at[0];
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_box(CUstream stream, const CUDA_MEMCPY3D *box)
{
    struct side from, to;
    const uint64_t from_at[3] = {box->srcXInBytes, box->srcY, box->srcZ};
    const uint64_t to_at[3] = {box->dstXInBytes, box->dstY, box->dstZ};
    if (box->WidthInBytes == 0 || box->Height == 0 || box->Depth == 0)
        return CUDA_SUCCESS;
    CUresult result = side_of(&from, box->srcMemoryType,
        box->srcMemoryType == CU_MEMORYTYPE_HOST ? host(box->srcHost) : box->srcDevice, box->srcArray, box->srcPitch,
        box->srcHeight, from_at, box);
    if (!result)
        result = side_of(&to, box->dstMemoryType,
            box->dstMemoryType == CU_MEMORYTYPE_HOST ? host(box->dstHost) : box->dstDevice, box->dstArray,
            box->dstPitch, box->dstHeight, to_at, box);
    for (uint64_t z = 0; z < box->Depth && !result; z++) {
        struct operation plane = {.kind = OPERATION_COPY, .target = to.address + z * to.height * to.pitch,
            .source = from.address + z * from.height * from.pitch, .bytes = box->WidthInBytes, .rows = box->Height,
            .target_pitch = to.pitch, .source_pitch = from.pitch};
        result = driver_operate(stream, &plane);
    }
    return result;
}

static CUresult copy_rectangle(CUstream stream, const CUDA_MEMCPY2D *r)
{
    if (!r)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = {.srcXInBytes = r->srcXInBytes, .srcY = r->srcY, .srcMemoryType = r->srcMemoryType,
        .srcHost = r->srcHost, .srcDevice = r->srcDevice, .srcArray = r->srcArray, .srcPitch = r->srcPitch,
        .dstXInBytes = r->dstXInBytes, .dstY = r->dstY, .dstMemoryType = r->dstMemoryType, .dstHost = r->dstHost,
        .dstDevice = r->dstDevice, .dstArray = r->dstArray, .dstPitch = r->dstPitch,
        .WidthInBytes = r->WidthInBytes, .Height = r->Height, .Depth = 1};
    return copy_box(stream, &box);
}

static CUresult now(CUresult result)
{
    if (!result)
        sim_stream_finish(driver_current()->legacy->work);
    return result;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *rectangle)
{
    ENTER(cuMemcpy2D_v2, NEED_SAFE);
    return now(copy_rectangle(NULL, rectangle));
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *rectangle)
{
    ENTER(cuMemcpy2DUnaligned_v2, NEED_SAFE);
    return now(copy_rectangle(NULL, rectangle));
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *rectangle, CUstream stream)
{
    ENTER(cuMemcpy2DAsync_v2, NEED_CONTEXT);
    return copy_rectangle(stream, rectangle);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *box)
{
    ENTER(cuMemcpy3D_v2, NEED_SAFE);
    return box ? now(copy_box(NULL, box)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *box, CUstream stream)
{
    ENTER(cuMemcpy3DAsync_v2, NEED_CONTEXT);
    return box ? copy_box(stream, box) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult array_part(CUarray array, size_t offset, size_t bytes, uint64_t *address)
{
    uint64_t row, rows, all;
    if (!driver_array(array, address, &row, &rows, &all))
        return CUDA_ERROR_INVALID_HANDLE;
    *address += offset;
    return offset <= all && bytes <= all - offset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoA_v2(CUarray target, size_t target_offset, CUdeviceptr source, size_t bytes)
{
    uint64_t address;
    ENTER(cuMemcpyDtoA_v2, NEED_SAFE);
    CUresult result = array_part(target, target_offset, bytes, &address);
    return result ? result : copy_now(address, source, bytes);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr target, CUarray source, size_t source_offset, size_t bytes)
{
    uint64_t address;
    ENTER(cuMemcpyAtoD_v2, NEED_SAFE);
    CUresult result = array_part(source, source_offset, bytes, &address);
    return result ? result : copy_now(target, address, bytes);
}

CUresult cuMemcpyHtoA_v2(CUarray target, size_t target_offset, const void *source, size_t bytes)
{
    uint64_t address;
    ENTER(cuMemcpyHtoA_v2, NEED_SAFE);
    CUresult result = array_part(target, target_offset, bytes, &address);
    return result ? result : copy_now(address, host(source), bytes);
}

CUresult cuMemcpyAtoH_v2(void *target, CUarray source, size_t source_offset, size_t bytes)
{
    uint64_t address;
    ENTER(cuMemcpyAtoH_v2, NEED_SAFE);
    CUresult result = array_part(source, source_offset, bytes, &address);
    return result ? result : copy_now(host(target), address, bytes);
}

/* Fills: a count of elements, or rows of them. */

static CUresult fill(CUstream stream, CUdeviceptr target, size_t pitch, uint32_t pattern, unsigned size,
    size_t width, size_t height)
{
    struct operation operation = {.kind = OPERATION_FILL, .target = target, .bytes = width, .rows = height,
        .target_pitch = pitch, .pattern = pattern, .size = size};
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    if (target == 0 || (height > 1 && pitch < width * size))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_operate(stream, &operation);
}

#define FILL(name, async, type, size) \
    CUresult name(CUdeviceptr target, type value, size_t count) \
    { \
        ENTER(name, NEED_SAFE); \
        return fill(NULL, target, 0, value, size, count, 1); \
    } \
    CUresult async(CUdeviceptr target, type value, size_t count, CUstream stream) \
    { \
        ENTER(async, NEED_CONTEXT); \
        return fill(stream, target, 0, value, size, count, 1); \
    }
FILL(cuMemsetD8_v2, cuMemsetD8Async, unsigned char, 1)
FILL(cuMemsetD16_v2, cuMemsetD16Async, unsigned short, 2)
FILL(cuMemsetD32_v2, cuMemsetD32Async, unsigned int, 4)

#define FILL_ROWS(name, async, type, size) \
    CUresult name(CUdeviceptr target, size_t pitch, type value, size_t width, size_t height) \
    { \
        ENTER(name, NEED_SAFE); \
        return fill(NULL, target, pitch, value, size, width, height); \
    } \
    CUresult async(CUdeviceptr target, size_t pitch, type value, size_t width, size_t height, CUstream stream) \
    { \
        ENTER(async, NEED_CONTEXT); \
        return fill(stream, target, pitch, value, size, width, height); \
    }
FILL_ROWS(cuMemsetD2D8_v2, cuMemsetD2D8Async, unsigned char, 1)
FILL_ROWS(cuMemsetD2D16_v2, cuMemsetD2D16Async, unsigned short, 2)
FILL_ROWS(cuMemsetD2D32_v2, cuMemsetD2D32Async, unsigned int, 4)
