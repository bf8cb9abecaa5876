/* Settings under which the request would have been served, or the peak been lower: by replays.  May use src/snapshot,
 * src/alloc and src/base. */
#include "analyze/explain_internal.h"

#include "analyze/tune.h"
#include "analyze/tune_settings.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Two plans of one recording: up to the failure, and up to what came just before it. */
struct judge {
    struct explain *explain;
    const struct explain_options *options;
    struct replay_options replay;
    struct replay_plan *all, *before;
    struct replay_result baseline;
};

static uint64_t peak_of(const struct replay_result *result)
{
    return (uint64_t)result->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
}

static int run(const struct replay_plan *plan, const struct judge *judge, const char *conf, struct replay_result *result,
               struct error *err)
{
    const struct replay_trial trial = {conf, judge->replay.limit, judge->replay.limit_entry};
    return replay_plan_run(plan, &trial, result, err);
}

/* Is the request served under these settings?  Of a moment without a failure: is everything? */
static int judge_conf(const struct judge *judge, const char *conf, struct explain_trial *trial, struct error *err)
{
    struct replay_result all, before = {0};
    int status = run(judge->all, judge, conf, &all, err);
    if (!status && judge->before)
        status = run(judge->before, judge, conf, &before, err);
    if (status)
        return status;
    *trial = (struct explain_trial){.conf = strdup(conf), .exact = all.exact, .approximate = all.approximate,
                                    .peak_reserved = peak_of(&all), .ooms = all.ooms};
    trial->serves = judge->before ? all.ooms == before.ooms && all.ooms < judge->baseline.ooms : !all.ooms;
    return trial->conf ? STATUS_OK : error_no_memory(err);
}

static bool is_known(const struct explain_settings *settings, const char *conf)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->trials[i].conf, conf) == 0)
            return true;
    return false;
}

/* The recorded settings with expandable segments, where they were not on. */
static int try_expandable(struct judge *judge, const struct settings *recorded, struct error *err)
{
    struct explain_settings *settings = &judge->explain->settings;
    bool limited = judge->replay.limit != REPLAY_NO_LIMIT;
    struct tune_setting setting;
    struct text kept = {0}, conf = {0};
    if (recorded->expandable_segments)
        return STATUS_OK;
    tune_setting_read(settings->recorded, limited, &setting);
    tune_kept(settings->recorded, limited, &kept);
    setting.expandable = true;
    tune_setting_write(&setting, text_string(&kept), &conf);
    int status = text_failed(&kept) || text_failed(&conf) ? error_no_memory(err) : STATUS_OK;
    if (!status)
        status = judge_conf(judge, text_string(&conf), &settings->trials[0], err);
    settings->count = !status;
    settings->tried = 1;
    text_free(&kept);
    text_free(&conf);
    return status;
}

/* Of the rows of a search those that serve the request, the best first; they are better than the recorded settings. */
static int take_rows(struct judge *judge, const struct tune_result *found, struct error *err)
{
    struct explain_settings *settings = &judge->explain->settings;
    int status = STATUS_OK;
    for (size_t i = 0; i < found->count && settings->count < EXPLAIN_TRIALS && !status; i++) {
        struct explain_trial *trial = &settings->trials[settings->count];
        if (is_known(settings, found->rows[i].conf) || (!judge->before && !found->gains))
            continue;
        status = judge_conf(judge, found->rows[i].conf, trial, err);
        if (!status && !trial->serves) {
            free(trial->conf);
            *trial = (struct explain_trial){0};
        } else if (!status) {
            settings->count++;
        }
    }
    return status;
}

