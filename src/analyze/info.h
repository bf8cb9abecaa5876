/*
 * What is in a file, counted: actions, devices, streams, pools, time span, stacks, what predates recording, what was
 * lost.  Facts that stand in the snapshot as they are (program, host, settings) are read there.
 * The caller frees with info_free().  Cost: one pass over the entries, one back for what predates recording.
 */
#ifndef ANALYZE_INFO_H
#define ANALYZE_INFO_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

struct info_device {
    uint16_t process, ordinal;
    uint32_t device;              /* of snapshot->devices, NONE32 if only the trace or the state mentions it */
    uint64_t entries, actions[ACTION_COUNT];
    uint64_t segments, blocks;    /* at the moment; blocks: living ones */
    uint64_t reserved, allocated; /* bytes: of segments; of living blocks, pending ones included; without the host's */
    uint64_t cached;              /* of reserved: in no living block */
    uint64_t before_blocks, before_bytes; /* of those, allocated before the first entry */
    uint64_t peak_requested, peak_reserved; /* over the trace and what it starts from */
    uint64_t lost_entries, max_entries;
    bool overflowed;              /* entries were lost */
};

/* A GPU that several processes hold memory of: what they hold together, at the moment. */
struct info_gpu {
    uint32_t device;              /* of snapshot->devices: the first with this uuid */
    uint64_t processes, reserved, allocated;
};

struct info_stream {
    int64_t stream;
    uint64_t entries, segments;
};

struct info_pool {
    int64_t id[2];
    bool is_known;                /* false: segments that do not say */
    uint64_t segments, reserved, allocated;
};

struct info {
    uint64_t entries, actions[ACTION_COUNT];
    uint64_t entries_without_stack, bad_entries;
    bool recording_was_off;       /* memory, but no entry */
    bool has_times;
    int64_t first_time, last_time;
    uint64_t stacks, deepest;     /* distinct stack nodes that some context names; frames of the deepest */
    uint64_t lost_entries, lost_stacks, lost_state;
    uint64_t unrecorded;          /* events while recording was paused, or from before it was begun anew */
    struct info_device *devices;  /* by process and ordinal */
    size_t device_count, device_capacity;
    struct info_gpu *gpus;        /* that several processes have */
    size_t gpu_count, gpu_capacity;
    struct info_stream *streams;  /* by number */
    size_t stream_count;
    struct info_pool *pools;      /* by id, the unknown one last */
    size_t pool_count;
};

/* `state` is the state at the moment asked for; the trace counts as a whole. */
int info_collect(const struct snapshot *snapshot, const struct state *state, struct info *info, struct error *err);
void info_free(struct info *info);

/* "PyTorch snapshot", "recording", ... */
const char *info_source_name(const struct snapshot *snapshot);

#endif
