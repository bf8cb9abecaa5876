/*
 * A device for tests of the allocator: capacity, addresses (first fit from below, ranges given back are used again),
 * refusals by number of the call, events that are done when told to be.  Every call is checked (what is given back was
 * taken, what is mapped was reserved and not mapped) and goes into a running sum, so that two allocators that stand on
 * two such devices can be compared by what they asked for.
 */
#ifndef TEST_ALLOC_FAKE_DEVICE_H
#define TEST_ALLOC_FAKE_DEVICE_H

#include "device/memory_device.h"

#include <stddef.h>

enum { FAKE_RANGES = 2048, FAKE_RESERVATIONS = 64, FAKE_RESERVED_MIB = 2560, FAKE_STREAMS = 8 };

struct fake_range {
    uint64_t address, size;
};

struct fake_reservation {
    struct fake_range range;
    uint8_t mapped[FAKE_RESERVED_MIB]; /* a byte a MiB */
};

struct fake_device {
    uint64_t capacity, used;
    struct fake_range ranges[FAKE_RANGES]; /* by address, as are the reservations */
    size_t range_count;
    struct fake_reservation reservations[FAKE_RESERVATIONS];
    size_t reservation_count;
    unsigned refuse_get, refuse_map; /* the n-th call from now on is refused; 0: none */
    int refusal;                     /* what it returns then */
    int64_t streams[FAKE_STREAMS];
    uint64_t recorded[FAKE_STREAMS], done[FAKE_STREAMS];
    uint64_t gets, releases, maps, unmaps, calls, sum;
    const char *fault; /* what a caller did wrong first; NULL: nothing */
};

/* events false: the three of them are NULL. */
struct memory_device fake_device_init(struct fake_device *fake, uint64_t capacity, bool events);

/* So many more of a stream's recorded events are done. */
void fake_device_progress(struct fake_device *fake, int64_t stream, uint64_t events);

#endif
