/* One snapshot of a recording and of PyTorch's history.  Uses src/base, src/snapshot and the merging of snapshots. */
#include "format/join.h"

#include "format/merge.h"
#include "snapshot/state.h"

#include <stdlib.h>
#include <string.h>

#define JOIN_NEAR 1000000 /* microseconds between two looks at one event, at most */

enum { JOIN_OURS, JOIN_THEIRS }; /* numbers of the processes after merging */

/* --- before --------------------------------------------------------------------------------------------------------- */

/* A history as if it had been recorded: columns only. */
static void plain_rows(struct snapshot *history)
{
    history->source = SOURCE_RECORDED;
    memset(history->entries.shape, 0, history->entries.count * sizeof(*history->entries.shape));
    for (size_t i = 0; i < history->frame_count; i++)
        history->frames[i].shape = SHAPE_OURS;
    for (size_t i = 0; i < history->end.segment_count; i++)
        history->end.segments[i].shape = SHAPE_OURS;
    for (size_t i = 0; i < history->end.block_count; i++)
        history->end.blocks[i].shape = SHAPE_OURS;
    for (size_t i = 0; i < history->annotation_count; i++)
        history->annotations[i].shape = SHAPE_OURS;
    history->odd_count = 0;
    history->has_raw = false;
    history->top_shape = history->settings_shape = SHAPE_OURS;
}

/* --- is it whole ---------------------------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const struct segment *x = *(const struct segment *const *)a, *y = *(const struct segment *const *)b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Segments lie apart from one another; false also without memory. */
static bool lie_apart(const struct state *end)
{
    const struct segment **sorted = malloc((end->segment_count + 1) * sizeof(*sorted));
    bool apart = sorted != NULL;
    for (size_t i = 0; sorted && i < end->segment_count; i++)
        sorted[i] = &end->segments[i];
    if (sorted && end->segment_count)
        qsort(sorted, end->segment_count, sizeof(const struct segment *), compare_places);
    for (size_t i = 1; apart && i < end->segment_count; i++)
        apart = sorted[i]->device != sorted[i - 1]->device ||
                sorted[i]->address - sorted[i - 1]->address >= sorted[i - 1]->total_size;
    free(sorted);
    return apart;
}

/* PyTorch writes entries and end under one lock: in a whole history, begun before the first allocation, they agree. */
static int check_whole(const struct snapshot *history, struct error *err)
{
    struct state before;
    struct state_faults faults;
    if (!lie_apart(&history->end))
        return error_set(err, STATUS_INPUT, "is damaged: it has segments that lie over one another");
    int status = state_at_counting(history, 0, &before, &faults, err);
    if (status)
        return status;
    state_free(&before);
    if (faults.unknown_segments)
        return error_set(err, STATUS_INPUT, "is damaged: its entries and its end tell of different segments");
    if (faults.unknown_allocs || faults.overlaps || faults.outside)
        return error_set(err, STATUS_INPUT, "is damaged: its entries and its end tell of different blocks");
    return STATUS_OK;
}

/* --- which of ours stay --------------------------------------------------------------------------------------------- */

struct join {
    struct snapshot *to;
    bool *is_told;        /* by ordinal: the history has this device */
    uint64_t *ours, *theirs; /* entries that stay, in order */
    size_t our_count, their_count;
    uint64_t *steps;      /* entries of the allocator's segments that were recorded, in order */
    size_t step_count;
    size_t *their_steps;  /* theirs of segments: places in `theirs` */
    size_t their_step_count;
    uint64_t *order;
};

static uint16_t process_of(const struct snapshot *snapshot, size_t entry)
{
    return snapshot->entries.process ? snapshot->entries.process[entry] : 0;
}

static bool is_segment_action(enum action action)
{
    return action >= ACTION_SEGMENT_ALLOC && action <= ACTION_SEGMENT_UNMAP;
}

static bool find_told(struct join *join)
{
    const struct snapshot *to = join->to;
    join->is_told = calloc(UINT16_MAX + 1u, sizeof(*join->is_told));
    for (size_t i = 0; join->is_told && i < to->entries.count; i++)
        if (process_of(to, i) == JOIN_THEIRS)
            join->is_told[to->entries.device[i]] = true;
    for (size_t i = 0; join->is_told && i < to->end.segment_count; i++)
        if (to->end.segments[i].process == JOIN_THEIRS)
            join->is_told[to->end.segments[i].device] = true;
    return join->is_told != NULL;
}

