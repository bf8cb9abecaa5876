/* Analyses of the real data against PyTorch's own answers: states, peaks, statistics, diff, info. */
#include "analyze/diff.h"
#include "analyze/info.h"
#include "analyze/moment.h"
#include "analyze/statistics.h"
#include "base/array.h"
#include "base/text.h"
#include "format/format.h"
#include "snapshot/state.h"

#include <cjson/cJSON.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct snapshot *load(const char *name)
{
    char path[600];
    struct snapshot *snapshot;
    struct error err;
    snprintf(path, sizeof(path), "%s%s%s", *name == '/' ? "" : TEST_DATA "/", name, *name == '/' ? "" : ".pickle.gz");
    if (format_read(path, NULL, &snapshot, &err))
        fail_msg("%s: %s", path, err.message);
    return snapshot;
}

static cJSON *load_answers(const char *pickle_path)
{
    char path[600];
    size_t stem = strlen(pickle_path) - strlen(".pickle.gz");
    snprintf(path, sizeof(path), "%.*s.stats.json", (int)stem, pickle_path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char bytes[1 << 16];
    bytes[fread(bytes, 1, sizeof(bytes) - 1, file)] = '\0';
    fclose(file);
    cJSON *json = cJSON_Parse(bytes);
    assert_non_null(json);
    return json;
}

static int64_t answer(const cJSON *answers, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(answers, key);
    assert_non_null(item);
    return (int64_t)item->valuedouble;
}

static void for_every_file(void (*check)(const char *path, struct snapshot *, const cJSON *))
{
    glob_t found;
    assert_int_equal(glob(TEST_DATA "/*.pickle.gz", 0, NULL, &found), 0);
    size_t checked = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char answers_path[600];
        size_t stem = strlen(found.gl_pathv[i]) - strlen(".pickle.gz");
        snprintf(answers_path, sizeof(answers_path), "%.*s.stats.json", (int)stem, found.gl_pathv[i]);
        FILE *there = fopen(answers_path, "rb");
        if (!there)
            continue;
        fclose(there);
        struct snapshot *snapshot = load(found.gl_pathv[i]);
        cJSON *answers = load_answers(found.gl_pathv[i]);
        check(found.gl_pathv[i], snapshot, answers);
        cJSON_Delete(answers);
        snapshot_free(snapshot);
        checked++;
    }
    assert_true(checked >= 18);
    globfree(&found);
}

/* --- peaks ------------------------------------------------------------------------------------------------------ */

static void check_peaks(const char *path, struct snapshot *s, const cJSON *answers)
{
    struct moment_peak allocated, reserved;
    assert_int_equal(moment_peaks(s, MOMENT_ALL_DEVICES, &allocated, &reserved, NULL), 0);
    if ((int64_t)allocated.bytes != answer(answers, "requested_bytes.all.peak") ||
        (int64_t)reserved.bytes != answer(answers, "reserved_bytes.all.peak"))
        fail_msg("%s", path);
}

static void peaks_of_complete_traces_are_those_of_memory_stats(void **unused)
{
    (void)unused;
    for_every_file(check_peaks);
}

/* --- states ----------------------------------------------------------------------------------------------------- */

static void sum_state(const struct state *state, uint64_t *requested, uint64_t *reserved)
{
    *requested = *reserved = 0;
    for (size_t s = 0; s < state->segment_count; s++)
        *reserved += state->segments[s].total_size;
    for (size_t b = 0; b < state->block_count; b++)
        if (state->blocks[b].state == BLOCK_ACTIVE_ALLOCATED || state->blocks[b].state == BLOCK_ACTIVE_PENDING_FREE)
            *requested += state->blocks[b].requested;
}

static void assert_valid_at(const char *path, const struct snapshot *s, const struct state *state)
{
    struct error err;
    struct snapshot probe = *s;
    probe.end = *state;
    if (!snapshot_is_valid(&probe, &err))
        fail_msg("%s at %llu: %s", path, (unsigned long long)state->moment, err.message);
}

