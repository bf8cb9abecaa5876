/*
 * For tests of the public library: the simulated driver, by the name under which the library loads it (LD_LIBRARY_PATH says
 * where), and its controls.
 */
#ifndef TEST_LIBRARY_WORLD_H
#define TEST_LIBRARY_WORLD_H

#include "sim/control.h"

#include <cudamem/cudamem.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

struct world {
    void *driver;
    CUresult (*stream_create)(CUstream *stream, unsigned flags);
    CUresult (*stream_destroy)(CUstream stream);
    CUresult (*stream_synchronize)(CUstream stream);
    CUresult (*begin_capture)(CUstream stream, CUstreamCaptureMode mode);
    CUresult (*end_capture)(CUstream stream, CUgraph *graph);
    CUresult (*graph_destroy)(CUgraph graph);
    CUresult (*retain)(CUcontext *context, CUdevice device);
    CUresult (*set_current)(CUcontext context);
    CUresult (*mem_alloc)(CUdeviceptr *pointer, size_t size);
    CUresult (*mem_free)(CUdeviceptr pointer);
    CUresult (*fill)(CUdeviceptr to, unsigned char byte, size_t size, CUstream stream);
    void (*manual)(int manual);
    unsigned long long (*complete)(CUstream stream, unsigned long long count);
    unsigned long long (*calls)(const char *name);
    int (*faults)(const char *text);
    CUdeviceptr scratch;
};

static struct world world;

static void world_find(const char *name, void *function)
{
    void *found = dlsym(world.driver, name);
    if (!found) {
        CUresult (*look_up)(const char *, void **, int, cuuint64_t, void *);
        void *address = dlsym(world.driver, "cuGetProcAddress_v2");
        memcpy(&look_up, &address, sizeof(look_up));
        if (!address || look_up(name, &found, 12000, 0, NULL) || !found) {
            fprintf(stderr, "the simulated driver has no %s\n", name);
            exit(1);
        }
    }
    memcpy(function, &found, sizeof(found));
}

/* The driver started, with these devices ("2:16GiB"), and device 0's context current. */
static void world_open(const char *devices)
{
    CUcontext context;
    CUresult (*start)(unsigned flags);
    setenv("CUDAMEM_SIM", devices, 1);
    world.driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!world.driver) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    world_find("cuInit", &start);
    if (start(0))
        exit(1);
    world_find("cuStreamCreate", &world.stream_create);
    world_find("cuStreamDestroy_v2", &world.stream_destroy);
    world_find("cuStreamSynchronize", &world.stream_synchronize);
    world_find("cuStreamBeginCapture_v2", &world.begin_capture);
    world_find("cuStreamEndCapture", &world.end_capture);
    world_find("cuGraphDestroy", &world.graph_destroy);
    world_find("cuDevicePrimaryCtxRetain", &world.retain);
    world_find("cuCtxSetCurrent", &world.set_current);
    world_find("cuMemAlloc_v2", &world.mem_alloc);
    world_find("cuMemFree_v2", &world.mem_free);
    world_find("cuMemsetD8Async", &world.fill);
    world_find("cudamemSimControlManual", &world.manual);
    world_find("cudamemSimControlComplete", &world.complete);
    world_find("cudamemSimControlCalls", &world.calls);
    world_find("cudamemSimControlFaults", &world.faults);
    if (world.retain(&context, 0) || world.set_current(context) || world.mem_alloc(&world.scratch, MIB))
        exit(1);
}

/* Something to do for a stream, which stays undone while streams stand still. */
static inline void world_work(CUstream stream)
{
    if (world.fill(world.scratch, 0, 256, stream))
        exit(1);
}

/* The next call of this entry point fails. */
static inline void world_fail(const char *name, const char *code)
{
    char text[96];
    snprintf(text, sizeof(text), "%s:1=%s", name, code);
    if (world.faults(text))
        exit(1);
}

static inline CUstream world_stream(void)
{
    CUstream stream = NULL;
    if (world.stream_create(&stream, 1))
        exit(1);
    return stream;
}

#endif
