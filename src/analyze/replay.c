/* Plans: what a recording leaves open is settled by runs under its own settings.  May use src/snapshot, src/alloc,
 * src/base. */
#include "analyze/replay.h"

#include "analyze/replay_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int run_recorded(struct replay_plan *plan, struct error *err)
{
    struct replay_difference difference = {0};
    int status = replay_settle(plan, &difference, err);
    if (!status && difference.kind)
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
    free(plan->foreigners.ooms);
    table_free(&plan->beliefs.turned);
    free(plan);
}

int replay_plan_run(const struct replay_plan *plan, const struct replay_trial *trial, struct replay_result *result,
                    struct error *err)
{
    const struct replay_result *recorded = &plan->recorded;
    bool same_limit = trial->limit == plan->trial.limit &&
                      (trial->limit_entry == plan->trial.limit_entry || trial->limit == REPLAY_NO_LIMIT);
    bool is_known = !trial->conf && (same_limit || recorded->difference[0]);
    int status = STATUS_OK;
    if (is_known)
        *result = *recorded;
    else
        status = replay_run_once(plan, trial, result, NULL, NULL, err);
    if (!status && !trial->conf && !same_limit && result->difference[0])
        status = run_unfollowed(plan, trial, result, err);
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
