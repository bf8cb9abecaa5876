/* Plans: what a recording leaves open is settled by runs under its own settings.  May use src/snapshot, src/alloc,
 * src/base. */
#include "analyze/replay.h"

#include "alloc/settings.h"
#include "analyze/replay_end.h"
#include "analyze/replay_plan.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *setting_text(const struct snapshot *snapshot, uint16_t process, const char *key)
{
    value content;
    if (!snapshot_process_setting(snapshot, process, key, &content) || value_kind(content) != VALUE_STRING)
        return "";
    return snapshot_object_text(snapshot, (uint32_t)value_payload(content), NULL);
}

/* Those of our own allocator where it served the program: whatever PyTorch was told, its memory came from there. */
const char *replay_recorded_conf(const struct snapshot *snapshot, uint16_t process)
{
    bool is_ours = snapshot_is_cached(snapshot, process);
    return setting_text(snapshot, process, is_ours ? "CUDAMEM_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF");
}

uint64_t replay_recorded_limit(const struct snapshot *snapshot, uint16_t process)
{
    uint64_t limit = 0;
    const char *text = snapshot_is_cached(snapshot, process) ? setting_text(snapshot, process, "CUDAMEM_MEMORY_LIMIT") : "";
    return *text && size_parse(text, &limit, NULL) == STATUS_OK && limit ? limit : REPLAY_NO_LIMIT;
}

/* What cannot be followed is run under the recorded settings with addresses of our own. */
static int run_unfollowed(const struct replay_plan *plan, const struct replay_trial *trial, struct replay_result *result,
                          struct error *err)
{
    struct replay_result followed = *result;
    struct replay_trial own = *trial;
    own.conf = replay_recorded_conf(plan->snapshot, plan->options.process);
    int status = replay_run_once(plan, &own, result, NULL, NULL, err);
    result->difference_entry = followed.difference_entry;
    result->at_end = followed.at_end;
    memcpy(result->difference, followed.difference, sizeof(result->difference));
    result->events = followed.events;
    result->placements = followed.placements;
    result->explained = followed.explained;
    return status;
}

/* Collections happen at a share of the limit. */
static bool collects(const struct replay_plan *plan)
{
    struct settings settings;
    settings_init(&settings);
    return settings_parse(&settings, replay_recorded_conf(plan->snapshot, plan->options.process), NULL) == STATUS_OK &&
           settings.garbage_collection_threshold > 0 && settings.per_process_memory_fraction >= 1;
}

/* What the user says of pools to which no request went. */
static void find_idle(const struct replay_plan *plan, struct replay_result *result)
{
    const struct replay_options *options = &plan->options;
    size_t length = 0, size = sizeof(result->idle);
    for (size_t i = 0; i < options->pool_count + options->scope_count && length < size; i++) {
        bool is_pool = i < options->pool_count;
        const struct replay_scope_option *scope = is_pool ? NULL : &options->scopes[i - options->pool_count];
        int64_t first = is_pool ? options->pools[i].first : scope->first;
        int64_t second = is_pool ? options->pools[i].second : scope->second;
        bool is_used = false;
        for (size_t k = 0; k < plan->op_count && !is_used; k++) {
            const struct replay_op *op = &plan->ops[k];
            const struct pool_id *id = &plan->pools[op->pool].id;
            uint64_t entry = plan->list[op->at];
            is_used = (op->kind == REPLAY_ALLOC || op->kind == REPLAY_OOM) && id->first == first && id->second == second &&
                      (is_pool || (entry >= scope->from && entry <= scope->to));
        }
        if (!is_used)
            length += (size_t)snprintf(result->idle + length, size - length, "%s--%s %" PRId64 ":%" PRId64,
                                       length ? ", " : "", is_pool ? "pool" : "scope", first, second);
    }
}

