/* Replays on several threads.  May use src/base and the analysis' replay. */
#include "analyze/tune_trials.h"

#include "base/array.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_THREADS 256

struct crew {
    struct tune_trials *trials;
    const struct tune_runner *runner;
    _Atomic size_t next;
};

int tune_trials_add(struct tune_trials *trials, const struct tune_setting *setting, const char *conf)
{
    for (size_t i = 0; i < trials->count; i++)
        if (strcmp(trials->items[i].conf, conf) == 0)
            return STATUS_OK;
    if (array_reserve(&trials->items, &trials->capacity, trials->count + 1, sizeof(*trials->items)))
        return STATUS_NO_MEMORY;
    struct tune_trial *trial = &trials->items[trials->count];
    memset(trial, 0, sizeof(*trial));
    trial->setting = *setting;
    trial->conf = strdup(conf);
    if (!trial->conf)
        return STATUS_NO_MEMORY;
    trials->count++;
    return STATUS_OK;
}

static void *work(void *self)
{
    struct crew *crew = self;
    const struct tune_runner *runner = crew->runner;
    for (;;) {
        size_t at = atomic_fetch_add(&crew->next, 1);
        if (at >= crew->trials->count)
            return NULL;
        struct tune_trial *trial = &crew->trials->items[at];
        const struct replay_trial settings = {trial->conf, runner->limit, runner->limit_entry};
        if (runner->progress)
            runner->progress(at);
        trial->status = replay_plan_run(runner->plan, &settings, &trial->result, &trial->err);
    }
}

static unsigned cores(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    return online > 0 ? (unsigned)online : 1;
}

int tune_trials_run(struct tune_trials *trials, size_t first, const struct tune_runner *runner, struct error *err)
{
    struct crew crew = {.trials = trials, .runner = runner, .next = first};
    pthread_t threads[MOST_THREADS];
    size_t wanted = runner->threads ? runner->threads : cores(), started = 0;
    if (wanted > MOST_THREADS)
        wanted = MOST_THREADS;
    if (wanted > trials->count - first)
        wanted = trials->count - first;
    /* this thread is one of them; with fewer than wanted it only takes longer */
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, &crew) == 0)
        started++;
    work(&crew);
    while (started)
        pthread_join(threads[--started], NULL);
    for (size_t i = first; i < trials->count; i++)
        if (trials->items[i].status) {
            if (err)
                *err = trials->items[i].err;
            return trials->items[i].status;
        }
    return STATUS_OK;
}

void tune_trials_free(struct tune_trials *trials)
{
    for (size_t i = 0; i < trials->count; i++)
        free(trials->items[i].conf);
    free(trials->items);
    *trials = (struct tune_trials){0};
}
