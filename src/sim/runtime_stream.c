/* Our CUDA runtime: streams, events, graphs.  May use: the driver. */
#include "sim/runtime.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    RUNTIME_CALL(runtime.cuStreamCreate(stream, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    RUNTIME_CALL(runtime.cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    RUNTIME_CALL(runtime.cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuStreamDestroy(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuStreamQuery(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuStreamSynchronize(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    RUNTIME_CALL(runtime.cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags)
{
    RUNTIME_CALL(runtime.cuStreamAddCallback(stream, (CUstreamCallback)(void (*)(void))callback, data, flags));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    RUNTIME_CALL(runtime.cuStreamGetFlags(stream, flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    RUNTIME_CALL(runtime.cuStreamGetPriority(stream, priority));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
    RUNTIME_CALL(runtime.cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    RUNTIME_CALL(runtime.cuStreamEndCapture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
    RUNTIME_CALL(runtime.cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode)
{
    RUNTIME_CALL(runtime.cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t callback, void *data)
{
    RUNTIME_CALL(runtime.cuLaunchHostFunc(stream, callback, data));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    RUNTIME_CALL(runtime.cuEventCreate(event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    RUNTIME_CALL(runtime.cuEventCreate(event, 0));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    RUNTIME_CALL(runtime.cuEventDestroy(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuEventRecord(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    RUNTIME_CALL(runtime.cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    RUNTIME_CALL(runtime.cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    RUNTIME_CALL(runtime.cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    RUNTIME_CALL(runtime.cuEventElapsedTime(milliseconds, start, end));
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    RUNTIME_CALL(runtime.cuGraphCreate(graph, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    RUNTIME_CALL(runtime.cuGraphDestroy(graph));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    RUNTIME_CALL(runtime.cuGraphGetNodes(graph, nodes, count));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    RUNTIME_CALL(runtime.cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuGraphLaunch(exec, stream));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuGraphUpload(exec, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    RUNTIME_CALL(runtime.cuGraphExecDestroy(exec));
}
