/* PyTorch's trace view.  Uses src/snapshot, src/base and analyze/coverage. */
#include "analyze/trace_view.h"

#include "analyze/coverage.h"
#include "base/table.h"

#include <stdlib.h>

struct group {
    uint32_t key; /* process in the upper half, device in the lower */
    size_t count, first, chosen;
};

struct trace_view {
    const struct snapshot *snapshot;
    const struct state *state;
    const struct selection *selection;
    struct group *groups;
    size_t group_count;
    size_t *order; /* entries by group; NULL where there is one group, in their order */
    size_t group, position;
    bool begun; /* the group's header was given out */
    bool has_segments;
    uint16_t segments_of;       /* the process that `segments` was made for */
    struct coverage *segments;  /* of the state */
    struct coverage *made;      /* of the group's segment_allocs */
    struct table allocations;   /* address -> name */
    struct table segment_names; /* address -> name */
    uint32_t names;
    double total;
};

static uint32_t key_of(const struct snapshot *snapshot, size_t entry)
{
    uint32_t process = snapshot->entries.process ? snapshot->entries.process[entry] : 0;
    return process << 16 | snapshot->entries.device[entry];
}

static int by_key(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static bool is_chosen(const struct trace_view *view, size_t entry)
{
    return !view->selection || selection_has_entry(view->selection, entry);
}

static int count_groups(struct trace_view *view, size_t entries, struct table *index)
{
    size_t capacity = 0;
    for (size_t i = 0; i < entries; i++) {
        uint32_t key = key_of(view->snapshot, i), *place = table_at(index, key, NONE32);
        if (!place)
            return STATUS_NO_MEMORY;
        if (*place == NONE32) {
            if (view->group_count == capacity) {
                capacity = capacity ? 2 * capacity : 8;
                struct group *grown = realloc(view->groups, capacity * sizeof(*grown));
                if (!grown)
                    return STATUS_NO_MEMORY;
                view->groups = grown;
            }
            *place = (uint32_t)view->group_count;
            view->groups[view->group_count++] = (struct group){.key = key};
        }
        view->groups[*place].count++;
        view->groups[*place].chosen += is_chosen(view, i);
    }
    return 0;
}

/* Entries by process and device, each in trace order: a counting sort. */
static int make_order(struct trace_view *view, size_t entries, struct table *index)
{
    if (count_groups(view, entries, index))
        return STATUS_NO_MEMORY;
    if (view->group_count <= 1)
        return 0;
    size_t *next = calloc(view->group_count, sizeof(*next)), first = 0;
    view->order = calloc(entries, sizeof(*view->order));
    qsort(view->groups, view->group_count, sizeof(*view->groups), by_key);
    if (!next || !view->order) {
        free(next);
        return STATUS_NO_MEMORY;
    }
    for (size_t g = 0; g < view->group_count; g++) {
        view->groups[g].first = next[g] = first;
        first += view->groups[g].count;
        *table_at(index, view->groups[g].key, 0) = (uint32_t)g; /* there already: nothing is inserted */
    }
    for (size_t i = 0; i < entries; i++)
        view->order[next[table_get(index, key_of(view->snapshot, i), 0)]++] = i;
    free(next);
    return 0;
}

int trace_view_new(const struct snapshot *snapshot, const struct state *state, uint64_t entries,
                   const struct selection *selection, struct trace_view **result, struct error *err)
{
    struct trace_view *view = calloc(1, sizeof(*view));
    struct table index = {0};
    *result = NULL;
    if (!view)
        return error_no_memory(err);
    view->snapshot = snapshot;
    view->state = state;
    view->selection = selection && !selection_is_everything(selection) ? selection : NULL;
    size_t count = entries < snapshot->entries.count ? (size_t)entries : snapshot->entries.count;
    int status = make_order(view, count, &index);
    table_free(&index);
    if (status) {
        trace_view_free(view);
        return error_no_memory(err);
    }
    *result = view;
    return 0;
}

void trace_view_free(struct trace_view *view)
{
    if (!view)
        return;
    free(view->groups);
    free(view->order);
    coverage_free(view->segments);
    coverage_free(view->made);
    table_free(&view->allocations);
    table_free(&view->segment_names);
    free(view);
}

static size_t entry_at(const struct trace_view *view, size_t position)
{
    size_t at = view->groups[view->group].first + position;
    return view->order ? view->order[at] : at;
}

/* What the state says, for allocs that lie in no segment of the trace: the first segment wins. */
static int cover_segments(struct trace_view *view, uint16_t process)
{
    const struct state *state = view->state;
    if (view->has_segments && view->segments_of == process)
        return 0;
    coverage_free(view->segments);
    view->segments = coverage_new(state->segment_count);
    if (!view->segments)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < state->segment_count; i++)
        coverage_plan(view->segments, state->segments[i].address, state->segments[i].allocated_size);
    if (coverage_ready(view->segments))
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < state->segment_count; i++)
        if (state->segments[i].process == process)
            coverage_add(view->segments, state->segments[i].address, state->segments[i].allocated_size, (uint32_t)i);
    view->has_segments = true;
    view->segments_of = process;
    return 0;
}

