/*
 * What an allocator stands on: one table of functions for the CUDA driver, the simulated device and the placement model
 * of a replay.  Every function gets `self` back.  Return 0 for done, MEMORY_DEVICE_FULL for out of memory, and any other
 * value for an error that is the device's own (passed on to the caller).  Thread rules are the allocator's: it calls
 * under its own lock.
 */
#ifndef DEVICE_MEMORY_DEVICE_H
#define DEVICE_MEMORY_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_DEVICE_FULL 2 /* CUDA_ERROR_OUT_OF_MEMORY's number */

struct memory_device {
    void *self;
    int (*segment_get)(void *self, uint64_t size, int64_t stream, uint64_t *address);
    void (*segment_release)(void *self, uint64_t address, uint64_t size);

    /* Virtual memory: map backs the range by pages of `page` bytes, all of it or nothing. */
    int (*address_reserve)(void *self, uint64_t size, uint64_t *address);
    void (*address_release)(void *self, uint64_t address, uint64_t size);
    int (*map)(void *self, uint64_t address, uint64_t size, uint64_t page);
    void (*unmap)(void *self, uint64_t address, uint64_t size, uint64_t page);

    /* Events: all three may be NULL, then cross-stream frees end when allocator_complete_free() says so. */
    int (*event_record)(void *self, int64_t stream, uint64_t *event);
    bool (*event_done)(void *self, uint64_t event);  /* a done event is given back by this */
    void (*event_wait)(void *self, uint64_t event);  /* waits, gives it back */
    void (*stream_wait)(void *self, int64_t stream); /* may be NULL */

    void (*memory_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

    /* May be NULL.  Called before a segment is asked for, so that what was put off can be done: the lock may be let go
     * meanwhile. */
    void (*settle)(void *self);
};

#endif