/* The trace is complete, so running sums from nothing say what each moment holds. */
static void check_states(const char *path, struct snapshot *s, const cJSON *answers)
{
    (void)answers;
    const struct entries *entries = &s->entries;
    uint64_t requested = 0, reserved = 0, stride = entries->count / 60 + 1;
    for (size_t i = 0; i <= entries->count; i++) {
        if (i % stride == 0 || i == entries->count) {
            struct state state;
            struct state_faults faults;
            uint64_t state_requested, state_reserved;
            assert_int_equal(state_at_counting(s, i, &state, &faults, NULL), 0);
            assert_int_equal(faults.unknown_allocs + faults.unknown_segments + faults.overlaps + faults.outside, 0);
            assert_valid_at(path, s, &state);
            sum_state(&state, &state_requested, &state_reserved);
            if (state_requested != requested || state_reserved != reserved)
                fail_msg("%s at %zu: %llu of %llu requested, %llu of %llu reserved", path, i,
                         (unsigned long long)state_requested, (unsigned long long)requested,
                         (unsigned long long)state_reserved, (unsigned long long)reserved);
            for (size_t b = 0; b < state.block_count; b++)
                assert_int_equal(state.blocks[b].flags & BLOCK_BEFORE_RECORDING, 0);
            state_free(&state);
        }
        if (i == entries->count)
            break;
        switch (entries->action[i]) {
        case ACTION_ALLOC: requested += entries->size[i]; break;
        case ACTION_FREE_COMPLETED: requested -= entries->size[i]; break;
        case ACTION_SEGMENT_ALLOC:
        case ACTION_SEGMENT_MAP: reserved += entries->size[i]; break;
        case ACTION_SEGMENT_FREE:
        case ACTION_SEGMENT_UNMAP: reserved -= entries->size[i]; break;
        default: break;
        }
    }
}

static void states_of_the_past_hold_what_the_trace_says_and_nothing_else(void **unused)
{
    (void)unused;
    for_every_file(check_states);
}

/* The first entries lost: what they made is still in the states, and is called older than the trace. */
static void case_8_a_trace_without_its_beginning_has_the_same_states(void **unused)
{
    (void)unused;
    struct snapshot *whole = load("train"), *part = load("train");
    struct entries *e = &part->entries;
    const size_t lost = 1500, left = e->count - lost;
    memmove(e->action, e->action + lost, left * sizeof(*e->action));
    memmove(e->flags, e->flags + lost, left * sizeof(*e->flags));
    memmove(e->device, e->device + lost, left * sizeof(*e->device));
    memmove(e->stream, e->stream + lost, left * sizeof(*e->stream));
    memmove(e->address, e->address + lost, left * sizeof(*e->address));
    memmove(e->size, e->size + lost, left * sizeof(*e->size));
    memmove(e->time, e->time + lost, left * sizeof(*e->time));
    memmove(e->context, e->context + lost, left * sizeof(*e->context));
    e->count = left;
    uint64_t before = 0;
    for (size_t moment = 0; moment < left; moment += 97) {
        struct state a, b;
        assert_int_equal(state_at(whole, lost + moment, &a, NULL), 0);
        assert_int_equal(state_at(part, moment, &b, NULL), 0);
        assert_int_equal(a.segment_count, b.segment_count);
        assert_int_equal(a.block_count, b.block_count);
        for (size_t i = 0; i < a.block_count; i++) {
            assert_int_equal(a.blocks[i].address, b.blocks[i].address);
            assert_int_equal(a.blocks[i].size, b.blocks[i].size);
            assert_int_equal(a.blocks[i].requested, b.blocks[i].requested);
            assert_int_equal(a.blocks[i].state, b.blocks[i].state);
            before += (b.blocks[i].flags & BLOCK_BEFORE_RECORDING) != 0;
        }
        state_free(&a);
        state_free(&b);
    }
    assert_true(before > 1000);
    struct moment_peak peak_whole, peak_part;
    moment_peaks(whole, MOMENT_ALL_DEVICES, &peak_whole, NULL, NULL);
    moment_peaks(part, MOMENT_ALL_DEVICES, &peak_part, NULL, NULL);
    assert_true(peak_whole.moment > lost); /* the peak lies in the part that is left, so it is found exactly */
    assert_int_equal(peak_part.bytes, peak_whole.bytes);
    assert_int_equal(peak_part.moment, peak_whole.moment - lost);
    snapshot_free(whole);
    snapshot_free(part);
}

