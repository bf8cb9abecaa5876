/*
 * Where memory is at a moment: by owner (the library that asked for it), by kind, and what a device has taken beyond
 * what is known.  Memory of the host and imported memory have rows of their own and are no part of a device's sums.
 * The caller frees with usage_free().  Cost: one pass over the state, one over frames and stacks.
 */
#ifndef ANALYZE_USAGE_H
#define ANALYZE_USAGE_H

#include "analyze/owner.h"

struct usage_row {
    uint32_t owner;              /* of owners; in rows of kinds OWNER_UNKNOWN */
    uint8_t kind;                /* enum memory_kind; in rows of owners of its largest segment */
    uint64_t segments, reserved; /* bytes */
    uint64_t blocks, allocated;  /* living ones, pending ones included */
    uint64_t largest;            /* segment */
    uint32_t context;            /* of that one */
};

struct usage {
    struct owners owners;
    struct usage_row *by_owner; /* most bytes first; of devices' memory */
    size_t owner_count;
    struct usage_row by_kind[MEMORY_KIND_COUNT]; /* by number */
};

int usage_collect(const struct snapshot *snapshot, const struct state *state, struct usage *usage, struct error *err);
void usage_free(struct usage *usage);

/* Is memory of this kind taken from the device by this process? */
bool usage_is_devices(uint8_t kind);

/*
 * What a device had taken when its free memory was seen last, and what of that nobody told of: its first context, the
 * driver's own, other processes.  Bytes that are known are counted as they were then.
 */
struct usage_sample {
    uint64_t used, known, pools; /* pools: held by the driver's pools beyond what they handed out */
    uint64_t other;
};
bool usage_sample(const struct device *device, struct usage_sample *sample); /* false: nothing was seen */

#endif
