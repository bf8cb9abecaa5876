/* What the files of the caching mode share.  Not for others. */
#ifndef PRELOAD_CACHING_INTERNAL_H
#define PRELOAD_CACHING_INTERNAL_H

#include "alloc/allocator.h"
#include "device/driver_memory.h"
#include "preload/caching.h"

#include <pthread.h>

#define CACHING_DEVICES 64

struct caching_functions { /* of the real driver, found with it */
    bool ready;
    struct driver_memory_functions memory;
    __typeof__(cuCtxGetCurrent) *cuCtxGetCurrent;
    __typeof__(cuCtxGetDevice) *cuCtxGetDevice;
    __typeof__(cuDevicePrimaryCtxGetState) *cuDevicePrimaryCtxGetState;
    __typeof__(cuStreamGetCtx) *cuStreamGetCtx;
    __typeof__(cuDeviceGetDefaultMemPool) *cuDeviceGetDefaultMemPool;
    __typeof__(cuCtxEnablePeerAccess) *cuCtxEnablePeerAccess;
};
extern struct caching_functions caching_driver;

struct cache { /* of a device's primary context; stays for the life of the process */
    pthread_mutex_t lock;
    CUdevice device;
    _Atomic(CUcontext) context; /* NULL: none that we serve */
    uint64_t generation;        /* one more with every context */
    bool is_gone;               /* the context went: the driver is asked nothing */
    struct driver_memory *memory;
    struct memory_device under; /* its functions */
    struct allocator *allocator;
    uint64_t limit;

    /* The call under way. */
    const struct hook *hook;
    bool told;                  /* it has recorded something */
    int64_t flushes;            /* of the allocator before it */
    CUstream stream;            /* where events are put down */
    uint64_t freed_size;        /* of the block that it frees */
    struct allocator_event served;
    struct allocator_event *waiting; /* frees that have not ended */
    size_t waiting_count, waiting_capacity;
    bool waiting_lost;               /* there was no memory for one */

    /* Whole waits for the context, by number: those that began, the last that is done. */
    atomic_ullong sync_begun, sync_done;
    uint64_t legacy_until;      /* free blocks of the plain lane may wait for the legacy stream until that one */

    /* What stream-ordered blocks come to, for the numbers of the device's own pool: their bytes as requested, and the
     * memory behind them: segments of other lanes, and blocks that lie in the plain one. */
    uint64_t async_bytes, async_segments, async_in_plain;
    uint64_t async_high, pool_high;
    atomic_bool other_pool;     /* the program chose or shared another pool: stream-ordered memory is the driver's */
};

extern __thread unsigned caching_busy; /* this thread may hold a lock of ours */
extern atomic_bool caching_exports;    /* a block was exported: from then on plain memory is the driver's own */
extern atomic_bool caching_peers;      /* another device may use our memory */

/* caching.c */
struct cache *cache_of_context(CUcontext context); /* NULL: it is not served */
struct cache *cache_current(void);
struct cache *cache_of_device(CUdevice device);    /* NULL: none there */
void cache_other_pool(CUdevice device, bool other); /* stream-ordered memory there is the driver's */
bool cache_flush(struct cache *cache, const struct hook *hook); /* what is cached goes back; true: there was some */
void cache_lock(struct cache *cache, const struct hook *hook, CUstream stream); /* a call begins */
void cache_unlock(struct cache *cache);
CUresult cache_enter(struct cache *cache, bool *pushed);
void cache_leave(bool pushed);
CUresult cache_synchronize(struct cache *cache);   /* all work of the context is done */
struct memory_device cache_device(struct cache *cache); /* caching_device.c: what its allocator stands on */

/* caching_events.c: what the allocator does becomes entries. */
void cache_trace(void *self, const struct allocator_event *event);
void cache_begin(struct cache *cache, const struct hook *hook, CUstream stream);
void cache_served(struct cache *cache, uint64_t size); /* the allocation, once its block's size is known */
void cache_end(struct cache *cache);                   /* statistics */
void cache_tell(struct cache *cache, uint8_t action, uint64_t address, uint64_t size, uint64_t requested, int64_t stream);

/* caching_ranges.c: which addresses are ours; locks for itself. */
bool ranges_add(struct cache *cache, uint64_t address, uint64_t size);
void ranges_remove(uint64_t address);
void ranges_forget(struct cache *cache);  /* and its blocks */
bool blocks_add(struct caching_block *block);              /* fills id and segment */
enum caching_place blocks_claim(uint64_t address, struct caching_block *block); /* to free it: nobody else may */
void blocks_unclaim(uint64_t address);
void blocks_remove(uint64_t address);
void blocks_exported(uint64_t address);
void ranges_hold(bool hold); /* around a fork */

/* caching_lanes.c: streams' own blocks; locks for itself. */
#define LANE_PLAIN 0u
#define PLAIN_ID 0 /* its number */
struct cache *lane_of(CUstream stream, uint32_t *lane); /* NULL: not served */
int64_t lane_id(uint32_t lane);
void lanes_forget(struct cache *cache);
void lanes_hold(bool hold);
void imports_hold(bool hold); /* caching_share.c */

#endif
