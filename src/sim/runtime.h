/*
 * What the files of our own CUDA runtime share: the driver's functions, found
 * at run time, and the way into a call.  No link to any driver, and no use of
 * anything below: this must work inside any program.
 */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include <stdbool.h>

#include "device/cuda_abi.h"
#include "sim/cudart.h"

#define RUNTIME_VERSION 13000

/* Name to ask for, version to ask it of, the function it then is. */
#define RUNTIME_DRIVER(X) \
    X(cuInit, 2000, cuInit) X(cuDriverGetVersion, 2020, cuDriverGetVersion) \
    X(cuDeviceGetCount, 2000, cuDeviceGetCount) X(cuDeviceGetName, 2000, cuDeviceGetName) \
    X(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2) X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2) \
    X(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute) X(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId) \
    X(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId) X(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer) \
    X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain) \
    X(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2) \
    X(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2) \
    X(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState) \
    X(cuCtxGetCurrent, 4000, cuCtxGetCurrent) X(cuCtxSetCurrent, 4000, cuCtxSetCurrent) \
    X(cuCtxGetDevice, 2000, cuCtxGetDevice) X(cuCtxSynchronize, 2000, cuCtxSynchronize) \
    X(cuCtxGetLimit, 3010, cuCtxGetLimit) X(cuCtxSetLimit, 3010, cuCtxSetLimit) \
    X(cuCtxGetCacheConfig, 3020, cuCtxGetCacheConfig) X(cuCtxSetCacheConfig, 3020, cuCtxSetCacheConfig) \
    X(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange) \
    X(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess) X(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess) \
    X(cuMemAlloc, 3020, cuMemAlloc_v2) X(cuMemFree, 3020, cuMemFree_v2) \
    X(cuMemAllocPitch, 3020, cuMemAllocPitch_v2) X(cuMemAllocManaged, 6000, cuMemAllocManaged) \
    X(cuMemAllocHost, 3020, cuMemAllocHost_v2) X(cuMemHostAlloc, 2020, cuMemHostAlloc) \
    X(cuMemFreeHost, 2000, cuMemFreeHost) X(cuMemHostRegister, 6050, cuMemHostRegister_v2) \
    X(cuMemHostUnregister, 4000, cuMemHostUnregister) \
    X(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2) X(cuMemHostGetFlags, 2030, cuMemHostGetFlags) \
    X(cuMemGetInfo, 3020, cuMemGetInfo_v2) X(cuPointerGetAttributes, 7000, cuPointerGetAttributes) \
    X(cuArray3DCreate, 3020, cuArray3DCreate_v2) X(cuArrayDestroy, 2000, cuArrayDestroy) \
    X(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate) \
    X(cuMipmappedArrayGetLevel, 5000, cuMipmappedArrayGetLevel) \
    X(cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy) \
    X(cuMemAllocAsync, 11020, cuMemAllocAsync) X(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync) \
    X(cuMemFreeAsync, 11020, cuMemFreeAsync) X(cuMemPoolCreate, 11020, cuMemPoolCreate) \
    X(cuMemPoolDestroy, 11020, cuMemPoolDestroy) X(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo) \
    X(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute) X(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute) \
    X(cuMemPoolSetAccess, 11020, cuMemPoolSetAccess) \
    X(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool) \
    X(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool) X(cuMemAdvise, 12020, cuMemAdvise_v2) \
    X(cuMemPrefetchAsync, 12020, cuMemPrefetchAsync_v2) X(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle) \
    X(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2) X(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle) \
    X(cuMemcpy, 4000, cuMemcpy) X(cuMemcpyAsync, 4000, cuMemcpyAsync) X(cuMemcpy2DUnaligned, 3020, \
    cuMemcpy2DUnaligned_v2) X(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2) X(cuMemcpy3D, 3020, cuMemcpy3D_v2) \
    X(cuMemcpy3DAsync, 3020, cuMemcpy3DAsync_v2) X(cuMemsetD8, 3020, cuMemsetD8_v2) \
    X(cuMemsetD8Async, 3020, cuMemsetD8Async) X(cuMemsetD2D8, 3020, cuMemsetD2D8_v2) \
    X(cuMemsetD2D8Async, 3020, cuMemsetD2D8Async) X(cuStreamCreate, 2000, cuStreamCreate) \
    X(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority) X(cuStreamDestroy, 4000, cuStreamDestroy_v2) \
    X(cuStreamQuery, 2000, cuStreamQuery) X(cuStreamSynchronize, 2000, cuStreamSynchronize) \
    X(cuStreamWaitEvent, 3020, cuStreamWaitEvent) X(cuStreamAddCallback, 5000, cuStreamAddCallback) \
    X(cuStreamGetFlags, 5050, cuStreamGetFlags) X(cuStreamGetPriority, 5050, cuStreamGetPriority) \
    X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2) X(cuStreamEndCapture, 10000, cuStreamEndCapture) \
    X(cuStreamIsCapturing, 10000, cuStreamIsCapturing) \
    X(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode) \
    X(cuLaunchHostFunc, 10000, cuLaunchHostFunc) X(cuEventCreate, 2000, cuEventCreate) \
    X(cuEventDestroy, 4000, cuEventDestroy_v2) X(cuEventRecord, 2000, cuEventRecord) \
    X(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags) X(cuEventQuery, 2000, cuEventQuery) \
    X(cuEventSynchronize, 2000, cuEventSynchronize) X(cuEventElapsedTime, 2000, cuEventElapsedTime) \
    X(cuGraphCreate, 10000, cuGraphCreate) X(cuGraphDestroy, 10000, cuGraphDestroy) \
    X(cuGraphGetNodes, 10000, cuGraphGetNodes) \
    X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags) X(cuGraphLaunch, 10000, cuGraphLaunch) \
    X(cuGraphUpload, 11010, cuGraphUpload) X(cuGraphExecDestroy, 10000, cuGraphExecDestroy) \
    X(cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim) X(cuLibraryLoadData, 12000, cuLibraryLoadData) \
    X(cuLibraryUnload, 12000, cuLibraryUnload) X(cuLibraryGetKernel, 12000, cuLibraryGetKernel) \
    X(cuLibraryGetGlobal, 12000, cuLibraryGetGlobal) X(cuLibraryGetManaged, 12000, cuLibraryGetManaged) \
    X(cuKernelGetFunction, 12000, cuKernelGetFunction) X(cuFuncGetAttribute, 2020, cuFuncGetAttribute) \
    X(cuFuncSetAttribute, 9000, cuFuncSetAttribute) X(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig) \
    X(cuLaunchKernel, 4000, cuLaunchKernel) X(cuLaunchKernelEx, 11060, cuLaunchKernelEx) \
    X(cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, \
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
    X(cuProfilerStart, 4000, cuProfilerStart) X(cuProfilerStop, 4000, cuProfilerStop)

struct runtime {
#define RUNTIME_MEMBER(name, version, function) __typeof__(&function) name;
    RUNTIME_DRIVER(RUNTIME_MEMBER)
#undef RUNTIME_MEMBER
    __typeof__(&cuGetProcAddress_v2) look_up;
    CUresult (*variable)(CUmodule module, const char *name, size_t bytes, int managed); /* the simulator's; or NULL */
};
extern struct runtime runtime;

cudaError_t runtime_start(void);            /* the driver is there */
cudaError_t runtime_enter(void);            /* ... and a context is current */
cudaError_t runtime_done(cudaError_t error); /* remember it as the thread's last */
int runtime_device(void);

/* Call the driver with a context current. */
#define RUNTIME_CALL(call) \
    do { \
        cudaError_t error_ = runtime_enter(); \
        return runtime_done(error_ ? error_ : (cudaError_t)(call)); \
    } while (0)

/* The variable a host symbol stands for. */
cudaError_t runtime_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes);

#endif
