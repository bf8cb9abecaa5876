/*
 * Replays of many settings, on several threads: each takes the next that nobody has taken.  Trials keep their order.
 */
#ifndef ANALYZE_TUNE_TRIALS_H
#define ANALYZE_TUNE_TRIALS_H

#include "analyze/replay.h"
#include "analyze/tune_settings.h"

struct tune_trial {
    char *conf;
    struct tune_setting setting;
    struct replay_result result;
    int status;
    struct error err;
    bool is_seed; /* its neighbours were tried */
};

struct tune_trials {
    struct tune_trial *items;
    size_t count, capacity;
};

struct tune_runner {
    const struct replay_plan *plan;
    uint64_t limit, limit_entry;
    unsigned threads; /* 0: one for each core */
    void (*progress)(uint64_t done); /* trials up to the last one begun; may be NULL */
};

/* Add a trial unless there is one of this text.  0 or no memory. */
int tune_trials_add(struct tune_trials *trials, const struct tune_setting *setting, const char *conf);

/* Run those from `first` on.  0, or the status of the first that failed. */
int tune_trials_run(struct tune_trials *trials, size_t first, const struct tune_runner *runner, struct error *err);

void tune_trials_free(struct tune_trials *trials);

#endif
