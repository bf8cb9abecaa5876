/* The search for settings.  May use src/snapshot, src/base and the analysis' replay. */
#include "analyze/tune.h"

#include "analyze/tune_settings.h"
#include "analyze/tune_trials.h"

#include <stdlib.h>
#include <string.h>

#define SEEDS 4        /* the best few whose neighbours are tried in a round */
#define FEW 16         /* settings with which the smallest limit is looked for */
#define HALVINGS 8
#define LEAST_TRIED 96 /* not content with less, as long as there is something to try */

struct search {
    const struct tune_options *options;
    struct replay_plan *plan;
    struct tune_space space;
    struct tune_trials trials; /* [0]: the recorded settings */
    struct text kept, scratch;
    const char *recorded;
    size_t order[TUNE_MOST]; /* trials by merit; behind the distinct ones those that repeat the outcome of another */
    size_t distinct, repeats[TUNE_MOST];
};

static int64_t peak(const struct replay_result *result)
{
    return result->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
}

static int64_t calls(const struct replay_result *result)
{
    return result->stats.num_device_alloc + result->stats.num_device_free;
}

/* --- merit ------------------------------------------------------------------------------------------------------- */

static int sign(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Below 0: a is the better one.  0: no number tells them apart. */
static int compare_outcomes(const struct replay_result *a, const struct replay_result *b, bool limited)
{
    const int orders[] = {
        sign(a->stats.num_ooms, b->stats.num_ooms),
        limited ? sign(a->stats.num_alloc_retries, b->stats.num_alloc_retries) : 0,
        limited ? sign(calls(a), calls(b)) : 0,
        sign(peak(a), peak(b)),
        sign(a->stats.num_device_alloc, b->stats.num_device_alloc),
        sign(a->stats.num_device_free, b->stats.num_device_free),
        sign(a->stats.num_alloc_retries, b->stats.num_alloc_retries),
    };
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (orders[i])
            return orders[i];
    return 0;
}

static int compare_trials(const void *left, const void *right, void *self)
{
    const struct search *search = self;
    const struct tune_trial *a = &search->trials.items[*(const size_t *)left];
    const struct tune_trial *b = &search->trials.items[*(const size_t *)right];
    int order = compare_outcomes(&a->result, &b->result, search->space.collects);
    if (!order)
        order = sign((int64_t)strlen(a->conf), (int64_t)strlen(b->conf));
    return order ? order : strcmp(a->conf, b->conf);
}

static bool alike(const struct search *search, size_t a, size_t b)
{
    return compare_outcomes(&search->trials.items[a].result, &search->trials.items[b].result, false) == 0;
}

static void rank(struct search *search)
{
    size_t count = search->trials.count;
    size_t *order = search->order;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof(*order), compare_trials, search);
    search->distinct = 0;
    size_t repeats = 0;
    for (size_t i = 0; i < count; i++) {
        if (search->distinct && alike(search, order[i], order[search->distinct - 1]))
            search->repeats[repeats++] = order[i];
        else
            order[search->distinct++] = order[i];
    }
    memcpy(order + search->distinct, search->repeats, repeats * sizeof(*order));
}

/* --- the search -------------------------------------------------------------------------------------------------- */

static int add(void *self, const struct tune_setting *setting)
{
    struct search *search = self;
    if (search->trials.count >= TUNE_MOST)
        return STATUS_OK;
    text_clear(&search->scratch);
    tune_setting_write(setting, text_string(&search->kept), &search->scratch);
    if (text_failed(&search->scratch))
        return STATUS_NO_MEMORY;
    return tune_trials_add(&search->trials, setting, text_string(&search->scratch));
}

static int run_from(struct search *search, size_t first, struct error *err)
{
    const struct tune_options *options = search->options;
    const struct tune_runner runner = {search->plan, options->replay.limit, options->replay.limit_entry,
                                       options->threads, options->progress};
    int status = tune_trials_run(&search->trials, first, &runner, err);
    if (!status)
        rank(search);
    return status;
}

