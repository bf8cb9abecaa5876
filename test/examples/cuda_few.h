/* The few functions of the CUDA driver that the examples call, for machines without the toolkit; with it: <cuda.h>. */
#ifndef EXAMPLES_CUDA_FEW_H
#define EXAMPLES_CUDA_FEW_H

#include <stddef.h>
#include <stdint.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t size, void *stream);

#endif
