/*
 * The state at a moment: which segments and blocks existed after the first n entries of the trace.
 *
 * The end state is known (the file has it); the entries after the moment are undone: a free brings a block back, an
 * alloc takes it away.  Stacks come from the alloc entry; what has none existed before the first entry
 * (BLOCK_BEFORE_RECORDING).  Traces of PyTorch say only requested sizes: a block's size is then what a segment still
 * shows, else the request rounded up to 512 and bounded by its neighbours, and state.exact is false.
 *
 * Entries that contradict each other or the end state are counted and otherwise tolerated.  Addresses are keyed with
 * process and device.  Time O(n + m log m) for n entries and m segments, blocks and mappings; reads the snapshot only,
 * so threads may share it.
 */
#ifndef SNAPSHOT_STATE_H
#define SNAPSHOT_STATE_H

#include "base/error.h"
#include "snapshot/snapshot.h"

/* How well trace and end state agree. */
struct state_faults {
    uint64_t unknown_allocs;   /* entries of blocks that do not follow one another, or from which the end state differs */
    uint64_t unknown_segments; /* likewise of segments */
    uint64_t overlaps;         /* blocks or segments that would lie over others, or beyond memory: left out or cut */
    uint64_t outside;          /* blocks outside every segment: each got a segment of its own */
};

/* After the first `moment` entries (entries.count: the end state, unchanged).  The caller owns *result: state_free(). */
int state_at(const struct snapshot *snapshot, uint64_t moment, struct state *result, struct error *err);

/* The same, and how trace and state disagreed; faults may be NULL. */
int state_at_counting(const struct snapshot *snapshot, uint64_t moment, struct state *result,
                      struct state_faults *faults, struct error *err);

/* Set BLOCK_BEFORE_RECORDING on the active blocks of a state whose alloc is not in the trace (the end state as files
 * have it does not say so).  One pass back from the state's moment. */
int state_mark_before_recording(const struct snapshot *snapshot, struct state *state, struct error *err);

#endif
