/*
 * The program's memory served by our caching allocator (CUDAMEM_ALLOCATOR=caching): what the wrappers ask.
 *
 * Each device has one allocator (src/alloc) that takes its segments from the driver, in the device's primary context;
 * memory of other contexts, of pools that the program made, and all that is asked for during the capture of a graph is
 * the driver's as ever.  A plain allocation comes from blocks that all streams are done with: a plain free waits for the
 * context first, as the driver does.  One in the order of a stream comes from that stream's own blocks (caching_lanes.c).
 *
 * A function that answers true has served the call and set *result; false: the driver is to be asked.  Locks: one an
 * allocator, held while the driver is asked for segments; below it one for the tables of addresses and streams.  A call
 * that comes while its own thread is inside (a signal handler, the driver itself) never waits for them.
 */
#ifndef PRELOAD_CACHING_H
#define PRELOAD_CACHING_H

#include "preload/hook.h"

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool caching_switch;
static inline bool caching_is_on(void)
{
    return atomic_load_explicit(&caching_switch, memory_order_relaxed);
}

/* Read the environment; false with the reason in message: settings that make no sense. */
bool caching_start(char *message, size_t message_size);

/* The driver's functions, when it is found; find(self, name). */
void caching_found_driver(void *(*find)(void *self, const char *name), void *self);

/* Streams as the driver names them, defaults resolved (capture_stream). */
bool caching_alloc(struct hook *hook, CUdeviceptr *address, size_t bytes, CUresult *result);
bool caching_alloc_async(struct hook *hook, CUdeviceptr *address, size_t bytes, CUstream stream, CUresult *result);
bool caching_free(struct hook *hook, CUdeviceptr address, CUresult *result);
bool caching_free_async(struct hook *hook, CUdeviceptr address, CUstream stream, CUresult *result);

/* The driver refused memory: what is cached goes back to it.  True: there was some, ask again. */
bool caching_makes_room(struct hook *hook, CUresult result);

/* A stream is about to be destroyed; a device's primary context is gone with all of its memory. */
void caching_stream_goes(CUstream stream);
void caching_context_gone(struct hook *hook, CUdevice device);

/* Memory that the program could have besides what the driver has free, for the current context. */
void caching_add_free(size_t *free_bytes);

/* Which block an address lies in. */
enum caching_place { CACHING_ELSEWHERE, CACHING_IN_NO_BLOCK, CACHING_IN_BLOCK };
struct caching_block {
    uint64_t address, requested, size;
    uint64_t id;         /* never used twice */
    struct cache *cache;
    uint64_t generation; /* of the cache: a reset of the context ends it */
    uint64_t segment;    /* where its segment begins */
    uint32_t lane;       /* index of its stream's */
    bool async, exported, leaving;
};
enum caching_place caching_find(uint64_t address, struct caching_block *block);

/* The context of a plain block; NULL for a stream-ordered one, which has none. */
CUcontext caching_context_of(const struct caching_block *block);

/* The pool that a stream-ordered block is said to be of. */
CUmemoryPool caching_pool_of(const struct caching_block *block);

/* The device's own pool: what our blocks add to its numbers; trimmed; its marks reset; used instead of ours from now on. */
struct caching_pool {
    uint64_t reserved, reserved_high, used, used_high;
};
bool caching_pool_numbers(CUmemoryPool pool, struct caching_pool *numbers);
void caching_pool_trim(struct hook *hook, CUmemoryPool pool, uint64_t keep);
void caching_pool_reset(CUmemoryPool pool, bool reserved, bool used);
void caching_pool_chosen(CUdevice device, CUmemoryPool pool);
void caching_pool_shared(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count);

/* The current context's device may use another context's memory. */
void caching_peer_enabled(CUcontext owner);

/* Interprocess handles of blocks (caching_share.c). */
bool caching_export(CUipcMemHandle *handle, CUdeviceptr address, CUresult *result);
bool caching_import(CUdeviceptr *address, const CUipcMemHandle *handle, unsigned flags, uint64_t *size, CUresult *result);
bool caching_imported(CUdeviceptr address, uint64_t *start, uint64_t *size);
CUdeviceptr caching_import_ends(CUdeviceptr address); /* what the driver opened for it; the address itself if not ours */

#endif
