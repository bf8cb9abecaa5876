/*
 * The CUDA driver's binary interface as far as we touch it, so that everything
 * builds where no CUDA toolkit is: types in cuda_types.h, prototypes here.
 * Each function is declared under the name that libcuda.so.1 exports
 * (cuMemAlloc_v2, not the macro cuMemAlloc), those of the first version
 * (32-bit sizes) included where they can be asked for; _ptsz and _ptds are the
 * variants whose default stream is the thread's own.
 *
 * Nothing is linked: a prototype serves __typeof__(&cuMemAlloc_v2) for a
 * pointer found at run time, and the definitions in src/preload and src/sim.
 * The test "abi" compares every line with the real cuda.h where there is one;
 * it defines CUDA_ABI_PROTOTYPES_ONLY after including that header.
 */
#ifndef DEVICE_CUDA_ABI_H
#define DEVICE_CUDA_ABI_H

#ifndef CUDA_ABI_PROTOTYPES_ONLY
#include "device/cuda_types.h"
#endif

/* Start, errors, look-up. */
CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetErrorName(CUresult error, const char **text);
CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
    CUdriverProcAddressQueryResult *status);
CUresult cuGetExportTable(const void **table, const CUuuid *id);

/* Devices and primary contexts. */
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetLuid(char *luid, unsigned int *node_mask, CUdevice device);
CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice target);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value);
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value);

/* Contexts. */
CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned int flags,
    CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent(CUcontext *context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context);
CUresult cuCtxGetFlags(unsigned int *flags);
CUresult cuCtxSetFlags(unsigned int flags);
CUresult cuCtxGetId(CUcontext context, unsigned long long *value);
CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuCtxGetLimit(size_t *value, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxGetCacheConfig(CUfunc_cache *preference);
CUresult cuCtxSetCacheConfig(CUfunc_cache preference);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxResetPersistingL2Cache(void);
CUresult cuCtxAttach(CUcontext *context, unsigned int flags);
CUresult cuCtxDetach(CUcontext context);
CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext context);

/* Code. */
CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int option_count, CUjit_option *options,
    void **values);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal(CUdeviceptr_v1 *address, unsigned int *bytes, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name);
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode);
CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
    unsigned int option_count, CUlibraryOption *library_options, void **library_values,
    unsigned int library_option_count);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
    unsigned int option_count, CUlibraryOption *library_options, void **library_values,
    unsigned int library_option_count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name);
CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache preference);
CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUresult cuFuncLoad(CUfunction function);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream,
    void **parameters, void **extra);
extern __typeof__(cuLaunchKernel) cuLaunchKernel_ptsz;
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra);
extern __typeof__(cuLaunchKernelEx) cuLaunchKernelEx_ptsz;
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
    unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
    CUstream stream, void **parameters);
extern __typeof__(cuLaunchCooperativeKernel) cuLaunchCooperativeKernel_ptsz;
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn callback, void *data);
extern __typeof__(cuLaunchHostFunc) cuLaunchHostFunc_ptsz;
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block, size_t dynamic);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int block,
    size_t dynamic, unsigned int flags);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
    CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit);

/* Memory: plain, pitched, managed. */
CUresult cuMemGetInfo(unsigned int *free, unsigned int *total);
CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width, unsigned int height,
    unsigned int element);
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned int element);
CUresult cuMemFree(CUdeviceptr_v1 address);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 address);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags);
CUresult cuMemAdvise(CUdeviceptr address, size_t count, CUmem_advise advice, CUdevice device);
CUresult cuMemAdvise_v2(CUdeviceptr address, size_t count, CUmem_advise advice, CUmemLocation location);
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t count, CUdevice target, CUstream stream);
extern __typeof__(cuMemPrefetchAsync) cuMemPrefetchAsync_ptsz;
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t count, CUmemLocation location, unsigned int flags,
    CUstream stream);
extern __typeof__(cuMemPrefetchAsync_v2) cuMemPrefetchAsync_v2_ptsz;
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t length, unsigned int flags);
extern __typeof__(cuStreamAttachMemAsync) cuStreamAttachMemAsync_ptsz;
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values,
    CUdeviceptr address);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address);

/* Memory: of the host. */
CUresult cuMemAllocHost(void **host, unsigned int bytes);
CUresult cuMemAllocHost_v2(void **host, size_t bytes);
CUresult cuMemFreeHost(void *host);
CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags);
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *address, void *host, unsigned int flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned int flags);
CUresult cuMemHostGetFlags(unsigned int *flags, void *host);
CUresult cuMemHostRegister(void *host, size_t bytes, unsigned int flags);
CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *host);

/* Memory: arrays. */
CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape);
CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape);
CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape);
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape);
CUresult cuArrayDestroy(CUarray array);
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *shape, CUarray array);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *shape, CUarray array);
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *shape, CUarray array);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray array);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array, CUdevice device);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels);
CUresult cuMipmappedArrayGetLevel(CUarray *level_array, CUmipmappedArray array, unsigned int level);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUmipmappedArray array,
    CUdevice device);

