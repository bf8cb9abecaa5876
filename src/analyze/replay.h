/*
 * A recording's requests run through the allocator (src/alloc) again: under the recorded settings to see that every
 * event, address and final block comes out as recorded (then the statistics are exact), or under other settings to see
 * what they would have done.
 *
 * Under the recorded settings the device answers with the recorded addresses, and refuses where no segment follows in
 * the recording, so a memory limit need not be known, except for collections (garbage_collection_threshold).  Under
 * other settings device/placement.h says where segments go.
 *
 * Which private pool a request went to is seen from the segment that served it; what the trace leaves open is assumed
 * in the plainest way that reproduces the recording, and where two ways do, with different statistics, the result is
 * ambiguous and names the options that settle it.  A trace whose beginning is lost starts from the rebuilt state.
 * One device of one process at a time.  No global state; cost: a pass or a few over the entries.
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

struct replay_pool_option { /* what the user says of a private pool */
    int64_t first, second;
    bool no_split, use_on_oom;
};
struct replay_scope_option { /* requests of these entries were asked of that pool */
    int64_t first, second;
    uint64_t from, to;
};

struct replay_options {
    uint16_t process, device;
    uint64_t moment;      /* statistics after this many entries of the snapshot */
    const char *conf;     /* replay_run: NULL: the recorded settings and addresses */
    uint64_t limit;       /* bytes, REPLAY_NO_LIMIT: of the recording, and of the run */
    uint64_t limit_entry; /* the limit holds from this entry on */
    const struct replay_pool_option *pools;
    size_t pool_count;
    const struct replay_scope_option *scopes;
    size_t scope_count;
};

/* Entries that contradict others, by kind: they are left out. */
enum replay_contradiction {
    REPLAY_UNKNOWN_FREE, /* a free of what nothing holds */
    REPLAY_UNKNOWN_SEGMENT, /* a release of a segment that is not there */
    REPLAY_OVERLAP,      /* an allocation over another one */
    REPLAY_SENSELESS,    /* sizes that wrap, values that are none */
    REPLAY_CONTRADICTIONS
};
struct replay_contradictions {
    uint64_t counts[REPLAY_CONTRADICTIONS], first[REPLAY_CONTRADICTIONS]; /* entries */
};

struct replay_result {
    bool exact;                  /* under the recorded settings: nothing differs; under others: and the rule explains
                                    where the driver put every recorded segment */
    bool approximate;            /* the beginning is lost, or there are requests only and no allocator's events */
    bool lost_beginning;
    bool refused;                /* the device said no at least once while no limit was given */
    uint64_t difference_entry;   /* under the recorded settings: the first difference, at this entry */
    bool at_end;                 /* or past the last entry */
    char difference[200];        /* and what it is; empty: none */
    char ambiguous[160];         /* the options that would settle what the trace leaves open; empty: nothing */
    char idle[160];              /* the user's pools and scopes to which no request went; empty: none */
    bool lacks_limit;            /* not exact, under settings that collect at a share of the limit, which is not told */
    bool rebuilt_end;            /* the recording's end was cut at a moment: sizes of blocks there are not compared */
    uint64_t requests, events;   /* run, compared */
    uint64_t placements, explained; /* recorded segments, and those that lie where the driver's rule puts them */
    struct replay_contradictions contradictions;
    uint64_t ooms, first_oom;    /* and the entry of the first; these, the waste and stats are of the moment */
    uint64_t rounding_waste, fragmentation_waste; /* when most was reserved until then */
    struct memory_stats stats;
};

/* 0; STATUS_USAGE for settings that make no sense; STATUS_NOT_FOUND if there is nothing to replay; no memory. */
int replay_run(const struct snapshot *snapshot, const struct replay_options *options, struct replay_result *result,
               struct error *err);

/* The settings that the recording names for a process, "" if it names none. */
const char *replay_recorded_conf(const struct snapshot *snapshot, uint16_t process);

/* The limit that it names; REPLAY_NO_LIMIT if it names none. */
uint64_t replay_recorded_limit(const struct snapshot *snapshot, uint16_t process);

/*
 * A plan: the requests of one device, read once (and run under the recorded settings, to see what they leave open; with
 * the options' limit if the recording is reproduced with it) and then run as often as wanted, by any number of threads at
 * a time.  replay_plan_new fails as replay_run does; the snapshot must outlive the plan.
 */
struct replay_plan;
struct replay_trial {
    const char *conf;            /* NULL: the recorded settings, and its addresses where there are any */
    uint64_t limit, limit_entry; /* as in struct replay_options */
};
int replay_plan_new(const struct snapshot *snapshot, const struct replay_options *options, struct replay_plan **plan,
                    struct error *err);
void replay_plan_free(struct replay_plan *plan);
int replay_plan_run(const struct replay_plan *plan, const struct replay_trial *trial, struct replay_result *result,
                    struct error *err);

/* What the run under the recorded settings said, with the options' limit, or without one where the recording contradicts
 * that limit; *limit says which.  Lives as long as the plan. */
const struct replay_result *replay_plan_recorded(const struct replay_plan *plan, uint64_t *limit);

/*
 * The end state of a snapshot that was cut at a moment has block sizes that were rebuilt by rounding (state.exact is
 * false).  Where the recording up to there is reproduced, they become those of the replay, and so do the pools of segments
 * that were released later; a private one of which no number is told gets one.  What is not reproduced stays as it is.
 * 0, or no memory.
 */
int replay_mend_end(struct snapshot *snapshot, struct error *err);

/* The same of a state that state_at() made, of a snapshot that stays whole; no other thread may look at that meanwhile. */
int replay_mend_state(struct snapshot *snapshot, struct state *state, struct error *err);

/* The door of statistics_collect(): context is a struct replay_options (limit and limit_entry count) or NULL.  Fills the
 * set where the replay is exact, else returns 1.  A limit that the recording contradicts is left out of account, and the
 * set says so. */
int replay_statistics(void *context, const struct snapshot *snapshot, uint64_t moment, struct statistics *result,
                      struct error *err);

#endif
