/*
 * The statistics of torch.cuda.memory_stats() at a moment, a set for each device of each process, and for every number
 * whether it is exact or a bound.
 *
 * Where they come from, best first:
 *   the recorder kept them (device.stats), for the end;
 *   a replay that works the allocator's decisions out, if the caller has one (statistics_replay);
 *   the trace and the state: current values from the segments and blocks that exist, sums and peaks from the entries.
 *     Where nothing caches and nothing was lost that is everything, and exact.  In a file of PyTorch the trace may have
 *     begun at any time and does not tell block sizes: sums and peaks are lower bounds.
 *
 * Memory of the host (pinned) never counts.  Cost: one pass over the entries.
 */
#ifndef ANALYZE_STATISTICS_H
#define ANALYZE_STATISTICS_H

#include "base/error.h"
#include "base/memory_stats.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

enum statistics_bound { STATISTICS_EXACT, STATISTICS_AT_LEAST, STATISTICS_AT_MOST, STATISTICS_UNKNOWN };

struct statistics {
    uint16_t process, device;
    struct memory_stats values;
    struct memory_stats bounds; /* enum statistics_bound, at the place of each value */
    bool is_exact;              /* all of them */
    uint64_t lost_entries;      /* overwritten in the ring */
    bool refutes_limit;         /* the recording does not come out under the limit that was told: as if none had been */
};

struct statistics_list {
    struct statistics *items; /* by process and device; never empty: a snapshot of nothing has device 0, all zero */
    size_t count, capacity;
};

/* A better source: fills values and bounds of *result (process and device are set) for the moment and returns 0; 1 if it
 * cannot tell; or an error. */
typedef int statistics_replay(void *context, const struct snapshot *snapshot, uint64_t moment, struct statistics *result,
                              struct error *err);

/* `state` is the state at its moment.  replay may be NULL.  The caller frees with statistics_free(). */
int statistics_collect(const struct snapshot *snapshot, const struct state *state, statistics_replay *replay, void *context,
                       struct statistics_list *result, struct error *err);
void statistics_free(struct statistics_list *list);

static inline enum statistics_bound statistics_bound(const struct statistics *statistics, const struct memory_stats_key *key)
{
    return (enum statistics_bound)memory_stats_value(&statistics->bounds, key);
}

#endif
