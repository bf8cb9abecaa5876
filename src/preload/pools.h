/*
 * The pools of stream-ordered memory that the program made itself: on a device other than the current one perhaps, or
 * in the host's memory.  A table of fixed size without a lock; pools beyond it are taken for the current device's.
 */
#ifndef PRELOAD_POOLS_H
#define PRELOAD_POOLS_H

#include "device/cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

#define POOL_ON_HOST UINT32_MAX /* in place of a device */

void pools_add(CUmemoryPool pool, unsigned device);
bool pools_take(CUmemoryPool pool, unsigned *device); /* out of the table */
bool pools_find(CUmemoryPool pool, unsigned *device);
size_t pools_of_device(unsigned device, CUmemoryPool *found, size_t room); /* how many */

#endif
