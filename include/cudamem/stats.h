/*
 * cudamem/stats.h: the statistics of the caching allocator, as torch.cuda.memory_stats() has them.
 *
 * A device that was not used has zeroes; before the first use of any device there are no statistics: visitors visit
 * nothing, JSON is {}, every number is 0 (as in PyTorch before CUDA is initialised).  The numbers of one answer are of one
 * moment.  Threads, errors, devices: as in cudamem/allocator.h.
 */
#ifndef CUDAMEM_STATS_H
#define CUDAMEM_STATS_H

#include <cudamem/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a number moved: now, its highest, the sum of its increases, the sum of its decreases. */
typedef struct cudamem_stat {
    int64_t current, peak, allocated, freed;
} cudamem_stat;

/* One kind of number: of everything, of the small pools, of the large pools. */
typedef struct cudamem_pool_stats {
    cudamem_stat all, small_pool, large_pool;
} cudamem_pool_stats;

typedef struct cudamem_memory_stats {
    size_t struct_size; /* sizeof(cudamem_memory_stats), set by the caller */
    int32_t is_used;    /* 0: no device was used yet, all is zero */
    int32_t reserved;
    int64_t num_alloc_retries;    /* requests that had to flush the cache and ask again */
    int64_t num_ooms;             /* requests that failed for want of memory */
    int64_t max_split_size;       /* bytes, as it was when the device was opened; -1: unlimited */
    int64_t num_sync_all_streams; /* times that all pending frees were waited for */
    int64_t num_device_alloc;     /* calls of the driver for memory */
    int64_t num_device_free;
    cudamem_pool_stats allocation;           /* blocks handed out and not freed */
    cudamem_pool_stats segment;              /* segments from the driver */
    cudamem_pool_stats active;               /* blocks handed out, or waiting for other streams */
    cudamem_pool_stats inactive_split;       /* free blocks that are a part of their segment: not releasable */
    cudamem_pool_stats allocated_bytes;
    cudamem_pool_stats reserved_bytes;
    cudamem_pool_stats active_bytes;
    cudamem_pool_stats inactive_split_bytes;
    cudamem_pool_stats requested_bytes;      /* as asked for by the program, without rounding */
    cudamem_stat oversize_allocations;       /* of max_split_size and more */
    cudamem_stat oversize_segments;
} cudamem_memory_stats;

/* Everything in one struct; set struct_size first.  torch.cuda.memory_stats */
int cudamem_get_memory_stats(int device, cudamem_memory_stats *stats, cudamem_error *error);

/* Call visit for each flat key and its value, sorted by key as plain text ("active.all.allocated" first); non-zero from
 * visit ends it, and is the answer.  visit may call this library.  torch.cuda.memory_stats */
int cudamem_visit_memory_stats(int device, int (*visit)(void *self, const char *key, int64_t value), void *self,
                               cudamem_error *error);

/* As JSON in one line: flat (nested 0), as memory_stats() is, or nested, as memory_stats_as_nested_dict() is, each with its
 * order of keys.  *text is the caller's, for cudamem_text_free(). */
int cudamem_memory_stats_json(int device, int nested, char **text, cudamem_error *error);

/* The table of torch.cuda.memory_summary(), the same bytes.  *text is the caller's, for cudamem_text_free(). */
int cudamem_memory_summary(int device, int abbreviated, char **text, cudamem_error *error);

/* A text that this library made; NULL is fine. */
void cudamem_text_free(char *text);

/* Begin the sums (allocated, freed) and the counters anew.  torch.cuda.reset_accumulated_memory_stats */
int cudamem_reset_accumulated_memory_stats(int device, cudamem_error *error);
/* Begin the peaks anew at the current values.  torch.cuda.reset_peak_memory_stats */
int cudamem_reset_peak_memory_stats(int device, cudamem_error *error);
/* Deprecated, as in PyTorch: both are cudamem_reset_peak_memory_stats(). */
int cudamem_reset_max_memory_allocated(int device, cudamem_error *error);
int cudamem_reset_max_memory_cached(int device, cudamem_error *error);

/* Bytes: of blocks handed out, and the most they were; of segments, and the most they were.  On failure *bytes is 0.
 * torch.cuda.memory_allocated, max_memory_allocated, memory_reserved, max_memory_reserved */
int cudamem_memory_allocated(int device, uint64_t *bytes, cudamem_error *error);
int cudamem_max_memory_allocated(int device, uint64_t *bytes, cudamem_error *error);
int cudamem_memory_reserved(int device, uint64_t *bytes, cudamem_error *error);
int cudamem_max_memory_reserved(int device, uint64_t *bytes, cudamem_error *error);
/* Deprecated, as in PyTorch: cudamem_memory_reserved() and cudamem_max_memory_reserved(). */
int cudamem_memory_cached(int device, uint64_t *bytes, cudamem_error *error);
int cudamem_max_memory_cached(int device, uint64_t *bytes, cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
