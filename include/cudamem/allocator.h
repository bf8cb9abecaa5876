/*
 * cudamem/allocator.h: a caching allocator of GPU memory for any CUDA program: PyTorch's, with its sizes, its pools, its
 * settings and its statistics.
 *
 * Memory comes from the driver in segments and is handed out in blocks.  A freed block is kept and serves the next request
 * of its stream that fits, without asking the driver.  Nothing has to be set up: a device is opened, in its primary
 * context, by the first call that needs it.  The driver is loaded at run time (libcuda.so.1); programs link no CUDA
 * library for this one.
 *
 * Devices are ordinals as the driver counts them; -1 is the device of the calling thread's current context, or device 0
 * if it has none.  Streams are cudaStream_t or CUstream, of the device's primary context; NULL is the legacy default
 * stream.  Sizes are bytes.
 *
 * Every function may be called from any thread at any time, with two exceptions: from a trace tracker (below) and from a
 * signal handler that interrupted one of these functions.  There they do nothing and return CUDAMEM_ERROR_REENTERED.
 * `error` may always be NULL.  Unless a comment says otherwise a function returns CUDAMEM_OK or one of
 *
 *     CUDAMEM_ERROR_USAGE         an argument makes no sense
 *     CUDAMEM_ERROR_NOT_FOUND     there is no driver, or no such device
 *     CUDAMEM_ERROR_NO_MEMORY     the host has no memory for our own notes
 *     CUDAMEM_ERROR_UNSUPPORTED   a pluggable allocator is the current one and does not have this
 *     CUDAMEM_ERROR_REENTERED     see above
 *     CUDAMEM_ERROR_DRIVER        the driver failed
 *     CUDAMEM_ERROR_SHUT_DOWN     it has shut down (exit handlers may come to this)
 *
 * With CUDAMEM_DEBUG=abort in the environment a misuse (a pointer freed twice or never handed out, ...) prints what it is,
 * the stack of the call and that of the block's last call, and aborts the program.  Stacks are taken at every call then.
 */
#ifndef CUDAMEM_ALLOCATOR_H
#define CUDAMEM_ALLOCATOR_H

#include <cudamem/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Hand out memory: at least `size` bytes, aligned to 512, to be used on `stream` first.  The caller gives it back with
 * cudamem_free().  Size 0: *pointer is NULL.  CUDAMEM_ERROR_OUT_OF_MEMORY: even with all cached memory given back the device
 * or the limit has no room; the message has the figures.  CUDAMEM_ERROR_INVALID: the stream is of another context.
 * On failure *pointer is NULL.  torch.cuda.caching_allocator_alloc */
int cudamem_alloc(size_t size, int device, void *stream, void **pointer, cudamem_error *error);

/* Take a block back, from whatever thread; work on its stream need not be done: the next user of the block is of the
 * same stream.  NULL is fine.  CUDAMEM_ERROR_INVALID: not handed out by cudamem_alloc(), or freed before.
 * torch.cuda.caching_allocator_delete */
int cudamem_free(void *pointer, cudamem_error *error);

/* Another stream uses the block, too: once freed it is not used again before what that stream has to do at the time of the
 * free is done.  To be called after the work was put on the stream and before the free.  NULL and pointers that are not
 * ours are ignored.  torch.Tensor.record_stream */
int cudamem_record_stream(void *pointer, void *stream, cudamem_error *error);

/* The segment that a block lies in: its start and size.  CUDAMEM_ERROR_INVALID: not one of our blocks;
 * CUDAMEM_ERROR_UNSUPPORTED: in an expandable segment, which has no base.  c10's getBaseAllocation */
int cudamem_base(const void *pointer, void **base, size_t *size, cudamem_error *error);

/* Give every cached segment of every device back to the driver; waits for blocks that other streams still use.  While a
 * pool's scope or a capture is open on a device its default pools are left alone.  Without a device in use: nothing.
 * torch.cuda.empty_cache */
