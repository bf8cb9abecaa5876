/*
 * The timeline: the totals of each column, and where the failures are.  May use src/snapshot, src/base and the selection.
 */
#include "analyze/timeline_internal.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* What a device has at a moment.  Where entries contradict one another, `mapped` can be less than nothing. */
struct running {
    unsigned __int128 lives, before, reserved, outside;
    __int128 mapped, mapped_outside;
    bool implied;
};

struct best {
    uint64_t moment, allocated, before, reserved, used;
};

struct totals {
    struct timeline *timeline;
    struct timeline_lives *lives;
    struct running *running;
    struct best *best;
};

static uint64_t clamp(__int128 bytes)
{
    return bytes < 0 ? 0 : bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

static __int128 positive(__int128 bytes)
{
    return bytes > 0 ? bytes : 0;
}

static void change(unsigned __int128 *sum, uint64_t size, bool grows)
{
    if (grows)
        *sum += size;
    else
        *sum = *sum > size ? *sum - size : 0;
}

static void look(const struct running *running, struct best *best, uint64_t moment, bool is_first)
{
    __int128 mapped = positive(running->mapped), outside = (__int128)running->outside + positive(running->mapped_outside);
    uint64_t allocated = clamp((__int128)running->lives + (running->implied ? mapped : 0));
    uint64_t reserved = clamp((__int128)running->reserved + mapped);
    uint64_t used = clamp((__int128)running->reserved + mapped + outside);
    if (is_first || allocated > best->allocated) {
        best->allocated = allocated;
        best->before = clamp((__int128)running->before);
        best->moment = moment;
    }
    if (is_first || reserved > best->reserved)
        best->reserved = reserved;
    if (is_first || used > best->used)
        best->used = used;
}

/* A life begins or ends: its size is that of its first entry, so that what comes goes. */
static void step_life(const struct totals *totals, struct running *running, size_t i, bool begins)
{
    const struct entries *entries = &totals->lives->snapshot->entries;
    uint32_t partner = totals->lives->partner[i];
    if (partner == LIFE_NONE)
        return;
    if (begins) {
        if (timeline_has_block(totals->lives, i))
            change(&running->lives, entries->size[i], true);
    } else if (partner == LIFE_BEFORE) {
        if (!timeline_has_ended(totals->lives, i))
            return;
        change(&running->lives, entries->size[i], false);
        change(&running->before, entries->size[i], false);
    } else if (timeline_has_block(totals->lives, partner)) {
        change(&running->lives, entries->size[partner], false);
    }
}

static void step_segment(const struct totals *totals, struct running *running, size_t i)
{
    const struct entries *entries = &totals->lives->snapshot->entries;
    uint32_t partner = totals->lives->partner[i];
    bool begins = timeline_brings(entries, i), is_map = timeline_is_map(entries->action[i]);
    size_t first = begins || partner >= LIFE_BEFORE ? i : partner;
    bool is_outside = entries->flags[first] & ENTRY_OUTSIDE;
    if (is_map && timeline_has_segment(totals->lives, i))
        *(is_outside ? &running->mapped_outside : &running->mapped) +=
            begins ? (__int128)entries->size[i] : -(__int128)entries->size[i];
    if (!is_map && partner != LIFE_NONE && timeline_has_segment(totals->lives, first))
        change(is_outside ? &running->outside : &running->reserved, entries->size[first], begins);
    if (totals->lives->spaces[totals->lives->last_space].implied && (!is_map || !running->implied))
        step_life(totals, running, i, begins);
}

static bool is_failure(const struct entries *entries, size_t i)
{
    return entries->action[i] == ACTION_OOM && !(entries->flags[i] & ENTRY_OUTSIDE);
}

/* Entry i; the space that it changed, NONE32: none. */
static uint32_t step(const struct totals *totals, size_t i, uint32_t column, int *status)
{
    const struct entries *entries = &totals->lives->snapshot->entries;
    enum action action = entries->action[i];
    bool is_event = is_failure(entries, i) || action == ACTION_SNAPSHOT;
    if ((action > ACTION_SEGMENT_UNMAP && !is_event) || !timeline_is_counted(entries, i))
        return NONE32;
    uint32_t at = timeline_space_of(totals->lives, i);
    if (at == NONE32)
        return NONE32;
    struct running *running = &totals->running[at];
    if (is_event && column != NONE32)
        *status = timeline_add_event(&totals->timeline->charts[at], action == ACTION_OOM ? TIMELINE_OOM : TIMELINE_SNAPSHOT,
                                     column, i);
    else if (timeline_is_segment_action(action))
        step_segment(totals, running, i);
    else if (!is_event && !totals->lives->spaces[at].implied)
        step_life(totals, running, i, action == ACTION_ALLOC);
    return at;
}

int timeline_add_event(struct timeline_chart *chart, enum timeline_event_kind kind, uint32_t column, uint64_t entry)
{
    for (size_t i = chart->event_count; i-- > 0 && chart->events[i].column == column;)
        if (chart->events[i].kind == kind) {
            chart->events[i].count++;
            return STATUS_OK;
        }
    if (array_reserve(&chart->events, &chart->event_capacity, chart->event_count + 1, sizeof(*chart->events)))
        return STATUS_NO_MEMORY;
    chart->events[chart->event_count++] =
        (struct timeline_event){.kind = (uint8_t)kind, .column = column, .count = 1, .entry = entry};
    return STATUS_OK;
}

static void begin(struct totals *totals)
{
    for (size_t s = 0; s < totals->lives->space_count; s++) {
        const struct timeline_space *space = &totals->lives->spaces[s];
        totals->running[s] = (struct running){.lives = space->before,
                                              .before = space->before,
                                              .reserved = space->reserved,
                                              .outside = space->outside,
                                              .mapped = positive(space->mapped),
                                              .mapped_outside = positive(space->mapped_outside),
                                              /* chosen mappings count one by one, else all that is mapped does */
                                              .implied = space->implied && !totals->lives->selects_blocks};
    }
}

static void keep_column(const struct totals *totals, uint32_t column)
{
    for (size_t s = 0; s < totals->lives->space_count; s++) {
        struct timeline_chart *chart = &totals->timeline->charts[s];
        const struct best *best = &totals->best[s];
        chart->moments[column] = best->moment;
        chart->allocated[column] = best->allocated;
        chart->before[column] = best->before < best->allocated ? best->before : best->allocated;
        chart->rest[column] = chart->allocated[column] - chart->before[column];
        chart->reserved[column] = best->reserved;
        chart->used[column] = best->used;
        if (best->allocated > chart->peak_allocated || !column) {
            chart->peak_allocated = best->allocated;
            chart->peak_moment = best->moment;
        }
        chart->peak_reserved = best->reserved > chart->peak_reserved ? best->reserved : chart->peak_reserved;
        chart->peak_used = best->used > chart->peak_used ? best->used : chart->peak_used;
        chart->has_before |= best->before > 0;
        chart->has_outside |= best->used > best->reserved;
        chart->has_reserved |= best->reserved != best->allocated;
    }
}

static void look_at_all(const struct totals *totals, uint64_t moment)
{
    for (size_t s = 0; s < totals->lives->space_count; s++)
        look(&totals->running[s], &totals->best[s], moment, true);
}

static int run(struct totals *totals, const uint64_t *starts)
{
    const struct timeline *timeline = totals->timeline;
    int status = STATUS_OK;
    for (uint64_t i = 0; i < timeline->first; i++)
        step(totals, i, NONE32, &status);
    for (uint32_t c = 0; c < timeline->columns && !status; c++) {
        uint64_t moment = starts[c];
        if (c == 0 || timeline->is_time) { /* as it was when the column began */
            look_at_all(totals, c == 0 ? moment : moment - 1);
            moment += c == 0;
        } else {
            step(totals, moment - 1, c, &status);
            look_at_all(totals, moment++);
        }
        for (; moment < starts[c + 1] && !status; moment++) {
            uint32_t at = step(totals, moment - 1, c, &status);
            if (at != NONE32)
                look(&totals->running[at], &totals->best[at], moment, false);
        }
        keep_column(totals, c);
    }
    for (size_t s = 0; s < timeline->count; s++)
        timeline->charts[s].has_reserved &= timeline->charts[s].peak_reserved > 0;
    return status;
}

int timeline_totals(struct timeline *timeline, struct timeline_lives *lives, const uint64_t *starts)
{
    struct totals totals = {.timeline = timeline, .lives = lives};
    totals.running = calloc(lives->space_count + 1, sizeof(*totals.running));
    totals.best = calloc(lives->space_count + 1, sizeof(*totals.best));
    int status = totals.running && totals.best ? STATUS_OK : STATUS_NO_MEMORY;
    if (!status) {
        begin(&totals);
        status = run(&totals, starts);
    }
    free(totals.running);
    free(totals.best);
    return status;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static const struct device *device_of(const struct snapshot *snapshot, uint16_t process, uint16_t ordinal)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == process && snapshot->devices[i].ordinal == ordinal)
            return &snapshot->devices[i];
    return NULL;
}