static int run_recorded(struct replay_plan *plan, struct error *err)
{
    struct replay_difference difference = {0};
    int status = replay_settle(plan, &difference, err);
    if (!status && difference.kind)
        status = run_unfollowed(plan, &plan->trial, &plan->recorded, err);
    if (status)
        return status;
    plan->recorded.lacks_limit = difference.kind && plan->options.limit == REPLAY_NO_LIMIT && collects(plan);
    find_idle(plan, &plan->recorded);
    return STATUS_OK;
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
    free(plan->others);
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
    result->lacks_limit = recorded->lacks_limit && trial->limit == REPLAY_NO_LIMIT;
    memcpy(result->ambiguous, recorded->ambiguous, sizeof(result->ambiguous));
    memcpy(result->idle, recorded->idle, sizeof(result->idle));
    if (trial->conf)
        result->exact = recorded->exact && !recorded->ambiguous[0] && recorded->explained == recorded->placements &&
                        !recorded->refused;
    return status;
}

const struct replay_result *replay_plan_recorded(const struct replay_plan *plan, uint64_t *limit)
{
    *limit = plan->trial.limit;
    return &plan->recorded;
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
    struct replay_plan *plan;
    struct replay_result replay;
    uint64_t limit;
    if (!snapshot_tells_requests(snapshot, result->process) || snapshot->first_entry)
        return 1; /* only what can be checked against the whole recording */
    if (context)
        options = *(const struct replay_options *)context;
    options.process = result->process;
    options.device = result->device;
    options.moment = moment;
    options.conf = NULL;
    int status = replay_plan_new(snapshot, &options, &plan, err);
    if (status)
        return status == STATUS_NO_MEMORY ? status : 1;
    replay = *replay_plan_recorded(plan, &limit);
    replay_plan_free(plan);
    if (!replay.exact || replay.ambiguous[0])
        return 1;
    result->refutes_limit = limit != options.limit;
    result->values = replay.stats;
    memset(&result->bounds, 0, sizeof(result->bounds));
    result->bounds.num_sync_all_streams = STATISTICS_AT_LEAST; /* a flush that frees nothing leaves no entry */
    if (replay.refused)
        result->bounds.num_alloc_retries = STATISTICS_AT_LEAST;
    return STATUS_OK;
}

/* One device; what cannot be replayed stays.  0 or no memory. */
static int mend_place(struct snapshot *snapshot, const struct segment *segment, bool *is_mended, struct error *err)
{
    const struct replay_options options = {.process = segment->process, .device = segment->device,
                                           .moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT};
    struct replay_plan *plan;
    int status = replay_plan_new(snapshot, &options, &plan, err);
    *is_mended = false;
    if (status)
        return status == STATUS_NO_MEMORY ? status : STATUS_OK;
    if (plan->recorded.exact && !plan->recorded.ambiguous[0]) {
        status = replay_mend_place(plan, snapshot, err);
        *is_mended = status == STATUS_OK;
    }
    replay_plan_free(plan);
    return status;
}

int replay_mend_end(struct snapshot *snapshot, struct error *err)
{
    struct table done = {0};
    bool is_whole = true, is_mended = false;
    int status = STATUS_OK;
    if (!snapshot_tells_requests(snapshot, 0) || snapshot->first_entry || snapshot->end.exact)
        return STATUS_OK;
    for (size_t i = 0; i < snapshot->end.segment_count && !status; i++) {
        const struct segment *segment = &snapshot->end.segments[i];
        uint64_t key = (uint64_t)segment->process << 16 | segment->device;
        if (table_has(&done, key))
            continue;
        status = table_set(&done, key, 1) ? error_no_memory(err) : mend_place(snapshot, segment, &is_mended, err);
        is_whole &= !status && is_mended;
    }
    table_free(&done);
    snapshot->end.exact = is_whole;
    return status;
}

int replay_mend_state(struct snapshot *snapshot, struct state *state, struct error *err)
{
    struct state end = snapshot->end;
    size_t count = snapshot->entries.count;
    snapshot->end = *state;
    snapshot->entries.count = (size_t)state->moment;
    int status = replay_mend_end(snapshot, err);
    *state = snapshot->end;
    snapshot->end = end;
    snapshot->entries.count = count;
    return status;
}