/* What lies around the best that had no such turn yet. */
static int add_neighbours(struct search *search)
{
    const size_t known = search->trials.count;
    int status = STATUS_OK;
    for (size_t i = 0, seeds = 0; i < known && seeds < SEEDS && !status; i++) {
        struct tune_trial *trial = &search->trials.items[search->order[i]];
        if (trial->is_seed)
            continue;
        trial->is_seed = true;
        const struct tune_setting setting = trial->setting; /* adding moves the trials */
        const size_t before = search->trials.count;
        status = tune_neighbours(&search->space, &setting, add, search);
        seeds += search->trials.count > before;
    }
    return status;
}

static int refine(struct search *search, struct error *err)
{
    for (;;) {
        size_t first = search->trials.count, best = search->order[0];
        if (add_neighbours(search))
            return error_no_memory(err);
        if (search->trials.count == first)
            return STATUS_OK;
        int status = run_from(search, first, err);
        bool fits = search->trials.items[search->order[0]].result.stats.num_ooms == 0;
        if (status || (search->order[0] == best && search->trials.count >= LEAST_TRIED && fits))
            return status;
    }
}

static int search_all(struct search *search, const struct snapshot *snapshot, struct error *err)
{
    const struct replay_options *replay = &search->options->replay;
    struct tune_setting as_recorded;
    search->recorded = replay_recorded_conf(snapshot);
    if (tune_space_find(snapshot, replay, search->recorded, &search->space))
        return error_no_memory(err);
    tune_setting_read(search->recorded, search->space.collects, &as_recorded);
    tune_kept(search->recorded, search->space.collects, &search->kept);
    if (text_failed(&search->kept) || tune_trials_add(&search->trials, &as_recorded, search->recorded) ||
        tune_grid(&search->space, add, search))
        return error_no_memory(err);
    int status = replay_plan_new(snapshot, replay, &search->plan, err);
    if (!status)
        status = run_from(search, 0, err);
    return status ? status : refine(search, err);
}

/* --- the result -------------------------------------------------------------------------------------------------- */

static int row_of(const struct tune_trial *trial, const struct replay_result *recorded, struct tune_row *row)
{
    *row = (struct tune_row){.conf = strdup(trial->conf), .replay = trial->result};
    row->saved = peak(recorded) - peak(&trial->result);
    row->extra_calls = calls(&trial->result) - calls(recorded);
    row->options = tune_setting_options(&trial->setting);
    row->fits = trial->result.stats.num_ooms == 0;
    return row->conf ? STATUS_OK : STATUS_NO_MEMORY;
}

static bool is_gain(const struct tune_row *row, const struct tune_row *baseline)
{
    const struct memory_stats *stats = &row->replay.stats, *before = &baseline->replay.stats;
    if (stats->num_ooms != before->num_ooms)
        return stats->num_ooms < before->num_ooms;
    return stats->num_alloc_retries < before->num_alloc_retries || row->saved > peak(&baseline->replay) / 100;
}

/* Is some better row as plain, with as few calls of the device and retries? */
static bool is_beaten(const struct tune_result *result, const struct tune_row *row)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct tune_row *other = &result->rows[i];
        const struct memory_stats *stats = &row->replay.stats, *others = &other->replay.stats;
        if (other->options <= row->options && other->extra_calls <= row->extra_calls && other->saved >= row->saved &&
            others->num_ooms <= stats->num_ooms && others->num_alloc_retries <= stats->num_alloc_retries)
            return true;
    }
    return false;
}

static int rows_of(const struct search *search, struct tune_result *result)
{
    const struct tune_trial *trials = search->trials.items;
    if (row_of(&trials[0], &trials[0].result, &result->baseline))
        return STATUS_NO_MEMORY;
    result->rows = calloc(search->distinct, sizeof(*result->rows));
    if (!result->rows)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < search->distinct; i++) {
        const struct tune_trial *trial = &trials[search->order[i]];
        if (compare_outcomes(&trial->result, &trials[0].result, search->space.collects) >= 0)
            break; /* the baseline, or alike; what follows is worse */
        struct tune_row *row = &result->rows[result->count];
        if (row_of(trial, &trials[0].result, row))
            return STATUS_NO_MEMORY;
        if (is_beaten(result, row))
            free(row->conf);
        else
            result->count++;
    }
    result->fits = trials[search->order[0]].result.stats.num_ooms == 0;
    result->gains = result->count && is_gain(&result->rows[0], &result->baseline);
    result->tried = search->trials.count;
    return STATUS_OK;
}