static int make_charts(struct timeline *timeline, const struct timeline_lives *lives)
{
    timeline->charts = calloc(lives->space_count + 1, sizeof(*timeline->charts));
    if (!timeline->charts)
        return STATUS_NO_MEMORY;
    timeline->left_out = lives->left_out;
    for (size_t s = 0; s < lives->space_count; s++) {
        struct timeline_chart *chart = &timeline->charts[timeline->count++];
        uint64_t **columns[] = {&chart->moments, &chart->allocated, &chart->before, &chart->rest, &chart->reserved, &chart->used};
        chart->process = lives->spaces[s].process;
        chart->device = lives->spaces[s].device;
        chart->about = device_of(timeline->snapshot, chart->process, chart->device);
        for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
            if (!(*columns[i] = calloc(timeline->columns, sizeof(**columns[i]))))
                return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static int fill(struct timeline *timeline, struct timeline_lives *lives, const uint64_t *starts, uint32_t bands)
{
    int status = make_charts(timeline, lives);
    if (!status)
        status = timeline_totals(timeline, lives, starts);
    if (!status)
        status = timeline_bands(timeline, lives, bands);
    if (!status)
        status = timeline_ranges(timeline);
    return status;
}

int timeline_build(const struct snapshot *snapshot, const struct selection *selection,
                   const struct timeline_options *options, struct timeline *timeline, struct error *err)
{
    struct timeline_lives lives = {0};
    uint64_t *starts = NULL;
    memset(timeline, 0, sizeof(*timeline));
    timeline->snapshot = snapshot;
    if (!snapshot->entries.count)
        return error_set(err, STATUS_NOT_FOUND,
                         "has no trace, so there is no timeline: recording was off (cudamem record, or "
                         "torch.cuda.memory._record_memory_history() before the work, turns it on)");
    int status = timeline_columns(timeline, selection, options, &starts, err);
    if (!status)
        status = timeline_lives_find(snapshot, selection, &lives, err);
    if (!status && !lives.space_count)
        status = error_set(err, STATUS_NOT_FOUND, "there is no memory of a device in this selection");
    if (!status && fill(timeline, &lives, starts, options->bands))
        status = error_no_memory(err);
    timeline_lives_free(&lives);
    free(starts);
    if (status)
        timeline_free(timeline);
    return status;
}

void timeline_free(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->count; i++) {
        struct timeline_chart *chart = &timeline->charts[i];
        free(chart->moments);
        free(chart->allocated);
        free(chart->before);
        free(chart->rest);
        free(chart->reserved);
        free(chart->used);
        free(chart->bands);
        free(chart->events);
        free(chart->ranges);
    }
    free(timeline->charts);
    memset(timeline, 0, sizeof(*timeline));
}
