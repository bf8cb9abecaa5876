/*
 * Annotations on the timeline: ranges in lanes, the longest ones first where there are too many, and marks.
 * May use src/analyze/ranges, src/snapshot and src/base.
 */
#include "analyze/timeline_internal.h"

#include "analyze/ranges.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_OUT 64u /* ranges around the innermost one that are looked through for the one that ends */

struct open {
    uint32_t annotation, outer; /* outer: the one around it, NONE32 */
    bool is_ended;
};

struct search {
    struct timeline *timeline;
    uint64_t *moments; /* of annotations */
    uint64_t next;     /* entry */
    struct open *open;
    size_t open_count, open_capacity;
    struct table innermost; /* thread -> open */
    struct timeline_range *ranges;
    size_t range_count, range_capacity;
};

static int note_annotation(void *context, size_t number)
{
    struct search *search = context;
    search->moments[number] = search->next;
    return STATUS_OK;
}

static int note_entry(void *context, size_t number)
{
    ((struct search *)context)->next = number + 1;
    return STATUS_OK;
}

static uint32_t name_of(const struct search *search, uint32_t annotation)
{
    const struct snapshot *snapshot = search->timeline->snapshot;
    uint32_t object = snapshot->annotations[annotation].name;
    return object == STRING_NONE ? STRING_NONE : snapshot->string_objects[object];
}

/* The column of an annotation; false: it is not in the picture.  `side`: -1 before it, 1 after it. */
static bool column_of(const struct search *search, uint32_t annotation, uint32_t *column, int *side)
{
    const struct timeline *timeline = search->timeline;
    int64_t since = 0, time = timeline->snapshot->annotations[annotation].time;
    uint64_t moment = search->moments[annotation];
    bool is_early, is_late;
    if (timeline->is_time) {
        if (__builtin_sub_overflow(time, timeline->first_time, &since))
            since = time < timeline->first_time ? INT64_MIN : INT64_MAX;
        is_early = since < timeline->time_low;
        is_late = since > timeline->time_high;
        *column = timeline_column_of_time(timeline, since);
    } else {
        is_early = moment < timeline->first;
        is_late = moment > timeline->last;
        *column = timeline_column_of_moment(timeline, moment);
    }
    *side = is_early ? -1 : is_late;
    return !*side;
}

static int add_range(struct search *search, uint32_t begin, uint32_t end)
{
    struct timeline_range range = {.annotation = begin, .is_open = end == NONE32, .to = search->timeline->columns - 1,
                                   .first = search->moments[begin], .last = search->timeline->last};
    int side, end_side = 1;
    column_of(search, begin, &range.from, &side);
    if (end != NONE32) {
        column_of(search, end, &range.to, &end_side);
        range.last = search->moments[end];
    }
    if (side > 0 || end_side < 0 || range.to < range.from)
        return STATUS_OK;
    if (array_reserve(&search->ranges, &search->range_capacity, search->range_count + 1, sizeof(*search->ranges)))
        return STATUS_NO_MEMORY;
    search->ranges[search->range_count++] = range;
    return STATUS_OK;
}

static int begin_range(struct search *search, uint32_t *last, uint32_t number)
{
    if (search->open_count >= NONE32 ||
        array_reserve(&search->open, &search->open_capacity, search->open_count + 1, sizeof(*search->open)))
        return STATUS_NO_MEMORY;
    search->open[search->open_count] = (struct open){number, *last, false};
    *last = (uint32_t)search->open_count++;
    return STATUS_OK;
}

static int end_range(struct search *search, uint32_t *last, uint32_t number)
{
    for (unsigned i = 0; *last != NONE32 && i < LOOK_OUT; i++, last = &search->open[*last].outer) {
        struct open *open = &search->open[*last];
        if (name_of(search, open->annotation) != name_of(search, number))
            continue;
        open->is_ended = true;
        *last = open->outer;
        return add_range(search, open->annotation, number);
    }
    return STATUS_OK;
}

static bool is_of_chart(const struct timeline *timeline, const struct timeline_chart *chart, uint32_t annotation)
{
    const struct annotation *about = &timeline->snapshot->annotations[annotation];
    return about->process == chart->process && (timeline->snapshot->source != SOURCE_TORCH || about->device == chart->device);
}

