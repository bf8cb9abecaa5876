/*
 * Arrays and mipmapped arrays.  The driver does not say where they lie or how they are padded: an entry's address is
 * the handle and its size what the description comes to.
 */
#include "preload/caching.h"
#include "preload/hook.h"
#include "preload/wrappers.h"

#define CALLER __builtin_return_address(0)

/* Bytes of one channel's texel; the block-compressed formats (0x91..0x9e) are told apart by their code. */
static uint64_t texel_bytes(unsigned format, unsigned channels)
{
    static const uint8_t compressed[] = {8, 8, 16, 16, 16, 16, 8, 8, 16, 16, 16, 16, 16, 16};
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2u * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4u * channels;
    default:
        break;
    }
    if (format >= 0x91 && format < 0x91 + sizeof(compressed))
        return compressed[format - 0x91]; /* of a block of four by four */
    if (format >= 0xc3 && format <= 0xc8) /* normalised 16-bit: 1, 2 and 4 channels, unsigned and signed */
        return 2u * channels;
    return channels; /* 8 bits a channel */
}

static uint64_t times(uint64_t bytes, uint64_t count)
{
    uint64_t product;
    return __builtin_mul_overflow(bytes, count, &product) ? RECORD_UNKNOWN - 1 : product;
}

/* A length of 0 means that the array has no such dimension. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    uint64_t width = shape->Width, height = shape->Height ? shape->Height : 1, depth = shape->Depth ? shape->Depth : 1;
    if ((unsigned)shape->Format >= 0x91 && (unsigned)shape->Format <= 0x9e) {
        width = width / 4 + (width % 4 != 0);
        height = height / 4 + (height % 4 != 0);
    }
    return times(times(times(texel_bytes((unsigned)shape->Format, shape->NumChannels), width), height), depth);
}

static uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels)
{
    CUDA_ARRAY3D_DESCRIPTOR level = *shape;
    bool layered = (shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    uint64_t sum = 0;
    for (unsigned i = 0; i < levels && i < 64; i++) {
        if (__builtin_add_overflow(sum, array_bytes(&level), &sum))
            return RECORD_UNKNOWN - 1;
        level.Width = level.Width > 1 ? level.Width / 2 : level.Width;
        level.Height = level.Height > 1 ? level.Height / 2 : level.Height;
        if (!layered)
            level.Depth = level.Depth > 1 ? level.Depth / 2 : level.Depth;
    }
    return sum;
}

static void array_made(struct hook *hook, CUresult result, uint8_t kind, const void *handle,
                       const CUDA_ARRAY3D_DESCRIPTOR *shape, uint64_t bytes)
{
    if (!shape)
        return;
    if (result != CUDA_SUCCESS)
        hook_failed(hook, result, kind, bytes);
    else if (handle && !(shape->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)))
        hook_allocated(hook, kind, (uintptr_t)handle, bytes, RECORD_UNKNOWN);
}

/* The description is the program's and was read by the driver before us; after a failure it may be no pointer. */
static bool readable(CUresult result)
{
    return result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult wrap_cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuArrayCreate, CALLER);
    CUresult result = driver.cuArrayCreate(array, shape);
    if (readable(result) && shape && array) {
        CUDA_ARRAY3D_DESCRIPTOR full = {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0};
        array_made(&hook, result, RECORD_ARRAY, result ? NULL : *array, &full, array_bytes(&full));
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuArrayCreate_v2, CALLER);
    CUresult result = driver.cuArrayCreate_v2(array, shape);
    if (caching_makes_room(&hook, result))
        result = driver.cuArrayCreate_v2(array, shape);
    if (readable(result) && shape && array) {
        CUDA_ARRAY3D_DESCRIPTOR full = {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0};
        array_made(&hook, result, RECORD_ARRAY, result ? NULL : *array, &full, array_bytes(&full));
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuArray3DCreate, CALLER);
    CUresult result = driver.cuArray3DCreate(array, shape);
    if (readable(result) && shape && array) {
        CUDA_ARRAY3D_DESCRIPTOR full = {shape->Width,  shape->Height,      shape->Depth,
                                        shape->Format, shape->NumChannels, shape->Flags};
        array_made(&hook, result, RECORD_ARRAY, result ? NULL : *array, &full, array_bytes(&full));
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuArray3DCreate_v2, CALLER);
    CUresult result = driver.cuArray3DCreate_v2(array, shape);
    if (caching_makes_room(&hook, result))
        result = driver.cuArray3DCreate_v2(array, shape);
    if (readable(result) && shape && array)
        array_made(&hook, result, RECORD_ARRAY, result ? NULL : *array, shape, array_bytes(shape));
    hook_end(&hook);
    return result;
}

CUresult wrap_cuArrayDestroy(CUarray array)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuArrayDestroy, CALLER);
    hook_free(&hook, (uintptr_t)array);
    CUresult result = driver.cuArrayDestroy(array);
    hook_free_result(&hook, result);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMipmappedArrayCreate, CALLER);
    CUresult result = driver.cuMipmappedArrayCreate(array, shape, levels);
    if (caching_makes_room(&hook, result))
        result = driver.cuMipmappedArrayCreate(array, shape, levels);
    if (readable(result) && shape && array)
        array_made(&hook, result, RECORD_MIPMAPPED, result ? NULL : *array, shape, mipmap_bytes(shape, levels));
    hook_end(&hook);
    return result;
}

/* Memory of another interface: who made it counts it. */
CUresult wrap_cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array, CUexternalMemory memory,
                                                      const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *part)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuExternalMemoryGetMappedMipmappedArray, CALLER);
    CUresult result = driver.cuExternalMemoryGetMappedMipmappedArray(array, memory, part);
    if (result == CUDA_SUCCESS && array && part)
        hook_allocated(&hook, RECORD_IMPORTED, (uintptr_t)*array, mipmap_bytes(&part->arrayDesc, part->numLevels),
                       RECORD_UNKNOWN);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMipmappedArrayDestroy, CALLER);
    hook_free(&hook, (uintptr_t)array);
    CUresult result = driver.cuMipmappedArrayDestroy(array);
    hook_free_result(&hook, result);
    hook_end(&hook);
    return result;
}
