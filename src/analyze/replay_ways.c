/*
 * What a recording leaves open is settled by runs under its own settings: beliefs change after each difference until
 * there is none.  Whether pools split is tried both ways where nothing tells; of the ways that reproduce the recording
 * the one with the fewest pools is taken.  May use src/snapshot, src/alloc, src/base.
 */
#include "analyze/replay_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_ATTEMPTS 400
#define MOST_WORK UINT64_C(100000000) /* entries run in all, after the first few attempts */
#define FREE_ATTEMPTS 8
#define MOST_UNTOLD 6                 /* pools of which both ways are tried, named ones and guesses each */

struct ways {
    struct replay_plan *plan;
    struct replay_difference *difference;
    struct replay_result furthest; /* its difference */
    uint64_t work;
    int attempts;

    bool found;         /* a way that reproduces the recording, and which */
    size_t used, named, guessed;
    struct replay_result result;
    size_t named_differ, guessed_differ; /* where others differ that are as plain, with other statistics */
};

/* Of the differences of several attempts the furthest is the one to tell: what was believed held until there. */
static void keep_furthest(struct replay_result *furthest, const struct replay_result *result)
{
    if (furthest->difference[0] && furthest->difference_entry >= result->difference_entry)
        return;
    furthest->difference_entry = result->difference_entry;
    furthest->at_end = result->at_end;
    memcpy(furthest->difference, result->difference, sizeof(furthest->difference));
}

/* Run, learn from the difference, run again, until nothing differs or nothing is left to learn. */
static int settle(struct ways *ways, struct replay_result *result, struct error *err)
{
    struct replay_plan *plan = ways->plan;
    for (int attempt = 0; attempt < FREE_ATTEMPTS || (ways->attempts < MOST_ATTEMPTS && ways->work < MOST_WORK); attempt++) {
        ways->attempts++;
        if (replay_lives_settle(plan) || replay_plan_order(plan))
            return error_no_memory(err);
        int status = replay_run_once(plan, &plan->trial, result, ways->difference, &plan->foreigners, err);
        if (status)
            return status;
        ways->work += plan->count;
        if (ways->difference->kind)
            keep_furthest(&ways->furthest, result);
        if (!ways->difference->kind || plan->has_start || !replay_learn(plan, ways->difference))
            return STATUS_OK;
    }
    return STATUS_OK;
}

static void forget(struct replay_plan *plan)
{
    plan->beliefs.apart_count = 0;
    plan->beliefs.flushes = false;
    table_free(&plan->beliefs.turned);
    plan->pool_count = plan->named_count;
    for (size_t i = 0; i < plan->life_count; i++)
        plan->lives[i].leader = plan->lives[i].joined;
}

/* --- pools that may split or not -------------------------------------------------------------------------------- */

static bool pool_shares(const struct replay_plan *plan, uint32_t pool)
{
    for (size_t i = 0; i < plan->life_count; i++)
        if (plan->lives[i].pool == pool && plan->lives[i].is_shared)
            return true;
    return false;
}

/* Private pools from first to last of which nothing tells whether they split segments. */
static size_t untold_pools(const struct replay_plan *plan, size_t first, size_t last, uint32_t *untold)
{
    size_t count = 0;
    for (size_t i = first > 1 ? first : 1; i < last && count < MOST_UNTOLD; i++)
        if (!plan->pools[i].is_told && !(plan->pools[i].is_guess && (!plan->pools[i].is_used || pool_shares(plan, (uint32_t)i))))
            untold[count++] = (uint32_t)i;
    return count;
}

static void choose_way(struct replay_plan *plan, const uint32_t *untold, size_t count, size_t way)
{
    for (size_t i = 0; i < count; i++)
        plan->pools[untold[i]].no_split = way >> i & 1;
}

static size_t used_pools(const struct replay_plan *plan)
{
    size_t used = 0;
    for (size_t i = 0; i < plan->pool_count; i++)
        used += plan->pools[i].is_used;
    return used;
}

/* This way reproduces the recording: the plainest so far, or as plain as that and telling something else? */
static void weigh_way(struct ways *ways, size_t named, size_t guessed, const struct replay_result *result)
{
    size_t used = used_pools(ways->plan);
    if (!ways->found || used < ways->used) {
        ways->found = true;
        ways->used = used;
        ways->named = named;
        ways->guessed = guessed;
        ways->result = *result;
        ways->named_differ = ways->guessed_differ = 0;
    } else if (used == ways->used && memcmp(&ways->result.stats, &result->stats, sizeof(result->stats)) != 0) {
        ways->named_differ |= named ^ ways->named;
        ways->guessed_differ |= named == ways->named ? guessed ^ ways->guessed : 0;
    }
}

static bool has_time(const struct ways *ways)
{
    return ways->work < MOST_WORK && ways->attempts < MOST_ATTEMPTS;
}

