/*
 * taken WHAT: memory that is taken in unusual ways; prints what it did.
 *
 *   graphs      a graph of 1 GiB: made, launched twice, destroyed; then (with "trim") trimmed
 *   captured    64 MiB captured into a graph, and an allocation outside beside it
 *   calls       how many calls the simulated driver saw while all of this was done within a capture
 *   modules     a module, a library of which something is asked for, a module unloaded again
 *   contexts    a second and a third context of one device, the third one detached from
 *   handles     physical memory until the sixth piece is refused; nothing of it mapped
 *   held        a piece made, mapped, unmapped; one made and released; one mapped after its handle's release
 *               (with "kill" it then kills itself)
 *   arena       a segment of 2,200 MiB, and a report that 1,500 MiB of it are in use, where PyTorch's reports are heard
 *   library     a segment of 1 GiB, and 300 MiB by libfakenccl.so beside this program; 64 MiB of the host's
 *   pool        stream-ordered memory from the default pool, freed, and a look at what the pool holds
 *   shared      a multicast object, an address range, and access rights: nothing of a device's memory
 */
#include "driver_open.h"

#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static __attribute__((noinline)) void make_current(void)
{
    CUcontext context;
    CHECK(DRIVER(cuInit)(0));
    CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0));
    CHECK(DRIVER(cuCtxSetCurrent)(context));
}

static CUdeviceptr take(size_t bytes)
{
    CUdeviceptr address;
    CHECK(DRIVER(cuMemAlloc_v2)(&address, bytes));
    return address;
}

static CUgraph graph_of(size_t bytes)
{
    CUgraph graph;
    CUgraphNode made, freed;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.bytesize = bytes, .poolProps = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}}};
    CHECK(DRIVER(cuGraphCreate)(&graph, 0));
    CHECK(DRIVER(cuGraphAddMemAllocNode)(&made, graph, NULL, 0, &parameters));
    CHECK(DRIVER(cuGraphAddMemFreeNode)(&freed, graph, &made, 1, parameters.dptr));
    return graph;
}

static __attribute__((noinline)) void launch_graph(CUgraph graph, CUstream stream)
{
    CUgraphExec exec;
    CHECK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    CHECK(DRIVER(cuGraphLaunch)(exec, stream));
    CHECK(DRIVER(cuGraphLaunch)(exec, stream));
    CHECK(DRIVER(cuStreamSynchronize)(stream));
    CHECK(DRIVER(cuGraphExecDestroy)(exec));
}

static void graphs(int trim)
{
    CUstream stream;
    make_current();
    CHECK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CUgraph graph = graph_of(1024 * MIB);
    launch_graph(graph, stream);
    launch_graph(graph, stream); /* the same memory */
    CHECK(DRIVER(cuGraphDestroy)(graph));
    graph = graph_of(512 * MIB); /* memory of its own: another size */
    launch_graph(graph, stream);
    CHECK(DRIVER(cuGraphDestroy)(graph));
    if (trim)
        CHECK(DRIVER(cuDeviceGraphMemTrim)(0));
}

static void captured(void)
{
    CUstream stream;
    CUgraph graph;
    CUdeviceptr inside;
    make_current();
    CHECK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(DRIVER(cuMemAllocAsync)(&inside, 64 * MIB, stream));
    take(MIB);
    CHECK(DRIVER(cuStreamEndCapture)(stream, &graph));
    launch_graph(graph, stream);
    CHECK(DRIVER(cuMemFreeAsync)(inside, stream)); /* the graph's, but freed outside */
}

static unsigned long long calls(void)
{
    unsigned long long (*count)(const char *) = NULL;
    void *address = NULL;
    if (DRIVER(cuGetProcAddress_v2)("cudamemSimControlCalls", &address, 0, 0, NULL) || !address)
        return 0;
    memcpy(&count, &address, sizeof(count));
    return count(NULL);
}

