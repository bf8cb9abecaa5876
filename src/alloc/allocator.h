/*
 * The caching allocator of one device: PyTorch's native CUDA caching allocator, bit for bit (c10/cuda/CUDACachingAllocator).
 *
 * Nouns: a segment is memory from the device; a block is a piece of it, free or handed out; blocks of a segment are
 * linked by address; a pool holds free blocks (a small and a large one for the default pool and for every private
 * pool); a set holds those of one stream in order of size and address.  Expandable segments are reserved address space
 * whose blocks are mapped (backed by memory) or unmapped.
 *
 * Contexts are the caller's own numbers for captured stacks; 0 is none.  They are kept and handed back, never looked at.
 * Not thread safe: the caller holds one lock around every call.  The trace callback and the device's functions run
 * inside that lock and must not come back.
 *
 * Statuses: 0, ALLOCATOR_OUT_OF_MEMORY, ALLOCATOR_INVALID (an address that is not ours, a scope opened twice, ...),
 * STATUS_NO_MEMORY (host memory), or the device's own error.
 */
#ifndef ALLOC_ALLOCATOR_H
#define ALLOC_ALLOCATOR_H

#include "alloc/settings.h"
#include "base/memory_stats.h"
#include "device/memory_device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOCATOR_MIN_BLOCK UINT64_C(512)
#define ALLOCATOR_SMALL_LIMIT UINT64_C(1048576)    /* rounded sizes up to this go to the small pool */
#define ALLOCATOR_SMALL_SEGMENT UINT64_C(2097152)
#define ALLOCATOR_LARGE_LIMIT UINT64_C(10485760)   /* from here a segment is as large as the request */
#define ALLOCATOR_LARGE_ROUNDING UINT64_C(2097152)
#define ALLOCATOR_NO_LIMIT UINT64_MAX
#define ALLOCATOR_MAX_REQUEST (UINT64_C(1) << 60)

enum { ALLOCATOR_OUT_OF_MEMORY = 2, ALLOCATOR_INVALID = 1 };

enum allocator_action { /* the numbers of enum action in snapshot/snapshot.h */
    ALLOCATOR_ALLOC,
    ALLOCATOR_FREE_REQUESTED,
    ALLOCATOR_FREE_COMPLETED,
    ALLOCATOR_SEGMENT_ALLOC,
    ALLOCATOR_SEGMENT_FREE,
    ALLOCATOR_SEGMENT_MAP,
    ALLOCATOR_SEGMENT_UNMAP,
    ALLOCATOR_SNAPSHOT,
    ALLOCATOR_OOM,
};

struct pool_id {
    int64_t first, second; /* (0, 0): the default pool */
};

struct allocator_event {
    enum allocator_action action;
    uint64_t address; /* OOM: bytes the device still had free */
    uint64_t size;    /* alloc, free: requested; OOM: rounded; else bytes */
    int64_t stream;
    struct pool_id pool;
    uint64_t context;
};

struct allocator_options {
    struct memory_device device; /* copied */
    struct settings settings;
    uint64_t limit;              /* bytes; ALLOCATOR_NO_LIMIT */
    void (*trace)(void *self, const struct allocator_event *event); /* NULL: none */
    void *trace_self;
};

struct allocator;

struct allocator *allocator_new(const struct allocator_options *options); /* NULL: no memory */
void allocator_free(struct allocator *allocator);                         /* gives nothing back to the device */

/* malloc: requested bytes for stream, context of the call. */
int allocator_malloc(struct allocator *allocator, uint64_t requested, int64_t stream, uint64_t context,
                     uint64_t *address);

/* free: context of the call, 0 keeps the allocation's. */
int allocator_release(struct allocator *allocator, uint64_t address, uint64_t context);

/* recordStream: another stream uses the block; its free waits for that stream. */
int allocator_record_stream(struct allocator *allocator, uint64_t address, int64_t stream);

/* emptyCache: contexts as for free. */
int allocator_empty_cache(struct allocator *allocator, uint64_t context);

