/*
 * The simulated libcuda.so.1, loaded as a program loads it.  Each test is a
 * child with an environment of its own, so that each starts a driver afresh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda_abi.h"
#include "sim/control.h"

#define MIB ((size_t)1 << 20)

static void *library;

#define DEMAND(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
            _exit(1); \
        } \
    } while (0)
#define IS(call, expected) \
    do { \
        int result_ = (int)(call); \
        if (result_ != (int)(expected)) { \
            fprintf(stderr, "line %d: %s gives %d, not %d\n", __LINE__, #call, result_, (int)(expected)); \
            _exit(1); \
        } \
    } while (0)

/* Pointers by dlsym; D(cuInit)(0) calls. */
static void *sym(const char *name)
{
    void *address = dlsym(library, name);
    if (!address) {
        fprintf(stderr, "no %s\n", name);
        _exit(1);
    }
    return address;
}
#define D(name) ((__typeof__(&name))sym(#name))

static void *control(const char *name)
{
    void *address = NULL;
    IS(D(cuGetProcAddress_v2)(name, &address, 13000, 0, NULL), 0);
    DEMAND(address);
    return address;
}
#define C(name) ((__typeof__(&name))control(#name))

static void run_in_child(void (*test)(void), const char *const *environment)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        for (size_t i = 0; environment && environment[i]; i += 2)
            setenv(environment[i], environment[i + 1], 1);
        library = dlopen(SIM_DIR "/libcuda.so.1", RTLD_NOW);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            _exit(1);
        }
        test();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static CUcontext begin(void)
{
    CUcontext context;
    IS(D(cuInit)(0), 0);
    IS(D(cuDevicePrimaryCtxRetain)(&context, 0), 0);
    IS(D(cuCtxSetCurrent)(context), 0);
    return context;
}

#define TEST(name, ...) \
    static void name##_body(void); \
    static void name(void **state) \
    { \
        static const char *const environment[] = {__VA_ARGS__ NULL}; \
        (void)state; \
        run_in_child(name##_body, environment); \
    } \
    static void name##_body(void)

TEST(nothing_works_before_init)
{
    CUdeviceptr a;
    CUcontext context;
    size_t free_bytes, total;
    IS(D(cuMemAlloc_v2)(&a, 100), CUDA_ERROR_NOT_INITIALIZED);
    IS(D(cuDeviceGetCount)(&(int){0}), CUDA_ERROR_NOT_INITIALIZED);
    IS(D(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuInit)(0), CUDA_SUCCESS);
    IS(D(cuMemAlloc_v2)(&a, 100), CUDA_ERROR_INVALID_CONTEXT);
    IS(D(cuMemFree_v2)(0), CUDA_SUCCESS);
    IS(D(cuMemFree_v2)(0x1000), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuDevicePrimaryCtxRetain)(&context, 0), 0);
    IS(D(cuMemGetInfo_v2)(&free_bytes, &total), CUDA_ERROR_INVALID_CONTEXT);
    IS(D(cuCtxSetCurrent)(context), 0);
    IS(D(cuMemGetInfo_v2)(&free_bytes, &total), 0);
    DEMAND(total == 16384 * MIB && free_bytes == total);
}

