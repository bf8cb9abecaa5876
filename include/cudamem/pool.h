/*
 * cudamem/pool.h: private pools of memory, as torch.cuda.MemPool, and captures of CUDA graphs.
 *
 * A pool has segments of its own, from the driver or from callbacks of yours; nothing moves between pools.  What a
 * thread asks for between cudamem_pool_begin() and cudamem_pool_end() comes from the pool; it is freed with
 * cudamem_free() as ever, at any time.  A pool that is used on several devices is a pool on each of them, under the
 * same id.
 *
 * As in PyTorch: while a scope is open on a device, by whatever thread, frees that wait for other streams are not
 * looked at, and a request that finds no memory does not flush the cache.  Threads, errors, devices: as in
 * cudamem/allocator.h.
 */
#ifndef CUDAMEM_POOL_H
#define CUDAMEM_POOL_H

#include <cudamem/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudamem_pool cudamem_pool;

/* A pool's id, as in snapshots: 0 n of pools that cudamem_pool_create() made, n 0 of captures' own ones. */
typedef struct cudamem_pool_id {
    int64_t first, second;
} cudamem_pool_id;

/* Options of cudamem_pool_create(); set struct_size to sizeof, zero means the default. */
typedef struct cudamem_pool_options {
    size_t struct_size;
    /* Where the pool's segments come from; NULL: the driver.  Both or none.  alloc returns NULL for no memory, which
     * is to the allocator what a full device is.  Called in the thread whose call needs it, without a lock, with no
     * scope of that thread in force: every function of this library may be called, and may ask for memory.  They stay
     * in use until the pool's last segment is gone.  torch.cuda.MemPool.from_py_allocator */
    void *(*alloc)(void *self, size_t size, int device, void *stream);
    void (*free)(void *self, void *pointer, size_t size, int device, void *stream);
    void *self;
    int32_t use_on_oom; /* other requests may use what is free here before they fail */
    int32_t no_split;   /* segments are handed out whole */
} cudamem_pool_options;

/* Make a pool on a device (-1: the current one).  *pool is the caller's, for cudamem_pool_destroy().
 * torch.cuda.MemPool(allocator, use_on_oom, no_split) */
int cudamem_pool_create(const cudamem_pool_options *options, int device, cudamem_pool **pool, cudamem_error *error);

/* Give the handle up; NULL is fine.  Cached segments of the pool are released at once (not while a scope of another
 * pool is open: then by the next flush).  Blocks that are still in use stay valid; their segments go by the first
 * flush after their free, and with the last one the pool.  CUDAMEM_ERROR_STATE: a scope of this pool is open; it
 * stays. */
int cudamem_pool_destroy(cudamem_pool *pool, cudamem_error *error);

cudamem_pool_id cudamem_pool_get_id(const cudamem_pool *pool);

/* Who uses it, on the device that it was made on: 1 for the handle, and one more for each open scope and each capture
 * that was not closed.  torch.cuda.MemPool.use_count */
int cudamem_pool_use_count(const cudamem_pool *pool, int *count, cudamem_error *error);

/* Requests of this thread on this device (-1: the current one) come from the pool, until cudamem_pool_end() of the
 * same pool and device.  Scopes of different pools may nest; the newest is in force.  CUDAMEM_ERROR_STATE: this
 * pool's scope is open already (on this device, by whatever thread), or, for the end, is not.
 * torch.cuda.use_mem_pool */
int cudamem_pool_begin(cudamem_pool *pool, int device, cudamem_error *error);
int cudamem_pool_end(cudamem_pool *pool, int device, cudamem_error *error);

/* --- captures ------------------------------------------------------------------------------------------------------ */

typedef struct cudamem_capture cudamem_capture;

/* The stream captures a graph now (cudaStreamBeginCapture was called): requests for it, and for streams that joined
 * the capture, come from `pool` (NULL: one of the capture's own) until cudamem_capture_end().  No event is queried in
 * between and nothing is flushed; frees that wait for other streams wait for the end.  *capture is the caller's: it
 * keeps the pool's segments, which the graph has the addresses of, until cudamem_capture_close().  A capture that is
 * not told here is not known: its requests would come from memory that others get, too, once it is free.
 * CUDAMEM_ERROR_STATE: the stream does not capture, or the pool is in a scope already.  torch.cuda.graph,
 * CUDAGraph.capture_begin */
int cudamem_capture_begin(int device, void *stream, cudamem_pool *pool, cudamem_capture **capture,
                          cudamem_error *error);

/* To be called when the stream's capture has ended, well or not.  CUDAMEM_ERROR_STATE: it was before. */
int cudamem_capture_end(cudamem_capture *capture, cudamem_error *error);

/* The graph is gone: its memory may be released by the next flush.  Ends the capture if that is open.  NULL is fine.
 * CUDAGraph.reset */
int cudamem_capture_close(cudamem_capture *capture, cudamem_error *error);

/* The id of the pool that it uses. */
cudamem_pool_id cudamem_capture_pool_id(const cudamem_capture *capture);

#ifdef __cplusplus
}
#endif
#endif