static void calls_in_a_capture(void)
{
    CUstream stream;
    CUgraph graph;
    CUdeviceptr inside;
    CUmodule module;
    CUfunction function;
    CUmemoryPool current;
    CUcontext context;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    make_current();
    take(MIB);
    CHECK(DRIVER(cuDeviceGetMemPool)(&current, 0));
    CHECK(DRIVER(cuMemAllocAsync)(&inside, MIB, NULL));
    CHECK(DRIVER(cuMemFreeAsync)(inside, NULL));
    CHECK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    calls(); /* its own look-up is a call, too */
    CHECK(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    unsigned long long before = calls();
    CHECK(DRIVER(cuMemAllocAsync)(&inside, 2 * MIB, stream));
    CHECK(DRIVER(cuMemFreeAsync)(inside, stream));
    for (int i = 0; i < 16; i++)
        take((size_t)(i + 1) * MIB);
    CHECK(DRIVER(cuModuleLoadData)(&module, "code"));
    CHECK(DRIVER(cuModuleGetFunction)(&function, module, "one"));
    CHECK(DRIVER(cuMemPoolTrimTo)(current, 0));
    CHECK(DRIVER(cuMemCreate)(&handle, 2 * MIB, &properties, 0));
    CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0));
    CHECK(DRIVER(cuDeviceGraphMemTrim)(0));
    CHECK(DRIVER(cuModuleUnload)(module));
    printf("%llu calls\n", calls() - before);
    CHECK(DRIVER(cuStreamEndCapture)(stream, &graph));
}

static __attribute__((noinline)) CUmodule load_module(void)
{
    CUmodule module;
    CHECK(DRIVER(cuModuleLoadData)(&module, "code"));
    return module;
}

