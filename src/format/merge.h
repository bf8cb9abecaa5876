/*
 * Several snapshots become one: each process keeps its own entries, devices, memory and stacks, on one time axis.
 *
 *     struct merge *merge = merge_new();
 *     merge_add(merge, snapshot, "rank0.bin", &err)     // for each; the snapshot may be freed afterwards
 *     merge_finish(merge, &result, &facts, &err)        // the caller owns the result
 *     merge_free(merge);
 *
 * Processes of one boot of one machine share a monotonic clock: where the machine's real-time clock was set between
 * their starts, the later ones' times are moved to the first one's.  Clocks of different machines are taken as they are.
 * Settings that all processes have alike stay as they are; others go into a dict "process N" (snapshot_process_setting()).
 * What the whole file of a source said beyond entries, memory and settings is not taken over.
 */
#ifndef FORMAT_MERGE_H
#define FORMAT_MERGE_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#define MERGE_STEP 1000 /* microseconds between two clocks that count as a step, not as the time to read them */

struct merge;

struct merge_facts {
    size_t hosts;         /* machines (boots of them) that are known; processes that do not say count as none */
    size_t nowhere;       /* processes that do not say where they ran */
    size_t moved;         /* processes whose times were moved */
    int64_t largest_step; /* of those, microseconds */
    size_t untimed;       /* sources with entries of which none has a time */
};

struct merge *merge_new(void); /* NULL: no memory */
void merge_free(struct merge *merge);

/* name is for messages.  After a failure the merge is of no use but to be freed. */
int merge_add(struct merge *merge, const struct snapshot *from, const char *name, struct error *err);
int merge_finish(struct merge *merge, struct snapshot **result, struct merge_facts *facts, struct error *err);

#endif