/* --- statistics ------------------------------------------------------------------------------------------------- */

static void check_statistics(const char *path, struct snapshot *s, const cJSON *answers)
{
    struct statistics_list list;
    const struct memory_stats_key *keys = memory_stats_keys();
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    int exact = 0;
    for (int i = 0; i < MEMORY_STATS_KEYS; i++) {
        int64_t mine = memory_stats_value(&list.items[0].values, &keys[i]), truth = answer(answers, keys[i].name);
        enum statistics_bound bound = statistics_bound(&list.items[0], &keys[i]);
        bool agrees = bound == STATISTICS_EXACT ? mine == truth : bound == STATISTICS_AT_LEAST ? mine <= truth : true;
        exact += bound == STATISTICS_EXACT;
        if (!agrees)
            fail_msg("%s: %s is %lld, not %lld (bound %d)", path, keys[i].name, (long long)mine, (long long)truth, bound);
        if (strstr(keys[i].name, ".current") && bound != STATISTICS_EXACT)
            fail_msg("%s: %s should be exact", path, keys[i].name);
    }
    assert_true(exact >= 30 && exact < MEMORY_STATS_KEYS); /* a pickle cannot tell everything */
    assert_false(list.items[0].is_exact);
    statistics_free(&list);
}

static void every_number_of_a_pickle_is_exact_or_a_true_bound(void **unused)
{
    (void)unused;
    for_every_file(check_statistics);
}

static void check_past_statistics(const char *path, struct snapshot *s, const cJSON *answers)
{
    (void)answers;
    struct moment_peak peak;
    struct state state;
    struct statistics_list list;
    moment_peaks(s, MOMENT_ALL_DEVICES, &peak, NULL, NULL);
    assert_int_equal(state_at(s, peak.moment, &state, NULL), 0);
    assert_int_equal(statistics_collect(s, &state, NULL, NULL, &list, NULL), 0);
    const struct memory_stat *requested = &list.items[0].values.kinds[MEMORY_STAT_REQUESTED_BYTES][MEMORY_POOL_ALL];
    if (requested->current != (int64_t)peak.bytes || requested->peak != (int64_t)peak.bytes)
        fail_msg("%s: %lld at the peak of %llu", path, (long long)requested->current, (unsigned long long)peak.bytes);
    statistics_free(&list);
    state_free(&state);
}

static void at_the_peak_the_statistics_show_the_peak(void **unused)
{
    (void)unused;
    for_every_file(check_past_statistics);
}

static void add_entry(struct snapshot *s, enum action action, uint16_t device, uint64_t address, uint64_t size)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = action;
    entry.device = device;
    entry.address = address;
    entry.size = size;
    entry.context = CONTEXT_NONE;
    assert_int_equal(snapshot_add_entry(s, &entry), 0);
}

static void add_segment(struct snapshot *s, uint16_t device, uint64_t address, uint64_t size)
{
    struct segment segment = {.address = address, .total_size = size, .device = device, .pool = NONE32,
                              .context = CONTEXT_NONE, .is_large = size > (1 << 20)};
    struct block block = {.address = address, .size = size, .requested = size, .context = CONTEXT_NONE,
                          .state = BLOCK_ACTIVE_ALLOCATED};
    assert_int_equal(state_add_segment(&s->end, &segment), 0);
    assert_int_equal(state_add_block(&s->end, &block), 0);
}

