/*
 * The simulated driver: plain, pitched, managed and host memory, arrays, and
 * what a pointer is.  May use: the simulated device.
 */
#include <limits.h>
#include <stdlib.h>

#include "sim/driver.h"

#define PITCH 512u

struct CUarray_st {
    enum magic magic;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    uint64_t address, bytes, row; /* bytes of a row, no padding */
    bool of_mipmap;
};

struct CUmipmappedArray_st {
    enum magic magic;
    unsigned levels;
    CUarray level[32];
};

/* Plain. */

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    uint64_t a, t;
    ENTER(cuMemGetInfo_v2, NEED_CONTEXT);
    CUresult result = sim_info(driver.sim, driver_current()->device, &a, &t);
    if (!result && available)
        *available = a;
    if (!result && total)
        *total = t;
    return result;
}

static CUresult get(size_t bytes, enum sim_kind kind, CUdeviceptr *address)
{
    uint64_t where;
    CUcontext context = driver_current();
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_get(driver.sim, context->device, bytes, kind, context, &where);
    if (!result)
        *address = where;
    return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    ENTER(cuMemAlloc_v2, NEED_SAFE);
    return get(bytes, SIM_PLAIN, address);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    ENTER(cuMemAllocPitch_v2, NEED_SAFE);
    if (!pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16) ||
        width > SIZE_MAX - PITCH)
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = (width + PITCH - 1) / PITCH * PITCH;
    if (height > SIZE_MAX / row)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = get(row * height, SIM_PITCHED, address);
    if (!result)
        *pitch = row;
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    struct sim_range range;
    CUresult result;
    ENTER(cuMemFree_v2, NEED_INIT);
    if (address == 0)
        return CUDA_SUCCESS;
    if (driver.captures && (result = driver_capture_check()))
        return result;
    if (driver_graph_release(address, &result))
        return result;
    if (!sim_find(driver.sim, address, &range) || range.address != address)
        return CUDA_ERROR_INVALID_VALUE;
    switch (range.kind) {
    case SIM_PLAIN:
    case SIM_PITCHED:
    case SIM_MANAGED: /* after all work that could use it */
        driver_finish(range.device);
        return sim_release(driver.sim, address);
    case SIM_ASYNC: /* as a synchronisation of all streams, then a free */
        driver_finish(range.device);
        return sim_pool_put(driver.sim, address);
    case SIM_IMPORTED: /* a buffer of external memory; what came by IPC is closed */
        return range.flags ? sim_release(driver.sim, address) : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct sim_range range;
    ENTER(cuMemGetAddressRange_v2, NEED_INIT);
    if (!sim_find(driver.sim, address, &range) || range.kind == SIM_HOST || range.kind == SIM_REGISTERED)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = range.address;
    if (bytes)
        *bytes = range.bytes;
    return CUDA_SUCCESS;
}

