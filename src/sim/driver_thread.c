/*
 * The simulated driver: the variants whose default stream is the thread's own.
 * _ptsz: a stream of 0 is that one.  _ptds: the calls that wait, for which it
 * makes no difference here.  May use: the rest of the driver.
 */
#include "sim/driver.h"

static CUstream own(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream,
    void **parameters, void **extra)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, own(stream),
        parameters, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    if (!config)
        return cuLaunchKernelEx(config, function, parameters, extra);
    CUlaunchConfig changed = *config;
    changed.hStream = own(config->hStream);
    return cuLaunchKernelEx(&changed, function, parameters, extra);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
    unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
    CUstream stream, void **parameters)
{
    return cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
        own(stream), parameters);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn callback, void *data)
{
    return cuLaunchHostFunc(own(stream), callback, data);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr address, size_t count, CUdevice target, CUstream stream)
{
    return cuMemPrefetchAsync(address, count, target, own(stream));
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t count, CUmemLocation location, unsigned int flags,
    CUstream stream)
{
    return cuMemPrefetchAsync_v2(address, count, location, flags, own(stream));
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr address, size_t length, unsigned int flags)
{
    return cuStreamAttachMemAsync(own(stream), address, length, flags);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    return cuMemAllocAsync(address, bytes, own(stream));
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return cuMemAllocFromPoolAsync(address, bytes, pool, own(stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    return cuMemFreeAsync(address, own(stream));
}

CUresult cuMemcpy_ptds(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return cuMemcpy(target, source, bytes);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    return cuMemcpyAsync(target, source, bytes, own(stream));
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
    CUcontext source_context, size_t bytes)
{
    return cuMemcpyPeer(target, target_context, source, source_context, bytes);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
    CUcontext source_context, size_t bytes, CUstream stream)
{
    return cuMemcpyPeerAsync(target, target_context, source, source_context, bytes, own(stream));
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr target, const void *source, size_t bytes)
{
    return cuMemcpyHtoD_v2(target, source, bytes);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
    return cuMemcpyHtoDAsync_v2(target, source, bytes, own(stream));
}

CUresult cuMemcpyDtoH_v2_ptds(void *target, CUdeviceptr source, size_t bytes)
{
    return cuMemcpyDtoH_v2(target, source, bytes);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    return cuMemcpyDtoHAsync_v2(target, source, bytes, own(stream));
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return cuMemcpyDtoD_v2(target, source, bytes);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    return cuMemcpyDtoDAsync_v2(target, source, bytes, own(stream));
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *copy)
{
    return cuMemcpy2D_v2(copy);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *copy)
{
    return cuMemcpy2DUnaligned_v2(copy);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    return cuMemcpy2DAsync_v2(copy, own(stream));
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *copy)
{
    return cuMemcpy3D_v2(copy);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    return cuMemcpy3DAsync_v2(copy, own(stream));
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray target, size_t target_offset, CUdeviceptr source, size_t bytes)
{
    return cuMemcpyDtoA_v2(target, target_offset, source, bytes);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr target, CUarray source, size_t source_offset, size_t bytes)
{
    return cuMemcpyAtoD_v2(target, source, source_offset, bytes);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray target, size_t target_offset, const void *source, size_t bytes)
{
    return cuMemcpyHtoA_v2(target, target_offset, source, bytes);
}

CUresult cuMemcpyAtoH_v2_ptds(void *target, CUarray source, size_t source_offset, size_t bytes)
{
    return cuMemcpyAtoH_v2(target, source, source_offset, bytes);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr target, unsigned char value, size_t count)
{
    return cuMemsetD8_v2(target, value, count);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr target, unsigned short value, size_t count)
{
    return cuMemsetD16_v2(target, value, count);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr target, unsigned int value, size_t count)
{
    return cuMemsetD32_v2(target, value, count);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr target, unsigned char value, size_t count, CUstream stream)
{
    return cuMemsetD8Async(target, value, count, own(stream));
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr target, unsigned short value, size_t count, CUstream stream)
{
    return cuMemsetD16Async(target, value, count, own(stream));
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr target, unsigned int value, size_t count, CUstream stream)
{
    return cuMemsetD32Async(target, value, count, own(stream));
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr target, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return cuMemsetD2D8_v2(target, pitch, value, width, height);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr target, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return cuMemsetD2D16_v2(target, pitch, value, width, height);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr target, size_t pitch, unsigned int value, size_t width, size_t height)
{
    return cuMemsetD2D32_v2(target, pitch, value, width, height);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr target, size_t pitch, unsigned char value, size_t width, size_t height,
    CUstream stream)
{
    return cuMemsetD2D8Async(target, pitch, value, width, height, own(stream));
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr target, size_t pitch, unsigned short value, size_t width,
    size_t height, CUstream stream)
{
    return cuMemsetD2D16Async(target, pitch, value, width, height, own(stream));
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr target, size_t pitch, unsigned int value, size_t width, size_t height,
    CUstream stream)
{
    return cuMemsetD2D32Async(target, pitch, value, width, height, own(stream));
}

CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority)
{
    return cuStreamGetPriority(own(stream), priority);
}

CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned int *flags)
{
    return cuStreamGetFlags(own(stream), flags);
}

CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *context)
{
    return cuStreamGetCtx(own(stream), context);
}

CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *device)
{
    return cuStreamGetDevice(own(stream), device);
}

CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *value)
{
    return cuStreamGetId(own(stream), value);
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
    return cuStreamQuery(own(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    return cuStreamSynchronize(own(stream));
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    return cuStreamWaitEvent(own(stream), event, flags);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
    return cuStreamAddCallback(own(stream), callback, data, flags);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
    return cuStreamBeginCapture(own(stream));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
    return cuStreamBeginCapture_v2(own(stream), mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
    const CUgraphEdgeData *edges, size_t dependency_count, CUstreamCaptureMode mode)
{
    return cuStreamBeginCaptureToGraph(own(stream), graph, dependencies, edges, dependency_count, mode);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return cuStreamEndCapture(own(stream), graph);
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamIsCapturing(own(stream), status);
}

CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo(own(stream), status, id);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
    CUgraph *graph, const CUgraphNode **dependencies, size_t *dependency_count)
{
    return cuStreamGetCaptureInfo_v2(own(stream), status, id, graph, dependencies, dependency_count);
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
    CUgraph *graph, const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *dependency_count)
{
    return cuStreamGetCaptureInfo_v3(own(stream), status, id, graph, dependencies, edges, dependency_count);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    return cuEventRecord(event, own(stream));
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
    return cuEventRecordWithFlags(event, own(stream), flags);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    return cuGraphInstantiateWithParams(exec, graph, parameters);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphLaunch(exec, own(stream));
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphUpload(exec, own(stream));
}
