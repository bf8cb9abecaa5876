/* What a replay's allocator stands on: the recorded addresses, or the driver's placement rule.  Shared by the files of
 * replay alone. */
#ifndef ANALYZE_REPLAY_DEVICE_H
#define ANALYZE_REPLAY_DEVICE_H

#include "device/memory_device.h"
#include "device/placement.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLAY_SEEDS 2 /* segments that fall into chunks which the driver had before */

struct replay_device {
    const struct entries *entries;
    const uint32_t *list; /* the device's entries */
    size_t count, at;     /* how far the recording was followed */
    bool follows;         /* recorded addresses; else the placement rule */
    bool knows_limit;     /* the allocator's limit is that of the recording */
    bool refused;
    uint64_t total, used;
    struct placement *placement;
    uint64_t seeds[REPLAY_SEEDS], seed_sizes[REPLAY_SEEDS];
    size_t seed_count, seeds_used;
    uint64_t reserved_next; /* address space of expandable segments */
};

int replay_device_start(struct replay_device *device); /* 0 or STATUS_NO_MEMORY; entries, list, count, follows are set */
void replay_device_end(struct replay_device *device);
struct memory_device replay_device_table(struct replay_device *device);

#endif