/* The guesses of a way of the named pools, both ways each. */
static int try_guesses(struct ways *ways, size_t named, struct error *err)
{
    struct replay_plan *plan = ways->plan;
    struct replay_result result;
    uint32_t guesses[MOST_UNTOLD];
    int status = settle(ways, &result, err);
    if (status)
        return status;
    if (!ways->difference->kind)
        weigh_way(ways, named, 0, &result);
    size_t count = untold_pools(plan, plan->named_count, plan->pool_count, guesses);
    for (size_t way = 1; way < (size_t)1 << count && !status && has_time(ways); way++) {
        choose_way(plan, guesses, count, way);
        status = settle(ways, &result, err);
        if (!status && !ways->difference->kind)
            weigh_way(ways, named, way, &result);
    }
    return status;
}

static void name_differing(struct ways *ways, const uint32_t *untold, size_t count, size_t differing)
{
    struct replay_result *recorded = &ways->plan->recorded;
    size_t length = strlen(recorded->ambiguous), size = sizeof(recorded->ambiguous);
    for (size_t i = 0; i < count; i++) {
        const struct pool_id *id = &ways->plan->pools[untold[i]].id;
        if (differing >> i & 1 && length < size)
            length += (size_t)snprintf(recorded->ambiguous + length, size - length,
                                       "%s--pool %" PRId64 ":%" PRId64 "=no_split (or =split)", length ? ", " : "", id->first,
                                       id->second);
    }
}

/* The way that was found, again: the plan is left as it has it. */
static int take_way(struct ways *ways, const uint32_t *untold, size_t count, struct error *err)
{
    struct replay_plan *plan = ways->plan;
    uint32_t guesses[MOST_UNTOLD];
    forget(plan);
    choose_way(plan, untold, count, ways->named);
    int status = settle(ways, &plan->recorded, err);
    size_t guess_count = status ? 0 : untold_pools(plan, plan->named_count, plan->pool_count, guesses);
    choose_way(plan, guesses, guess_count, ways->guessed);
    if (!status && ways->guessed)
        status = settle(ways, &plan->recorded, err);
    if (!status && ways->found) {
        name_differing(ways, untold, count, ways->named_differ);
        name_differing(ways, guesses, guess_count, ways->guessed_differ);
    }
    return status;
}

static int try_ways(struct ways *ways, struct error *err)
{
    struct replay_plan *plan = ways->plan;
    uint32_t untold[MOST_UNTOLD], guesses[MOST_UNTOLD];
    size_t count = untold_pools(plan, 1, plan->named_count, untold);
    int status = settle(ways, &plan->recorded, err);
    bool is_open = count || untold_pools(plan, plan->named_count, plan->pool_count, guesses);
    if (status || plan->has_start || !is_open)
        return status;
    for (size_t way = 0; way < (size_t)1 << count && !status && has_time(ways); way++) {
        forget(plan);
        choose_way(plan, untold, count, way);
        status = try_guesses(ways, way, err);
    }
    return status ? status : take_way(ways, untold, count, err);
}

/* --- together --------------------------------------------------------------------------------------------------- */

/* A segment that is not there is a fact, whatever is believed of pools. */
static void name_difference(const struct ways *ways)
{
    struct replay_plan *plan = ways->plan;
    struct replay_result *recorded = &plan->recorded;
    const struct replay_result *furthest = &ways->furthest;
    recorded->difference_entry = furthest->difference_entry;
    recorded->at_end = furthest->at_end;
    memcpy(recorded->difference, furthest->difference, sizeof(recorded->difference));
    bool is_opening = furthest->difference_entry < plan->snapshot->entries.count &&
                      plan->snapshot->entries.action[furthest->difference_entry] == ACTION_SEGMENT_ALLOC;
    if (!plan->contradictions.counts[REPLAY_UNKNOWN_SEGMENT] || is_opening)
        return;
    recorded->at_end = false;
    recorded->difference_entry = plan->contradictions.first[REPLAY_UNKNOWN_SEGMENT];
    snprintf(recorded->difference, sizeof(recorded->difference), "a release of a segment that is not there");
}

/* A limit that is asked about need not be the recording's: it is believed if the recording is reproduced with it. */
int replay_settle(struct replay_plan *plan, struct replay_difference *difference, struct error *err)
{
    struct ways ways = {.plan = plan, .difference = difference};
    plan->trial = (struct replay_trial){.limit = plan->options.limit, .limit_entry = plan->options.limit_entry};
    int status = try_ways(&ways, err);
    if (!status && difference->kind && plan->options.limit != REPLAY_NO_LIMIT) {
        forget(plan);
        plan->trial.limit = REPLAY_NO_LIMIT;
        ways.work = 0;
        ways.attempts = 0;
        status = try_ways(&ways, err);
    }
    if (!status && difference->kind)
        name_difference(&ways);
    return status;
}
