/*
 * The simulated driver: devices and contexts.  May use: the simulated device.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver.h"

/* Devices. */

CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount, NEED_INIT);
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (int)sim_settings(driver.sim)->devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet, NEED_INIT);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    ENTER(cuDeviceGetName, NEED_INIT);
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "Simulated device");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    ENTER(cuDeviceGetUuid_v2, NEED_INIT);
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "cudamem-sim-dev", 15);
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *node_mask, CUdevice device)
{
    (void)luid;
    (void)node_mask;
    (void)device;
    ENTER(cuDeviceGetLuid, NEED_INIT);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    ENTER(cuDeviceTotalMem_v2, NEED_INIT);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = sim_settings(driver.sim)->bytes[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t all;
    CUresult result = cuDeviceTotalMem_v2(bytes ? &all : NULL, device);
    if (!result)
        *bytes = all > UINT_MAX ? UINT_MAX : (unsigned int)all;
    return result;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    ENTER(cuDeviceComputeCapability, NEED_INIT);
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    static const int ones[] = {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
        CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
        CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED};
    static const struct {
        int attribute, value;
    } values[] = {{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024}, {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024}, {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT_MAX}, {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535}, {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536}, {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT_MAX}, {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000}, {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132}, {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144}, {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048}, {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32}, {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32}};
    ENTER(cuDeviceGetAttribute, NEED_INIT);
    if (!value || (int)attribute <= 0 || (int)attribute > 200)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : 0;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (ones[i] == (int)attribute)
            *value = 1;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].attribute == (int)attribute)
            *value = values[i].value;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId, NEED_INIT);
    if (!text || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned)(device + 1) & 0xff);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    unsigned domain, bus;
    ENTER(cuDeviceGetByPCIBusId, NEED_INIT);
    if (!device || !text)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 || domain || bus == 0 || !driver_device((int)bus - 1))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER(cuDeviceCanAccessPeer, NEED_INIT);
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device) || !driver_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice target)
{
    ENTER(cuDeviceGetP2PAttribute, NEED_INIT);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(source) || !driver_device(target) || source == target)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
}

/* Contexts. */

#define STACK_MAX 64
static __thread CUcontext stack[STACK_MAX];
static __thread unsigned depth;

CUcontext driver_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

bool driver_context_ok(CUcontext context)
{
    return context && context->magic == MAGIC_CONTEXT && context->alive;
}

