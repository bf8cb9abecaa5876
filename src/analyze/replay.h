/*
 * A recording's requests run through the allocator (src/alloc) again: under the recorded settings to see that every
 * event, address and final block comes out as recorded (then the statistics are exact), or under other settings to see
 * what they would have done.
 *
 * Under the recorded settings the device answers with the recorded addresses, and refuses where no segment follows in
 * the recording, so a memory limit need not be known, except for collections (garbage_collection_threshold).  Under
 * other settings device/placement.h says where segments go.
 * One device of one process at a time.  Only the default pool.  No global state; cost: one pass over the entries.
 */
#ifndef ANALYZE_REPLAY_H
#define ANALYZE_REPLAY_H

#include "analyze/statistics.h"
#include "base/error.h"
#include "base/memory_stats.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_NO_LIMIT UINT64_MAX

struct replay_options {
    uint16_t process, device;
    uint64_t moment;      /* this many entries of the snapshot */
    const char *conf;     /* NULL: the recorded settings and addresses */
    uint64_t limit;       /* bytes, REPLAY_NO_LIMIT */
    uint64_t limit_entry; /* the limit holds from this entry on */
};

struct replay_result {
    bool exact;                  /* nothing differs: only under the recorded settings */
    bool refused;                /* the device said no at least once while no limit was given */
    uint64_t difference_entry;   /* the first difference: at this entry */
    char difference[200];        /* and what it is */
    uint64_t requests, events;   /* run, compared */
    uint64_t contradictions, first_contradiction; /* entries that could not be run, skipped */
    uint64_t ooms, first_oom;    /* and the entry of the first */
    uint64_t rounding_waste, fragmentation_waste; /* when most was reserved */
    struct memory_stats stats;
};

/* 0; STATUS_USAGE for settings that make no sense; STATUS_NOT_FOUND if there is nothing to replay; no memory. */
int replay_run(const struct snapshot *snapshot, const struct replay_options *options, struct replay_result *result,
               struct error *err);

/* The door of statistics_collect(): context is a struct replay_options (limit and limit_entry count) or NULL.  Fills the
 * set where the replay is exact, else returns 1. */
int replay_statistics(void *context, const struct snapshot *snapshot, uint64_t moment, struct statistics *result,
                      struct error *err);

#endif