static void modules(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUmodule parts;
    make_current();
    take(MIB);
    load_module();
    CHECK(DRIVER(cuModuleUnload)(load_module()));
    CHECK(DRIVER(cuLibraryLoadData)(&library, "code", NULL, NULL, 0, NULL, NULL, 0));
    CHECK(DRIVER(cuLibraryGetKernel)(&kernel, library, "kernel"));
    CHECK(DRIVER(cuKernelGetFunction)(&function, kernel));
    CHECK(DRIVER(cuLibraryGetModule)(&parts, library)); /* is loaded already */
    CHECK(DRIVER(cuLibraryUnload)(library));
    take(2 * MIB);
    CHECK(DRIVER(cuLibraryLoadData)(&library, "code", NULL, NULL, 0, NULL, NULL, 0));
    CHECK(DRIVER(cuLibraryGetKernel)(&kernel, library, "kernel"));
    for (int i = 0; i < 3; i++) /* the first one loads it */
        CHECK(DRIVER(cuLaunchKernel)((CUfunction)(void *)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CHECK(DRIVER(cuLibraryUnload)(library));
}

static void contexts(void)
{
    CUcontext second, third, again;
    make_current();
    take(MIB);
    CHECK(DRIVER(cuCtxCreate_v2)(&second, 0, 0));
    take(2 * MIB);
    CHECK(DRIVER(cuCtxCreate_v2)(&third, 0, 0));
    take(3 * MIB);
    CHECK(DRIVER(cuCtxAttach)(&again, 0));
    CHECK(DRIVER(cuCtxDetach)(third));
    take(4 * MIB);
    CHECK(DRIVER(cuCtxDetach)(third));
    CHECK(DRIVER(cuCtxSetCurrent)(second));
}

static CUmemAllocationProp on_device(void)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
}

static __attribute__((noinline)) int create_and_map(CUmemGenericAllocationHandle *handles)
{
    CUmemAllocationProp properties = on_device();
    for (int i = 0; i < 6; i++) {
        CUresult result = DRIVER(cuMemCreate)(&handles[i], 20 * MIB, &properties, 0);
        printf("handle %d: %d\n", i, (int)result);
        if (result != CUDA_SUCCESS)
            return i;
    }
    return 6;
}

static void handles(int killed)
{
    CUmemGenericAllocationHandle made[6];
    make_current();
    create_and_map(made);
    fflush(stdout);
    if (killed)
        raise(SIGKILL);
}

static void held(void)
{
    CUmemAllocationProp properties = on_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;
    make_current();
    CHECK(DRIVER(cuMemAddressReserve)(&base, 64 * MIB, 0, 0, 0));
    CHECK(DRIVER(cuMemCreate)(&handle, 2 * MIB, &properties, 0));
    CHECK(DRIVER(cuMemRelease)(handle)); /* gone */
    CHECK(DRIVER(cuMemCreate)(&handle, 4 * MIB, &properties, 0));
    CHECK(DRIVER(cuMemMap)(base, 4 * MIB, 0, handle, 0));
    CHECK(DRIVER(cuMemUnmap)(base, 4 * MIB)); /* still there */
    CHECK(DRIVER(cuMemCreate)(&handle, 6 * MIB, &properties, 0));
    CHECK(DRIVER(cuMemMap)(base, 6 * MIB, 0, handle, 0));
    CHECK(DRIVER(cuMemRelease)(handle));
    CHECK(DRIVER(cuMemUnmap)(base, 6 * MIB)); /* gone */
    CHECK(DRIVER(cuMemCreate)(&handle, 8 * MIB, &properties, 0));
    CHECK(DRIVER(cuMemMap)(base, 8 * MIB, 0, handle, 0));
    CHECK(DRIVER(cuMemMap)(base + 8 * MIB, 8 * MIB, 0, handle, 0)); /* once more */
    CHECK(DRIVER(cuMemUnmap)(base, 8 * MIB));
}

static void pool(int trim)
{
    CUmemoryPool current;
    CUdeviceptr address;
    cuuint64_t all = UINT64_MAX;
    size_t available, total;
    make_current();
    CHECK(DRIVER(cuDeviceGetMemPool)(&current, 0));
    CHECK(DRIVER(cuMemPoolSetAttribute)(current, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    take(MIB);
    CHECK(DRIVER(cuMemAllocAsync)(&address, 96 * MIB, NULL));
    CHECK(DRIVER(cuMemFreeAsync)(address, NULL));
    CHECK(DRIVER(cuStreamSynchronize)(NULL));
    if (trim)
        CHECK(DRIVER(cuMemPoolTrimTo)(current, 0));
    else
        CHECK(DRIVER(cuMemGetInfo_v2)(&available, &total));
}

struct report_device {
    int8_t type, index;
};

static void arena(void)
{
    void (*report)(void *, int64_t, size_t, size_t, struct report_device) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    size_t available, total;
    memcpy(&report, &found, sizeof(report));
    make_current();
    CUdeviceptr address = take(2200 * MIB);
    if (report)
        report((void *)(uintptr_t)address, (int64_t)(1500 * MIB), 1500 * MIB, 2200 * MIB, (struct report_device){1, 0});
    CHECK(DRIVER(cuMemGetInfo_v2)(&available, &total));
    printf("taken: %zu MiB\n", (total - available) / MIB);
}

static void library(const char *program)
{
    char path[PATH_MAX];
    void *host;
    const char *slash = strrchr(program, '/');
    snprintf(path, sizeof(path), "%.*s/libfakenccl.so", slash ? (int)(slash - program) : 1, slash ? program : ".");
    void *opened = dlopen(path, RTLD_NOW);
    void (*begin)(void) = NULL;
    void *found = opened ? dlsym(opened, "fakenccl_begin") : NULL;
    memcpy(&begin, &found, sizeof(begin));
    make_current();
    take(1024 * MIB);
    if (!begin)
        exit(97);
    begin();
    CHECK(DRIVER(cuMemHostAlloc)(&host, 64 * MIB, 0));
}

static void shared(void)
{
    CUmulticastObjectProp properties = {.numDevices = 1, .size = 2 * MIB};
    CUmemGenericAllocationHandle multicast;
    CUdeviceptr base;
    make_current();
    printf("multicast: %d\n", (int)DRIVER(cuMulticastCreate)(&multicast, &properties));
    CHECK(DRIVER(cuMemAddressReserve)(&base, 1024 * MIB, 0, 0, 0));
    CHECK(DRIVER(cuMemAddressFree)(base, 1024 * MIB));
    take(MIB);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int trim = argc > 2 && strcmp(argv[2], "trim") == 0;
    if (strcmp(what, "graphs") == 0)
        graphs(trim);
    else if (strcmp(what, "captured") == 0)
        captured();
    else if (strcmp(what, "calls") == 0)
        calls_in_a_capture();
    else if (strcmp(what, "modules") == 0)
        modules();
    else if (strcmp(what, "contexts") == 0)
        contexts();
    else if (strcmp(what, "handles") == 0)
        handles(argc > 2);
    else if (strcmp(what, "held") == 0)
        held();
    else if (strcmp(what, "pool") == 0)
        pool(trim);
    else if (strcmp(what, "arena") == 0)
        arena();
    else if (strcmp(what, "library") == 0)
        library(argv[0]);
    else if (strcmp(what, "shared") == 0)
        shared();
    else
        return 2;
    printf("done\n");
    return 0;
}
