/*
 * Graphs: which of their calls may change what a device holds for them.  A graph without memory is passed through.
 */
#include "preload/capture.h"
#include "preload/graph_memory.h"
#include "preload/hook.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#define CALLER __builtin_return_address(0)

static void node_made(CUresult result, const CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    preload_saw_call();
    if (result == CUDA_SUCCESS && parameters)
        graph_memory_on(parameters->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE
                            ? parameters->poolProps.location.id : -1);
}

CUresult wrap_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                     CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    CUresult result = driver.cuGraphAddMemAllocNode(node, graph, dependencies, count, parameters);
    node_made(result, parameters);
    return result;
}

static const CUDA_MEM_ALLOC_NODE_PARAMS *allocation_of(CUresult result, const CUgraphNodeParams *parameters)
{
    return result == CUDA_SUCCESS && parameters && parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? &parameters->alloc
                                                                                                   : NULL;
}

CUresult wrap_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                             CUgraphNodeParams *parameters)
{
    CUresult result = driver.cuGraphAddNode(node, graph, dependencies, count, parameters);
    node_made(result, allocation_of(result, parameters));
    return result;
}

CUresult wrap_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *parameters)
{
    CUresult result = driver.cuGraphAddNode_v2(node, graph, dependencies, edges, count, parameters);
    node_made(result, allocation_of(result, parameters));
    return result;
}

/* How much a graph wants is known to the driver alone. */
static CUresult ready(struct hook *hook, CUresult result)
{
    if (result != CUDA_SUCCESS)
        hook_failed(hook, result, RECORD_GRAPH, 0);
    graph_memory_measure(hook);
    hook_end(hook);
    return result;
}

#define READY(name, call) \
    struct hook hook; \
    hook_begin(&hook, CALL_##name, CALLER); \
    return ready(&hook, driver.name call)

CUresult wrap_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes)
{
    READY(cuGraphInstantiate, (exec, graph, failed, log, log_bytes));
}

CUresult wrap_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes)
{
    READY(cuGraphInstantiate_v2, (exec, graph, failed, log, log_bytes));
}

CUresult wrap_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    READY(cuGraphInstantiateWithFlags, (exec, graph, flags));
}

CUresult wrap_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    READY(cuGraphInstantiateWithParams, (exec, graph, parameters));
}

CUresult wrap_cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    READY(cuGraphInstantiateWithParams_ptsz, (exec, graph, parameters));
}

CUresult wrap_cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    READY(cuGraphUpload, (exec, stream));
}

CUresult wrap_cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    READY(cuGraphUpload_ptsz, (exec, stream));
}

static CUresult launched(struct hook *hook, CUresult result, CUgraphExec exec)
{
    if (result != CUDA_SUCCESS)
        hook_failed(hook, result, RECORD_GRAPH, 0);
    if (hook->records && graph_memory_launched(exec))
        graph_memory_measure(hook);
    hook_end(hook);
    return result;
}

CUresult wrap_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuGraphLaunch, CALLER);
    return launched(&hook, driver.cuGraphLaunch(exec, stream), exec);
}

CUresult wrap_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuGraphLaunch_ptsz, CALLER);
    return launched(&hook, driver.cuGraphLaunch_ptsz(exec, stream), exec);
}

/* Its memory stays reserved; before the driver destroys it, so that a new one of the same handle is not forgotten. */
CUresult wrap_cuGraphExecDestroy(CUgraphExec exec)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuGraphExecDestroy, CALLER);
    graph_memory_forget(exec);
    CUresult result = driver.cuGraphExecDestroy(exec);
    graph_memory_measure(&hook);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuDeviceGraphMemTrim(CUdevice device)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuDeviceGraphMemTrim, CALLER);
    CUresult result = driver.cuDeviceGraphMemTrim(device);
    graph_memory_trimmed();
    graph_memory_measure(&hook);
    hook_end(&hook);
    return result;
}
