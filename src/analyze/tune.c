/* The search for settings.  May use src/snapshot, src/base and the analysis' replay. */
#include "analyze/tune.h"

#include "analyze/tune_settings.h"
#include "analyze/tune_trials.h"

#include <stdlib.h>
#include <string.h>

#define SEEDS 4        /* the best few whose neighbours are tried in a round */
#define HALVINGS 8     /* of the range in which the smallest limit is looked for */
#define SERVES_ALL (REPLAY_NO_LIMIT - 1) /* a limit under which only the device refuses, also what failed when recorded */
#define LEAST_TRIED 96 /* not content with less, as long as there is something to try */

struct search {
    const struct tune_options *options;
    const struct replay_plan *plan;
    uint64_t limit;
    struct tune_space space;
    struct tune_trials trials; /* [0]: the recorded settings */
    size_t grid_count;         /* of trials: where it began */
    struct text kept, scratch;
    const char *recorded;
    size_t order[2 * TUNE_MOST]; /* trials by merit; behind the distinct ones those that repeat the outcome of another */
    size_t distinct, repeats[2 * TUNE_MOST];
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

static bool serves_all(const struct search *search)
{
    return search->trials.items[search->order[0]].result.stats.num_ooms == 0;
}

static int run_from(struct search *search, size_t first, struct error *err)
{
    const struct tune_options *options = search->options;
    const struct tune_runner runner = {search->plan, search->limit, options->replay.limit_entry, options->threads,
                                       search->limit == options->replay.limit ? options->progress : NULL};
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
        if (status || (search->order[0] == best && search->trials.count >= LEAST_TRIED && serves_all(search)))
            return status;
    }
}

static int search_all(struct search *search, const struct snapshot *snapshot, bool collects, struct error *err)
{
    struct replay_options replay = search->options->replay;
    struct tune_setting as_recorded;
    replay.limit = collects ? replay.limit : REPLAY_NO_LIMIT;
    search->recorded = replay_recorded_conf(snapshot, replay.process);
    if (tune_space_find(snapshot, &replay, search->recorded, &search->space))
        return error_no_memory(err);
    tune_setting_read(search->recorded, search->space.collects, &as_recorded);
    tune_kept(search->recorded, search->space.collects, &search->kept);
    if (text_failed(&search->kept) || tune_trials_add(&search->trials, &as_recorded, search->recorded) ||
        tune_grid(&search->space, add, search))
        return error_no_memory(err);
    search->grid_count = search->trials.count;
    int status = run_from(search, 0, err);
    return status ? status : refine(search, err);
}

static int take_trials(struct tune_trials *to, const struct search *from, const size_t *order, size_t count)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < count && !status; i++) {
        const struct tune_trial *trial = &from->trials.items[order ? order[i] : i];
        status = tune_trials_add(to, &trial->setting, trial->conf);
    }
    return status;
}

/* Nothing fits the limit: settings that reserve least where everything is served, whatever the limit, may do. */
static int search_wide(struct search *search, struct search *wide, const struct snapshot *snapshot, struct error *err)
{
    size_t first = search->trials.count;
    int status = search_all(wide, snapshot, false, err);
    if (!status && take_trials(&search->trials, wide, wide->order, wide->distinct))
        status = error_no_memory(err);
    return status ? status : run_from(search, first, err);
}

static void search_free(struct search *search)
{
    tune_trials_free(&search->trials);
    text_free(&search->kept);
    text_free(&search->scratch);
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
    result->fits = serves_all(search);
    result->gains = result->count && is_gain(&result->rows[0], &result->baseline);
    result->tried = search->trials.count;
    return STATUS_OK;
}

/* Does one of these settings serve every request under this limit?  Then the others are out, and conf is its text; else it
 * is NULL.  What the user asks for none of them meets. */
static int fits_in(const struct search *search, struct tune_trials *few, uint64_t limit, const char **conf, struct error *err)
{
    const struct tune_runner runner = {search->plan, limit, search->options->replay.limit_entry,
                                       search->options->threads, NULL};
    size_t kept = 0, fitting = 0;
    *conf = NULL;
    int status = limit > search->limit ? tune_trials_run(few, 0, &runner, err) : STATUS_OK;
    if (status || limit <= search->limit)
        return status;
    for (size_t i = 0; i < few->count; i++)
        fitting += few->items[i].result.stats.num_ooms == 0;
    for (size_t i = 0; i < few->count && fitting; i++) {
        if (few->items[i].result.stats.num_ooms)
            free(few->items[i].conf);
        else
            few->items[kept++] = few->items[i];
    }
    few->count = fitting ? kept : few->count;
    *conf = fitting ? few->items[0].conf : NULL;
    return STATUS_OK;
}

