/* The timeline's axis: what is shown of the trace, and which moments each column has.  May use src/snapshot and src/base. */
#include "analyze/timeline_internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* Times as the axis has them: entries are in order, so a time that goes back is as late as the one before it. */
static bool next_time(const struct entries *entries, size_t i, int64_t *latest)
{
    if (entries->flags[i] & ENTRY_NO_TIME)
        return false;
    if (entries->time[i] > *latest)
        *latest = entries->time[i];
    return true;
}

static bool find_first_time(const struct entries *entries, int64_t *first)
{
    bool found = false;
    for (size_t i = 0; i < entries->count; i++)
        if (!(entries->flags[i] & ENTRY_NO_TIME) && (!found || entries->time[i] < *first)) {
            *first = entries->time[i];
            found = true;
        }
    return found;
}

static int64_t since(const struct timeline *timeline, int64_t time)
{
    int64_t result;
    return __builtin_sub_overflow(time, timeline->first_time, &result) || result < 0 ? (time < timeline->first_time ? 0 : INT64_MAX)
                                                                                     : result;
}

/* The moments of --time: from the state that it begins with to after its last entry. */
static void cut_by_time(struct timeline *timeline, const struct selection *selection)
{
    const struct entries *entries = &timeline->snapshot->entries;
    int64_t latest = timeline->first_time;
    uint64_t first = timeline->last, last = timeline->first;
    for (uint64_t i = timeline->first; i < timeline->last; i++) {
        next_time(entries, i, &latest);
        int64_t at = since(timeline, latest);
        if (at >= selection->time_low && i < first)
            first = i;
        if (at <= selection->time_high)
            last = i + 1;
    }
    timeline->first = first < last ? first : last;
    timeline->last = last;
}

/* From the first entry to the last; with --time what was asked for, as far as the entries around it say how it was. */
static void find_span(struct timeline *timeline, const struct selection *selection)
{
    const struct entries *entries = &timeline->snapshot->entries;
    bool is_cut = selection && selection->has_time;
    int64_t latest = timeline->first_time, next;
    for (uint64_t i = 0; i <= timeline->first; i++)
        next_time(entries, i, &latest);
    timeline->time_low = is_cut && timeline->first ? selection->time_low : since(timeline, latest);
    for (uint64_t i = timeline->first + 1; i < timeline->last; i++)
        next_time(entries, i, &latest);
    timeline->time_high = since(timeline, latest);
    if (!is_cut || timeline->last == entries->count || selection->time_high <= timeline->time_high)
        return;
    next_time(entries, timeline->last, &latest);
    next = since(timeline, latest);
    timeline->time_high = next < selection->time_high ? next : selection->time_high;
}

static int find_range(struct timeline *timeline, const struct selection *selection, uint64_t moment, struct error *err)
{
    const struct snapshot *snapshot = timeline->snapshot;
    uint64_t base = snapshot->first_entry;
    timeline->first = 0;
    timeline->last = moment < snapshot->entries.count ? moment : snapshot->entries.count;
    if (selection && selection->has_entries) {
        if (selection->first_entry > base)
            timeline->first = selection->first_entry - base;
        if (selection->last_entry < base + timeline->last)
            timeline->last = selection->last_entry > base ? selection->last_entry - base : 0;
    }
    if (timeline->first < timeline->last && selection && selection->has_time)
        cut_by_time(timeline, selection);
    if (timeline->first >= timeline->last)
        return error_set(err, STATUS_NOT_FOUND, "there is no entry in this range: the trace has entries %" PRIu64 " to %" PRIu64,
                         base, base + snapshot->entries.count);
    return STATUS_OK;
}

static int choose_axis(struct timeline *timeline, const struct selection *selection, const struct timeline_options *options,
                       struct error *err)
{
    bool has_times = find_first_time(&timeline->snapshot->entries, &timeline->first_time);
    if (!has_times && options->axis == TIMELINE_TIME)
        return error_set(err, STATUS_NOT_FOUND, "the trace has no times; --x entries counts its entries");
    if (!has_times && selection && selection->has_time)
        return error_set(err, STATUS_NOT_FOUND, "the trace has no times; --entries A..B cuts it by entries");
    timeline->is_time = has_times && options->axis != TIMELINE_ENTRIES;
    int status = find_range(timeline, selection, options->moment, err);
    if (status || !has_times)
        return status;
    find_span(timeline, selection);
    if (timeline->is_time && timeline->time_low >= timeline->time_high) {
        if (options->axis == TIMELINE_TIME)
            return error_set(err, STATUS_NOT_FOUND, "all entries have the same time; --x entries counts them");
        timeline->is_time = false;
    }
    return STATUS_OK;
}

uint32_t timeline_column_of_time(const struct timeline *timeline, int64_t at)
{
    if (at <= timeline->time_low)
        return 0;
    if (at >= timeline->time_high)
        return timeline->columns - 1;
    uint64_t span = (uint64_t)(timeline->time_high - timeline->time_low), into = (uint64_t)(at - timeline->time_low);
    return (uint32_t)((unsigned __int128)into * timeline->columns / span);
}

uint32_t timeline_column_of_moment(const struct timeline *timeline, uint64_t moment)
{
    if (moment <= timeline->first)
        return 0;
    if (moment >= timeline->last)
        return timeline->columns - 1;
    return (uint32_t)((unsigned __int128)(moment - timeline->first) * timeline->columns / (timeline->last - timeline->first + 1));
}

/* The first microsecond of a column. */
static int64_t time_of_column(const struct timeline *timeline, uint32_t column)
{
    uint64_t span = (uint64_t)(timeline->time_high - timeline->time_low);
    return timeline->time_low + (int64_t)(((unsigned __int128)span * column + timeline->columns - 1) / timeline->columns);
}

static void start_by_time(const struct timeline *timeline, uint64_t *starts)
{
    const struct entries *entries = &timeline->snapshot->entries;
    int64_t latest = timeline->first_time, next = time_of_column(timeline, 1);
    uint32_t column = 0;
    starts[0] = timeline->first;
    for (uint64_t i = 0; i < timeline->last; i++) {
        next_time(entries, i, &latest);
        if (i < timeline->first)
            continue;
        for (int64_t at = since(timeline, latest); column + 1 < timeline->columns && at >= next;) {
            starts[++column] = i + 1;
            next = time_of_column(timeline, column + 1);
        }
    }
    while (column < timeline->columns)
        starts[++column] = timeline->last + 1;
}

static void start_by_entries(const struct timeline *timeline, uint64_t *starts)
{
    uint64_t moments = timeline->last - timeline->first + 1;
    for (uint32_t c = 0; c <= timeline->columns; c++) /* the first moment that is in this column */
        starts[c] = timeline->first + (uint64_t)(((unsigned __int128)c * moments + timeline->columns - 1) / timeline->columns);
}

int timeline_columns(struct timeline *timeline, const struct selection *selection, const struct timeline_options *options,
                     uint64_t **starts, struct error *err)
{
    int status = choose_axis(timeline, selection, options, err);
    if (status)
        return status;
    uint64_t moments = timeline->last - timeline->first + 1;
    timeline->columns = options->columns ? options->columns : 1;
    if (!timeline->is_time && moments < timeline->columns)
        timeline->columns = (uint32_t)moments;
    *starts = malloc(((size_t)timeline->columns + 1) * sizeof(**starts));
    if (!*starts)
        return error_no_memory(err);
    if (timeline->is_time)
        start_by_time(timeline, *starts);
    else
        start_by_entries(timeline, *starts);
    return STATUS_OK;
}
