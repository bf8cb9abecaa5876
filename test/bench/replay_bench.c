/*
 * How many trace entries a second a replay goes through on one core: whatif.pickle's requests again and again, until
 * 3 million entries are through: read into plans, then run under other settings; beside it, in the same run, malloc()
 * and free() of as many blocks of a thousandth of the size.  Prints; asserts nothing.  usage: replay_bench PICKLE [ENTRIES]
 */
#include "analyze/replay.h"
#include "format/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void say(const char *what, size_t entries, double seconds)
{
    printf("%-28s %zu entries in %.2f s: %.2f million a second\n", what, entries, seconds,
           (double)entries / seconds / 1e6);
}

static int run_plan(const struct replay_plan *plan, const char *conf, size_t entries, size_t wanted)
{
    const struct replay_trial trial = {.conf = conf, .limit = REPLAY_NO_LIMIT};
    struct replay_result result;
    struct error err = {0};
    size_t done = 0;
    double start = now();
    for (; done < wanted; done += entries)
        if (replay_plan_run(plan, &trial, &result, &err)) {
            fprintf(stderr, "replay_bench: %s\n", err.message);
            return 1;
        }
    say(*conf ? conf : "default settings", done, now() - start);
    return 0;
}

/* What the requests would cost malloc() and free(): a table from the recorded address to the block is part of it, as it
 * is of a replay. */
static void run_malloc(const struct snapshot *snapshot, size_t wanted)
{
    enum { SLOTS = 1 << 18 };
    const struct entries *entries = &snapshot->entries;
    void **held = calloc(SLOTS, sizeof(*held));
    size_t done = 0;
    if (!held)
        return;
    double start = now();
    for (; done < wanted; done += entries->count)
        for (size_t i = 0; i < entries->count; i++) {
            void **slot = &held[entries->address[i] * UINT64_C(0x9e3779b97f4a7c15) >> 46];
            if (entries->action[i] == ACTION_ALLOC) {
                free(*slot);
                *slot = malloc((size_t)(entries->size[i] / 1000) + 1);
            } else if (entries->action[i] == ACTION_FREE_COMPLETED) {
                free(*slot);
                *slot = NULL;
            }
        }
    double took = now() - start;
    for (size_t i = 0; i < SLOTS; i++)
        free(held[i]);
    free(held);
    say("malloc() and free()", done, took);
}

int main(int argc, char **argv)
{
    struct snapshot *snapshot;
    struct replay_plan *plan = NULL;
    struct error err = {0};
    size_t wanted = argc > 2 ? (size_t)atoll(argv[2]) : 3000000;
    if (argc < 2 || format_read(argv[1], NULL, &snapshot, &err)) {
        fprintf(stderr, "%s\n", argc < 2 ? "usage: replay_bench PICKLE [ENTRIES]" : err.message);
        return 2;
    }
    const struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT};
    size_t done = 0;
    double start = now();
    for (; done < wanted; done += snapshot->entries.count) {
        if (done)
            replay_plan_free(plan);
        if (!snapshot->entries.count || replay_plan_new(snapshot, &options, &plan, &err)) {
            fprintf(stderr, "replay_bench: %s\n", err.message);
            return 1;
        }
    }
    say("plan, and run as recorded", done, now() - start);
    run_malloc(snapshot, wanted);
    static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:64",
                                        "roundup_power2_divisions:8"};
    int status = 0;
    for (size_t i = 0; !status && i < sizeof(confs) / sizeof(confs[0]); i++)
        status = run_plan(plan, confs[i], snapshot->entries.count, wanted);
    replay_plan_free(plan);
    snapshot_free(snapshot);
    return status;
}
