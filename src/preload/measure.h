/*
 * What the driver says of a device's memory, against what is known of it.  The driver is asked outside of captures only,
 * and answers for the device of the calling thread's context.
 *
 * A measure is what is taken and not known: its growth over a call is what the call took.  What other threads allocate
 * meanwhile is known; what another process takes in the same moment is not told apart.
 */
#ifndef PRELOAD_MEASURE_H
#define PRELOAD_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

/* Somebody was told how much is free. */
void measure_seen(uint16_t device, uint64_t free_bytes);

/* Ask now; or, after an allocation, now and then: when events double, and when what is known grew by an eighth. */
void measure_now(uint16_t device);
void measure_event(uint16_t device);

/* Memory of this device is handed out by the driver's pools: from now on they are asked, too. */
void measure_has_pools(uint16_t device);

/* In a forked child: whoever was asking is not here. */
void measure_after_fork(void);

struct measure { /* all 0: of nothing */
    bool open, valid;
    uint16_t device;
    unsigned number; /* two at the same time cannot be told apart: neither counts */
    int64_t unknown; /* bytes taken and not known */
};
struct measure measure_begin(void);                 /* of the current context's device */
uint64_t measure_end(const struct measure *before); /* the growth in bytes, 0 too if it is not known; once for each begin */

#endif