int cudamem_empty_cache(cudamem_error *error);

/* Caching on (1, as at the start) or off (0): then each cudamem_alloc() asks the driver and each cudamem_free() of such a
 * pointer gives back at once; there are no statistics and no history of them.  Blocks handed out before the switch are
 * freed as before it.  torch.cuda.caching_allocator_enable */
int cudamem_set_caching(int enabled, cudamem_error *error);

/* The share of a device's memory, from 0 to 1, that this process may reserve; 1: all of it.  Requests beyond are out of
 * memory.  CUDAMEM_ERROR_USAGE: outside of that, or no number.  torch.cuda.set_per_process_memory_fraction */
int cudamem_set_memory_fraction(double fraction, int device, cudamem_error *error);
/* torch.cuda.get_per_process_memory_fraction */
int cudamem_memory_fraction(int device, double *fraction, cudamem_error *error);

/* Settings: PyTorch's PYTORCH_CUDA_ALLOC_CONF, same words and meaning: "max_split_size_mb:128,expandable_segments:True".
 * In force from the next call on; before the first use the environment's CUDAMEM_ALLOC_CONF is.  As in PyTorch a text that
 * has an error is in force up to there (CUDAMEM_ERROR_USAGE, the message names key and place).
 * torch.cuda.memory._set_allocator_settings */
int cudamem_set_allocator_settings(const char *settings, cudamem_error *error);

/* "native", or "pluggable" after cudamem_change_allocator().  Static storage.  torch.cuda.get_allocator_backend */
const char *cudamem_allocator_backend(void);

/* Keep every allocator still: until cudamem_free_mutex_unlock(), of the same thread, calls of other threads wait; those of
 * this one go on.  May nest.  For who must fork, or begin a capture, while nobody allocates.  CUDAMEM_ERROR_STATE: unlocked
 * by a thread that did not lock.  torch.cuda.memory._free_mutex */
int cudamem_free_mutex_lock(cudamem_error *error);
int cudamem_free_mutex_unlock(cudamem_error *error);

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

/* A request found no memory.  Called in the thread of the request, before it returns, without a lock: every function of
 * this library may be called (a request that fails in there does not call observers again).  size: the segment that was
 * asked for; total: the limit, or the device's memory; free_bytes: what the device has free. */
typedef void (*cudamem_oom_observer)(void *self, int device, size_t size, size_t total, size_t free_bytes);

/* Add an observer; *id is for cudamem_detach().  Observers are called in the order in which they were added.
 * torch._C._cuda_attach_out_of_memory_observer */
int cudamem_attach_oom_observer(cudamem_oom_observer observer, void *self, uint64_t *id, cudamem_error *error);

/* What an allocator does, event by event. */
typedef struct cudamem_trace_event {
    size_t struct_size;
    int32_t action;   /* enum cudamem_action */
    int32_t device;   /* ordinal */
    int64_t stream;
    uint64_t address; /* of an oom: bytes that the device has free */
    uint64_t size;    /* bytes; of alloc and frees the requested ones, of an oom the rounded ones */
    int64_t pool[2];  /* the pool's id, 0 0 the default one */
} cudamem_trace_event;

/* Called for each event, in their order, under the device's lock: it must be quick, and every function of this library
 * that it calls answers CUDAMEM_ERROR_REENTERED.  The event is valid during the call. */
typedef void (*cudamem_trace_tracker)(void *self, const cudamem_trace_event *event);

/* torch's attachAllocatorTraceTracker */
int cudamem_attach_trace_tracker(cudamem_trace_tracker tracker, void *self, uint64_t *id, cudamem_error *error);

/* An observer or tracker is called no more (one that is being called just now in another thread ends its call).
 * CUDAMEM_ERROR_NOT_FOUND: there is none of this id. */
int cudamem_detach(uint64_t id, cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
