/*
 * The simulated driver: capture and graphs.  May use: the simulated device.
 *
 * A graph is a list of operations, done in the order they were added.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/driver.h"

struct CUgraphNode_st {
    enum magic magic;
    CUgraphNodeType type;
    CUgraph graph;
    struct operation operation;
    CUDA_MEM_ALLOC_NODE_PARAMS memory; /* CU_GRAPH_NODE_TYPE_MEM_ALLOC, _FREE: dptr */
    unsigned device;
};

struct CUgraph_st {
    enum magic magic;
    CUgraphNode *nodes;
    size_t count, room;
};

struct CUgraphExec_st {
    enum magic magic;
    struct CUgraphNode_st *nodes;
    size_t count;
};

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static struct capture *under_way[64]; /* under driver_lock */

/* Nodes. */

static CUresult node_add(CUgraph graph, CUgraphNode *result, const struct CUgraphNode_st *node)
{
    if (!graph || graph->magic != MAGIC_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode fresh = malloc(sizeof *fresh);
    if (fresh && graph->count == graph->room) {
        size_t room = graph->room ? graph->room * 2 : 8;
        CUgraphNode *larger = realloc(graph->nodes, room * sizeof(CUgraphNode));
        if (larger) {
            graph->nodes = larger;
            graph->room = room;
        }
    }
    if (!fresh || graph->count == graph->room) {
        free(fresh);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *fresh = *node;
    fresh->magic = MAGIC_NODE;
    fresh->graph = graph;
    graph->nodes[graph->count++] = fresh;
    if (result)
        *result = fresh;
    return CUDA_SUCCESS;
}

CUresult driver_graph_add(CUgraph graph, CUgraphNode *node, CUgraphNodeType type, const struct operation *operation)
{
    struct CUgraphNode_st fresh = {.type = type};
    if (operation)
        fresh.operation = *operation;
    return node_add(graph, node, &fresh);
}

/* Nodes of memory. */

CUresult driver_graph_alloc(CUgraph graph, CUgraphNode *node, size_t bytes, unsigned device, CUdeviceptr *address)
{
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t at = 0;
    CUresult result = driver_owned_new(bytes, device, &at);
    if (result)
        return result;
    struct CUgraphNode_st fresh = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .device = device,
        .memory = {.bytesize = bytes, .dptr = at, .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device}}}};
    result = node_add(graph, node, &fresh);
    if (result)
        driver_owned_drop(at);
    else
        *address = at;
    return result;
}

CUresult driver_graph_free(CUgraph graph, CUgraphNode *node, CUdeviceptr address)
{
    struct CUgraphNode_st fresh = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .memory = {.dptr = address}};
    return driver_owned_known(address) ? node_add(graph, node, &fresh) : CUDA_ERROR_INVALID_VALUE;
}

/* Capture. */

static bool allowed(const struct capture *capture)
{
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return true;
    if (pthread_equal(capture->thread, pthread_self()))
        return false;
    return capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
           thread_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
}

struct capture *driver_capture(uint64_t id)
{
    for (size_t i = 0; i < 64; i++)
        if (under_way[i] && under_way[i]->id == id)
            return under_way[i];
    return NULL;
}