static CUresult context_new(CUcontext *result, unsigned flags, unsigned device, bool primary)
{
    uint64_t bytes = sim_settings(driver.sim)->context_bytes;
    CUcontext context = calloc(1, sizeof *context);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (sim_charge(driver.sim, device, bytes)) {
        free(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = (struct CUctx_st){.magic = MAGIC_CONTEXT, .device = device, .flags = flags, .version = 3020,
        .primary = primary, .alive = true, .charged = bytes, .limits = {[CU_LIMIT_STACK_SIZE] = 1024,
            [CU_LIMIT_PRINTF_FIFO_SIZE] = 7 << 20, [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20}};
    context->legacy = driver_stream_new(context, 0, 0);
    if (!context->legacy) {
        sim_discharge(driver.sim, device, bytes);
        free(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    driver_lock();
    context->id = driver_id();
    context->next = driver.contexts;
    driver.contexts = context;
    driver_unlock();
    *result = context;
    return CUDA_SUCCESS;
}

/* Everything that was made in it goes with it; the structure stays as a mark. */
static void context_end(CUcontext context)
{
    driver_lock();
    context->alive = false;
    CUstream streams = context->streams;
    context->streams = NULL;
    context->legacy = NULL;
    driver_unlock();
    while (streams) {
        CUstream next = streams->next;
        driver_stream_drop(streams);
        streams = next;
    }
    sim_release_owner(driver.sim, context);
    sim_discharge(driver.sim, context->device, context->charged);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    ENTER(cuCtxCreate_v2, NEED_INIT);
    if (!context || (flags & ~(unsigned)CU_CTX_FLAGS_MASK))
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (depth == STACK_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = context_new(context, flags, (unsigned)device, false);
    if (!result)
        stack[depth++] = *context;
    return result;
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned int flags,
    CUdevice device)
{
    if (count && !affinity)
        return CUDA_ERROR_INVALID_VALUE;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
    (void)parameters;
    return cuCtxCreate_v2(context, flags, device);
}

/* The 32-bit kind of context: driver 580 refuses it like this. */
CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    (void)context;
    (void)flags;
    (void)device;
    ENTER(cuCtxCreate, NEED_INIT);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    ENTER(cuCtxDestroy_v2, NEED_INIT);
    if (!driver_context_ok(context) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth && stack[depth - 1] == context)
        depth--;
    context_end(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context)
{
    return cuCtxDestroy_v2(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    ENTER(cuCtxPushCurrent_v2, NEED_INIT);
    if (!driver_context_ok(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == STACK_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    return cuCtxPushCurrent_v2(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    ENTER(cuCtxPopCurrent_v2, NEED_INIT);
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    return cuCtxPopCurrent_v2(context);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(cuCtxSetCurrent, NEED_INIT);
    if (context && !driver_context_ok(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context)
        depth = depth ? depth - 1 : 0;
    else if (depth)
        stack[depth - 1] = context;
    else
        stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER(cuCtxGetCurrent, NEED_INIT);
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = driver_current();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER(cuCtxGetDevice, NEED_CONTEXT);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (int)driver_current()->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    if (!context)
        return cuCtxGetDevice(device);
    ENTER(cuCtxGetDevice_v2, NEED_INIT);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_context_ok(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = (int)context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    ENTER(cuCtxGetFlags, NEED_CONTEXT);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = driver_current()->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
    ENTER(cuCtxSetFlags, NEED_CONTEXT);
    driver_current()->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *value)
{
    ENTER(cuCtxGetId, NEED_INIT);
    if (!context)
        context = driver_current();
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context || context->magic != MAGIC_CONTEXT)
        return CUDA_ERROR_INVALID_CONTEXT;
    *value = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    ENTER(cuCtxGetApiVersion, NEED_INIT);
    if (!context)
        context = driver_current();
    if (!driver_context_ok(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = context->version;
    return CUDA_SUCCESS;
}

static void finish_context(CUcontext context)
{
    driver_lock();
    for (CUstream stream = context->streams; stream; stream = stream->next)
        sim_stream_finish(stream->work);
    driver_unlock();
    driver_settle(context->device);
}

CUresult cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize, NEED_SAFE);
    finish_context(driver_current());
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    if (!context)
        return cuCtxSynchronize();
    ENTER(cuCtxSynchronize_v2, NEED_INIT);
    if (!driver_context_ok(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    finish_context(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    ENTER(cuCtxGetLimit, NEED_CONTEXT);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = driver_current()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    ENTER(cuCtxSetLimit, NEED_CONTEXT);
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    driver_current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *preference)
{
    ENTER(cuCtxGetCacheConfig, NEED_CONTEXT);
    if (!preference)
        return CUDA_ERROR_INVALID_VALUE;
    *preference = driver_current()->cache;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache preference)
{
    ENTER(cuCtxSetCacheConfig, NEED_CONTEXT);
    driver_current()->cache = preference;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cuCtxGetStreamPriorityRange, NEED_CONTEXT);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    ENTER(cuCtxResetPersistingL2Cache, NEED_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext *context, unsigned int flags)
{
    ENTER(cuCtxAttach, NEED_CONTEXT);
    if (!context || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *context = driver_current();
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext context)
{
    ENTER(cuCtxDetach, NEED_INIT);
    return driver_context_ok(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned int flags)
{
    ENTER(cuCtxEnablePeerAccess, NEED_CONTEXT);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_context_ok(context) || context->device == driver_current()->device)
        return CUDA_ERROR_INVALID_CONTEXT;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext context)
{
    ENTER(cuCtxDisablePeerAccess, NEED_CONTEXT);
    return driver_context_ok(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* Primary contexts. */

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain, NEED_INIT);
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    CUcontext *primary = &driver.primary[device];
    CUresult result = CUDA_SUCCESS;
    if (!*primary || !(*primary)->alive)
        result = context_new(primary, driver.primary_flags[device], (unsigned)device, true);
    if (!result) {
        (*primary)->retained++;
        *context = *primary;
    }
    pthread_mutex_unlock(&primary_lock);
    return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease_v2, NEED_INIT);
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    CUcontext primary = driver.primary[device];
    CUresult result = driver_context_ok(primary) && primary->retained ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!result && --primary->retained == 0)
        context_end(primary);
    pthread_mutex_unlock(&primary_lock);
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxReset_v2, NEED_INIT);
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    CUcontext primary = driver.primary[device];
    if (driver_context_ok(primary)) {
        primary->retained = 0;
        context_end(primary);
    }
    pthread_mutex_unlock(&primary_lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    ENTER(cuDevicePrimaryCtxSetFlags_v2, NEED_INIT);
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver.primary_flags[device] = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    ENTER(cuDevicePrimaryCtxGetState, NEED_INIT);
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    *flags = driver.primary_flags[device];
    *active = driver_context_ok(driver.primary[device]);
    pthread_mutex_unlock(&primary_lock);
    return CUDA_SUCCESS;
}
