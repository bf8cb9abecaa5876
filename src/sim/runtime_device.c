/* Our CUDA runtime: devices.  May use: the driver. */
#include <string.h>

#include "sim/runtime.h"

cudaError_t cudaDriverGetVersion(int *version)
{
    cudaError_t error = version ? runtime_start() : cudaErrorInvalidValue;
    if (version)
        *version = 0;
    if (!error)
        error = (cudaError_t)runtime.cuDriverGetVersion(version);
    return runtime_done(error == cudaErrorInsufficientDriver ? cudaSuccess : error);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (version)
        *version = RUNTIME_VERSION;
    return runtime_done(version ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t error = count ? runtime_start() : cudaErrorInvalidValue;
    if (count)
        *count = 0;
    return runtime_done(error ? error : (cudaError_t)runtime.cuDeviceGetCount(count));
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    cudaError_t error = runtime_start();
    return runtime_done(error ? error : (cudaError_t)runtime.cuDevicePrimaryCtxSetFlags(runtime_device(), flags));
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    int active;
    cudaError_t error = runtime_start();
    return runtime_done(
        error ? error : (cudaError_t)runtime.cuDevicePrimaryCtxGetState(runtime_device(), flags, &active));
}

cudaError_t cudaDeviceSynchronize(void)
{
    RUNTIME_CALL(runtime.cuCtxSynchronize());
}

cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    cudaError_t error = runtime_start();
    return runtime_done(
        error ? error : (cudaError_t)runtime.cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

static int attribute(CUdevice_attribute which, int device)
{
    int value = 0;
    runtime.cuDeviceGetAttribute(&value, which, device);
    return value;
}

#define ATTRIBUTE(name) attribute(CU_DEVICE_ATTRIBUTE_##name, device)

static void describe(struct cudaDeviceProp *p, int device)
{
    p->sharedMemPerBlock = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK);
    p->regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK);
    p->warpSize = ATTRIBUTE(WARP_SIZE);
    p->memPitch = (size_t)ATTRIBUTE(MAX_PITCH);
    p->maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK);
    p->maxThreadsDim[0] = ATTRIBUTE(MAX_BLOCK_DIM_X);
    p->maxThreadsDim[1] = ATTRIBUTE(MAX_BLOCK_DIM_Y);
    p->maxThreadsDim[2] = ATTRIBUTE(MAX_BLOCK_DIM_Z);
    p->maxGridSize[0] = ATTRIBUTE(MAX_GRID_DIM_X);
    p->maxGridSize[1] = ATTRIBUTE(MAX_GRID_DIM_Y);
    p->maxGridSize[2] = ATTRIBUTE(MAX_GRID_DIM_Z);
    p->totalConstMem = (size_t)ATTRIBUTE(TOTAL_CONSTANT_MEMORY);
    p->major = ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR);
    p->minor = ATTRIBUTE(COMPUTE_CAPABILITY_MINOR);
    p->textureAlignment = (size_t)ATTRIBUTE(TEXTURE_ALIGNMENT);
    p->texturePitchAlignment = (size_t)ATTRIBUTE(TEXTURE_PITCH_ALIGNMENT);
    p->multiProcessorCount = ATTRIBUTE(MULTIPROCESSOR_COUNT);
    p->integrated = ATTRIBUTE(INTEGRATED);
    p->canMapHostMemory = ATTRIBUTE(CAN_MAP_HOST_MEMORY);
    p->concurrentKernels = ATTRIBUTE(CONCURRENT_KERNELS);
    p->ECCEnabled = ATTRIBUTE(ECC_ENABLED);
    p->pciBusID = ATTRIBUTE(PCI_BUS_ID);
    p->pciDeviceID = ATTRIBUTE(PCI_DEVICE_ID);
    p->pciDomainID = ATTRIBUTE(PCI_DOMAIN_ID);
    p->asyncEngineCount = ATTRIBUTE(ASYNC_ENGINE_COUNT);
    p->unifiedAddressing = ATTRIBUTE(UNIFIED_ADDRESSING);
    p->memoryBusWidth = ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH);
    p->l2CacheSize = ATTRIBUTE(L2_CACHE_SIZE);
    p->maxThreadsPerMultiProcessor = ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR);
    p->streamPrioritiesSupported = ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED);
    p->globalL1CacheSupported = ATTRIBUTE(GLOBAL_L1_CACHE_SUPPORTED);
    p->localL1CacheSupported = ATTRIBUTE(LOCAL_L1_CACHE_SUPPORTED);
    p->sharedMemPerMultiprocessor = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p->regsPerMultiprocessor = ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR);
    p->managedMemory = ATTRIBUTE(MANAGED_MEMORY);
    p->pageableMemoryAccess = ATTRIBUTE(PAGEABLE_MEMORY_ACCESS);
    p->concurrentManagedAccess = ATTRIBUTE(CONCURRENT_MANAGED_ACCESS);
    p->computePreemptionSupported = ATTRIBUTE(COMPUTE_PREEMPTION_SUPPORTED);
    p->canUseHostPointerForRegisteredMem = ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    p->cooperativeLaunch = ATTRIBUTE(COOPERATIVE_LAUNCH);
    p->sharedMemPerBlockOptin = (size_t)ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p->maxBlocksPerMultiProcessor = ATTRIBUTE(MAX_BLOCKS_PER_MULTIPROCESSOR);
    p->hostRegisterSupported = ATTRIBUTE(HOST_REGISTER_SUPPORTED);
    p->memoryPoolsSupported = ATTRIBUTE(MEMORY_POOLS_SUPPORTED);
    p->gpuDirectRDMASupported = ATTRIBUTE(GPU_DIRECT_RDMA_SUPPORTED);
    p->memoryPoolSupportedHandleTypes = (unsigned)ATTRIBUTE(MEMPOOL_SUPPORTED_HANDLE_TYPES);
    p->hostNumaId = -1;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    cudaError_t error = properties ? runtime_start() : cudaErrorInvalidValue;
    if (!error) {
        memset(properties, 0, sizeof *properties);
        error = (cudaError_t)runtime.cuDeviceGetName(properties->name, sizeof properties->name, device);
    }
    if (!error)
        error = (cudaError_t)runtime.cuDeviceGetUuid(&properties->uuid, device);
    if (!error)
        error = (cudaError_t)runtime.cuDeviceTotalMem(&properties->totalGlobalMem, device);
    if (!error)
        describe(properties, device);
    return runtime_done(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    cudaError_t error = runtime_start();
    return runtime_done(error ? error : (cudaError_t)runtime.cuDeviceGetPCIBusId(text, length, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    cudaError_t error = runtime_start();
    return runtime_done(error ? error : (cudaError_t)runtime.cuDeviceGetByPCIBusId(device, text));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    cudaError_t error = runtime_start();
    return runtime_done(error ? error : (cudaError_t)runtime.cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    CUcontext context = NULL;
    RUNTIME_CALL(runtime.cuDevicePrimaryCtxRetain(&context, peer) ? CUDA_ERROR_INVALID_DEVICE
                                                                  : runtime.cuCtxEnablePeerAccess(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext context = NULL;
    RUNTIME_CALL(runtime.cuDevicePrimaryCtxRetain(&context, peer) ? CUDA_ERROR_INVALID_DEVICE
                                                                  : runtime.cuCtxDisablePeerAccess(context));
}

cudaError_t cudaDeviceGetLimit(size_t *value, int limit)
{
    RUNTIME_CALL(runtime.cuCtxGetLimit(value, (CUlimit)limit));
}

cudaError_t cudaDeviceSetLimit(int limit, size_t value)
{
    RUNTIME_CALL(runtime.cuCtxSetLimit((CUlimit)limit, value));
}

cudaError_t cudaDeviceGetCacheConfig(int *preference)
{
    RUNTIME_CALL(runtime.cuCtxGetCacheConfig((CUfunc_cache *)preference));
}

cudaError_t cudaDeviceSetCacheConfig(int preference)
{
    RUNTIME_CALL(runtime.cuCtxSetCacheConfig((CUfunc_cache)preference));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    RUNTIME_CALL(runtime.cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
    RUNTIME_CALL(runtime.cuDeviceGraphMemTrim(device));
}