static struct snapshot *recording(void)
{
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    s->processes[0].implied_blocks = true;
    s->end.exact = true;
    return s;
}

static void a_recording_that_lost_nothing_has_exact_statistics_at_every_moment(void **unused)
{
    (void)unused;
    struct snapshot *s = recording();
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 1 << 30, 10 << 20);
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 2 << 20, 1000);
    add_entry(s, ACTION_SEGMENT_FREE, 0, 1 << 30, 10 << 20);
    add_entry(s, ACTION_OOM, 0, 0, 5368709120);
    add_segment(s, 0, 2 << 20, 1000);
    static const int64_t currents[] = {0, 10485760, 10486760, 1000, 1000};
    for (uint64_t moment = 0; moment <= 4; moment++) {
        struct state state;
        struct statistics_list list;
        assert_int_equal(state_at(s, moment, &state, NULL), 0);
        assert_int_equal(statistics_collect(s, &state, NULL, NULL, &list, NULL), 0);
        const struct statistics *set = &list.items[0];
        assert_true(set->is_exact);
        for (int k = 0; k < 2; k++) {
            enum memory_stat_kind kind = k ? MEMORY_STAT_RESERVED_BYTES : MEMORY_STAT_ALLOCATED_BYTES;
            const struct memory_stat *stat = &set->values.kinds[kind][MEMORY_POOL_ALL];
            assert_int_equal(stat->current, currents[moment]);
            assert_int_equal(stat->allocated - stat->freed, stat->current);
            if (moment >= 2)
                assert_int_equal(stat->peak, 10486760);
        }
        assert_int_equal(set->values.num_ooms, moment == 4);
        statistics_free(&list);
        state_free(&state);
    }
    snapshot_free(s);
}

static void case_8_lost_entries_make_sums_lower_bounds_and_are_told(void **unused)
{
    (void)unused;
    struct snapshot *s = recording();
    uint32_t device = snapshot_device(s, 0, 0);
    s->devices[device].lost_entries = 500;
    s->devices[device].max_entries = 1000;
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 1 << 30, 10 << 20);
    add_segment(s, 0, 1 << 30, 10 << 20);
    add_segment(s, 0, UINT64_C(2) << 30, 5 << 20); /* from before the entries that are left */
    s->end.moment = 1;
    struct statistics_list list;
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    const struct statistics *set = &list.items[0];
    assert_int_equal(set->lost_entries, 500);
    assert_false(set->is_exact);
    const struct memory_stat *reserved = &set->values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    const struct memory_stat *bound = &set->bounds.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    assert_int_equal(reserved->current, 15 << 20);
    assert_int_equal(reserved->peak, 15 << 20);
    assert_int_equal(bound->current, STATISTICS_EXACT);
    assert_int_equal(bound->peak, STATISTICS_AT_LEAST);
    assert_int_equal(bound->freed, STATISTICS_AT_LEAST);
    statistics_free(&list);
    struct info info;
    assert_int_equal(info_collect(s, &s->end, &info, NULL), 0);
    assert_int_equal(info.device_count, 1);
    assert_true(info.devices[0].overflowed);
    assert_int_equal(info.devices[0].max_entries, 1000);
    assert_int_equal(info.devices[0].before_bytes, 5 << 20);
    assert_int_equal(info.lost_entries, 500);
    info_free(&info);
    snapshot_free(s);
}

static void what_the_recorder_counted_itself_is_taken_over_at_the_end(void **unused)
{
    (void)unused;
    struct snapshot *s = recording();
    uint32_t device = snapshot_device(s, 0, 2);
    struct device *d = &s->devices[device];
    d->has_stats = d->stats_exact = true;
    memory_stats_init(&d->stats);
    d->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL] = (struct memory_stat){1, 2, 3, 4};
    struct statistics_list list;
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].device, 2);
    assert_int_equal(list.items[0].values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak, 2);
    assert_true(list.items[0].is_exact);
    statistics_free(&list);
    s->devices[device].stats_exact = false;
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    const struct memory_stat *bound = &list.items[0].bounds.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    assert_int_equal(bound->current, STATISTICS_EXACT);
    assert_int_equal(bound->peak, STATISTICS_AT_LEAST);
    statistics_free(&list);
    snapshot_free(s);
}