static bool stays(const struct join *join, size_t entry)
{
    const struct entries *entries = &join->to->entries;
    bool is_step = entries->action[entry] == ACTION_OOM && (entries->flags[entry] & ENTRY_OUTSIDE);
    return !join->is_told[entries->device[entry]] || entries->action[entry] == ACTION_SNAPSHOT ||
           ((entries->flags[entry] & ENTRY_OUTSIDE) && !is_step) ||
           (entries->kind && entries->kind[entry] == MEMORY_HOST);
}

static bool sort_out(struct join *join)
{
    const struct snapshot *to = join->to;
    size_t count = to->entries.count;
    join->ours = malloc((count + 1) * sizeof(*join->ours));
    join->theirs = malloc((count + 1) * sizeof(*join->theirs));
    join->steps = malloc((count + 1) * sizeof(*join->steps));
    join->their_steps = malloc((count + 1) * sizeof(*join->their_steps));
    join->order = malloc((count + 1) * sizeof(*join->order));
    if (!join->ours || !join->theirs || !join->steps || !join->their_steps || !join->order)
        return false;
    for (size_t i = 0; i < count; i++) {
        bool is_step = is_segment_action((enum action)to->entries.action[i]);
        if (process_of(to, i) == JOIN_THEIRS) {
            if (is_step)
                join->their_steps[join->their_step_count++] = join->their_count;
            join->theirs[join->their_count++] = i;
        } else if (stays(join, i)) {
            join->ours[join->our_count++] = i;
        } else if (is_step) {
            join->steps[join->step_count++] = i;
        }
    }
    return true;
}

/* --- one order -------------------------------------------------------------------------------------------------------- */

/* One device: how far both walks have come along the segments that both tell of. */
struct walk {
    const struct join *join;
    uint16_t device;
    size_t step, their_step; /* the next ones; earlier ones of theirs have no counterpart any more */
    size_t found;            /* step's counterpart, if is_found; else it was not looked for */
    bool is_found;
    size_t after, before;    /* places in theirs: an entry of ours that comes now stands between */
    size_t place;            /* of the last one, or after */
};

/* How much later a is than b, of any two times that a file may hold. */
static int64_t later_by(int64_t a, int64_t b)
{
    int64_t distance;
    return __builtin_sub_overflow(a, b, &distance) ? (a < b ? INT64_MIN : INT64_MAX) : distance;
}

/* The step's counterpart among their steps; their count: none.  A mapping of theirs may be several of ours, of which the
 * first one has it; what the history does not tell of has none. */
static size_t find_counterpart(struct walk *walk, size_t step)
{
    const struct join *join = walk->join;
    const struct entries *entries = &join->to->entries;
    uint64_t ours = join->steps[step];
    int64_t time = entries->time[ours]; /* may go back a little from one to the next */
    while (walk->their_step < join->their_step_count &&
           later_by(time, entries->time[join->theirs[join->their_steps[walk->their_step]]]) > 2 * JOIN_NEAR)
        walk->their_step++;
    for (size_t i = walk->their_step; i < join->their_step_count; i++) {
        uint64_t theirs = join->theirs[join->their_steps[i]];
        int64_t later = later_by(entries->time[theirs], time);
        if (later >= JOIN_NEAR)
            break;
        if (entries->device[theirs] == walk->device && entries->action[theirs] == entries->action[ours] &&
            entries->address[theirs] == entries->address[ours] && later > -JOIN_NEAR)
            return i;
    }
    return join->their_step_count;
}

static bool is_walked(const struct walk *walk, size_t step)
{
    return walk->join->to->entries.device[walk->join->steps[step]] == walk->device;
}

/* On to the first step from here on that has a counterpart; false: there is none. */
static bool find_step(struct walk *walk)
{
    const struct join *join = walk->join;
    for (; !walk->is_found && walk->step < join->step_count; walk->step++) {
        walk->found = is_walked(walk, walk->step) ? find_counterpart(walk, walk->step) : join->their_step_count;
        if ((walk->is_found = walk->found < join->their_step_count))
            break;
    }
    return walk->is_found;
}

static void move_to(struct walk *walk, uint64_t entry)
{
    const struct join *join = walk->join;
    while (find_step(walk) && join->steps[walk->step] < entry) {
        walk->their_step = walk->found + 1;
        walk->after = join->their_steps[walk->found] + 1;
        walk->step++;
        walk->is_found = false;
    }
    walk->before = walk->is_found ? join->their_steps[walk->found] : join->their_count;
}

/* Before which of theirs an entry of ours stands. */
static size_t place_of(struct walk *walk, uint64_t entry)
{
    const struct entries *entries = &walk->join->to->entries;
    move_to(walk, entry);
    if (walk->place < walk->after)
        walk->place = walk->after;
    while (walk->place < walk->before && entries->time[walk->join->theirs[walk->place]] <= entries->time[entry])
        walk->place++;
    return walk->place;
}

