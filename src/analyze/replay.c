/* Plans: what a recording leaves open is settled by runs under its own settings.  May use src/snapshot, src/alloc,
 * src/base. */
#include "analyze/replay.h"

#include "analyze/replay_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ATTEMPTS 400
#define MOST_WORK UINT64_C(100000000) /* entries run while settling, after the first few attempts */
#define FREE_ATTEMPTS 8
#define MOST_UNTOLD 6                 /* pools of which both ways are tried */

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
static int settle(struct replay_plan *plan, struct replay_result *result, struct replay_difference *difference,
                  struct replay_result *furthest, struct error *err)
{
    uint64_t work = 0;
    for (int attempt = 0; attempt < MOST_ATTEMPTS && (attempt < FREE_ATTEMPTS || work < MOST_WORK); attempt++) {
        if (replay_lives_settle(plan) || replay_plan_order(plan))
            return error_no_memory(err);
        int status = replay_run_once(plan, &plan->trial, result, difference, &plan->foreigners, err);
        if (status)
            return status;
        work += plan->count;
        if (difference->kind)
            keep_furthest(furthest, result);
        if (!difference->kind || plan->has_start || !replay_learn(plan, difference))
            return STATUS_OK;
    }
    return STATUS_OK;
}

/* Private pools of which nobody said whether they split segments. */
static size_t untold_pools(const struct replay_plan *plan, uint32_t *untold)
{
    size_t count = 0;
    for (uint32_t i = 1; i < plan->pool_count; i++)
        if (!plan->pools[i].is_told && count < MOST_UNTOLD)
            untold[count++] = i;
    return count;
}

static void choose_way(struct replay_plan *plan, const uint32_t *untold, size_t count, size_t way)
{
    for (size_t i = 0; i < count; i++)
        plan->pools[untold[i]].no_split = way >> i & 1;
}

static void name_ambiguous(struct replay_result *result, const struct replay_plan *plan, const uint32_t *untold,
                           size_t count, size_t ways)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        const struct pool_id *id = &plan->pools[untold[i]].id;
        if (ways >> i & 1 && length < sizeof(result->ambiguous))
            length += (size_t)snprintf(result->ambiguous + length, sizeof(result->ambiguous) - length,
                                       "%s--pool %" PRId64 ":%" PRId64 "=no_split (or =split)", length ? ", " : "", id->first,
                                       id->second);
    }
}

/* Every way in which the pools may split; the first that reproduces the recording is taken, and another one that does,
 * with other statistics, makes it ambiguous. */
static int try_ways(struct replay_plan *plan, struct replay_result *result, struct replay_difference *difference,
                    struct replay_result *furthest, struct error *err)
{
    uint32_t untold[MOST_UNTOLD];
    size_t count = untold_pools(plan, untold), chosen = SIZE_MAX, differing = 0;
    struct replay_result way_result;
    int status = STATUS_OK;
    for (size_t way = 0; way < (size_t)1 << count && !status; way++) {
        choose_way(plan, untold, count, way);
        status = settle(plan, &way_result, difference, furthest, err);
        if (status || difference->kind)
            continue;
        if (chosen == SIZE_MAX) {
            chosen = way;
            *result = way_result;
        } else if (memcmp(&result->stats, &way_result.stats, sizeof(result->stats)) != 0) {
            differing |= way ^ chosen;
        }
    }
    if (status)
        return status;
    choose_way(plan, untold, count, chosen == SIZE_MAX ? 0 : chosen);
    status = settle(plan, result, difference, furthest, err);
    name_ambiguous(result, plan, untold, count, differing);
    return status;
}

const char *replay_recorded_conf(const struct snapshot *snapshot)
{
    value content;
    if (!snapshot_get_setting(snapshot, "PYTORCH_CUDA_ALLOC_CONF", &content) || value_kind(content) != VALUE_STRING)
        return "";
    return snapshot_object_text(snapshot, (uint32_t)value_payload(content), NULL);
}

/* What cannot be followed is run under the recorded settings with addresses of our own. */
static int run_unfollowed(const struct replay_plan *plan, const struct replay_trial *trial, struct replay_result *result,
                          struct error *err)
{
    struct replay_result followed = *result;
    struct replay_trial own = *trial;
    own.conf = replay_recorded_conf(plan->snapshot);
    int status = replay_run_once(plan, &own, result, NULL, NULL, err);
    result->difference_entry = followed.difference_entry;
    result->at_end = followed.at_end;
    memcpy(result->difference, followed.difference, sizeof(result->difference));
    result->events = followed.events;
    result->placements = followed.placements;
    result->explained = followed.explained;
    return status;
}

