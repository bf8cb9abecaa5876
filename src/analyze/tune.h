/*
 * The settings of PyTorch's allocator under which a recording's requests would have needed least: a grid over what
 * PYTORCH_CUDA_ALLOC_CONF offers, then refinement around the best, every one of them by an exact replay (replay.h).
 *
 * Of the recorded settings, options that the search does not touch stay as they are.  In order of merit come: fewer
 * failures; under a limit, what it costs: fewer retries, fewer calls of the device; less reserved at the peak; fewer
 * device allocations; the shorter text.  A setting is left out where a better one is as plain and costs no more.  The
 * result does not depend on the number of threads.  No global state.  Cost: up to TUNE_MOST replays, on all cores (when
 * nothing fits a limit, three times that, and those with which a limit that does is looked for).
 */
#ifndef ANALYZE_TUNE_H
#define ANALYZE_TUNE_H

#include "analyze/replay.h"

#define TUNE_MOST 144 /* settings tried in one search */

struct tune_options {
    struct replay_options replay; /* conf does not count; the limit is what has to be met */
    unsigned threads;             /* 0: one for each core */
    void (*progress)(uint64_t tried); /* of TUNE_MOST, from any thread; NULL: nobody wants to know */
};

struct tune_row {
    char *conf;
    struct replay_result replay;
    int64_t saved;       /* bytes less reserved at the peak than under the recorded settings */
    int64_t extra_calls; /* of the device, allocations and frees, more than under them */
    unsigned options;    /* how many of the searched options it sets; a list counts twice */
    bool fits;           /* no request failed */
};

struct tune_result {
    struct tune_row baseline;  /* the recorded settings, predicted like the others */
    struct tune_row *rows;     /* better than these, best first; each has something over those before it */
    size_t count;
    size_t tried;
    struct replay_result recorded; /* what the recording did, as far as it is reproduced */
    bool gains;                /* rows[0] is worth a change: less fails, less is retried, or 1% less is reserved */
    bool fits;                 /* some setting, the recorded ones included, serves every request */
    uint64_t recorded_ooms;    /* requests that failed in the recording */
    /* if nothing fits a limit, and the device would do; they do not depend on that limit, and count what failed when it was
     * recorded: */
    uint64_t least_peak;       /* the least that any setting would have reserved without a limit, everything served */
    char *least_conf;          /* and which; else NULL */
    uint64_t least_limit;      /* about the smallest limit under which some setting serves every request */
    char *least_limit_conf;    /* NULL: none was found */
};

/* 0, or as replay_plan_new() fails.  tune_free() afterwards, not after a failure. */
int tune_run(const struct snapshot *snapshot, const struct tune_options *options, struct tune_result *result,
             struct error *err);
void tune_free(struct tune_result *result);

static inline uint64_t tune_peak(const struct tune_row *row)
{
    return (uint64_t)row->replay.stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
}

#endif
