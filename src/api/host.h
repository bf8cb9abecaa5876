/*
 * The pinned host allocator's parts: host.c hands out and takes back, host_events.c knows when streams are done,
 * host_stats.c tells the numbers.  Not for others.
 *
 * One lock over everything but the driver's slow calls.  Blocks are records of one array, linked by index.
 */
#ifndef API_HOST_H
#define API_HOST_H

#include "api/library.h"
#include "base/memory_stats.h"
#include "base/table.h"

#define HOST_POWERS 64

struct host_use { /* a stream that used a block */
    CUstream stream;
    CUcontext context;
};

struct host_block {
    void *pointer;
    uint32_t power;   /* its size is 1 << power */
    uint32_t next;    /* free block of this size, or block that is put off; 0: none */
    bool is_handed_out;
    bool is_put_off;  /* freed, and a stream of its uses was capturing */
    uint32_t waits;   /* events that are not done */
    struct host_use *uses;
    size_t use_count, use_capacity;
};

struct host_wait { /* an event after which a block has one wait less */
    CUevent event;
    CUcontext context;
    uint32_t block;
};

struct host_event { /* one that is kept for the next wait */
    CUevent event;
    CUcontext context;
};

struct host_time {
    int64_t total, max, min, count;
};

struct host {
    struct library_lock lock;
    const struct library_driver *call;
    struct host_block *blocks; /* [0] is nobody's */
    size_t block_count, block_capacity;
    uint32_t spare;            /* records to use again */
    uint32_t free[HOST_POWERS];
    uint32_t put_off;
    struct table index;        /* pointer -> block */
    struct host_wait *waits;   /* in the order in which they were recorded */
    size_t wait_first, wait_count, wait_capacity;
    struct host_event *events;
    size_t event_count, event_capacity;
    struct memory_stat allocations, allocated_bytes, active_requests, active_bytes;
    struct host_time alloc_time, free_time;
};
extern struct host host;

/* All under the lock.  A block goes back to the free ones: nobody uses it any more. */
void host_make_free(uint32_t block);

/* Record an event on each stream that used a freed block; STATUS_NO_MEMORY or the driver's failure leave it to be waited
 * for by synchronizing, which is done at once. */
void host_record_events(uint32_t block);
/* What is done is free again. */
void host_process_events(void);

#endif