/* The smallest limit that one of these meets: above what is requested at a time; a little more than the smallest peak may
 * be needed, as a limit counts whole segments.  *below is too little, *above is enough. */
static int narrow_limit(const struct search *search, struct tune_trials *few, uint64_t *below, uint64_t *above,
                        const char **met, struct error *err)
{
    const char *conf;
    int status = fits_in(search, few, *above, met, err);
    for (int i = 0; i < HALVINGS && !status && !*met; i++) {
        *below = *above;
        *above += *above / HALVINGS;
        status = fits_in(search, few, *above, met, err);
    }
    for (int i = 0; i < HALVINGS && !status && *met && *below + SETTINGS_MIB < *above; i++) {
        uint64_t middle = (*below + (*above - *below) / 2) & ~(SETTINGS_MIB - 1);
        status = fits_in(search, few, middle, &conf, err);
        if (conf)
            *above = middle, *met = conf;
        else
            *below = middle;
    }
    return status;
}

/* Among all settings that do not depend on the limit asked for. */
static int find_limit(const struct search *search, const struct search *wide, struct tune_result *result, struct error *err)
{
    const struct replay_result *least = &wide->trials.items[wide->order[0]].result;
    uint64_t below = (uint64_t)least->stats.kinds[MEMORY_STAT_REQUESTED_BYTES][MEMORY_POOL_ALL].peak;
    uint64_t above = result->least_peak;
    struct tune_trials few = {0};
    const char *met = NULL;
    int status = take_trials(&few, wide, wide->order, wide->distinct);
    if (!status)
        status = take_trials(&few, search, NULL, search->grid_count);
    status = status ? error_no_memory(err) : narrow_limit(search, &few, &below, &above, &met, err);
    if (!status && met) {
        result->least_limit = above;
        result->least_limit_conf = strdup(met);
        status = result->least_limit_conf ? STATUS_OK : error_no_memory(err);
    }
    tune_trials_free(&few);
    return status;
}

/* Nothing fits: what would be reserved, had there been no limit, and which limit could be met? */
static int find_least(const struct search *search, const struct search *wide, struct tune_result *result, struct error *err)
{
    const struct tune_trial *least = &wide->trials.items[wide->order[0]];
    if (!serves_all(wide)) /* the device is too small */
        return STATUS_OK;
    result->least_peak = (uint64_t)peak(&least->result);
    result->least_conf = strdup(least->conf);
    return result->least_conf ? find_limit(search, wide, result, err) : error_no_memory(err);
}

static uint64_t recorded_ooms(const struct snapshot *snapshot, const struct replay_options *options)
{
    const struct entries *entries = &snapshot->entries;
    uint64_t count = 0;
    for (size_t i = 0; i < entries->count && i < options->moment; i++)
        count += entries->action[i] == ACTION_OOM && !(entries->flags[i] & ENTRY_OUTSIDE) &&
                 entries->device[i] == options->device &&
                 (entries->process ? entries->process[i] : 0) == options->process;
    return count;
}

static int tune_with(const struct replay_plan *plan, const struct snapshot *snapshot, const struct tune_options *options,
                     struct tune_result *result, struct error *err)
{
    struct search search = {.options = options, .plan = plan, .limit = options->replay.limit};
    struct search wide = {.options = options, .plan = plan, .limit = SERVES_ALL};
    bool limited = options->replay.limit != REPLAY_NO_LIMIT;
    int status = search_all(&search, snapshot, limited, err);
    if (!status && limited && !serves_all(&search))
        status = search_wide(&search, &wide, snapshot, err);
    if (!status && rows_of(&search, result))
        status = error_no_memory(err);
    if (!status && limited && !result->fits)
        status = find_least(&search, &wide, result, err);
    search_free(&search);
    search_free(&wide);
    return status;
}

int tune_run(const struct snapshot *snapshot, const struct tune_options *options, struct tune_result *result,
             struct error *err)
{
    struct replay_plan *plan;
    uint64_t limit;
    *result = (struct tune_result){0};
    int status = replay_plan_new(snapshot, &options->replay, &plan, err);
    if (status)
        return status;
    result->recorded = *replay_plan_recorded(plan, &limit);
    result->recorded_ooms = recorded_ooms(snapshot, &options->replay);
    status = tune_with(plan, snapshot, options, result, err);
    replay_plan_free(plan);
    if (status)
        tune_free(result);
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
