/*
 * Memory of a real device, for an allocator to stand on: the functions of device/memory_device.h over a CUDA driver, be
 * it the system's libcuda.so.1 or the simulator's.  The driver is loaded by name and never linked.
 *
 * It holds the device's primary context, and makes it current around each call only, so that the caller's own choice
 * stays.  Segments are asked for under the relaxed capture mode, as PyTorch does, so that a stream may be capturing.
 * Events are made once and used again.  Calls are the allocator's, under its lock; statuses are the driver's CUresult.
 */
#ifndef DEVICE_DRIVER_MEMORY_H
#define DEVICE_DRIVER_MEMORY_H

#include "base/error.h"
#include "device/cuda_abi.h"
#include "device/memory_device.h"

struct driver_memory;

/* What is called of a driver. */
#define DRIVER_MEMORY_FUNCTIONS(F)                                                                               \
    F(cuInit)                                                                                                    \
    F(cuDeviceGet)                                                                                               \
    F(cuDevicePrimaryCtxRetain)                                                                                  \
    F(cuDevicePrimaryCtxRelease_v2)                                                                              \
    F(cuCtxPushCurrent_v2)                                                                                       \
    F(cuCtxPopCurrent_v2)                                                                                        \
    F(cuCtxSynchronize)                                                                                          \
    F(cuThreadExchangeStreamCaptureMode)                                                                         \
    F(cuMemAlloc_v2)                                                                                             \
    F(cuMemFree_v2)                                                                                              \
    F(cuMemGetInfo_v2)                                                                                           \
    F(cuMemAddressReserve)                                                                                       \
    F(cuMemAddressFree)                                                                                          \
    F(cuMemCreate)                                                                                               \
    F(cuMemRelease)                                                                                              \
    F(cuMemMap)                                                                                                  \
    F(cuMemUnmap)                                                                                                \
    F(cuMemSetAccess)                                                                                            \
    F(cuEventCreate)                                                                                             \
    F(cuEventDestroy_v2)                                                                                         \
    F(cuEventRecord)                                                                                             \
    F(cuEventQuery)                                                                                              \
    F(cuEventSynchronize)                                                                                        \
    F(cuStreamSynchronize)

struct driver_memory_functions {
#define DRIVER_MEMORY_MEMBER(name) __typeof__(&name) name;
    DRIVER_MEMORY_FUNCTIONS(DRIVER_MEMORY_MEMBER)
#undef DRIVER_MEMORY_MEMBER
};

/* Fill the table by find(self, name).  0, or STATUS_NOT_FOUND with the first name that is missing. */
int driver_memory_look_up(struct driver_memory_functions *functions, void *(*find)(void *self, const char *name),
                          void *self, struct error *err);

/* library: a path or name, NULL for the system's driver.  STATUS_NOT_FOUND if it cannot be loaded, lacks a function or has
 * no such device (err says which); no memory. */
int driver_memory_open(const char *library, int ordinal, struct driver_memory **result, struct error *err);

/* Over functions found before, in a context that is there and stays the caller's: nothing is loaded or retained. */
int driver_memory_attach(const struct driver_memory_functions *functions, CUdevice device, CUcontext context,
                         struct driver_memory **result, struct error *err);

/* Nothing that was handed out may be in use any more; NULL is fine. */
void driver_memory_close(struct driver_memory *memory);

/* The context is gone with all that was in it: nothing is given back. */
void driver_memory_forget(struct driver_memory *memory);

/* What is mapped, now and later, may be used by another device, too.  The driver's status. */
int driver_memory_share(struct driver_memory *memory, CUdevice device);

/* Valid until driver_memory_close(). */
struct memory_device driver_memory_table(struct driver_memory *memory);

#endif
