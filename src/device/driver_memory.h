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
#include "device/memory_device.h"

struct driver_memory;

/* library: a path or name, NULL for the system's driver.  STATUS_NOT_FOUND if it cannot be loaded, lacks a function or has
 * no such device (err says which); no memory. */
int driver_memory_open(const char *library, int ordinal, struct driver_memory **result, struct error *err);

/* Nothing that was handed out may be in use any more; NULL is fine. */
void driver_memory_close(struct driver_memory *memory);

/* Valid until driver_memory_close(). */
struct memory_device driver_memory_table(struct driver_memory *memory);

#endif
