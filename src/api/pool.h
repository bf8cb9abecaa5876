/*
 * Private pools from inside: a pool's part on each device where it was used, and scopes that send requests to it.
 */
#ifndef API_POOL_H
#define API_POOL_H

#include "api/library.h"

#include <cudamem/pool.h>

struct pool_return { /* a segment that came from a pool's callbacks; made with it, so that giving it back needs no memory */
    struct pool_use *use;
    uint64_t address, size;
    int64_t stream;
    struct pool_return *next;
};

struct pool_use { /* of one pool on one device; stays as long as the pool */
    struct cudamem_pool *pool;
    struct library_device *device;
    struct pool_source source;
    struct pool_return *segments; /* under the device's lock */
    uint64_t thread;              /* that opened its scope, 0 none */
    unsigned open;                /* scopes and captures under way */
};

struct cudamem_pool {
    atomic_int references; /* the handle, captures, segments from callbacks */
    int ordinal;           /* the device that it was made on */
    struct pool_id id;
    cudamem_pool_options options;
    _Atomic(struct pool_use *) uses[LIBRARY_DEVICES];
};

/* references 1, of the handle; (0, n) or, of a capture, (n, 0).  It has a use on the device. */
int pool_new(const cudamem_pool_options *options, int ordinal, bool of_capture, cudamem_pool **pool, struct error *err);
void pool_drop(cudamem_pool *pool); /* one reference less */
int pool_use_on(cudamem_pool *pool, struct library_device *device, struct pool_use **use, struct error *err);

/* Inside library_enter(): a pool of this id takes the requests that the filter takes; made if it is not there.
 * CUDAMEM_ERROR_STATE: it has a scope already.  The use that this adds ends with scope_release(). */
int scope_open(struct library_device *device, struct pool_id id, const struct pool_options *options,
               bool (*filter)(void *self, int64_t stream), void *self, struct error *err);
int scope_close(struct library_device *device, struct pool_id id, struct error *err);
void scope_release(struct library_device *device, struct pool_id id);

/* Outside of locks: release a dropped pool's cached segments, if no scope is open there. */
int pool_flush(struct library_device *device, struct pool_id id, struct error *err);

#endif