/* A segment that is not there is a fact, whatever is believed of pools. */
static void name_difference(struct replay_plan *plan, const struct replay_result *furthest)
{
    struct replay_result *recorded = &plan->recorded;
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

static int settle_under(struct replay_plan *plan, uint64_t limit, struct replay_difference *difference,
                        struct replay_result *furthest, struct error *err)
{
    uint32_t untold[MOST_UNTOLD];
    plan->trial = (struct replay_trial){.limit = limit, .limit_entry = plan->options.limit_entry};
    int status = settle(plan, &plan->recorded, difference, furthest, err);
    if (!status && !plan->has_start && untold_pools(plan, untold))
        status = try_ways(plan, &plan->recorded, difference, furthest, err);
    if (!status && difference->kind)
        name_difference(plan, furthest);
    return status;
}

static void forget(struct replay_plan *plan)
{
    plan->beliefs.apart_count = 0;
    plan->beliefs.flushes = false;
    table_free(&plan->beliefs.turned);
}

/* A limit that is asked about need not be the recording's: it is believed if the recording is reproduced with it. */
static int run_recorded(struct replay_plan *plan, struct error *err)
{
    struct replay_difference difference = {0};
    struct replay_result furthest = {0};
    int status = settle_under(plan, plan->options.limit, &difference, &furthest, err);
    if (!status && difference.kind && plan->options.limit != REPLAY_NO_LIMIT) {
        forget(plan);
        status = settle_under(plan, REPLAY_NO_LIMIT, &difference, &furthest, err);
    }
    if (!status && plan->has_start && difference.kind)
        status = run_unfollowed(plan, &plan->trial, &plan->recorded, err);
    return status;
}

int replay_plan_new(const struct snapshot *snapshot, const struct replay_options *options, struct replay_plan **plan,
                    struct error *err)
{
    struct replay_plan *made = *plan = calloc(1, sizeof(*made));
    if (!made)
        return error_no_memory(err);
    made->snapshot = snapshot;
    made->options = *options;
    int status = replay_plan_list(made, err);
    if (!status && replay_lives_find(made))
        status = error_no_memory(err);
    if (!status)
        status = run_recorded(made, err);
    if (status) {
        replay_plan_free(made);
        *plan = NULL;
    }
    return status;
}

void replay_plan_free(struct replay_plan *plan)
{
    if (!plan)
        return;
    free(plan->list);
    free(plan->next_request);
    free(plan->numbers);
    free(plan->ops);
    free(plan->addresses);
    state_free(&plan->start);
    free(plan->start_numbers);
    free(plan->pools);
    free(plan->lives);
    free(plan->by_address);
    free(plan->request_lives);
    free(plan->beliefs.apart);
    free(plan->foreigners.items);
    table_free(&plan->beliefs.turned);
    free(plan);
}

int replay_plan_run(const struct replay_plan *plan, const struct replay_trial *trial, struct replay_result *result,
                    struct error *err)
{
    const struct replay_result *recorded = &plan->recorded;
    bool same_limit = trial->limit == plan->trial.limit &&
                      (trial->limit_entry == plan->trial.limit_entry || trial->limit == REPLAY_NO_LIMIT);
    bool asked = trial->limit == plan->options.limit && trial->limit_entry == plan->options.limit_entry;
    if (!trial->conf && (same_limit || (asked && recorded->difference[0] && !plan->has_start))) {
        *result = *recorded;
        return STATUS_OK;
    }
    if (!trial->conf && plan->has_start && recorded->difference[0]) {
        *result = *recorded;
        return run_unfollowed(plan, trial, result, err);
    }
    int status = replay_run_once(plan, trial, result, NULL, NULL, err);
    result->placements = recorded->placements;
    result->explained = recorded->explained;
    memcpy(result->ambiguous, recorded->ambiguous, sizeof(result->ambiguous));
    if (trial->conf)
        result->exact = recorded->exact && !recorded->ambiguous[0] && recorded->explained == recorded->placements &&
                        !recorded->refused;
    return status;
}

int replay_run(const struct snapshot *snapshot, const struct replay_options *options, struct replay_result *result,
               struct error *err)
{
    const struct replay_trial trial = {options->conf, options->limit, options->limit_entry};
    struct replay_plan *plan;
    memset(result, 0, sizeof(*result));
    int status = replay_plan_new(snapshot, options, &plan, err);
    if (!status)
        status = replay_plan_run(plan, &trial, result, err);
    replay_plan_free(plan);
    return status;
}

int replay_statistics(void *context, const struct snapshot *snapshot, uint64_t moment, struct statistics *result,
                      struct error *err)
{
    struct replay_options options = {.limit = REPLAY_NO_LIMIT};
    struct replay_result replay;
    if (snapshot->source != SOURCE_TORCH || snapshot->first_entry)
        return 1; /* only what can be checked against the whole recording */
    if (context)
        options = *(const struct replay_options *)context;
    options.process = result->process;
    options.device = result->device;
    options.moment = moment;
    options.conf = NULL;
    int status = replay_run(snapshot, &options, &replay, err);
    if (status == STATUS_NO_MEMORY)
        return status;
    if (status || !replay.exact || replay.ambiguous[0])
        return 1;
    result->values = replay.stats;
    memset(&result->bounds, 0, sizeof(result->bounds));
    result->bounds.num_sync_all_streams = STATISTICS_AT_LEAST; /* a flush that frees nothing leaves no entry */
    if (replay.refused)
        result->bounds.num_alloc_retries = STATISTICS_AT_LEAST;
    return STATUS_OK;
}