/* The first version, with sizes of 32 bits: driver 580 knows no context that it could be for. */
CUresult cuMemGetInfo(unsigned int *available, unsigned int *total)
{
    (void)available;
    (void)total;
    ENTER(cuMemGetInfo, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    (void)address;
    (void)bytes;
    ENTER(cuMemAlloc, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width, unsigned int height,
    unsigned int element)
{
    (void)address;
    (void)pitch;
    (void)width;
    (void)height;
    (void)element;
    ENTER(cuMemAllocPitch, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemFree(CUdeviceptr_v1 address)
{
    (void)address;
    ENTER(cuMemFree, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 address)
{
    (void)base;
    (void)bytes;
    (void)address;
    ENTER(cuMemGetAddressRange, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

/* Managed and host memory. */

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    uint64_t where;
    ENTER(cuMemAllocManaged, NEED_SAFE);
    if (!address || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext context = driver_current();
    CUresult result = sim_host_get(driver.sim, bytes, SIM_MANAGED, context->device, context, flags, &where);
    if (!result)
        *address = where;
    return result;
}

CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    uint64_t where;
    ENTER(cuMemHostAlloc, NEED_SAFE);
    if (!host || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext context = driver_current();
    if (bytes == 0) { /* allowed; nothing comes of it */
        *host = NULL;
        return CUDA_SUCCESS;
    }
    CUresult result = sim_host_get(driver.sim, bytes, SIM_HOST, context->device, context, flags, &where);
    if (!result)
        *host = (void *)(uintptr_t)where;
    return result;
}

CUresult cuMemAllocHost_v2(void **host, size_t bytes)
{
    uint64_t where;
    ENTER(cuMemAllocHost_v2, NEED_SAFE);
    if (!host)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext context = driver_current();
    CUresult result = sim_host_get(driver.sim, bytes, SIM_HOST, context->device, context, 0, &where);
    if (!result)
        *host = (void *)(uintptr_t)where;
    return result;
}

CUresult cuMemAllocHost(void **host, unsigned int bytes)
{
    return cuMemAllocHost_v2(host, bytes);
}

static bool host_range(void *host, enum sim_kind kind, struct sim_range *range)
{
    return host && sim_find(driver.sim, (uint64_t)(uintptr_t)host, range) && range->kind == kind &&
           range->address == (uint64_t)(uintptr_t)host;
}

CUresult cuMemFreeHost(void *host)
{
    struct sim_range range;
    ENTER(cuMemFreeHost, NEED_INIT);
    if (!host_range(host, SIM_HOST, &range))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_release(driver.sim, range.address);
}

CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags)
{
    ENTER(cuMemHostRegister_v2, NEED_SAFE);
    CUcontext context = driver_current();
    return sim_host_add(driver.sim, (uint64_t)(uintptr_t)host, bytes, SIM_REGISTERED, context->device, context, flags);
}

CUresult cuMemHostRegister(void *host, size_t bytes, unsigned int flags)
{
    return cuMemHostRegister_v2(host, bytes, flags);
}

CUresult cuMemHostUnregister(void *host)
{
    struct sim_range range;
    ENTER(cuMemHostUnregister, NEED_CONTEXT);
    if (!host_range(host, SIM_REGISTERED, &range))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    return sim_release(driver.sim, range.address);
}

static bool host_known(void *host, struct sim_range *range)
{
    return host && sim_find(driver.sim, (uint64_t)(uintptr_t)host, range) &&
           (range->kind == SIM_HOST || range->kind == SIM_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned int flags)
{
    struct sim_range range;
    ENTER(cuMemHostGetDevicePointer_v2, NEED_CONTEXT);
    if (!address || flags || !host_known(host, &range))
        return CUDA_ERROR_INVALID_VALUE;
    *address = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *address, void *host, unsigned int flags)
{
    (void)address;
    (void)host;
    (void)flags;
    ENTER(cuMemHostGetDevicePointer, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *host)
{
    struct sim_range range;
    ENTER(cuMemHostGetFlags, NEED_CONTEXT);
    if (!flags || !host_known(host, &range))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.flags;
    return CUDA_SUCCESS;
}

static CUresult known(CUdeviceptr address)
{
    struct sim_range range;
    return sim_find(driver.sim, address, &range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t count, CUmem_advise advice, CUmemLocation location)
{
    (void)advice;
    (void)location;
    ENTER(cuMemAdvise_v2, NEED_INIT);
    return count ? known(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise(CUdeviceptr address, size_t count, CUmem_advise advice, CUdevice device)
{
    (void)advice;
    (void)device;
    ENTER(cuMemAdvise, NEED_INIT);
    return count ? known(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t count, CUmemLocation location, unsigned int flags,
    CUstream stream)
{
    (void)location;
    ENTER(cuMemPrefetchAsync_v2, NEED_CONTEXT);
    if (!driver_stream(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    return count && !flags ? known(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t count, CUdevice target, CUstream stream)
{
    (void)target;
    ENTER(cuMemPrefetchAsync, NEED_CONTEXT);
    if (!driver_stream(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    return count ? known(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t length, unsigned int flags)
{
    (void)length;
    ENTER(cuStreamAttachMemAsync, NEED_CONTEXT);
    if (!driver_stream(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    return flags ? known(address) : CUDA_ERROR_INVALID_VALUE;
}

/* What a pointer is. */

static CUresult attribute_get(void *data, CUpointer_attribute attribute, const struct sim_range *range,
    CUdeviceptr address)
{
    bool host = range->kind == SIM_HOST || range->kind == SIM_REGISTERED;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = range->kind == SIM_MAPPED || range->kind == SIM_ASYNC ? NULL : range->owner;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && range->kind != SIM_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(unsigned *)data = attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE &&
                            range->kind == SIM_PLAIN;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = range->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = range->kind == SIM_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = (int)range->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = range->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = range->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = range->kind == SIM_MAPPED && !range->access ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                                                       : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = range->kind == SIM_ASYNC ? range->owner : NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct sim_range range;
    ENTER(cuPointerGetAttribute, NEED_INIT);
    if (!data || !sim_find(driver.sim, address, &range))
        return CUDA_ERROR_INVALID_VALUE;
    return attribute_get(data, attribute, &range, address);
}

/* Of an address that is nobody's, this one gives zeros; the width of each value is its attribute's. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values,
    CUdeviceptr address)
{
    struct sim_range range;
    ENTER(cuPointerGetAttributes, NEED_INIT);
    if (!count || !attributes || !values)
        return CUDA_ERROR_INVALID_VALUE;
    bool found = sim_find(driver.sim, address, &range);
    for (unsigned i = 0; i < count; i++) {
        if (found && attribute_get(values[i], attributes[i], &range, address) == CUDA_SUCCESS)
            continue;
        switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            *(unsigned *)values[i] = 0;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[i] = CU_DEVICE_INVALID;
            break;
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            *(unsigned long long *)values[i] = 0;
            break;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    ENTER(cuPointerSetAttribute, NEED_INIT);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    return known(address);
}

/* Arrays. */

static unsigned format_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static CUresult array_new(CUarray *result, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    uint64_t row, rows, planes, bytes;
    unsigned size = format_bytes(shape->Format) * shape->NumChannels;
    if (!result || !size || shape->Width == 0 ||
        (shape->NumChannels != 1 && shape->NumChannels != 2 && shape->NumChannels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    rows = shape->Height ? shape->Height : 1;
    planes = shape->Depth ? shape->Depth : 1;
    if (__builtin_mul_overflow(shape->Width, (uint64_t)size, &row) || __builtin_mul_overflow(row, rows, &bytes) ||
        __builtin_mul_overflow(bytes, planes, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUarray array = calloc(1, sizeof *array);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *array = (struct CUarray_st){.magic = MAGIC_ARRAY, .shape = *shape, .bytes = bytes, .row = row};
    CUcontext context = driver_current();
    CUresult status = sim_get(driver.sim, context->device, bytes, SIM_ARRAY, context, &array->address);
    if (status)
        free(array);
    else
        *result = array;
    return status;
}

static bool is_array(CUarray array)
{
    return array && array->magic == MAGIC_ARRAY;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    ENTER(cuArray3DCreate_v2, NEED_SAFE);
    return shape ? array_new(array, shape) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape)
{
    ENTER(cuArrayCreate_v2, NEED_SAFE);
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR full = {.Width = shape->Width, .Height = shape->Height, .Format = shape->Format,
        .NumChannels = shape->NumChannels};
    return array_new(array, &full);
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape)
{
    (void)array;
    (void)shape;
    ENTER(cuArrayCreate, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape)
{
    (void)array;
    (void)shape;
    ENTER(cuArray3DCreate, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuArrayDestroy(CUarray array)
{
    ENTER(cuArrayDestroy, NEED_SAFE);
    if (!is_array(array) || array->of_mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = sim_release(driver.sim, array->address);
    if (result)
        return result;
    array->magic = 0;
    free(array);
    return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray array)
{
    ENTER(cuArray3DGetDescriptor_v2, NEED_CONTEXT);
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_array(array))
        return CUDA_ERROR_INVALID_HANDLE;
    *shape = array->shape;
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *shape, CUarray array)
{
    ENTER(cuArrayGetDescriptor_v2, NEED_CONTEXT);
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_array(array))
        return CUDA_ERROR_INVALID_HANDLE;
    *shape = (CUDA_ARRAY_DESCRIPTOR){.Width = array->shape.Width, .Height = array->shape.Height,
        .Format = array->shape.Format, .NumChannels = array->shape.NumChannels};
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *shape, CUarray array)
{
    (void)shape;
    (void)array;
    ENTER(cuArrayGetDescriptor, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *shape, CUarray array)
{
    (void)shape;
    (void)array;
    ENTER(cuArray3DGetDescriptor, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array, CUdevice device)
{
    ENTER(cuArrayGetMemoryRequirements, NEED_CONTEXT);
    if (!needs)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_array(array))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *needs = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = array->bytes, .alignment = PITCH};
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    ENTER(cuMipmappedArrayCreate, NEED_SAFE);
    if (!array || !shape || levels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray mipmap = calloc(1, sizeof *mipmap);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mipmap->magic = MAGIC_MIPMAP;
    CUDA_ARRAY3D_DESCRIPTOR level = *shape;
    CUresult result = CUDA_SUCCESS;
    while (mipmap->levels < levels && mipmap->levels < 32 && !result) {
        result = array_new(&mipmap->level[mipmap->levels], &level);
        if (result)
            break;
        mipmap->level[mipmap->levels++]->of_mipmap = true;
        if (level.Width <= 1 && level.Height <= 1 && level.Depth <= 1)
            break;
        level.Width = level.Width > 1 ? level.Width / 2 : level.Width;
        level.Height = level.Height > 1 ? level.Height / 2 : level.Height;
        level.Depth = level.Depth > 1 ? level.Depth / 2 : level.Depth;
    }
    if (!result) {
        *array = mipmap;
        return CUDA_SUCCESS;
    }
    while (mipmap->levels) {
        sim_release(driver.sim, mipmap->level[--mipmap->levels]->address);
        free(mipmap->level[mipmap->levels]);
    }
    free(mipmap);
    return result;
}

CUresult cuMipmappedArrayGetLevel(CUarray *level_array, CUmipmappedArray array, unsigned int level)
{
    ENTER(cuMipmappedArrayGetLevel, NEED_CONTEXT);
    if (!array || array->magic != MAGIC_MIPMAP)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!level_array || level >= array->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *level_array = array->level[level];
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    ENTER(cuMipmappedArrayDestroy, NEED_SAFE);
    if (!array || array->magic != MAGIC_MIPMAP)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < array->levels; i++) {
        sim_release(driver.sim, array->level[i]->address);
        free(array->level[i]);
    }
    array->magic = 0;
    free(array);
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUmipmappedArray array,
    CUdevice device)
{
    ENTER(cuMipmappedArrayGetMemoryRequirements, NEED_CONTEXT);
    if (!array || array->magic != MAGIC_MIPMAP)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!needs || !driver_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    *needs = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.alignment = PITCH};
    for (unsigned i = 0; i < array->levels; i++)
        needs->size += array->level[i]->bytes;
    return CUDA_SUCCESS;
}

bool driver_array(CUarray array, uint64_t *address, uint64_t *row, uint64_t *rows, uint64_t *bytes)
{
    if (!is_array(array))
        return false;
    *address = array->address;
    *row = array->row;
    *rows = array->shape.Height ? array->shape.Height : 1;
    *bytes = array->bytes;
    return true;
}