/* The pending free of a block whose events are not polled ends now (replay). */
int allocator_complete_free(struct allocator *allocator, uint64_t address, uint64_t context);

/* New settings, effective from the next call; the max_split_size statistic stays as it was at the start. */
void allocator_set_settings(struct allocator *allocator, const struct settings *settings);
void allocator_set_limit(struct allocator *allocator, uint64_t limit);
void allocator_set_trace(struct allocator *allocator, void (*trace)(void *self, const struct allocator_event *event),
                         void *self); /* NULL: none */
uint64_t allocator_limit(const struct allocator *allocator);

/* Private pools: made with one use, freeable when the last use is gone.  Several are gone through by ascending id.
 * (0, 0) is none of them. */
struct pool_source { /* where a pool has its segments from instead of the device, none of them expandable */
    int (*segment_get)(void *self, uint64_t size, int64_t stream, uint64_t *address); /* may let the lock go meanwhile */
    void (*segment_release)(void *self, uint64_t address, uint64_t size, int64_t stream);
    void *self;
};
struct pool_options {
    bool use_on_oom, no_split;
    const struct pool_source *source; /* NULL: the device; must stay while the pool has uses or segments */
};
int allocator_pool_create(struct allocator *allocator, struct pool_id id, const struct pool_options *options);
int allocator_pool_retain(struct allocator *allocator, struct pool_id id);
int allocator_pool_release(struct allocator *allocator, struct pool_id id); /* one use less, not an open scope's */
int allocator_pool_flush(struct allocator *allocator, struct pool_id id, uint64_t context); /* emptyCache(id) */
int allocator_pool_uses(const struct allocator *allocator, struct pool_id id); /* 0: no such pool */

/* Scopes: while one is open requests go to its pool (the newest whose filter accepts), events are not polled, frees with
 * other streams wait, and nothing is flushed.  filter NULL accepts every request.  A scope is a use of its pool, which
 * ends with allocator_pool_release() after allocator_scope_end(). */
int allocator_scope_begin(struct allocator *allocator, struct pool_id id, bool (*filter)(void *self, int64_t stream),
                          void *self);
int allocator_scope_end(struct allocator *allocator, struct pool_id id);

/* Statistics; memory_stats_reset_* are the caller's to apply on the struct. */
struct memory_stats *allocator_stats(struct allocator *allocator);
uint64_t allocator_reserved(const struct allocator *allocator);

/* What there is, in address order within the device: segments (of expandable ones each mapped range) and blocks. */
struct allocator_block {
    uint64_t address, size, requested, context;
    bool allocated, active; /* active without allocated: waiting for other streams */
};
struct allocator_segment {
    uint64_t address, size, context;
    int64_t stream;
    struct pool_id pool;
    bool is_large, is_expandable;
};
struct allocator_visitor {
    int (*segment)(void *self, const struct allocator_segment *segment); /* non-zero ends the visit */
    int (*block)(void *self, const struct allocator_block *block);       /* of the last segment */
    void *self;
};
int allocator_visit(const struct allocator *allocator, const struct allocator_visitor *visitor);

/* Take over a segment that was there before, with its blocks in address order, which tile it; neighbours that are both
 * free must not be among them.  Its pool must exist.  Counted as if it had just been made; no event. */
int allocator_adopt(struct allocator *allocator, const struct allocator_segment *segment,
                    const struct allocator_block *blocks, size_t count);

/* The block that holds an address; false if none. */
bool allocator_find(const struct allocator *allocator, uint64_t address, struct allocator_block *block);

/* Does an active block start at an address?  And the segment that it lies in, false if there is none. */
bool allocator_has(const struct allocator *allocator, uint64_t address);
bool allocator_segment_of(const struct allocator *allocator, uint64_t address, struct allocator_segment *segment);

/* The context of the active block that starts at an address; 0 if there is none, or it has none. */
uint64_t allocator_context(const struct allocator *allocator, uint64_t address);

/* Do the parts agree?  For tests: walks everything; the sentence says what does not. */
bool allocator_is_valid(const struct allocator *allocator, struct error *err);

#endif
