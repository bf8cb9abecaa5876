/* What a replay's allocator stands on: the recorded addresses, or the driver's placement rule.  Shared by the files of
 * replay alone. */
#ifndef ANALYZE_REPLAY_DEVICE_H
#define ANALYZE_REPLAY_DEVICE_H

#include "analyze/replay_plan.h"
#include "device/memory_device.h"
#include "device/placement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLAY_SEEDS 3 /* holes that were there from the start */

struct replay_device {
    const struct replay_plan *plan;
    size_t at;            /* how far the recording was followed */
    size_t request;       /* place in the list of the request that runs */
    bool follows;         /* recorded addresses; else the placement rule */
    bool knows_limit;     /* the allocator's limit is that of the recording */
    bool refused;
    bool unforced;        /* it had to refuse only because the recording goes on with a release without a stack */
    uint64_t placements, explained; /* recorded segments, and those where the rule would have put them */
    uint64_t total, used;
    uint64_t bound;       /* no more than this in use, for one request; UINT64_MAX: no bound */
    struct placement *placement; /* where they go; when following: where the rule would have put them */
    size_t begins;               /* place of the first segment that began a chunk of its own */
    bool has_begun;
    struct replay_foreigners learned; /* when following */
    size_t foreign_next;              /* else: of the plan's, the next to happen */
    size_t other_next;                /* of the plan's others */
    uint64_t *other_places;           /* where each of them is here */
    uint64_t reserved_next; /* address space of expandable segments */
};

int replay_device_start(struct replay_device *device); /* 0 or STATUS_NO_MEMORY; plan, follows, total are set */
void replay_device_end(struct replay_device *device);
struct memory_device replay_device_table(struct replay_device *device);

/* Where the recording goes on, past what is only a note: a place in the list, its count at the end. */
size_t replay_device_next(struct replay_device *device);

/* Following: a recorded segment is where it is from now on.  Counts whether the rule would have put it there, unless it is
 * one of the first, which the rule cannot know. */
void replay_device_takes(struct replay_device *device, uint64_t address, uint64_t size);
void replay_device_gives_back(struct replay_device *device, uint64_t address);

/* A segment was there from the start: it counts as used.  Nothing new is placed among such. */
void replay_device_holds(struct replay_device *device, uint64_t size);

#endif