static int search(struct judge *judge, struct error *err)
{
    struct explain_settings *settings = &judge->explain->settings;
    const struct tune_options options = {.replay = judge->replay, .threads = judge->options->threads,
                                         .progress = judge->options->progress};
    struct tune_result found;
    int status = tune_run(judge->explain->snapshot, &options, &found, err);
    if (status)
        return status;
    settings->searched = true;
    settings->tried = found.tried;
    status = take_rows(judge, &found, err);
    if (!found.fits && found.least_limit_conf) {
        settings->least_limit = found.least_limit;
        settings->least_conf = found.least_limit_conf;
        found.least_limit_conf = NULL;
    }
    tune_free(&found);
    return status;
}

static int judge_open(struct judge *judge, struct error *err)
{
    const struct snapshot *snapshot = judge->explain->snapshot;
    struct explain_settings *settings = &judge->explain->settings;
    uint64_t limit;
    judge->replay.moment = snapshot->entries.count;
    int status = replay_plan_new(snapshot, &judge->replay, &judge->all, err);
    if (!status && judge->explain->is_failure) {
        struct replay_options before = judge->replay;
        before.moment--;
        status = replay_plan_new(snapshot, &before, &judge->before, err);
    }
    if (status)
        return status;
    const struct replay_result *recorded = replay_plan_recorded(judge->all, &limit);
    settings->exact = recorded->exact && !recorded->ambiguous[0] && recorded->explained == recorded->placements;
    settings->recorded_peak = peak_of(recorded);
    return run(judge->all, judge, settings->recorded, &judge->baseline, err);
}

/* Under the recorded settings the last request must fail, or nothing is known of others. */
static int fails_as_recorded(const struct judge *judge, bool *fails, struct error *err)
{
    struct replay_result before;
    *fails = true;
    if (!judge->before)
        return STATUS_OK;
    int status = run(judge->before, judge, judge->explain->settings.recorded, &before, err);
    *fails = !status && judge->baseline.ooms > before.ooms;
    return status;
}

static int judge_all(struct judge *judge, struct error *err)
{
    struct explain *explain = judge->explain;
    struct settings recorded;
    bool fails;
    settings_init(&recorded);
    int status = settings_parse(&recorded, explain->settings.recorded, err);
    if (!status)
        status = judge_open(judge, err);
    if (!status)
        status = fails_as_recorded(judge, &fails, err);
    if (status)
        return status;
    explain->settings.judged = fails ? EXPLAIN_JUDGED : EXPLAIN_JUDGED_OTHERWISE;
    if (fails)
        status = try_expandable(judge, &recorded, err);
    if (!status && fails && explain->snapshot->entries.count <= EXPLAIN_SEARCH_ENTRIES)
        status = search(judge, err);
    return status;
}

int explain_settings(struct explain *explain, const struct explain_options *options, struct error *err)
{
    struct judge judge = {.explain = explain, .options = options, .replay = options->replay};
    struct explain_settings *settings = &explain->settings;
    struct error why = {0};
    settings->recorded = replay_recorded_conf(explain->snapshot, explain->process);
    settings->is_ours = snapshot_is_cached(explain->snapshot, explain->process);
    settings->judged = explain->is_cached ? EXPLAIN_JUDGED_NOTHING : EXPLAIN_JUDGED_NOT_CACHING;
    if (!explain->is_cached || !explain->snapshot->entries.count || options->skips_settings ||
        (explain->is_failure && explain->room.kind == EXPLAIN_ROOM_UNKNOWN))
        return STATUS_OK;
    judge.replay.process = explain->process;
    judge.replay.device = explain->device;
    if (explain->is_failure && explain->room.kind != EXPLAIN_ROOM_TOLD) {
        judge.replay.limit = explain->room.low;
        judge.replay.limit_entry = 0;
    }
    settings->limit = judge.replay.limit;
    int status = judge_all(&judge, &why);
    replay_plan_free(judge.all);
    replay_plan_free(judge.before);
    if (status == STATUS_NO_MEMORY) {
        *err = why;
        return status;
    }
    if (status) /* what cannot be replayed is not judged */
        settings->judged = EXPLAIN_JUDGED_NOTHING;
    return STATUS_OK;
}