CUresult driver_capture_check(void)
{
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    for (size_t i = 0; i < 64; i++)
        if (under_way[i] && !allowed(under_way[i])) {
            under_way[i]->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    driver_unlock();
    return result;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    ENTER(cuThreadExchangeStreamCaptureMode, NEED_INIT);
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode, CUgraph into)
{
    CUstream s = driver_stream(stream);
    if (!s || (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s == s->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct capture *capture = calloc(1, sizeof *capture);
    CUgraph graph = into ? into : calloc(1, sizeof *graph);
    CUresult result = capture && graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    size_t slot = 0;
    while (slot < 64 && under_way[slot])
        slot++;
    if (!result && (s->capture || slot == 64))
        result = CUDA_ERROR_ILLEGAL_STATE;
    if (!result) {
        graph->magic = MAGIC_GRAPH;
        *capture = (struct capture){.graph = graph, .origin = s, .mode = mode, .thread = pthread_self(),
            .id = driver_id(), .foreign = into != NULL};
        s->capture = under_way[slot] = capture;
        driver.captures++;
    }
    driver_unlock();
    if (result) {
        free(capture);
        if (!into)
            free(graph);
    }
    return result;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    ENTER(cuStreamBeginCapture_v2, NEED_CONTEXT);
    return begin_capture(stream, mode, NULL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
    const CUgraphEdgeData *edges, size_t dependency_count, CUstreamCaptureMode mode)
{
    (void)edges;
    ENTER(cuStreamBeginCaptureToGraph, NEED_CONTEXT);
    if (!graph || graph->magic != MAGIC_GRAPH || (dependency_count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    return begin_capture(stream, mode, graph);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    ENTER(cuStreamEndCapture, NEED_CONTEXT);
    CUstream s = driver_stream(stream);
    if (!s || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    struct capture *capture = s->capture;
    CUresult result = CUDA_SUCCESS;
    if (!capture)
        result = CUDA_ERROR_ILLEGAL_STATE;
    else if (capture->origin != s)
        result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (!result) {
        for (CUcontext c = driver.contexts; c; c = c->next)
            for (CUstream each = c->streams; each; each = each->next)
                if (each->capture == capture)
                    each->capture = NULL;
        for (size_t i = 0; i < 64; i++)
            if (under_way[i] == capture)
                under_way[i] = NULL;
        driver.captures--;
    }
    driver_unlock();
    if (result)
        return result;
    if (capture->invalid) {
        if (!capture->foreign)
            driver_graph_destroy(capture->graph);
        *graph = NULL;
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        *graph = capture->graph;
    }
    free(capture);
    return result;
}

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph)
{
    CUstream s = driver_stream(stream);
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    struct capture *capture = s->capture;
    *status = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (id)
        *id = capture ? capture->id : 0;
    if (graph)
        *graph = capture && !capture->invalid ? capture->graph : NULL;
    driver_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    ENTER(cuStreamIsCapturing, NEED_CONTEXT);
    return capture_info(stream, status, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    ENTER(cuStreamGetCaptureInfo, NEED_CONTEXT);
    return capture_info(stream, status, id, NULL);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, size_t *dependency_count)
{
    ENTER(cuStreamGetCaptureInfo_v2, NEED_CONTEXT);
    if (dependencies)
        *dependencies = NULL;
    if (dependency_count)
        *dependency_count = 0;
    return capture_info(stream, status, id, graph);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *dependency_count)
{
    if (edges)
        *edges = NULL;
    return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, dependency_count);
}

/* Operations: done at once, or kept by the graph that is being captured. */

CUresult driver_perform(const struct operation *o)
{
    CUresult result = CUDA_SUCCESS;
    for (uint64_t row = 0; row < o->rows && !result; row++) {
        uint64_t target = o->target + row * o->target_pitch;
        if (o->kind == OPERATION_COPY)
            result = sim_copy(driver.sim, target, o->source + row * o->source_pitch, o->bytes);
        else if (o->kind == OPERATION_FILL)
            result = sim_fill(driver.sim, target, o->pattern, o->size, o->bytes);
    }
    return result;
}

static void perform_now(void *data)
{
    driver_perform(data);
    free(data);
}

/* Where streams stand still, copies and fills wait as well; what is wrong with them is then nobody's to learn. */
static CUresult operate_later(CUstream stream, const struct operation *operation)
{
    struct operation *copy = malloc(sizeof *copy);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = *operation;
    CUresult result = sim_stream_call(stream->work, perform_now, copy);
    if (result)
        free(copy);
    return result;
}

CUresult driver_operate(CUstream stream, const struct operation *operation)
{
    static const CUgraphNodeType types[] = {[OPERATION_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
        [OPERATION_FILL] = CU_GRAPH_NODE_TYPE_MEMSET, [OPERATION_CALL] = CU_GRAPH_NODE_TYPE_HOST};
    CUstream s = driver_stream(stream);
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    driver_lock();
    CUgraph graph = s->capture ? s->capture->graph : NULL;
    driver_unlock();
    if (graph)
        return driver_graph_add(graph, NULL, types[operation->kind], operation);
    if (operation->kind == OPERATION_CALL)
        return sim_stream_call(s->work, operation->call, operation->data);
    return sim_settings(driver.sim)->manual ? operate_later(s, operation) : driver_perform(operation);
}

/* Graphs. */

static bool is_graph(CUgraph graph)
{
    return graph && graph->magic == MAGIC_GRAPH;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    ENTER(cuGraphCreate, NEED_INIT);
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fresh->magic = MAGIC_GRAPH;
    *graph = fresh;
    return CUDA_SUCCESS;
}

void driver_graph_destroy(CUgraph graph)
{
    for (size_t i = 0; i < graph->count; i++)
        free(graph->nodes[i]);
    free(graph->nodes);
    graph->magic = 0;
    free(graph);
}

CUresult cuGraphDestroy(CUgraph graph)
{
    ENTER(cuGraphDestroy, NEED_INIT);
    if (!is_graph(graph))
        return CUDA_ERROR_INVALID_VALUE;
    driver_graph_destroy(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    size_t dependency_count)
{
    ENTER(cuGraphAddEmptyNode, NEED_INIT);
    if (!node || (dependency_count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_graph_add(graph, node, CU_GRAPH_NODE_TYPE_EMPTY, NULL);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    size_t dependency_count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    ENTER(cuGraphAddMemAllocNode, NEED_INIT);
    if (!node || !parameters || (dependency_count && !dependencies) ||
        parameters->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !driver_device(parameters->poolProps.location.id))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_graph_alloc(graph, node, parameters->bytesize, (unsigned)parameters->poolProps.location.id,
        &parameters->dptr);
}

static bool is_node(CUgraphNode node, CUgraphNodeType type)
{
    return node && node->magic == MAGIC_NODE && node->type == type;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    ENTER(cuGraphMemAllocNodeGetParams, NEED_INIT);
    if (!parameters || !is_node(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC))
        return CUDA_ERROR_INVALID_VALUE;
    *parameters = node->memory;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    size_t dependency_count, CUdeviceptr address)
{
    ENTER(cuGraphAddMemFreeNode, NEED_INIT);
    if (!node || (dependency_count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_graph_free(graph, node, address);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address)
{
    ENTER(cuGraphMemFreeNodeGetParams, NEED_INIT);
    if (!address || !is_node(node, CU_GRAPH_NODE_TYPE_MEM_FREE))
        return CUDA_ERROR_INVALID_VALUE;
    *address = node->memory.dptr;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    ENTER(cuGraphGetNodes, NEED_INIT);
    if (!is_graph(graph) || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < graph->count ? graph->nodes[i] : NULL;
    if (!nodes || *count > graph->count)
        *count = graph->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    ENTER(cuGraphNodeGetType, NEED_INIT);
    if (!node || node->magic != MAGIC_NODE || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

/* Nodes of memory cannot be taken out of a graph again. */
CUresult cuGraphDestroyNode(CUgraphNode node)
{
    ENTER(cuGraphDestroyNode, NEED_INIT);
    if (!node || node->magic != MAGIC_NODE)
        return CUDA_ERROR_INVALID_VALUE;
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUgraph graph = node->graph;
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i] == node) {
            memmove(graph->nodes + i, graph->nodes + i + 1, (--graph->count - i) * sizeof(CUgraphNode));
            break;
        }
    node->magic = 0;
    free(node);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    ENTER(cuGraphInstantiateWithFlags, NEED_CONTEXT);
    if (!exec || !is_graph(graph) || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec fresh = calloc(1, sizeof *fresh);
    struct CUgraphNode_st *nodes = calloc(graph->count + 1, sizeof *nodes);
    if (!fresh || !nodes) {
        free(fresh);
        free(nodes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < graph->count; i++)
        nodes[i] = *graph->nodes[i];
    *fresh = (struct CUgraphExec_st){MAGIC_EXEC, nodes, graph->count};
    *exec = fresh;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes)
{
    if (failed)
        *failed = NULL;
    if (log && log_bytes)
        *log = '\0';
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    parameters->hErrNode_out = NULL;
    CUresult result = cuGraphInstantiateWithFlags(exec, graph, parameters->flags);
    parameters->result_out = result != CUDA_SUCCESS;
    return result;
}

/* Only the kinds of nodes that have no other way in. */
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
    const CUgraphEdgeData *edges, size_t dependency_count, CUgraphNodeParams *parameters)
{
    (void)edges;
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return cuGraphAddMemAllocNode(node, graph, dependencies, dependency_count, &parameters->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return cuGraphAddMemFreeNode(node, graph, dependencies, dependency_count, parameters->freed);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return cuGraphAddEmptyNode(node, graph, dependencies, dependency_count);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t dependency_count,
    CUgraphNodeParams *parameters)
{
    return cuGraphAddNode_v2(node, graph, dependencies, NULL, dependency_count, parameters);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    ENTER(cuGraphExecDestroy, NEED_INIT);
    if (!exec || exec->magic != MAGIC_EXEC)
        return CUDA_ERROR_INVALID_VALUE;
    exec->magic = 0;
    free(exec->nodes);
    free(exec);
    return CUDA_SUCCESS;
}

static CUresult launch_node(CUstream s, const struct CUgraphNode_st *node)
{
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return driver_owned_back(node->memory.dptr, node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    case CU_GRAPH_NODE_TYPE_HOST:
        return sim_stream_call(s->work, node->operation.call, node->operation.data);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return driver_perform(&node->operation);
    default:
        return CUDA_SUCCESS;
    }
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    ENTER(cuGraphLaunch, NEED_CONTEXT);
    CUstream s = driver_stream(stream);
    if (!exec || exec->magic != MAGIC_EXEC)
        return CUDA_ERROR_INVALID_VALUE;
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < exec->count && !result; i++)
        result = launch_node(s, &exec->nodes[i]);
    return result;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    ENTER(cuGraphUpload, NEED_CONTEXT);
    if (!exec || exec->magic != MAGIC_EXEC || !driver_stream(stream))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