/* Memory: in the order of a stream, pools. */
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
extern __typeof__(cuMemAllocAsync) cuMemAllocAsync_ptsz;
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);
extern __typeof__(cuMemAllocFromPoolAsync) cuMemAllocFromPoolAsync_ptsz;
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
extern __typeof__(cuMemFreeAsync) cuMemFreeAsync_ptsz;
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count);
CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location);
CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type,
    unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable, CUmemAllocationHandleType type,
    unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address);
CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool);

/* Memory: virtual. */
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted,
    unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t size);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
    unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr address, size_t size);
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address);
CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
    CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address);
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
    CUmemAllocationHandleType type);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t size, CUmemRangeHandleType type,
    unsigned long long flags);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *properties);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
    CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes, unsigned long long flags);
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr address,
    size_t bytes, unsigned long long flags);
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, size_t bytes);
CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *properties,
    CUmulticastGranularity_flags option);

/* Memory: of other processes and other interfaces. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);
CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *what);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *part);
CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array, CUexternalMemory memory,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *part);
CUresult cuDestroyExternalMemory(CUexternalMemory memory);

/* Copies. */
CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes);
extern __typeof__(cuMemcpy) cuMemcpy_ptds;
CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream);
extern __typeof__(cuMemcpyAsync) cuMemcpyAsync_ptsz;
CUresult cuMemcpyPeer(CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context,
    size_t bytes);
extern __typeof__(cuMemcpyPeer) cuMemcpyPeer_ptds;
CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
    CUcontext source_context, size_t bytes, CUstream stream);
extern __typeof__(cuMemcpyPeerAsync) cuMemcpyPeerAsync_ptsz;
CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes);
extern __typeof__(cuMemcpyHtoD_v2) cuMemcpyHtoD_v2_ptds;
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t bytes, CUstream stream);
extern __typeof__(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes);
extern __typeof__(cuMemcpyDtoH_v2) cuMemcpyDtoH_v2_ptds;
CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes, CUstream stream);
extern __typeof__(cuMemcpyDtoHAsync_v2) cuMemcpyDtoHAsync_v2_ptsz;
CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes);
extern __typeof__(cuMemcpyDtoD_v2) cuMemcpyDtoD_v2_ptds;
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream);
extern __typeof__(cuMemcpyDtoDAsync_v2) cuMemcpyDtoDAsync_v2_ptsz;
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
extern __typeof__(cuMemcpy2D_v2) cuMemcpy2D_v2_ptds;
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
extern __typeof__(cuMemcpy2DUnaligned_v2) cuMemcpy2DUnaligned_v2_ptds;
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
extern __typeof__(cuMemcpy2DAsync_v2) cuMemcpy2DAsync_v2_ptsz;
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
extern __typeof__(cuMemcpy3D_v2) cuMemcpy3D_v2_ptds;
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream);
extern __typeof__(cuMemcpy3DAsync_v2) cuMemcpy3DAsync_v2_ptsz;
CUresult cuMemcpyDtoA_v2(CUarray target, size_t target_offset, CUdeviceptr source, size_t bytes);
extern __typeof__(cuMemcpyDtoA_v2) cuMemcpyDtoA_v2_ptds;
CUresult cuMemcpyAtoD_v2(CUdeviceptr target, CUarray source, size_t source_offset, size_t bytes);
extern __typeof__(cuMemcpyAtoD_v2) cuMemcpyAtoD_v2_ptds;
CUresult cuMemcpyHtoA_v2(CUarray target, size_t target_offset, const void *source, size_t bytes);
extern __typeof__(cuMemcpyHtoA_v2) cuMemcpyHtoA_v2_ptds;
CUresult cuMemcpyAtoH_v2(void *target, CUarray source, size_t source_offset, size_t bytes);
extern __typeof__(cuMemcpyAtoH_v2) cuMemcpyAtoH_v2_ptds;

