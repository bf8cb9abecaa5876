/*
 * Why a request ran out of memory, or what a moment was made of when nothing failed: findings, no words.
 *
 * The snapshot is one that ends at the moment (format/slice.h, replay_mend_end() for exact block sizes); if its last entry
 * is an oom of the device, that failure is explained.  "The allocator" is what caches for the program; where nothing
 * caches, the driver's allocations themselves.  A hole is a free block.
 *
 * Settings are judged by replays (replay.h, tune.h) under the room that the process had at the failure; what cannot be
 * replayed is not judged.  The findings point into the snapshot, which must outlive them.  Cost: a few passes over the
 * entries, and the replays: a search over at most EXPLAIN_SEARCH_ENTRIES entries, beyond that expandable segments only.
 */
#ifndef ANALYZE_EXPLAIN_H
#define ANALYZE_EXPLAIN_H

#include "analyze/replay.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

#define EXPLAIN_SEARCH_ENTRIES (UINT64_C(1) << 18)
#define EXPLAIN_TRIALS 4
#define EXPLAIN_QUARTERS 4

enum explain_cause {
    EXPLAIN_NO_FAILURE,
    EXPLAIN_TOO_BIG,      /* more than the process could have, were nothing else allocated */
    EXPLAIN_FRAGMENTED,   /* enough is free in the allocator, in pieces that are too small and cannot be given back */
    EXPLAIN_OTHER_STREAM, /* a hole is large enough, and belongs to another stream */
    EXPLAIN_OTHER_POOL,   /* likewise of another pool */
    EXPLAIN_UNSPLITTABLE, /* likewise, and max_split_size_mb forbids to cut it */
    EXPLAIN_PENDING,      /* it would fit, were frees complete that wait for other streams */
    EXPLAIN_OUTSIDE,      /* what others hold of the device is more than the allocator does */
    EXPLAIN_GROWTH,       /* what only grew is as much as lacks, or more */
    EXPLAIN_FULL,         /* the memory is in use */
    EXPLAIN_REFUSED,      /* the driver said that there was enough, and refused */
    EXPLAIN_UNKNOWN,      /* the recording does not tell how much there was */
    EXPLAIN_CAUSES
};
const char *explain_cause_key(enum explain_cause cause); /* "fragmentation" */

/* What refused: the device had less than was needed, or a limit was in the way. */
enum explain_room_kind {
    EXPLAIN_ROOM_UNKNOWN,
    EXPLAIN_ROOM_DEVICE,   /* reserved and what the device had free */
    EXPLAIN_ROOM_TOLD,     /* by the user */
    EXPLAIN_ROOM_RECORDED, /* by the recording: its limit, or its per_process_memory_fraction */
    EXPLAIN_ROOM_INFERRED, /* the device had enough: at least `low`, less than `high` */
};
const char *explain_room_key(enum explain_room_kind kind);
struct explain_room {
    enum explain_room_kind kind;
    uint64_t low, high; /* the most that the process could have reserved; equal where it is known */
    bool refuted;       /* the recording does not come out under what the user told */
};

struct explain_request {
    uint64_t entry;         /* its number in the file */
    uint64_t number;        /* the device's first failure is 1 */
    uint64_t size;          /* as the recording has it: rounded, where a caching allocator served */
    uint64_t segment_size;  /* what was asked of the device for it */
    bool is_rounded, is_small, has_stream, has_pool, has_device_free;
    int64_t stream, time;
    struct pool pool;       /* 0:0 where it is not told */
    uint64_t device_free;
    uint32_t context;
};

struct explain_memory {
    uint64_t segments, reserved;
    uint64_t blocks, allocated, requested; /* allocated: block bytes; requested: of those */
    uint64_t pending_blocks, pending;      /* freed, and waiting for other streams */
    uint64_t holes, free, largest_hole;
    uint64_t releasable;                   /* of free: in segments that hold nothing */
    uint64_t before_blocks, before;        /* of allocated: from before the first entry */
};

enum explain_hole_reason {
    EXPLAIN_HOLE_TOO_SMALL,
    EXPLAIN_HOLE_OTHER_STREAM,
    EXPLAIN_HOLE_OTHER_POOL,
    EXPLAIN_HOLE_OTHER_CLASS, /* small pool, large pool */
    EXPLAIN_HOLE_UNSPLITTABLE,
    EXPLAIN_HOLE_FITS,        /* the recording contradicts itself, or was rebuilt */
    EXPLAIN_HOLE_REASONS
};
const char *explain_hole_key(enum explain_hole_reason reason);
struct explain_hole {
    uint32_t block;              /* of the state */
    uint32_t before, after;      /* the live blocks that keep it from growing; NONE32: the segment ends */
    enum explain_hole_reason reason;
};
struct explain_sum {
    uint64_t count, bytes, largest;
};

