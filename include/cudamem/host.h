/*
 * cudamem/host.h: a caching allocator of pinned host memory, PyTorch's: what cuMemHostAlloc() gives is kept and handed
 * out again, because that call is slow.
 *
 * A request is rounded up to a power of two and served by a free block of just that size, or by the driver; blocks are
 * never split.  A block that was freed is used again when everything that the streams told of had to do with it at the
 * time of the free is done; whether it is, is looked at by the next request.
 *
 * The memory is pinned for every device (portable).  The first request makes the current device's primary context, as
 * cudamem_alloc() does.  Every function may be called from any thread, but not from a trace tracker (CUDAMEM_ERROR_REENTERED).
 * Errors as in cudamem/allocator.h.
 */
#ifndef CUDAMEM_HOST_H
#define CUDAMEM_HOST_H

#include <cudamem/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pinned host memory of at least `size` bytes; the caller gives it back with cudamem_host_free().  Size 0: *pointer is NULL.
 * CUDAMEM_ERROR_OUT_OF_MEMORY: the driver has none.  On failure *pointer is NULL.  PyTorch's CachingHostAllocator,
 * torch.Tensor.pin_memory */
int cudamem_host_alloc(size_t size, void **pointer, cudamem_error *error);

/* Take a block back; NULL is fine.  CUDAMEM_ERROR_INVALID: not handed out by cudamem_host_alloc(), or freed before. */
int cudamem_host_free(void *pointer, cudamem_error *error);

/* A stream uses the block: once freed it is not used again before what that stream has to do at the time of the free is
 * done.  To be called after the work (an asynchronous copy) was put on the stream and before the free.  NULL is the
 * legacy default stream of the current device.  CUDAMEM_ERROR_INVALID: not one of our blocks.
 * PyTorch's CachingHostAllocator_recordEvent */
int cudamem_host_record_stream(void *pointer, void *stream, cudamem_error *error);

/* Give every free block back to the driver; does not wait for those that a stream still uses.
 * torch._C._host_emptyCache */
int cudamem_host_empty_cache(cudamem_error *error);

/* --- statistics ---------------------------------------------------------------------------------------------------- */

/* Calls of the driver, in microseconds. */
typedef struct cudamem_host_time {
    int64_t total, max, min, count, avg;
} cudamem_host_time;

typedef struct cudamem_host_memory_stats {
    size_t struct_size; /* sizeof(cudamem_host_memory_stats), set by the caller */
    int64_t reserved;
    int64_t num_host_alloc;       /* blocks from the driver, as allocations.allocated */
    int64_t num_host_free;        /* blocks given back to it, as allocations.freed */
    cudamem_stat allocations;     /* blocks of the allocator, in use or kept */
    cudamem_stat allocated_bytes; /* their bytes, rounded up */
    cudamem_stat active_requests; /* blocks handed out, until they may be used again */
    cudamem_stat active_bytes;
    cudamem_host_time host_alloc_time, host_free_time;
} cudamem_host_memory_stats;

/* All of one moment; before the first request all is zero.  torch.cuda.host_memory_stats */
int cudamem_get_host_memory_stats(cudamem_host_memory_stats *stats, cudamem_error *error);

/* Call visit for each flat key and its value, sorted by key as plain text ("active_bytes.allocated" first); non-zero from
 * visit ends it, and is the answer.  torch.cuda.host_memory_stats */
int cudamem_visit_host_memory_stats(int (*visit)(void *self, const char *key, int64_t value), void *self,
                                    cudamem_error *error);

/* As JSON in one line, flat (nested 0) or nested (torch.cuda.host_memory_stats_as_nested_dict).  *text is the caller's,
 * for cudamem_text_free(). */
int cudamem_host_memory_stats_json(int nested, char **text, cudamem_error *error);

/* Begin the sums (allocated, freed; total and count of the times) anew.  torch.cuda.reset_accumulated_host_memory_stats */
int cudamem_reset_accumulated_host_memory_stats(cudamem_error *error);
/* Begin the peaks (peak; max and min of the times) anew.  torch.cuda.reset_peak_host_memory_stats */
int cudamem_reset_peak_host_memory_stats(cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