static void case_14_and_46_nothing_at_all_is_one_set_of_zeros(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    for (uint16_t i = 0; i < 4; i++)
        snapshot_device(s, 0, i); /* four empty traces */
    struct statistics_list list;
    const struct memory_stats_key *keys = memory_stats_keys();
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    assert_true(list.items[0].is_exact);
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        if (strcmp(keys[i].name, "max_split_size") != 0)
            assert_int_equal(memory_stats_value(&list.items[0].values, &keys[i]), 0);
    statistics_free(&list);
    struct info info;
    assert_int_equal(info_collect(s, &s->end, &info, NULL), 0);
    assert_false(info.recording_was_off);
    info_free(&info);
    snapshot_free(s);
}

static void case_12_segments_without_a_trace_give_current_values_and_recording_was_off(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    s->end.exact = true;
    add_segment(s, 0, 1 << 30, 20 << 20);
    struct statistics_list list;
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    assert_int_equal(list.items[0].values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].current, 20 << 20);
    assert_int_equal(list.items[0].values.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_LARGE].current, 20 << 20);
    assert_int_equal(list.items[0].bounds.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak, STATISTICS_AT_LEAST);
    statistics_free(&list);
    struct info info;
    assert_int_equal(info_collect(s, &s->end, &info, NULL), 0);
    assert_true(info.recording_was_off);
    info_free(&info);
    snapshot_free(s);
}

static void case_53_memory_of_the_host_never_counts_for_a_device(void **unused)
{
    (void)unused;
    struct snapshot *s = recording();
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 1 << 30, 64 << 20);
    entries_need_kind(&s->entries);
    s->entries.kind[0] = MEMORY_HOST;
    add_segment(s, 0, 1 << 30, 64 << 20);
    s->end.segments[0].kind = MEMORY_HOST;
    s->end.moment = 1;
    struct statistics_list list;
    struct moment_peak peak;
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    assert_int_equal(list.items[0].values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].allocated, 0);
    moment_peaks(s, MOMENT_ALL_DEVICES, NULL, &peak, NULL);
    assert_int_equal(peak.bytes, 0);
    statistics_free(&list);
    snapshot_free(s);
}

static void sums_of_senseless_sizes_do_not_overflow(void **unused)
{
    (void)unused;
    struct snapshot *s = recording();
    for (uint64_t i = 0; i < 50; i++)
        add_entry(s, i % 3 ? ACTION_SEGMENT_ALLOC : ACTION_SEGMENT_FREE, 0, i << 40, UINT64_MAX / 2 - i);
    s->end.moment = 50;
    struct statistics_list list;
    assert_int_equal(statistics_collect(s, &s->end, NULL, NULL, &list, NULL), 0);
    statistics_free(&list);
    struct moment_peak allocated, reserved;
    assert_int_equal(moment_peaks(s, MOMENT_ALL_DEVICES, &allocated, &reserved, NULL), 0);
    assert_int_equal(reserved.bytes, UINT64_MAX);
    snapshot_free(s);
}

/* --- diff ------------------------------------------------------------------------------------------------------- */

static void stack_text(const struct diff *diff, uint32_t stack, struct text *text)
{
    size_t length;
    const char *frame;
    text_clear(text);
    while ((frame = diff_frame(diff, &stack, &length))) {
        if (text->length)
            text_char(text, ';');
        text_append(text, frame, length);
    }
}