TEST(no_device_is_said_by_init, "CUDAMEM_SIM", "0:1GiB", )
{
    IS(D(cuInit)(0), CUDA_ERROR_NO_DEVICE);
    IS(D(cuDeviceGetCount)(&(int){0}), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(a_wrong_environment_is_explained, "CUDAMEM_SIM", "two", )
{
    const char *text;
    IS(D(cuInit)(0), CUDA_ERROR_SYSTEM_NOT_READY);
    IS(D(cuGetErrorString)(CUDA_ERROR_SYSTEM_NOT_READY, &text), 0);
    DEMAND(strstr(text, "two"));
}

TEST(plain_memory_behaves_as_on_a_real_driver, "CUDAMEM_SIM", "64MiB", )
{
    CUdeviceptr a, b, base;
    size_t bytes, pitch;
    begin();
    IS(D(cuMemAlloc_v2)(&a, 0), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuMemAlloc_v2)(NULL, 100), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuMemAlloc_v2)(&a, (size_t)1 << 45), CUDA_ERROR_OUT_OF_MEMORY);
    IS(D(cuMemAlloc_v2)(&a, 1000), 0);
    IS(D(cuMemAlloc_v2)(&b, 62 * MIB), 0);
    IS(D(cuMemAlloc_v2)(&base, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    IS(D(cuMemGetAddressRange_v2)(&base, &bytes, a + 999), 0);
    DEMAND(base == a && bytes == 1000);
    IS(D(cuMemFree_v2)(a + 16), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuMemFree_v2)(a), 0);
    IS(D(cuMemFree_v2)(a), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuMemFree_v2)(b), 0);
    static const size_t widths[] = {1, 100, 512, 513, 1000, 4096, 40000}, pitches[] = {512, 512, 512, 1024, 1024, 4096,
        40448};
    for (size_t i = 0; i < 7; i++) {
        IS(D(cuMemAllocPitch_v2)(&a, &pitch, widths[i], 64, 4), 0);
        IS(D(cuMemGetAddressRange_v2)(NULL, &bytes, a), 0);
        DEMAND(pitch == pitches[i] && bytes == 64 * pitch);
        IS(D(cuMemFree_v2)(a), 0);
    }
    IS(D(cuMemAllocPitch_v2)(&a, &pitch, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
    unsigned old;
    CUcontext context;
    IS(D(cuMemAlloc)(&old, 4096), CUDA_ERROR_INVALID_CONTEXT);
    IS(D(cuCtxCreate)(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(contexts_take_and_give_back, "CUDAMEM_SIM", "2:64MiB", "CUDAMEM_SIM_CONTEXT", "8MiB", )
{
    CUcontext primary = begin(), other, current;
    CUdeviceptr a;
    CUdevice device;
    size_t available, total;
    unsigned version;
    IS(D(cuMemGetInfo_v2)(&available, &total), 0);
    DEMAND(available == 56 * MIB && total == 64 * MIB);
    IS(D(cuCtxCreate_v4)(&other, NULL, 0, 1), 0);
    IS(D(cuCtxGetCurrent)(&current), 0);
    DEMAND(current == other);
    IS(D(cuCtxGetDevice)(&device), 0);
    DEMAND(device == 1);
    IS(D(cuCtxGetApiVersion)(other, &version), 0);
    DEMAND(version == 3020);
    IS(D(cuMemAlloc_v2)(&a, 4 * MIB), 0);
    IS(D(cuMemGetInfo_v2)(&available, &total), 0);
    DEMAND(available == 52 * MIB);
    IS(D(cuCtxDestroy_v2)(other), 0);
    IS(D(cuCtxDestroy_v2)(other), CUDA_ERROR_INVALID_CONTEXT);
    IS(D(cuCtxGetCurrent)(&current), 0);
    DEMAND(current == primary);
    IS(D(cuMemFree_v2)(a), CUDA_ERROR_INVALID_VALUE); /* went with its context */
    IS(D(cuCtxPushCurrent_v2)(primary), 0);
    IS(D(cuCtxPopCurrent_v2)(&current), 0);
    IS(D(cuDevicePrimaryCtxRelease_v2)(0), 0);
    IS(D(cuMemAlloc_v2)(&a, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    IS(D(cuDevicePrimaryCtxRelease_v2)(0), CUDA_ERROR_INVALID_CONTEXT);
    begin();
    IS(D(cuMemGetInfo_v2)(&available, &total), 0);
    DEMAND(available == 56 * MIB);
}

TEST(names_mean_what_they_mean_on_a_real_driver)
{
    FILE *file = fopen(TEST_DATA "/driver_names.txt", "r");
    char line[256], name[128], export[128], last_name[128] = "", last_export[128] = "-";
    int flags, since, last_flags = 0;
    unsigned lines = 0;
    DEMAND(file);
    while (fgets(line, sizeof line, file)) {
        void *answer = (void *)1;
        CUdriverProcAddressQueryResult status;
        if (sscanf(line, "%127s %d %d %127s", name, &flags, &since, export) != 4)
            continue;
        lines++;
        if (strcmp(name, last_name) == 0 && flags == last_flags) { /* just before, what was said before */
            IS(D(cuGetProcAddress_v2)(name, &answer, since - 1, (cuuint64_t)flags, &status), 0);
            DEMAND(answer == (strcmp(last_export, "-") ? sym(last_export) : NULL));
        }
        IS(D(cuGetProcAddress_v2)(name, &answer, since, (cuuint64_t)flags, &status), 0);
        if (strcmp(export, "-")) {
            if (answer != sym(export) || status != CU_GET_PROC_ADDRESS_SUCCESS)
                fprintf(stderr, "%s", line);
            DEMAND(answer == sym(export) && status == CU_GET_PROC_ADDRESS_SUCCESS);
        } else {
            DEMAND(!answer && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
        }
        strcpy(last_name, name);
        strcpy(last_export, export);
        last_flags = flags;
    }
    fclose(file);
    DEMAND(lines > 500);
}

TEST(both_look_ups_fail_in_their_own_way)
{
    void *a = (void *)1;
    CUdriverProcAddressQueryResult status;
    static const char *const odd[] = {"cuMemAlloc_v2", "cuNoSuch", "", "cuMemAllocAsync_ptsz"};
    for (size_t i = 0; i < 4; i++) {
        a = (void *)1;
        IS(D(cuGetProcAddress_v2)(odd[i], &a, 13000, 0, &status), 0);
        DEMAND(!a && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
        a = (void *)1;
        IS(D(cuGetProcAddress)(odd[i], &a, 13000, 0), CUDA_ERROR_NOT_FOUND);
        DEMAND(a == (void *)1);
    }
    IS(D(cuGetProcAddress)("cuMemAllocAsync", &a, 11000, 0), CUDA_ERROR_NOT_FOUND);
    IS(D(cuGetProcAddress)("cuMemAllocAsync", &a, 11030, 0), 0);
    DEMAND(a == sym("cuMemAllocAsync"));
    IS(D(cuGetProcAddress_v2)("cuMemAlloc", &a, 13000, 0, NULL), 0);
    DEMAND(a == sym("cuMemAlloc_v2"));
    IS(D(cuGetProcAddress_v2)("cuMemAlloc", &a, -1, 0, &status), 0);
    DEMAND(a == sym("cuMemAlloc_v2"));
    IS(D(cuGetProcAddress_v2)("cuMemAlloc", &a, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuGetProcAddress_v2)("cuMemAlloc", &a, 13000, 4, &status), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuGetProcAddress_v2)("cuMemAllocAsync", &a, 13000, 3, &status), 0);
    DEMAND(a == sym("cuMemAllocAsync_ptsz"));
    DEMAND(!dlsym(library, "cudamemSimControlCalls")); /* the exports are those of a real driver and no others */
}

TEST(faults_come_at_the_call_asked_for, "CUDAMEM_SIM_FAULTS", "cuMemAlloc_v2:3=2,cuMemCreate:1+=801", )
{
    CUdeviceptr a;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    begin();
    for (int i = 1; i <= 5; i++)
        IS(D(cuMemAlloc_v2)(&a, 100), i == 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
    IS(D(cuMemCreate)(&handle, 2 * MIB, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
    IS(D(cuMemCreate)(&handle, 2 * MIB, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
    IS(C(cudamemSimControlFaults)("cuMemFree_v2:2=700"), 0);
    IS(D(cuMemFree_v2)(0), 0);
    IS(D(cuMemFree_v2)(0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_lost_device_answers_nothing_more, "CUDAMEM_SIM_FAULTS", "cuStreamSynchronize:1=lost", )
{
    CUdeviceptr a;
    begin();
    IS(D(cuMemAlloc_v2)(&a, 100), 0);
    IS(D(cuStreamSynchronize)(NULL), CUDA_ERROR_UNKNOWN);
    IS(D(cuMemAlloc_v2)(&a, 100), CUDA_ERROR_UNKNOWN);
    IS(D(cuMemFree_v2)(a), CUDA_ERROR_UNKNOWN);
    IS(D(cuCtxSynchronize)(), CUDA_ERROR_UNKNOWN);
}

TEST(events_complete_when_told, "CUDAMEM_SIM_EVENTS", "manual", )
{
    CUstream first, second;
    CUevent event, after;
    float time;
    begin();
    IS(D(cuStreamCreate)(&first, CU_STREAM_NON_BLOCKING), 0);
    IS(D(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING), 0);
    IS(D(cuEventCreate)(&event, 0), 0);
    IS(D(cuEventCreate)(&after, 0), 0);
    IS(D(cuEventQuery)(event), 0);
    IS(D(cuEventRecord)(event, first), 0);
    IS(D(cuEventQuery)(event), CUDA_ERROR_NOT_READY);
    IS(D(cuStreamQuery)(first), CUDA_ERROR_NOT_READY);
    IS(D(cuStreamWaitEvent)(second, event, 0), 0);
    IS(D(cuEventRecord)(after, second), 0);
    DEMAND(C(cudamemSimControlComplete)(second, 10) == 0);
    DEMAND(C(cudamemSimControlComplete)(first, 1) == 1);
    IS(D(cuEventQuery)(event), 0);
    IS(D(cuEventQuery)(after), CUDA_ERROR_NOT_READY);
    IS(D(cuEventElapsedTime)(&time, event, after), CUDA_ERROR_NOT_READY);
    IS(D(cuEventSynchronize)(after), 0);
    IS(D(cuEventQuery)(after), 0);
    IS(D(cuEventElapsedTime)(&time, event, after), 0);
    DEMAND(time >= 0);

    /* Memory freed in stream order stays used until the stream gets there. */
    CUmemoryPool pool;
    CUdeviceptr a;
    cuuint64_t used;
    IS(D(cuDeviceGetDefaultMemPool)(&pool, 0), 0);
    IS(D(cuMemAllocAsync)(&a, 1000, first), 0);
    IS(D(cuMemFreeAsync)(a, first), 0);
    IS(D(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), 0);
    DEMAND(used == 1000);
    DEMAND(C(cudamemSimControlComplete)(NULL, 1) == 1);
    IS(D(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), 0);
    DEMAND(used == 0);
    IS(D(cuEventRecord)(event, first), 0);
    C(cudamemSimControlManual)(0);
    IS(D(cuEventQuery)(event), 0);
}

TEST(the_thread_s_own_stream_is_another, "CUDAMEM_SIM_EVENTS", "manual", )
{
    CUevent event;
    unsigned long long legacy, own;
    begin();
    IS(D(cuStreamGetId)(NULL, &legacy), 0);
    IS(D(cuStreamGetId_ptsz)(NULL, &own), 0);
    DEMAND(legacy != own);
    IS(D(cuEventCreate)(&event, 0), 0);
    IS(D(cuEventRecord_ptsz)(event, NULL), 0);
    IS(D(cuStreamQuery)(NULL), 0);
    IS(D(cuStreamQuery_ptsz)(NULL), CUDA_ERROR_NOT_READY);
    IS(D(cuStreamQuery)(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    IS(D(cuStreamSynchronize_ptsz)(NULL), 0);
    IS(D(cuEventQuery)(event), 0);
}

TEST(capture_forbids_what_a_real_one_forbids)
{
    CUstream stream;
    CUdeviceptr a;
    CUgraph graph;
    CUstreamCaptureStatus status;
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin();
    IS(D(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), 0);
    IS(D(cuStreamBeginCapture_v2)(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(D(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    IS(D(cuMemAlloc_v2)(&a, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(D(cuStreamIsCapturing)(stream, &status), 0);
    DEMAND(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    IS(D(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(D(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    IS(D(cuStreamQuery)(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(D(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(D(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    IS(D(cuMemAlloc_v2)(&a, 100), 0);
    IS(D(cuStreamEndCapture)(stream, &graph), 0);
    IS(D(cuThreadExchangeStreamCaptureMode)(&relaxed), 0);
    IS(D(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    IS(D(cuMemFree_v2)(a), 0); /* this thread says that it knows what it does */
    IS(D(cuStreamEndCapture)(stream, &graph), 0);
    IS(D(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST(graphs_repeat_what_was_captured)
{
    CUstream stream, joined;
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[8];
    CUgraphNodeType type;
    CUdeviceptr plain, own;
    size_t count = 8;
    unsigned char seen[2];
    begin();
    IS(D(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), 0);
    IS(D(cuStreamCreate)(&joined, CU_STREAM_NON_BLOCKING), 0);
    IS(D(cuEventCreate)(&event, 0), 0);
    IS(D(cuMemAlloc_v2)(&plain, 4096), 0);
    IS(D(cuMemsetD8_v2)(plain, 1, 4096), 0);
    IS(D(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    IS(D(cuMemAllocAsync)(&own, 1000, stream), 0);
    IS(D(cuMemsetD8Async)(own, 7, 1000, stream), 0);
    IS(D(cuEventRecord)(event, stream), 0);
    IS(D(cuStreamWaitEvent)(joined, event, 0), 0); /* the second stream joins */
    IS(D(cuMemcpyDtoDAsync_v2)(plain + 1, own, 1, joined), 0);
    IS(D(cuMemFreeAsync)(own, stream), 0);
    IS(D(cuEventQuery)(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); /* ... and breaks it */
    IS(D(cuStreamEndCapture)(joined, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    IS(D(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(D(cuStreamWaitEvent)(joined, event, 0), CUDA_ERROR_CAPTURED_EVENT);

    IS(D(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    IS(D(cuMemAllocAsync)(&own, 1000, stream), 0);
    IS(D(cuMemsetD8Async)(own, 7, 1000, stream), 0);
    IS(D(cuMemcpyDtoDAsync_v2)(plain + 1, own, 1, stream), 0);
    IS(D(cuMemFreeAsync)(own, stream), 0);
    IS(D(cuStreamEndCapture)(stream, &graph), 0);
    IS(D(cuGraphGetNodes)(graph, nodes, &count), 0);
    DEMAND(count == 4);
    IS(D(cuGraphNodeGetType)(nodes[0], &type), 0);
    DEMAND(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    CUDA_MEM_ALLOC_NODE_PARAMS parameters;
    IS(D(cuGraphMemAllocNodeGetParams)(nodes[0], &parameters), 0);
    DEMAND(parameters.bytesize == 1000 && parameters.dptr == own);
    IS(D(cuMemcpyDtoH_v2)(seen, plain, 2), 0);
    DEMAND(seen[0] == 1 && seen[1] == 1); /* not done yet */
    IS(D(cuGraphInstantiateWithFlags)(&exec, graph, 0), 0);
    IS(D(cuGraphLaunch)(exec, stream), 0);
    IS(D(cuMemcpyDtoH_v2)(seen, plain, 2), 0);
    DEMAND(seen[0] == 1 && seen[1] == 7);
    cuuint64_t used;
    IS(D(cuDeviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used), 0);
    DEMAND(used == 0);
    IS(D(cuDeviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used), 0);
    DEMAND(used == 2 * MIB);
    IS(D(cuGraphLaunch)(exec, stream), 0);
    IS(D(cuGraphExecDestroy)(exec), 0);
    IS(D(cuGraphDestroy)(graph), 0);
}

static uint64_t graph_memory(CUgraphMem_attribute attribute)
{
    cuuint64_t bytes = UINT64_MAX;
    IS(D(cuDeviceGetGraphMemAttribute)(0, attribute, &bytes), 0);
    return bytes;
}

TEST(memory_of_graphs_stays_reserved_until_it_is_trimmed)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode made, freed;
    size_t before, after, total;
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    parameters.alloc = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = 3 * MIB, .poolProps = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}}};
    begin();
    IS(D(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), 0);
    IS(D(cuMemGetInfo_v2)(&before, &total), 0);
    IS(D(cuGraphCreate)(&graph, 0), 0);
    IS(D(cuGraphAddNode_v2)(&made, graph, NULL, NULL, 0, &parameters), 0);
    CUgraphNodeParams release = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .freed = parameters.alloc.dptr};
    IS(D(cuGraphAddNode)(&freed, graph, &made, 1, &release), 0);
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {0};
    IS(D(cuGraphInstantiateWithParams)(&exec, graph, &how), 0);
    DEMAND(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
    IS(D(cuGraphLaunch)(exec, stream), 0);
    IS(D(cuGraphLaunch)(exec, stream), 0); /* the same memory again */
    DEMAND(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
    DEMAND(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 4 * MIB);
    IS(D(cuGraphExecDestroy)(exec), 0);
    IS(D(cuGraphDestroy)(graph), 0);
    IS(D(cuMemGetInfo_v2)(&after, &total), 0);
    DEMAND(before - after == 4 * MIB);
    IS(D(cuDeviceGraphMemTrim)(0), 0);
    DEMAND(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
    DEMAND(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) == 4 * MIB);
    IS(D(cuMemGetInfo_v2)(&after, &total), 0);
    DEMAND(before == after);
}

TEST(modules_take_what_they_are_told_to, "CUDAMEM_SIM", "1:64MiB", "CUDAMEM_SIM_MODULE", "8MiB", )
{
    CUmodule module, parts;
    CUlibrary loaded;
    size_t before, after, total;
    begin();
    IS(D(cuMemGetInfo_v2)(&before, &total), 0);
    IS(D(cuModuleLoadData)(&module, "code"), 0);
    IS(D(cuLibraryLoadData)(&loaded, "code", NULL, NULL, 0, NULL, NULL, 0), 0);
    IS(D(cuMemGetInfo_v2)(&after, &total), 0);
    DEMAND(before - after == 8 * MIB); /* the library is loaded when something of it is asked for */
    IS(D(cuLibraryGetModule)(&parts, loaded), 0);
    IS(D(cuMemGetInfo_v2)(&after, &total), 0);
    DEMAND(before - after == 16 * MIB);
    IS(D(cuLibraryUnload)(loaded), 0);
    IS(D(cuModuleUnload)(module), 0);
    IS(D(cuMemGetInfo_v2)(&after, &total), 0);
    DEMAND(before == after);
}

TEST(pointers_say_what_they_are)
{
    CUcontext context = begin(), of;
    CUdeviceptr plain, managed, async;
    void *host;
    unsigned type, is_managed;
    int device;
    CUmemoryPool pool;
    IS(D(cuMemAlloc_v2)(&plain, 100), 0);
    IS(D(cuMemAllocManaged)(&managed, 100, CU_MEM_ATTACH_GLOBAL), 0);
    IS(D(cuMemHostAlloc)(&host, 100, 0), 0);
    IS(D(cuMemAllocAsync)(&async, 100, NULL), 0);
    IS(D(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain + 99), 0);
    DEMAND(type == CU_MEMORYTYPE_DEVICE);
    IS(D(cuPointerGetAttribute)(&of, CU_POINTER_ATTRIBUTE_CONTEXT, plain), 0);
    DEMAND(of == context);
    IS(D(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host), 0);
    DEMAND(type == CU_MEMORYTYPE_HOST);
    IS(D(cuPointerGetAttribute)(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, async), 0);
    DEMAND(pool != NULL);
    IS(D(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type),
        CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &is_managed, &device};
    IS(D(cuPointerGetAttributes)(3, which, values, managed), 0);
    DEMAND(type == CU_MEMORYTYPE_DEVICE && is_managed == 1 && device == 0);
    IS(D(cuPointerGetAttributes)(3, which, values, (CUdeviceptr)(uintptr_t)&type), 0);
    DEMAND(type == 0 && is_managed == 0 && device == CU_DEVICE_INVALID);
    memset((void *)(uintptr_t)managed, 3, 100); /* the host may touch it */
    IS(D(cuMemFreeHost)(host), 0);
    IS(D(cuMemFreeHost)(host), CUDA_ERROR_INVALID_VALUE);
}

TEST(copies_of_rectangles_boxes_and_arrays_are_exact)
{
    unsigned char there[60 * 40], back[60 * 40];
    CUdeviceptr a;
    CUarray array;
    size_t pitch;
    begin();
    for (size_t i = 0; i < sizeof there; i++)
        there[i] = (unsigned char)(i * 31 >> 2);
    IS(D(cuMemAllocPitch_v2)(&a, &pitch, 60, 40, 4), 0);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = there, .srcPitch = 60,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = a, .dstPitch = pitch, .WidthInBytes = 60, .Height = 40};
    IS(D(cuMemcpy2D_v2)(&copy), 0);
    CUDA_ARRAY_DESCRIPTOR shape = {15, 40, CU_AD_FORMAT_FLOAT, 1};
    IS(D(cuArrayCreate_v2)(&array, &shape), 0);
    copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = a, .srcPitch = pitch,
        .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = array, .WidthInBytes = 60, .Height = 40};
    IS(D(cuMemcpy2D_v2)(&copy), 0);
    memset(back, 0, sizeof back);
    copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = array, .srcXInBytes = 8, .srcY = 3,
        .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = 60, .WidthInBytes = 20, .Height = 10};
    IS(D(cuMemcpy2D_v2)(&copy), 0);
    for (size_t y = 0; y < 10; y++)
        DEMAND(memcmp(back + y * 60, there + (y + 3) * 60 + 8, 20) == 0);
    copy.WidthInBytes = 60; /* runs out of the array */
    IS(D(cuMemcpy2D_v2)(&copy), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuMemcpyAtoH_v2)(back, array, 100, 50), 0);
    DEMAND(memcmp(back, there + 100, 50) == 0);
    IS(D(cuMemsetD2D16_v2)(a, pitch, 0xabcd, 5, 2), 0);
    IS(D(cuMemcpyDtoH_v2)(back, a + pitch, 12), 0);
    DEMAND(memcmp(back, "\xcd\xab\xcd\xab\xcd\xab\xcd\xab\xcd\xab", 10) == 0 && back[10] == there[70]);
}

TEST(external_memory_is_mapped)
{
    int fd = memfd_create("test", 0);
    CUexternalMemory memory;
    CUdeviceptr a;
    char seen[6];
    begin();
    DEMAND(fd >= 0 && ftruncate(fd, 8192) == 0 && pwrite(fd, "hello", 6, 4096) == 6);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC what = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle = {.fd = fd},
        .size = 8192};
    IS(D(cuImportExternalMemory)(&memory, &what), 0);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.offset = 4096, .size = 8192};
    IS(D(cuExternalMemoryGetMappedBuffer)(&a, memory, &part), CUDA_ERROR_INVALID_VALUE);
    part.size = 4096;
    IS(D(cuExternalMemoryGetMappedBuffer)(&a, memory, &part), 0);
    IS(D(cuMemcpyDtoH_v2)(seen, a, 6), 0);
    DEMAND(strcmp(seen, "hello") == 0);
    IS(D(cuMemFree_v2)(a), 0);
    IS(D(cuDestroyExternalMemory)(memory), 0);
}

TEST(a_forked_child_finds_the_driver_dead)
{
    CUdeviceptr a;
    int status;
    begin();
    pid_t child = fork();
    if (child == 0) {
        IS(D(cuMemAlloc_v2)(&a, 100), CUDA_ERROR_NOT_INITIALIZED);
        IS(D(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED);
        _exit(0);
    }
    DEMAND(waitpid(child, &status, 0) == child && status == 0);
    IS(D(cuMemAlloc_v2)(&a, 100), 0);
}

TEST(calls_are_counted)
{
    CUdeviceptr a;
    begin();
    unsigned long long (*calls)(const char *) = C(cudamemSimControlCalls);
    unsigned long long before = calls(NULL);
    for (int i = 0; i < 5; i++)
        IS(D(cuMemAlloc_v2)(&a, 100), 0);
    IS(D(cuMemAlloc_v2)(&a, 0), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuMemFree_v2)(0), 0);
    DEMAND(calls(NULL) - before == 7);
    DEMAND(calls("cuMemAlloc_v2") == 6 && calls("cuMemFree_v2") == 1 && calls("cuNothing") == 0);
}

TEST(code_is_accepted_and_does_nothing)
{
    CUmodule module;
    CUfunction function, again;
    CUdeviceptr a;
    size_t bytes;
    begin();
    IS(D(cuModuleLoadData)(&module, "anything"), 0);
    IS(D(cuModuleLoad)(&module, "/nonexistent/file"), CUDA_ERROR_FILE_NOT_FOUND);
    IS(D(cuModuleGetFunction)(&function, module, "kernel"), 0);
    IS(D(cuModuleGetFunction)(&again, module, "kernel"), 0);
    DEMAND(function == again);
    IS(D(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), 0);
    IS(D(cuLaunchKernel)(function, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuLaunchKernel)(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(D(cuModuleGetGlobal_v2)(&a, &bytes, module, "variable"), CUDA_ERROR_NOT_FOUND);
    IS(C(cudamemSimControlVariable)(module, "variable", 24, 0), 0);
    IS(D(cuModuleGetGlobal_v2)(&a, &bytes, module, "variable"), 0);
    DEMAND(bytes == 24);
    IS(D(cuModuleUnload)(module), 0);
    const void *table = (void *)1;
    CUuuid id = {{0}};
    IS(D(cuGetExportTable)(&table, &id), CUDA_ERROR_NOT_FOUND); /* what is not public is not there */
}

static void *thread_body(void *context)
{
    CUdeviceptr a;
    IS(D(cuCtxSetCurrent)(context), 0);
    for (int i = 0; i < 200; i++) {
        CUevent event;
        IS(D(cuMemAllocAsync_ptsz)(&a, 1000, NULL), 0);
        IS(D(cuEventCreate)(&event, 0), 0);
        IS(D(cuEventRecord_ptsz)(event, NULL), 0);
        IS(D(cuMemFreeAsync_ptsz)(a, NULL), 0);
        IS(D(cuEventSynchronize)(event), 0);
        IS(D(cuEventDestroy_v2)(event), 0);
        IS(D(cuMemAlloc_v2)(&a, 3 * MIB), 0);
        IS(D(cuMemFree_v2)(a), 0);
    }
    return NULL;
}

TEST(threads_share_a_device)
{
    CUcontext context = begin();
    pthread_t threads[4];
    size_t available, total;
    for (size_t i = 0; i < 4; i++)
        DEMAND(pthread_create(&threads[i], NULL, thread_body, context) == 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    IS(D(cuCtxSynchronize)(), 0);
    IS(D(cuMemGetInfo_v2)(&available, &total), 0);
    DEMAND(available == total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_works_before_init),
        cmocka_unit_test(no_device_is_said_by_init),
        cmocka_unit_test(a_wrong_environment_is_explained),
        cmocka_unit_test(plain_memory_behaves_as_on_a_real_driver),
        cmocka_unit_test(contexts_take_and_give_back),
        cmocka_unit_test(names_mean_what_they_mean_on_a_real_driver),
        cmocka_unit_test(both_look_ups_fail_in_their_own_way),
        cmocka_unit_test(faults_come_at_the_call_asked_for),
        cmocka_unit_test(a_lost_device_answers_nothing_more),
        cmocka_unit_test(events_complete_when_told),
        cmocka_unit_test(the_thread_s_own_stream_is_another),
        cmocka_unit_test(capture_forbids_what_a_real_one_forbids),
        cmocka_unit_test(graphs_repeat_what_was_captured),
        cmocka_unit_test(memory_of_graphs_stays_reserved_until_it_is_trimmed),
        cmocka_unit_test(modules_take_what_they_are_told_to),
        cmocka_unit_test(pointers_say_what_they_are),
        cmocka_unit_test(copies_of_rectangles_boxes_and_arrays_are_exact),
        cmocka_unit_test(external_memory_is_mapped),
        cmocka_unit_test(a_forked_child_finds_the_driver_dead),
        cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(code_is_accepted_and_does_nothing),
        cmocka_unit_test(threads_share_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
