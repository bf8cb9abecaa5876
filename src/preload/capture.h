/*
 * Which streams are being captured into graphs, from the calls that begin and end captures: during one, the driver must
 * not be asked anything that is not free of side effects, and a stream-ordered allocation is a node of a graph, not
 * memory.  A few words under a spin lock that is held for a few instructions.
 */
#ifndef PRELOAD_CAPTURE_H
#define PRELOAD_CAPTURE_H

#include "device/cuda_abi.h"

#include <stdbool.h>

/* Any capture in this process. */
bool capture_any(void);

/* Is this stream captured?  One that joined a capture by an event is asked of the driver. */
bool capture_of(CUstream stream);

/* The stream that a call with a default stream means. */
static inline CUstream capture_stream(CUstream stream, bool per_thread)
{
    return stream == NULL ? (per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY) : stream;
}

#endif