/* Does one of these settings serve every request under this limit?  Its text, or NULL. */
static int fits_in(struct search *search, struct tune_trials *few, uint64_t limit, const char **conf, struct error *err)
{
    const struct tune_runner runner = {search->plan, limit, search->options->replay.limit_entry,
                                       search->options->threads, NULL};
    int status = tune_trials_run(few, 0, &runner, err);
    *conf = NULL;
    for (size_t i = few->count; i-- > 0 && !status;)
        if (few->items[i].result.stats.num_ooms == 0)
            *conf = few->items[i].conf;
    return status;
}

/* The smallest limit that can be met, by halving, with the settings under which least fails: above the user's limit,
 * and at most what is reserved without one. */
static int find_limit(struct search *search, struct tune_trials *few, struct tune_result *result, struct error *err)
{
    uint64_t below = search->options->replay.limit, above = result->least_peak;
    const char *conf, *met = result->least_conf;
    for (int i = 0; i < HALVINGS && below + SETTINGS_MIB < above; i++) {
        uint64_t middle = (below + (above - below) / 2) & ~(SETTINGS_MIB - 1);
        int status = fits_in(search, few, middle, &conf, err);
        if (status)
            return status;
        if (conf)
            above = middle, met = conf;
        else
            below = middle;
    }
    result->least_limit = above;
    result->least_limit_conf = strdup(met);
    return result->least_limit_conf ? STATUS_OK : error_no_memory(err);
}

/* Nothing fits: what would each have reserved, had there been no limit, and which limit could be met? */
static int find_least(struct search *search, struct tune_result *result, struct error *err)
{
    const struct tune_runner runner = {search->plan, REPLAY_NO_LIMIT, 0, search->options->threads, NULL};
    struct tune_trials few = {0};
    int status = STATUS_OK;
    for (size_t i = 0; i < FEW && i < search->distinct && !status; i++) {
        const struct tune_trial *trial = &search->trials.items[search->order[i]];
        status = tune_trials_add(&few, &trial->setting, trial->conf);
    }
    if (status)
        error_no_memory(err);
    else
        status = tune_trials_run(&search->trials, 0, &runner, err);
    if (!status) {
        search->space.collects = false; /* in the order that holds without a limit */
        rank(search);
        const struct tune_trial *least = &search->trials.items[search->order[0]];
        result->least_peak = (uint64_t)peak(&least->result);
        result->least_conf = strdup(least->conf);
        status = result->least_conf ? find_limit(search, &few, result, err) : error_no_memory(err);
    }
    tune_trials_free(&few);
    return status;
}

static uint64_t recorded_ooms(const struct snapshot *snapshot, const struct replay_options *options)
{
    const struct entries *entries = &snapshot->entries;
    uint64_t count = 0;
    for (size_t i = 0; i < entries->count && i < options->moment; i++)
        count += entries->action[i] == ACTION_OOM && entries->device[i] == options->device &&
                 (entries->process ? entries->process[i] : 0) == options->process;
    return count;
}

int tune_run(const struct snapshot *snapshot, const struct tune_options *options, struct tune_result *result,
             struct error *err)
{
    struct search search = {.options = options};
    *result = (struct tune_result){0};
    int status = search_all(&search, snapshot, err);
    if (!status && rows_of(&search, result))
        status = error_no_memory(err);
    if (!status && !result->fits && search.space.collects)
        status = find_least(&search, result, err);
    result->recorded_ooms = recorded_ooms(snapshot, &options->replay);
    if (status)
        tune_free(result);
    replay_plan_free(search.plan);
    tune_trials_free(&search.trials);
    text_free(&search.kept);
    text_free(&search.scratch);
    return status;
}

void tune_free(struct tune_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].conf);
    free(result->rows);
    free(result->baseline.conf);
    free(result->least_conf);
    free(result->least_limit_conf);
    *result = (struct tune_result){0};
}