static void the_leaking_line_comes_first_with_its_size_to_the_byte(void **unused)
{
    (void)unused;
    struct snapshot *before = load("leak_before"), *after = load("leak_after");
    struct diff_side sides[] = {{before, &before->end, NULL}, {after, &after->end, NULL}};
    struct diff_options options = {0};
    struct diff diff;
    struct text text = {0};
    assert_int_equal(diff_states(&sides[0], &sides[1], &options, &diff, NULL), 0);
    stack_text(&diff, diff.rows[0].stack, &text);
    assert_string_equal(text_string(&text),
                        "/home/user/train/capture.py:131:step;/home/user/train/capture.py:135:<module>");
    assert_int_equal(diff_delta(&diff.rows[0]), 2560); /* five steps, a loss of 512 bytes each ... */
    assert_int_equal(diff.rows[0].after.requested - diff.rows[0].before.requested, 20); /* ... of which 4 were asked for */
    assert_int_equal(diff.rows[0].after.blocks - diff.rows[0].before.blocks, 5);
    for (size_t i = 1; i < diff.count; i++)
        assert_int_equal(diff_delta(&diff.rows[i]), 0);
    assert_int_equal(diff.after.bytes - diff.before.bytes, 2560);
    diff_free(&diff);
    options.ignore_lines = true;
    assert_int_equal(diff_states(&sides[0], &sides[1], &options, &diff, NULL), 0);
    stack_text(&diff, diff.rows[0].stack, &text);
    assert_string_equal(text_string(&text), "/home/user/train/capture.py:step;/home/user/train/capture.py:<module>");
    assert_int_equal(diff.rows[0].before.bytes, 1536); /* the two callers are one now */
    assert_int_equal(diff.rows[0].after.bytes, 4096);
    diff_free(&diff);
    text_free(&text);
    snapshot_free(before);
    snapshot_free(after);
}

static void the_difference_of_a_file_and_itself_is_nothing(void **unused)
{
    (void)unused;
    struct snapshot *s = load("frag");
    struct diff_side side = {s, &s->end, NULL};
    struct diff_options options = {0};
    struct diff diff;
    assert_int_equal(diff_states(&side, &side, &options, &diff, NULL), 0);
    assert_true(diff.count > 0);
    uint64_t bytes = 0;
    for (size_t i = 0; i < diff.count; i++) {
        assert_int_equal(diff_delta(&diff.rows[i]), 0);
        bytes += diff.rows[i].after.bytes;
    }
    assert_int_equal(bytes, diff.after.bytes);
    diff_free(&diff);
    snapshot_free(s);
}

static void moments_of_one_file_are_compared_from_nothing_to_all(void **unused)
{
    (void)unused;
    struct snapshot *s = load("train");
    struct state start;
    assert_int_equal(state_at(s, 0, &start, NULL), 0);
    struct diff_side before = {s, &start, NULL}, after = {s, &s->end, NULL};
    struct diff_options options = {0};
    struct diff diff;
    assert_int_equal(diff_states(&before, &after, &options, &diff, NULL), 0);
    assert_int_equal(diff.before.blocks, 0);
    cJSON *answers = load_answers(TEST_DATA "/train.pickle.gz");
    assert_int_equal(diff.after.bytes, answer(answers, "active_bytes.all.current"));
    assert_int_equal(diff.after.requested, answer(answers, "requested_bytes.all.current"));
    for (size_t i = 1; i < diff.count; i++)
        assert_true(diff.rows[i - 1].after.bytes >= diff.rows[i].after.bytes);
    cJSON_Delete(answers);
    diff_free(&diff);
    state_free(&start);
    snapshot_free(s);
}

