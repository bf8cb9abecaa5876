/*
 * Which streams are being captured.  Uses the driver table.
 */
#include "preload/capture.h"

#include "preload/caching.h"
#include "preload/driver.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#include <stdatomic.h>

#define CAPTURE_MAX 64 /* at a time; more are counted, and asked of the driver */

static _Atomic(CUstream) capture_streams[CAPTURE_MAX];
static atomic_int capture_count;

bool capture_any(void)
{
    return atomic_load_explicit(&capture_count, memory_order_relaxed) > 0;
}

static bool is_noted(CUstream stream)
{
    for (int i = 0; i < CAPTURE_MAX; i++)
        if (atomic_load_explicit(&capture_streams[i], memory_order_relaxed) == stream)
            return true;
    return false;
}

bool capture_of(CUstream stream)
{
    if (!capture_any())
        return false;
    if (is_noted(stream))
        return true;
    /* a query that a capture allows, but for the legacy stream, which cannot be captured */
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream == CU_STREAM_LEGACY || !driver.cuStreamIsCapturing)
        return false;
    return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* The per-thread default stream is another one in each thread: it is counted, and asked of the driver. */
static void begin(CUstream stream)
{
    atomic_fetch_add(&capture_count, 1);
    for (int i = 0; i < CAPTURE_MAX && stream != CU_STREAM_PER_THREAD; i++) {
        CUstream nothing = NULL;
        if (atomic_compare_exchange_strong(&capture_streams[i], &nothing, stream))
            return;
    }
}

static bool forget(CUstream stream)
{
    for (int i = 0; i < CAPTURE_MAX; i++) {
        CUstream noted = stream;
        if (atomic_compare_exchange_strong(&capture_streams[i], &noted, NULL))
            return true;
    }
    return false;
}

static void end(CUstream stream)
{
    forget(stream);
    if (atomic_fetch_sub(&capture_count, 1) <= 0)
        atomic_store(&capture_count, 0);
}

/* A capture that could not begin leaves no trace; one that fails to end has ended all the same, unless it was none. */
static CUresult began(CUresult result, CUstream stream)
{
    preload_saw_call();
    if (result == CUDA_SUCCESS)
        begin(stream);
    return result;
}

static CUresult ended(CUresult result, CUstream stream)
{
    preload_saw_call();
    if (result != CUDA_ERROR_ILLEGAL_STATE && result != CUDA_ERROR_INVALID_VALUE &&
        result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        end(stream);
    return result;
}

CUresult wrap_cuStreamBeginCapture(CUstream stream)
{
    return began(driver.cuStreamBeginCapture(stream), capture_stream(stream, false));
}

CUresult wrap_cuStreamBeginCapture_ptsz(CUstream stream)
{
    return began(driver.cuStreamBeginCapture_ptsz(stream), capture_stream(stream, true));
}

CUresult wrap_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return began(driver.cuStreamBeginCapture_v2(stream, mode), capture_stream(stream, false));
}

CUresult wrap_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
    return began(driver.cuStreamBeginCapture_v2_ptsz(stream, mode), capture_stream(stream, true));
}

CUresult wrap_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    return began(driver.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode),
                 capture_stream(stream, false));
}

CUresult wrap_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                               const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    return began(driver.cuStreamBeginCaptureToGraph_ptsz(stream, graph, dependencies, edges, count, mode),
                 capture_stream(stream, true));
}

CUresult wrap_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    return ended(driver.cuStreamEndCapture(stream, graph), capture_stream(stream, false));
}

CUresult wrap_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return ended(driver.cuStreamEndCapture_ptsz(stream, graph), capture_stream(stream, true));
}

/* A stream destroyed while it was captured ends the capture. */
static CUresult destroyed(CUresult result, CUstream stream)
{
    if (result == CUDA_SUCCESS && stream && forget(stream))
        atomic_fetch_sub(&capture_count, 1);
    return result;
}

CUresult wrap_cuStreamDestroy(CUstream stream)
{
    caching_stream_goes(stream);
    return destroyed(driver.cuStreamDestroy(stream), stream);
}

CUresult wrap_cuStreamDestroy_v2(CUstream stream)
{
    caching_stream_goes(stream);
    return destroyed(driver.cuStreamDestroy_v2(stream), stream);
}
