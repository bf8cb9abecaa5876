/*
 * What the small test programs share: the driver's functions found at run time
 * (in one of several ways), a device made ready, and a count of what was done.
 */
#ifndef PROGRAMS_DRIVER_H
#define PROGRAMS_DRIVER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda_abi.h"

#define MIB ((size_t)1 << 20)
#define NOINLINE __attribute__((noinline))

/* Base name, version to ask for, exported name. */
#define DRIVER_FUNCTIONS(X) \
    X(cuInit, 2000, cuInit) X(cuDeviceGetCount, 2000, cuDeviceGetCount) \
    X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent, 4000, cuCtxSetCurrent) \
    X(cuCtxSynchronize, 2000, cuCtxSynchronize) X(cuMemGetInfo, 3020, cuMemGetInfo_v2) \
    X(cuMemAlloc, 3020, cuMemAlloc_v2) X(cuMemFree, 3020, cuMemFree_v2) \
    X(cuMemAllocPitch, 3020, cuMemAllocPitch_v2) X(cuMemAllocManaged, 6000, cuMemAllocManaged) \
    X(cuMemHostAlloc, 2020, cuMemHostAlloc) X(cuMemAllocHost, 3020, cuMemAllocHost_v2) \
    X(cuMemFreeHost, 2000, cuMemFreeHost) X(cuMemHostRegister, 6050, cuMemHostRegister_v2) \
    X(cuMemHostUnregister, 4000, cuMemHostUnregister) X(cuArrayCreate, 3020, cuArrayCreate_v2) \
    X(cuArray3DCreate, 3020, cuArray3DCreate_v2) X(cuArrayDestroy, 2000, cuArrayDestroy) \
    X(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate) \
    X(cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy) X(cuStreamCreate, 2000, cuStreamCreate) \
    X(cuStreamDestroy, 4000, cuStreamDestroy_v2) X(cuStreamSynchronize, 2000, cuStreamSynchronize) \
    X(cuMemAllocAsync, 11020, cuMemAllocAsync) X(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync) \
    X(cuMemFreeAsync, 11020, cuMemFreeAsync) X(cuMemPoolCreate, 11020, cuMemPoolCreate) \
    X(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo) X(cuMemPoolDestroy, 11020, cuMemPoolDestroy) \
    X(cuMemAddressReserve, 10020, cuMemAddressReserve) X(cuMemAddressFree, 10020, cuMemAddressFree) \
    X(cuMemCreate, 10020, cuMemCreate) X(cuMemMap, 10020, cuMemMap) X(cuMemSetAccess, 10020, cuMemSetAccess) \
    X(cuMemUnmap, 10020, cuMemUnmap) X(cuMemRelease, 10020, cuMemRelease) \
    X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2) X(cuStreamEndCapture, 10000, cuStreamEndCapture) \
    X(cuGraphCreate, 10000, cuGraphCreate) X(cuGraphDestroy, 10000, cuGraphDestroy) \
    X(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode) X(cuGraphAddMemFreeNode, 11040, cuGraphAddMemFreeNode) \
    X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags) X(cuGraphLaunch, 10000, cuGraphLaunch) \
    X(cuGraphExecDestroy, 10000, cuGraphExecDestroy)

static struct {
#define DRIVER_MEMBER(name, version, export) __typeof__(&export) name;
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
} cu __attribute__((unused));
static __typeof__(&cuGetProcAddress_v2) driver_look_up __attribute__((unused));
static void *driver_library __attribute__((unused));

/* How the functions are found. */
enum driver_way { BY_DLSYM, BY_GETPROC, BY_GETPROC_V1 };

static void die(const char *what, int result)
{
    fprintf(stderr, "%s failed: %d\n", what, result);
    exit(99);
}

#define CHECK(call) \
    do { \
        int result_ = (int)(call); \
        if (result_) \
            die(#call, result_); \
    } while (0)

static __attribute__((unused)) void driver_open(const char *path, int flags, enum driver_way way)
{
    driver_library = dlopen(path, RTLD_NOW | flags);
    if (!driver_library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(98);
    }
    __typeof__(&cuGetProcAddress) look_up_v1;
    void *address = dlsym(driver_library, "cuGetProcAddress_v2");
    memcpy(&driver_look_up, &address, sizeof address);
    address = dlsym(driver_library, "cuGetProcAddress");
    memcpy(&look_up_v1, &address, sizeof address);
#define DRIVER_LOAD(name, version, export) \
    address = NULL; \
    if (way == BY_DLSYM) \
        address = dlsym(driver_library, #export); \
    else if (way == BY_GETPROC) \
        CHECK(driver_look_up(#name, &address, version, 0, NULL)); \
    else \
        CHECK(look_up_v1(#name, &address, version, 0)); \
    if (!address) \
        die("finding " #export, 0); \
    memcpy(&cu.name, &address, sizeof address);
    DRIVER_FUNCTIONS(DRIVER_LOAD)
#undef DRIVER_LOAD
}

static __attribute__((unused)) void driver_use(int device)
{
    CUcontext context;
    CHECK(cu.cuInit(0));
    CHECK(cu.cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cu.cuCtxSetCurrent(context));
}

static __attribute__((unused)) void driver_ready(void)
{
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    driver_use(0);
}

/* The ledger, for the line that every program ends with. */
static struct {
    unsigned long allocations, frees;
    unsigned long long bytes;
} done __attribute__((unused));

static NOINLINE __attribute__((unused)) CUdeviceptr take(size_t bytes)
{
    CUdeviceptr address = 0;
    CHECK(cu.cuMemAlloc(&address, bytes));
    done.allocations++;
    done.bytes += bytes;
    return address;
}

static NOINLINE __attribute__((unused)) void give(CUdeviceptr address)
{
    CHECK(cu.cuMemFree(address));
    done.frees++;
}

static __attribute__((unused)) void report(const char *name)
{
    printf("%s: allocations=%lu frees=%lu bytes=%llu\n", name, done.allocations, done.frees, done.bytes);
    fflush(stdout);
}

#endif