struct placed {
    size_t place;
    uint64_t entry;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static bool place_ours(const struct join *join, struct placed *placed)
{
    const struct entries *entries = &join->to->entries;
    bool *is_done = calloc(UINT16_MAX + 1u, sizeof(*is_done));
    for (size_t i = 0; is_done && i < join->our_count; i++) {
        uint16_t device = entries->device[join->ours[i]];
        if (is_done[device])
            continue;
        struct walk walk = {.join = join, .device = device};
        is_done[device] = true;
        for (size_t k = i; k < join->our_count; k++)
            if (entries->device[join->ours[k]] == device)
                placed[k] = (struct placed){place_of(&walk, join->ours[k]), join->ours[k]};
    }
    free(is_done);
    return is_done != NULL;
}

/* Theirs with ours between them; what does not stay goes to the end and off it. */
static int order_entries(struct join *join)
{
    struct snapshot *to = join->to;
    size_t count = to->entries.count, kept = 0, next = 0;
    struct placed *placed = malloc((join->our_count + 1) * sizeof(*placed));
    bool *stays_there = calloc(count + 1, sizeof(*stays_there));
    int status = placed && stays_there && place_ours(join, placed) ? STATUS_OK : STATUS_NO_MEMORY;
    if (!status) {
        qsort(placed, join->our_count, sizeof(*placed), compare_placed);
        for (size_t i = 0; i <= join->their_count; i++) {
            for (; next < join->our_count && placed[next].place == i; next++)
                join->order[kept++] = placed[next].entry;
            if (i < join->their_count)
                join->order[kept++] = join->theirs[i];
        }
        for (size_t i = 0; i < kept; i++)
            stays_there[join->order[i]] = true;
        size_t rest = kept;
        for (size_t i = 0; i < count; i++)
            if (!stays_there[i])
                join->order[rest++] = i;
        status = entries_permute(&to->entries, join->order);
    }
    if (!status) {
        to->entries.count = kept;
        for (size_t i = 0; to->entries.process && i < kept; i++)
            to->entries.process[i] = JOIN_OURS;
    }
    free(placed);
    free(stays_there);
    return status;
}

/* --- the end ------------------------------------------------------------------------------------------------------------ */

static int compare_segments(const void *a, const void *b, void *state)
{
    const struct segment *x = &((const struct state *)state)->segments[*(const size_t *)a];
    const struct segment *y = &((const struct state *)state)->segments[*(const size_t *)b];
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int take_segment(const struct state *from, size_t at, struct state *made)
{
    struct segment segment = from->segments[at];
    uint32_t first = segment.first_block, count = segment.block_count;
    segment.process = JOIN_OURS;
    int status = state_add_segment(made, &segment);
    for (uint32_t b = 0; b < count && !status; b++)
        status = state_add_block(made, &from->blocks[first + b]);
    return status;
}

static int join_states(struct join *join)
{
    struct state *end = &join->to->end, made = {.moment = join->to->entries.count, .exact = true};
    size_t *wanted = malloc((end->segment_count + 1) * sizeof(*wanted)), count = 0;
    int status = wanted ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; i < end->segment_count && !status; i++) {
        const struct segment *segment = &end->segments[i];
        if (segment->process == JOIN_THEIRS || segment->is_outside || segment->kind == MEMORY_HOST ||
            !join->is_told[segment->device])
            wanted[count++] = i;
    }
    if (!status)
        qsort_r(wanted, count, sizeof(*wanted), compare_segments, end);
    for (size_t i = 0; i < count && !status; i++)
        status = take_segment(end, wanted[i], &made);
    free(wanted);
    if (status) {
        state_free(&made);
        return status;
    }
    state_free(end);
    *end = made;
    return STATUS_OK;
}

/* --- facts -------------------------------------------------------------------------------------------------------------- */

/* The recorder's numbers of a device are not those of the history's end: these come out of its entries. */
static void join_devices(struct join *join)
{
    struct snapshot *to = join->to;
    size_t kept = 0;
    for (size_t i = 0; i < to->device_count; i++) {
        struct device device = to->devices[i];
        bool is_known = false;
        for (size_t k = 0; k < kept && !is_known; k++)
            is_known = to->devices[k].ordinal == device.ordinal;
        if (is_known)
            continue;
        device.process = JOIN_OURS;
        if (join->is_told[device.ordinal]) {
            device.has_stats = device.stats_exact = false;
            memset(&device.stats, 0, sizeof(device.stats));
        }
        to->devices[kept++] = device;
    }
    to->device_count = kept;
    to->trace_count = 0;
    for (size_t i = 0; i < kept; i++)
        if (to->devices[i].ordinal + 1u > to->trace_count)
            to->trace_count = to->devices[i].ordinal + 1u;
    for (size_t i = 0; i < to->annotation_count; i++)
        to->annotations[i].process = JOIN_OURS;
    to->process_count = 1;
    to->processes[0].implied_blocks = false;
}

static int need_setting(struct snapshot *to, const char *key, value content)
{
    value known;
    if (snapshot_get_setting(to, key, &known))
        return STATUS_OK;
    uint32_t text = snapshot_string(to, key, strlen(key));
    return text == STRING_NONE || snapshot_add_setting(to, text, content) == NONE32 ? STATUS_NO_MEMORY : STATUS_OK;
}

static int take_dict(struct snapshot *to, value dict)
{
    size_t count = value_kind(dict) == VALUE_DICT ? values_count(to->values, dict) : 0;
    int status = STATUS_OK;
    for (size_t i = 0; i + 1 < count && !status; i += 2) {
        const value *items = values_items(to->values, dict);
        if (value_kind(items[i]) == VALUE_STRING)
            status = need_setting(to, snapshot_object_text(to, (uint32_t)value_payload(items[i]), NULL), items[i + 1]);
    }
    return status;
}

/* What both have alike, then what PyTorch says, then the rest of ours. */
static int join_settings(struct join *join)
{
    struct snapshot *to = join->to;
    value own[2] = {0, 0};
    char key[SNAPSHOT_PROCESS_KEY];
    size_t kept = 0;
    for (size_t i = 0; i < to->setting_count; i++) {
        const char *text = snapshot_content_text(to, to->settings[i].key, NULL);
        size_t process = 0;
        for (; process < 2; process++) {
            snapshot_process_key(process, key);
            if (strcmp(text, key) == 0)
                break;
        }
        if (process < 2)
            own[process] = to->settings[i].content;
        else
            to->settings[kept++] = to->settings[i];
    }
    to->setting_count = kept;
    uint32_t word = snapshot_shared_string(to, "history", strlen("history"));
    int status = word == STRING_NONE ? STATUS_NO_MEMORY
                                     : need_setting(to, "framework_blocks", value_make(VALUE_STRING, word));
    if (!status)
        status = take_dict(to, own[JOIN_THEIRS]);
    return status ? status : take_dict(to, own[JOIN_OURS]);
}

static bool tells_of_any(const struct join *join)
{
    for (size_t i = 0; i <= UINT16_MAX; i++)
        if (join->is_told[i])
            return true;
    return false;
}

static int join_all(struct join *join, bool has_blocks, struct error *err)
{
    if (!find_told(join))
        return error_no_memory(err);
    if (has_blocks && !tells_of_any(join))
        return error_set(err, STATUS_INPUT, "tells of no memory, and the recording has the allocator's blocks");
    if (!sort_out(join) || order_entries(join) || join_states(join) || join_settings(join))
        return error_no_memory(err);
    join_devices(join);
    return STATUS_OK;
}

static int merge_both(const struct snapshot *recorded, const struct snapshot *history, struct snapshot **both,
                      struct error *err)
{
    struct merge *merge = merge_new();
    struct merge_facts facts;
    int status = merge ? merge_add(merge, recorded, "the recording", err) : error_no_memory(err);
    if (!status)
        status = merge_add(merge, history, "PyTorch's history", err);
    if (!status)
        status = merge_finish(merge, both, &facts, err);
    merge_free(merge);
    return status;
}

int join_history(const struct snapshot *recorded, struct snapshot *history, struct snapshot **result,
                 struct error *err)
{
    struct join join = {0};
    *result = NULL;
    if (recorded->source != SOURCE_RECORDED || recorded->process_count != 1 || history->source != SOURCE_TORCH)
        return error_set(err, STATUS_INPUT, "only a recording of one process and a snapshot of PyTorch can be joined");
    int status = check_whole(history, err);
    if (status)
        return status;
    plain_rows(history);
    status = merge_both(recorded, history, &join.to, err);
    if (!status)
        status = join_all(&join, !recorded->processes[0].implied_blocks, err);
    if (!status && !snapshot_is_valid(join.to, err))
        status = STATUS_INPUT;
    free(join.is_told);
    free(join.ours);
    free(join.theirs);
    free(join.steps);
    free(join.their_steps);
    free(join.order);
    if (status)
        snapshot_free(join.to);
    else
        *result = join.to;
    return status;
}
