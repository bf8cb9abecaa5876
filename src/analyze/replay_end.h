/* A replay's allocator beside what the recording has at its end, and in its snapshots.  Shared by replay's files. */
#ifndef ANALYZE_REPLAY_END_H
#define ANALYZE_REPLAY_END_H

#include "analyze/replay_plan.h"

/* text stays empty if all segments and blocks of the recording's end are there, and no others; of an end that was rebuilt,
 * the active blocks, whatever their sizes.  0 or no memory. */
int replay_compare_end(const struct replay_plan *plan, const struct allocator *allocator, char *text, size_t size);

/* Is this how many bytes are active in one of the pools?  0 or no memory. */
int replay_is_pools_size(const struct replay_plan *plan, const struct allocator *allocator, uint64_t size, bool *result);

/* The plan's device in the snapshot's end, if the recording is reproduced, as the replay has it; the plan is of this
 * snapshot, and there is still memory of the old end in it: it is of no more use.  0 or no memory. */
int replay_mend_place(struct replay_plan *plan, struct snapshot *snapshot, struct error *err);

#endif