/* Filling. */
CUresult cuMemsetD8_v2(CUdeviceptr target, unsigned char value, size_t count);
extern __typeof__(cuMemsetD8_v2) cuMemsetD8_v2_ptds;
CUresult cuMemsetD16_v2(CUdeviceptr target, unsigned short value, size_t count);
extern __typeof__(cuMemsetD16_v2) cuMemsetD16_v2_ptds;
CUresult cuMemsetD32_v2(CUdeviceptr target, unsigned int value, size_t count);
extern __typeof__(cuMemsetD32_v2) cuMemsetD32_v2_ptds;
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream);
extern __typeof__(cuMemsetD8Async) cuMemsetD8Async_ptsz;
CUresult cuMemsetD16Async(CUdeviceptr target, unsigned short value, size_t count, CUstream stream);
extern __typeof__(cuMemsetD16Async) cuMemsetD16Async_ptsz;
CUresult cuMemsetD32Async(CUdeviceptr target, unsigned int value, size_t count, CUstream stream);
extern __typeof__(cuMemsetD32Async) cuMemsetD32Async_ptsz;
CUresult cuMemsetD2D8_v2(CUdeviceptr target, size_t pitch, unsigned char value, size_t width, size_t height);
extern __typeof__(cuMemsetD2D8_v2) cuMemsetD2D8_v2_ptds;
CUresult cuMemsetD2D16_v2(CUdeviceptr target, size_t pitch, unsigned short value, size_t width, size_t height);
extern __typeof__(cuMemsetD2D16_v2) cuMemsetD2D16_v2_ptds;
CUresult cuMemsetD2D32_v2(CUdeviceptr target, size_t pitch, unsigned int value, size_t width, size_t height);
extern __typeof__(cuMemsetD2D32_v2) cuMemsetD2D32_v2_ptds;
CUresult cuMemsetD2D8Async(CUdeviceptr target, size_t pitch, unsigned char value, size_t width, size_t height,
    CUstream stream);
extern __typeof__(cuMemsetD2D8Async) cuMemsetD2D8Async_ptsz;
CUresult cuMemsetD2D16Async(CUdeviceptr target, size_t pitch, unsigned short value, size_t width, size_t height,
    CUstream stream);
extern __typeof__(cuMemsetD2D16Async) cuMemsetD2D16Async_ptsz;
CUresult cuMemsetD2D32Async(CUdeviceptr target, size_t pitch, unsigned int value, size_t width, size_t height,
    CUstream stream);
extern __typeof__(cuMemsetD2D32Async) cuMemsetD2D32Async_ptsz;

/* Streams. */
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
extern __typeof__(cuStreamGetPriority) cuStreamGetPriority_ptsz;
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags);
extern __typeof__(cuStreamGetFlags) cuStreamGetFlags_ptsz;
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
extern __typeof__(cuStreamGetCtx) cuStreamGetCtx_ptsz;
CUresult cuStreamGetDevice(CUstream stream, CUdevice *device);
extern __typeof__(cuStreamGetDevice) cuStreamGetDevice_ptsz;
CUresult cuStreamGetId(CUstream stream, unsigned long long *value);
extern __typeof__(cuStreamGetId) cuStreamGetId_ptsz;
CUresult cuStreamQuery(CUstream stream);
extern __typeof__(cuStreamQuery) cuStreamQuery_ptsz;
CUresult cuStreamSynchronize(CUstream stream);
extern __typeof__(cuStreamSynchronize) cuStreamSynchronize_ptsz;
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
extern __typeof__(cuStreamWaitEvent) cuStreamWaitEvent_ptsz;
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags);
extern __typeof__(cuStreamAddCallback) cuStreamAddCallback_ptsz;
CUresult cuStreamBeginCapture(CUstream stream);
extern __typeof__(cuStreamBeginCapture) cuStreamBeginCapture_ptsz;
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
extern __typeof__(cuStreamBeginCapture_v2) cuStreamBeginCapture_v2_ptsz;
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
    const CUgraphEdgeData *edges, size_t dependency_count, CUstreamCaptureMode mode);
extern __typeof__(cuStreamBeginCaptureToGraph) cuStreamBeginCaptureToGraph_ptsz;
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
extern __typeof__(cuStreamEndCapture) cuStreamEndCapture_ptsz;
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
extern __typeof__(cuStreamIsCapturing) cuStreamIsCapturing_ptsz;
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id);
extern __typeof__(cuStreamGetCaptureInfo) cuStreamGetCaptureInfo_ptsz;
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, size_t *dependency_count);
extern __typeof__(cuStreamGetCaptureInfo_v2) cuStreamGetCaptureInfo_v2_ptsz;
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *dependency_count);
extern __typeof__(cuStreamGetCaptureInfo_v3) cuStreamGetCaptureInfo_v3_ptsz;
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);

/* Events. */
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
extern __typeof__(cuEventRecord) cuEventRecord_ptsz;
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
extern __typeof__(cuEventRecordWithFlags) cuEventRecordWithFlags_ptsz;
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);

/* Graphs. */
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    size_t dependency_count);
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    size_t dependency_count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters);
CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    size_t dependency_count, CUdeviceptr address);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type);
CUresult cuGraphDestroyNode(CUgraphNode node);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes);
CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes);
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters);
extern __typeof__(cuGraphInstantiateWithParams) cuGraphInstantiateWithParams_ptsz;
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t dependency_count,
    CUgraphNodeParams *parameters);
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    const CUgraphEdgeData *edges, size_t dependency_count, CUgraphNodeParams *parameters);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
extern __typeof__(cuGraphLaunch) cuGraphLaunch_ptsz;
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
extern __typeof__(cuGraphUpload) cuGraphUpload_ptsz;

/* Profiler. */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

#endif
