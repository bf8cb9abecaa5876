/*
 * The bands of the timeline: of each chart the allocations that take most of it.  What lives in no column's moment is
 * seen nowhere, so that most entries of a long trace need a look only.  May use src/snapshot, src/base and the selection.
 */
#include "analyze/timeline_internal.h"

#include <stdlib.h>
#include <string.h>

/* The chosen ones so far: a heap with the least on top. */
struct choice {
    struct timeline_band *bands;
    size_t count, most;
    uint32_t next; /* the first column whose moment is not before the entry that is looked at */
};

/* Is a less worth showing than b? */
static bool is_less(const struct timeline_band *a, const struct timeline_band *b)
{
    return a->weight != b->weight ? a->weight < b->weight : a->alloc > b->alloc;
}

static void sink(struct choice *choice, size_t at)
{
    struct timeline_band *bands = choice->bands;
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < choice->count; i++)
            if (is_less(&bands[i], &bands[least]))
                least = i;
        if (least == at)
            return;
        struct timeline_band other = bands[at];
        bands[at] = bands[least];
        bands[least] = other;
        at = least;
    }
}

static void offer(struct choice *choice, const struct timeline_band *band)
{
    if (choice->count < choice->most) {
        size_t at = choice->count++;
        while (at && is_less(band, &choice->bands[(at - 1) / 2])) {
            choice->bands[at] = choice->bands[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        choice->bands[at] = *band;
    } else if (choice->most && is_less(&choice->bands[0], band)) {
        choice->bands[0] = *band;
        sink(choice, 0);
    }
}

/* The first column from `low` on whose moment is after `moment`. */
static uint32_t column_after(const struct timeline_chart *chart, uint32_t low, uint32_t columns, uint64_t moment)
{
    uint32_t high = columns;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (chart->moments[middle] > moment)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool begins_life(const struct timeline_lives *lives, const struct timeline_space *space, size_t i)
{
    const struct entries *entries = &lives->snapshot->entries;
    enum action action = entries->action[i];
    return space->implied ? timeline_is_segment_action(action) && timeline_brings(entries, i) : action == ACTION_ALLOC;
}

static void look(const struct timeline *timeline, struct timeline_lives *lives, struct choice *choices, size_t i)
{
    const struct entries *entries = &lives->snapshot->entries;
    uint32_t partner = lives->partner[i], at = partner >= LIFE_BEFORE && partner != LIFE_ON ? NONE32 : timeline_space_of(lives, i);
    if (at == NONE32 || !begins_life(lives, &lives->spaces[at], i))
        return;
    struct choice *choice = &choices[at];
    struct timeline_chart *chart = &timeline->charts[at];
    while (choice->next < timeline->columns && chart->moments[choice->next] <= i)
        choice->next++;
    uint64_t end = partner == LIFE_ON ? TIMELINE_ON : partner;
    if (choice->next == timeline->columns || chart->moments[choice->next] > end || !timeline_has_block(lives, i))
        return;
    struct timeline_band band = {.size = entries->size[i], .alloc = i, .free = end, .from = choice->next,
                                 .is_range = timeline_is_map(entries->action[i])};
    band.to = end == TIMELINE_ON ? timeline->columns : column_after(chart, band.from, timeline->columns, end);
    if (__builtin_mul_overflow(band.size, band.to - band.from, &band.weight))
        band.weight = UINT64_MAX;
    chart->lives++;
    if (band.size)
        offer(choice, &band);
}

/* From the bottom up: what lives long lies below, so that what comes and goes above it does not move it. */
static int compare_places(const void *a, const void *b)
{
    const struct timeline_band *x = a, *y = b;
    uint32_t width_x = x->to - x->from, width_y = y->to - y->from;
    if (width_x != width_y)
        return width_x > width_y ? -1 : 1;
    return x->alloc < y->alloc ? -1 : x->alloc > y->alloc;
}

static int compare_weights(const void *a, const void *b)
{
    return is_less(a, b) ? 1 : is_less(b, a) ? -1 : 0;
}

/* What no band shows; false: the bands are more than there is. */
static bool find_rest(const struct timeline *timeline, struct timeline_chart *chart, __int128 *sums)
{
    memset(sums, 0, ((size_t)timeline->columns + 1) * sizeof(*sums));
    for (size_t b = 0; b < chart->band_count; b++) {
        sums[chart->bands[b].from] += chart->bands[b].size;
        sums[chart->bands[b].to] -= chart->bands[b].size;
    }
    __int128 sum = 0;
    bool fits = true;
    for (uint32_t c = 0; c < timeline->columns; c++) {
        sum += sums[c];
        __int128 rest = (__int128)chart->allocated[c] - chart->before[c] - sum;
        chart->rest[c] = rest < 0 ? 0 : (uint64_t)rest;
        fits = fits && rest >= 0;
    }
    return fits;
}

static int settle(const struct timeline *timeline, struct timeline_chart *chart)
{
    __int128 *sums = malloc(((size_t)timeline->columns + 1) * sizeof(*sums));
    if (!sums)
        return STATUS_NO_MEMORY;
    if (chart->band_count)
        qsort(chart->bands, chart->band_count, sizeof(*chart->bands), compare_places);
    if (!find_rest(timeline, chart, sums)) { /* mappings that were unmapped in other pieces than it seemed */
        size_t kept = 0;
        for (size_t b = 0; b < chart->band_count; b++)
            if (!chart->bands[b].is_range)
                chart->bands[kept++] = chart->bands[b];
        chart->band_count = kept;
        find_rest(timeline, chart, sums);
    }
    free(sums);
    return STATUS_OK;
}

int timeline_bands(struct timeline *timeline, struct timeline_lives *lives, uint32_t most)
{
    struct choice *choices = calloc(timeline->count + 1, sizeof(*choices));
    int status = choices ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t s = 0; s < timeline->count && !status; s++) {
        choices[s].most = most;
        choices[s].bands = malloc(((size_t)most + 1) * sizeof(*choices[s].bands));
        status = choices[s].bands ? STATUS_OK : STATUS_NO_MEMORY;
    }
    for (uint64_t i = 0; i < timeline->last && !status; i++)
        look(timeline, lives, choices, i);
    for (size_t s = 0; s < timeline->count && choices; s++) {
        timeline->charts[s].bands = choices[s].bands;
        timeline->charts[s].band_count = choices[s].count;
        if (!status)
            status = settle(timeline, &timeline->charts[s]);
    }
    free(choices);
    return status;
}

int timeline_keep_bands(const struct timeline *timeline, struct timeline_chart *chart, size_t most)
{
    if (most >= chart->band_count)
        return STATUS_OK;
    if (chart->band_count > 1) /* else there may be no array */
        qsort(chart->bands, chart->band_count, sizeof(*chart->bands), compare_weights);
    chart->band_count = most;
    return settle(timeline, chart);
}