static int begin_group(struct trace_view *view, struct trace_line *line)
{
    const struct group *group = &view->groups[view->group];
    const struct entries *entries = &view->snapshot->entries;
    line->kind = TRACE_LINE_DEVICE;
    line->device = (uint16_t)group->key;
    line->process = (uint16_t)(group->key >> 16);
    line->count = group->chosen;
    table_free(&view->allocations);
    table_free(&view->segment_names);
    coverage_free(view->made);
    size_t made = 0;
    for (size_t i = 0; i < group->count; i++)
        made += entries->action[entry_at(view, i)] == ACTION_SEGMENT_ALLOC;
    view->made = coverage_new(made);
    if (!view->made || cover_segments(view, line->process))
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < group->count; i++) {
        size_t entry = entry_at(view, i);
        if (entries->action[entry] == ACTION_SEGMENT_ALLOC)
            coverage_plan(view->made, entries->address[entry], entries->size[entry]);
    }
    if (coverage_ready(view->made))
        return STATUS_NO_MEMORY;
    view->names = 0;
    view->position = 0;
    view->total = 0;
    view->begun = true;
    return 1;
}

static void find_place(const struct trace_view *view, uint64_t address, struct trace_line *line)
{
    uint64_t start;
    line->place = TRACE_IN_NAMED;
    line->place_number = coverage_find(view->made, address, &start);
    if (line->place_number == NONE32) {
        line->place = TRACE_IN_SEGMENT;
        line->place_number = coverage_find(view->segments, address, &start);
    }
    if (line->place_number == NONE32) {
        line->place = TRACE_NOWHERE;
        start = 0;
    }
    line->offset = address - start;
}

static int fill_line(struct trace_view *view, enum action action, uint64_t address, uint64_t size,
                     struct trace_line *line)
{
    switch (action) {
    case ACTION_ALLOC:
        line->kind = TRACE_LINE_ALLOC;
        line->name = view->names++;
        find_place(view, address, line);
        view->total += (double)size;
        return table_set(&view->allocations, address, line->name) ? STATUS_NO_MEMORY : 1;
    case ACTION_FREE_REQUESTED:
        line->kind = TRACE_LINE_FREE_REQUESTED;
        line->name = table_get(&view->allocations, address, NONE32);
        return 1;
    case ACTION_FREE_COMPLETED:
        line->kind = TRACE_LINE_FREE_COMPLETED;
        line->name = table_get(&view->allocations, address, NONE32);
        view->total -= (double)size;
        return 1;
    case ACTION_SEGMENT_ALLOC:
        line->kind = TRACE_LINE_SEGMENT_ALLOC;
        line->name = view->names++;
        coverage_add(view->made, address, size, line->name);
        return table_set(&view->segment_names, address, line->name) ? STATUS_NO_MEMORY : 1;
    case ACTION_SEGMENT_FREE:
        line->kind = TRACE_LINE_SEGMENT_FREE;
        line->name = table_get(&view->segment_names, address, NONE32);
        return 1;
    case ACTION_OOM:
        line->kind = TRACE_LINE_OOM;
        return 1;
    default:
        line->kind = TRACE_LINE_OTHER;
        return 1;
    }
}

/* The entry at the position, which moves on; 1, 0 if it is not chosen. */
static int next_entry(struct trace_view *view, struct trace_line *line)
{
    const struct entries *entries = &view->snapshot->entries;
    size_t entry = entry_at(view, view->position);
    bool chosen = is_chosen(view, entry);
    line->entry = entry;
    view->total = (double)view->position++;
    if (entries->flags[entry] & ENTRY_BAD) {
        line->kind = TRACE_LINE_OTHER;
        return chosen;
    }
    if (entries->action[entry] == ACTION_OOM && (entries->flags[entry] & ENTRY_OUTSIDE)) {
        line->kind = TRACE_LINE_OTHER; /* what became of it is told by another entry */
        return 0;
    }
    int status =
        fill_line(view, (enum action)entries->action[entry], entries->address[entry], entries->size[entry], line);
    return status < 0 ? status : chosen;
}

int trace_view_next(struct trace_view *view, struct trace_line *line)
{
    while (view->group < view->group_count && !view->groups[view->group].chosen)
        view->group++;
    *line = (struct trace_line){.name = NONE32, .place_number = NONE32};
    if (view->group == view->group_count)
        return 0;
    if (!view->begun)
        return begin_group(view, line);
    const struct group *group = &view->groups[view->group];
    int status = 0;
    while (view->position < group->count && !status) {
        *line = (struct trace_line){.name = NONE32, .place_number = NONE32, .count = group->chosen};
        status = next_entry(view, line);
    }
    line->device = (uint16_t)group->key;
    line->process = (uint16_t)(group->key >> 16);
    if (status)
        return status;
    line->kind = TRACE_LINE_TOTAL;
    line->total = view->total;
    view->group++;
    view->begun = false;
    return 1;
}
