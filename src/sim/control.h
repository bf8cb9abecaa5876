/*
 * What the simulated libcuda.so.1 offers beyond the driver API, for tests:
 * found by cuGetProcAddress under these names, not exported.  A real driver
 * has none of them.
 *
 * The environment, read once, at cuInit:
 *   CUDAMEM_SIM          devices: "2:16GiB" (two of 16 GiB), "2" (the same), "16GiB,8GiB", "0:1GiB" (none); default "1:16GiB"
 *   CUDAMEM_SIM_FAULTS   "NAME:N=CODE,...": the N-th call (N+: and all later ones) of the entry point NAME as exported
 *                        (cuMemAlloc_v2) gives CODE: a number, oom, or lost (this and everything after gives 999)
 *   CUDAMEM_SIM_EVENTS   "manual": work on streams is done only when told (below) or when somebody synchronises
 *   CUDAMEM_SIM_CONTEXT  bytes that each context takes for itself; default 0
 *   CUDAMEM_SIM_MODULE   the same for each module and library that is loaded
 *   CUDAMEM_SIM_FORK     "1": a forked child may go on using the device; else it gets CUDA_ERROR_NOT_INITIALIZED
 * A value that makes no sense: cuInit gives CUDA_ERROR_SYSTEM_NOT_READY, whose cuGetErrorString says what is wrong.
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "device/cuda_types.h"

/* Calls so far of one entry point as exported, or (NULL) of all; these functions do not count. */
unsigned long long cudamemSimControlCalls(const char *name);
/* Streams: stand still until told (1) or not (0); let up to count items of work be done, on one stream or (NULL) each. */
void cudamemSimControlManual(int manual);
unsigned long long cudamemSimControlComplete(CUstream stream, unsigned long long count);
/* Further faults, as in the environment; 0: done.  The device is lost. */
int cudamemSimControlFaults(const char *text);
void cudamemSimControlLose(CUdevice device);
/* A variable of a module: what a compiler's fat binary would say to a real driver (our runtime calls this). */
CUresult cudamemSimControlVariable(CUmodule module, const char *name, size_t bytes, int managed);

#endif