static int add_mark(struct search *search, uint32_t number)
{
    uint32_t column;
    int side, status = STATUS_OK;
    if (!column_of(search, number, &column, &side))
        return STATUS_OK;
    for (size_t c = 0; c < search->timeline->count && !status; c++)
        if (is_of_chart(search->timeline, &search->timeline->charts[c], number))
            status = timeline_add_event(&search->timeline->charts[c], TIMELINE_MARK, column, number);
    return status;
}

static int read_annotation(struct search *search, uint32_t number)
{
    const struct annotation *annotation = &search->timeline->snapshot->annotations[number];
    if (annotation->stage == 2)
        return add_mark(search, number);
    if (annotation->stage > 2)
        return STATUS_OK;
    uint32_t *last = table_at(&search->innermost, ranges_thread(annotation->process, annotation->thread), NONE32);
    if (!last)
        return STATUS_NO_MEMORY;
    return annotation->stage == 0 ? begin_range(search, last, number) : end_range(search, last, number);
}

static int compare_lengths(const void *a, const void *b)
{
    const struct timeline_range *x = a, *y = b;
    if (x->to - x->from != y->to - y->from)
        return x->to - x->from > y->to - y->from ? -1 : 1;
    return x->annotation < y->annotation ? -1 : x->annotation > y->annotation;
}

static int compare_begins(const void *a, const void *b)
{
    const struct timeline_range *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return compare_lengths(a, b);
}

static int compare_events(const void *a, const void *b)
{
    const struct timeline_event *x = a, *y = b;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Each range in the first lane that is free; what finds none is not drawn. */
static void choose_lanes(struct timeline_chart *chart)
{
    uint32_t free_from[TIMELINE_LANES] = {0};
    size_t kept = 0;
    for (size_t i = 0; i < chart->range_count; i++) {
        struct timeline_range range = chart->ranges[i];
        while (range.lane < TIMELINE_LANES && free_from[range.lane] > range.from)
            range.lane++;
        if (range.lane == TIMELINE_LANES)
            continue;
        free_from[range.lane] = range.to + 1;
        chart->lanes = range.lane >= chart->lanes ? range.lane + 1 : chart->lanes;
        chart->ranges[kept++] = range;
    }
    chart->ranges_left_out += chart->range_count - kept;
    chart->range_count = kept;
}

/* search->ranges are sorted by length. */
static int fill_chart(const struct search *search, struct timeline_chart *chart)
{
    for (size_t i = 0; i < search->range_count; i++) {
        if (!is_of_chart(search->timeline, chart, search->ranges[i].annotation))
            continue;
        if (chart->range_count == TIMELINE_RANGES) {
            chart->ranges_left_out++;
            continue;
        }
        if (array_reserve(&chart->ranges, &chart->range_capacity, chart->range_count + 1, sizeof(*chart->ranges)))
            return STATUS_NO_MEMORY;
        chart->ranges[chart->range_count++] = search->ranges[i];
    }
    if (chart->range_count)
        qsort(chart->ranges, chart->range_count, sizeof(*chart->ranges), compare_begins);
    choose_lanes(chart);
    if (chart->event_count)
        qsort(chart->events, chart->event_count, sizeof(*chart->events), compare_events);
    return STATUS_OK;
}

static int search_all(struct search *search)
{
    const struct snapshot *snapshot = search->timeline->snapshot;
    const struct ranges_visitor visitor = {note_annotation, note_entry, search};
    for (size_t i = 0; i < snapshot->annotation_count; i++)
        search->moments[i] = snapshot->entries.count;
    int status = ranges_walk(snapshot, &visitor);
    for (uint32_t i = 0; i < snapshot->annotation_count && !status; i++)
        status = read_annotation(search, i);
    for (size_t i = 0; i < search->open_count && !status; i++)
        if (!search->open[i].is_ended)
            status = add_range(search, search->open[i].annotation, NONE32);
    if (!status && search->range_count)
        qsort(search->ranges, search->range_count, sizeof(*search->ranges), compare_lengths);
    for (size_t c = 0; c < search->timeline->count && !status; c++)
        status = fill_chart(search, &search->timeline->charts[c]);
    return status;
}

int timeline_ranges(struct timeline *timeline)
{
    struct search search = {.timeline = timeline};
    if (!timeline->snapshot->annotation_count)
        return STATUS_OK;
    search.moments = calloc(timeline->snapshot->annotation_count, sizeof(*search.moments));
    int status = search.moments ? search_all(&search) : STATUS_NO_MEMORY;
    free(search.moments);
    free(search.open);
    free(search.ranges);
    table_free(&search.innermost);
    return status;
}