static void case_11_blocks_without_a_stack_say_why(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    struct segment segment = {.address = 1 << 20, .total_size = 3 << 20, .pool = NONE32, .context = CONTEXT_NONE};
    uint32_t empty = snapshot_add_context(s, STACK_EMPTY);
    state_add_segment(&s->end, &segment);
    for (uint64_t i = 0; i < 3; i++) {
        struct block block = {.address = (i + 1) << 20, .size = 1 << 20, .requested = 1 << 20,
                              .context = i == 2 ? empty : CONTEXT_NONE, .state = BLOCK_ACTIVE_ALLOCATED};
        state_add_block(&s->end, &block);
    }
    add_entry(s, ACTION_ALLOC, 0, 2 << 20, 1 << 20);
    add_entry(s, ACTION_ALLOC, 0, 3 << 20, 1 << 20);
    s->entries.context[1] = empty;
    s->end.moment = 2;
    struct state nothing = {0};
    struct diff_side before = {s, &nothing, NULL}, after = {s, &s->end, NULL};
    struct diff_options options = {0};
    struct diff diff;
    struct text text = {0}, all = {0};
    assert_int_equal(diff_states(&before, &after, &options, &diff, NULL), 0);
    assert_int_equal(diff.count, 3);
    for (size_t i = 0; i < 3; i++) {
        stack_text(&diff, diff.rows[i].stack, &text);
        text_add(&all, text_string(&text));
    }
    assert_non_null(strstr(text_string(&all), "(allocated before recording)"));
    assert_non_null(strstr(text_string(&all), "(no stack was taken)"));
    assert_non_null(strstr(text_string(&all), "(a stack without frames)"));
    text_free(&text);
    text_free(&all);
    diff_free(&diff);
    snapshot_free(s);
}

/* --- info ------------------------------------------------------------------------------------------------------- */

static void info_counts_what_is_in_a_file(void **unused)
{
    (void)unused;
    struct snapshot *s = load("mempool");
    struct info info;
    assert_int_equal(info_collect(s, &s->end, &info, NULL), 0);
    assert_int_equal(info.entries, 29);
    assert_int_equal(info.actions[ACTION_SEGMENT_ALLOC], 9);
    assert_int_equal(info.actions[ACTION_ALLOC], 11);
    assert_int_equal(info.device_count, 1);
    assert_int_equal(info.devices[0].segments, 9);
    assert_int_equal(info.devices[0].reserved, 194560 << 10);
    assert_int_equal(info.devices[0].allocated, 76801 << 10);
    assert_int_equal(info.devices[0].before_bytes, 0);
    assert_int_equal(info.pool_count, 4); /* the default one and three of the program's own */
    uint64_t reserved = 0;
    for (size_t i = 0; i < info.pool_count; i++)
        reserved += info.pools[i].reserved;
    assert_int_equal(reserved, info.devices[0].reserved);
    assert_true(info.has_times && info.last_time > info.first_time);
    info_free(&info);
    snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_of_complete_traces_are_those_of_memory_stats),
        cmocka_unit_test(states_of_the_past_hold_what_the_trace_says_and_nothing_else),
        cmocka_unit_test(case_8_a_trace_without_its_beginning_has_the_same_states),
        cmocka_unit_test(every_number_of_a_pickle_is_exact_or_a_true_bound),
        cmocka_unit_test(at_the_peak_the_statistics_show_the_peak),
        cmocka_unit_test(a_recording_that_lost_nothing_has_exact_statistics_at_every_moment),
        cmocka_unit_test(case_8_lost_entries_make_sums_lower_bounds_and_are_told),
        cmocka_unit_test(what_the_recorder_counted_itself_is_taken_over_at_the_end),
        cmocka_unit_test(case_14_and_46_nothing_at_all_is_one_set_of_zeros),
        cmocka_unit_test(case_12_segments_without_a_trace_give_current_values_and_recording_was_off),
        cmocka_unit_test(case_53_memory_of_the_host_never_counts_for_a_device),
        cmocka_unit_test(sums_of_senseless_sizes_do_not_overflow),
        cmocka_unit_test(the_leaking_line_comes_first_with_its_size_to_the_byte),
        cmocka_unit_test(the_difference_of_a_file_and_itself_is_nothing),
        cmocka_unit_test(moments_of_one_file_are_compared_from_nothing_to_all),
        cmocka_unit_test(case_11_blocks_without_a_stack_say_why),
        cmocka_unit_test(info_counts_what_is_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