/* The least that would have to be freed for the request to be served. */
struct explain_pins {
    uint32_t *blocks;  /* of the state, by address */
    size_t count;
    uint64_t bytes;    /* of these blocks */
    uint64_t opened;   /* the hole that they would leave, or the segments that could be given back */
    size_t segments;   /* 0: a hole in one segment; else these could be given back */
};

struct explain_outside {
    uint64_t total;           /* of the device, 0: not told */
    bool is_known;            /* how much lay outside the allocator at the moment */
    uint64_t bytes;           /* used of the device, less reserved */
    uint64_t recorded;        /* of that: recorded allocations of this process */
    uint64_t others;          /* of that: what other processes of this file hold of the GPU */
    uint64_t rest;            /* contexts, the driver's own, processes that nobody recorded */
    bool has_sample;          /* the rest when it was last seen, whatever the moment */
    uint64_t sample_rest;
    struct explain_named {
        char name[64];
        uint64_t bytes, segments;
    } *rows;                  /* recorded, by owner, most first */
    size_t count;
};

struct explain_stack {
    uint32_t context;         /* one that has this stack; CONTEXT_NONE: none was taken */
    bool is_before;           /* and it was allocated before the first entry */
    uint64_t bytes, blocks;   /* alive at the moment */
    uint64_t quarters[EXPLAIN_QUARTERS]; /* requested bytes alive after each quarter of the entries (of growing ones) */
    uint64_t allocated, freed;           /* requested bytes over the trace (of growing ones) */
};

enum explain_judged {
    EXPLAIN_JUDGED,
    EXPLAIN_JUDGED_NOT_CACHING, /* nothing cached: there are no settings */
    EXPLAIN_JUDGED_NOTHING,     /* there is nothing to replay, or no room is known */
    EXPLAIN_JUDGED_OTHERWISE,   /* under the recorded settings the replay does not fail */
};
struct explain_trial {
    char *conf;
    bool serves;                /* the request that failed, and none fails that did not before */
    bool exact, approximate;
    uint64_t peak_reserved, ooms;
};
struct explain_settings {
    enum explain_judged judged;
    const char *recorded;       /* "" are the default ones */
    bool is_ours;               /* of our own allocator, not PyTorch's */
    uint64_t limit;             /* the replays' */
    bool exact;                 /* the recording is reproduced, and predictions are exact */
    bool searched;              /* all that tune tries, not expandable segments alone */
    size_t tried;
    struct explain_trial trials[EXPLAIN_TRIALS]; /* [0]: expandable_segments:True where it was not on; then the best */
    size_t count;
    uint64_t recorded_peak;     /* reserved, replayed under the recorded settings */
    uint64_t least_limit;       /* about the smallest limit under which some setting serves everything; 0: not known */
    char *least_conf;
};

struct explain {
    const struct snapshot *snapshot;
    uint16_t process, device;
    bool is_failure, is_cached;  /* an allocator that caches stands between program and driver */
    enum explain_cause cause;
    struct explain_request request;
    struct explain_memory memory;
    struct explain_room room;
    uint64_t lacks;              /* more than all that was free, together: how much; 0: together it would do */
    struct explain_hole *holes;  /* largest first */
    struct explain_sum reasons[EXPLAIN_HOLE_REASONS];
    struct explain_pins pins;
    struct explain_outside outside;
    struct explain_stack *holders, *growing; /* most bytes first */
    size_t holder_count, growing_count;
    uint64_t growing_bytes;
    struct explain_settings settings;
    uint64_t lost_entries, unrecorded;
    bool has_entries, is_rebuilt; /* block sizes of the state are rounded requests, not known ones */
};

struct explain_options {
    struct replay_options replay; /* process, device, the user's limit, pools; conf and moment do not count */
    bool has_trace;               /* the file has entries, before the moment or after it */
    bool skips_settings;
    unsigned threads;             /* 0: one a core */
    void (*progress)(uint64_t tried);
};

/* The moment to explain where none is named: the last failure of the device (-1: of any), else the peak. */
int explain_moment(const struct snapshot *snapshot, int device, uint64_t *moment, struct error *err);

/* Whose moment it is: the failure's process and device, else the selected device (-1: the one that holds most). */
void explain_place(const struct snapshot *snapshot, int device, uint16_t *process, uint16_t *ordinal);

int explain_collect(const struct snapshot *snapshot, const struct explain_options *options, struct explain *explain,
                    struct error *err);
void explain_free(struct explain *explain);

#endif
