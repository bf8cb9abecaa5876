/* The timeline: bands add up to what was allocated, no peak is lost, and pictures are the same for the same snapshot. */
#include "analyze/moment.h"
#include "analyze/timeline.h"
#include "format/format.h"
#include "render/svg_timeline.h"
#include "snapshot/state.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static struct timeline build(const struct snapshot *snapshot, enum timeline_axis axis, uint32_t columns, uint32_t bands)
{
    struct timeline_options options = {axis, columns, bands, snapshot->entries.count};
    struct timeline timeline;
    struct error err = {0};
    assert_int_equal(timeline_build(snapshot, NULL, &options, &timeline, &err), 0);
    return timeline;
}

static char *draw(struct timeline *timeline)
{
    struct svg_timeline_options options = {.title = "t"};
    struct output *output;
    struct error err = {0};
    unsigned char *bytes;
    size_t length;
    assert_int_equal(output_to_memory(&bytes, &length, &output, &err), 0);
    assert_int_equal(svg_timeline(timeline, &options, output, &err), 0);
    assert_int_equal(output_commit(output, &err), 0);
    char *text = realloc(bytes, length + 1);
    assert_non_null(text);
    text[length] = '\0';
    return text;
}

static uint64_t bands_at(const struct timeline_chart *chart, uint32_t column)
{
    uint64_t sum = chart->before[column] + chart->rest[column];
    for (size_t b = 0; b < chart->band_count; b++)
        if (chart->bands[b].from <= column && column < chart->bands[b].to)
            sum += chart->bands[b].size;
    return sum;
}

/* What the state of that moment has allocated on the chart's device. */
static uint64_t allocated_at(const struct snapshot *snapshot, const struct timeline_chart *chart, uint64_t moment)
{
    struct state state;
    struct error err = {0};
    uint64_t sum = 0;
    assert_int_equal(state_at(snapshot, moment, &state, &err), 0);
    for (size_t b = 0; b < state.block_count; b++) {
        const struct block *block = &state.blocks[b];
        const struct segment *segment = &state.segments[block->segment];
        if (segment->device == chart->device && (block->state == BLOCK_ACTIVE_ALLOCATED || block->state == BLOCK_ACTIVE_PENDING_FREE))
            sum += block->flags & BLOCK_REQUESTED_UNKNOWN ? block->size : block->requested;
    }
    state_free(&state);
    return sum;
}

static void assert_adds_up(const struct snapshot *snapshot, const struct timeline *timeline, const char *name)
{
    for (size_t i = 0; i < timeline->count; i++) {
        const struct timeline_chart *chart = &timeline->charts[i];
        struct moment_peak allocated, reserved;
        struct error err = {0};
        assert_int_equal(moment_peaks(snapshot, chart->device, &allocated, &reserved, &err), 0);
        if (chart->peak_allocated != allocated.bytes || chart->peak_moment != allocated.moment || chart->peak_reserved != reserved.bytes)
            fail_msg("%s: the peak is lost", name);
        for (uint32_t c = 0; c < timeline->columns; c++) {
            if (bands_at(chart, c) != chart->allocated[c])
                fail_msg("%s: the bands of column %u do not add up", name, c);
            if (chart->about && chart->about->total && chart->allocated[c] > chart->about->total)
                fail_msg("%s: more than the device has", name);
        }
        for (uint32_t c = 0; c < timeline->columns; c += timeline->columns / 12 + 1)
            if (allocated_at(snapshot, chart, chart->moments[c]) != chart->allocated[c])
                fail_msg("%s: column %u is not the state at %llu", name, c, (unsigned long long)chart->moments[c]);
    }
}

static void bands_add_up_to_the_state_in_every_file(void **state)
{
    (void)state;
    struct dirent **names;
    int count = scandir(TEST_DATA, &names, NULL, alphasort), seen = 0;
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        struct format_options options = FORMAT_OPTIONS_ALL;
        struct snapshot *snapshot;
        struct error err = {0};
        char path[1024];
        size_t length = strlen(names[i]->d_name);
        snprintf(path, sizeof(path), "%s/%s", TEST_DATA, names[i]->d_name);
        if (length > 10 && strcmp(names[i]->d_name + length - 10, ".pickle.gz") == 0) {
            assert_int_equal(format_read(path, &options, &snapshot, &err), 0);
            for (int axis = TIMELINE_TIME; axis <= TIMELINE_ENTRIES; axis++) {
                struct timeline timeline = build(snapshot, axis, SVG_TIMELINE_COLUMNS, 100);
                assert_adds_up(snapshot, &timeline, names[i]->d_name);
                timeline_keep_bands(&timeline, &timeline.charts[0], 7);
                assert_true(timeline.charts[0].band_count <= 7);
                assert_adds_up(snapshot, &timeline, names[i]->d_name);
                timeline_free(&timeline);
            }
            snapshot_free(snapshot);
            seen++;
        }
        free(names[i]);
    }
    free(names);
    assert_true(seen >= 15);
}

/* --- made by hand ------------------------------------------------------------------------------------------------- */

static void add(struct snapshot *snapshot, enum action action, uint16_t device, uint64_t address, uint64_t size, int64_t time)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = action;
    entry.device = device;
    entry.address = address;
    entry.size = size;
    entry.time = time;
    entry.flags = time < 0 ? ENTRY_NO_TIME : 0;
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
}

/* A segment with one living block, as the end has it. */
static void add_end(struct snapshot *snapshot, uint16_t device, uint64_t address, uint64_t size)
{
    struct segment segment = {.address = address, .total_size = size, .device = device, .pool = NONE32, .context = CONTEXT_NONE};
    struct block block = {.address = address, .size = size, .requested = size, .context = CONTEXT_NONE, .state = BLOCK_ACTIVE_ALLOCATED};
    assert_int_equal(state_add_segment(&snapshot->end, &segment), 0);
    assert_int_equal(state_add_block(&snapshot->end, &block), 0);
}

static void running_totals_are_of_requested_bytes(bool has_end)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    add(snapshot, ACTION_ALLOC, 0, 0x1000, 1000, -1);
    add(snapshot, ACTION_ALLOC, 0, 0x2000, 3000, -1);
    add(snapshot, ACTION_FREE_COMPLETED, 0, 0x1000, 1000, -1);
    if (has_end)
        add_end(snapshot, 0, 0x2000, 3000);
    struct timeline timeline = build(snapshot, TIMELINE_AUTO, 100, 10);
    assert_false(timeline.is_time); /* events without times are counted */
    assert_int_equal(timeline.columns, 4);
    const uint64_t expected[] = {0, 1000, 4000, 3000};
    for (uint32_t c = 0; c < 4; c++)
        assert_int_equal(timeline.charts[0].allocated[c], expected[c]);
    char *svg = draw(&timeline);
    assert_non_null(strstr(svg, ">events: "));
    free(svg);
    timeline_free(&timeline);
    snapshot_free(snapshot);
}

static void running_totals_are_right(void **state)
{
    (void)state;
    running_totals_are_of_requested_bytes(true);
}

static void running_totals_are_right_without_an_end(void **state)
{
    (void)state;
    running_totals_are_of_requested_bytes(false);
}

/* A segment_alloc or segment_free, by a plain program or beside a framework's allocator. */
static void add_segment(struct snapshot *snapshot, enum action action, uint8_t flags, uint64_t address, uint64_t size, int64_t time)
{
    add(snapshot, action, 0, address, size, time);
    snapshot->entries.flags[snapshot->entries.count - 1] |= flags;
}

static void where_nothing_caches_segments_are_allocations(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    snapshot->processes[0].implied_blocks = true;
    add_segment(snapshot, ACTION_SEGMENT_ALLOC, 0, 0x1000000, 4 * MIB, 1);
    add_segment(snapshot, ACTION_SEGMENT_MAP, 0, 0x9000000, 2 * MIB, 2);
    add_segment(snapshot, ACTION_SEGMENT_MAP, 0, 0x9200000, 2 * MIB, 3);
    add_segment(snapshot, ACTION_SEGMENT_UNMAP, 0, 0x9000000, 4 * MIB, 4); /* both at once */
    add_segment(snapshot, ACTION_SEGMENT_FREE, 0, 0x1000000, 4 * MIB, 5);
    struct timeline timeline = build(snapshot, TIMELINE_ENTRIES, 100, 10);
    const struct timeline_chart *chart = &timeline.charts[0];
    const uint64_t expected[] = {0, 4, 6, 8, 4, 0};
    for (uint32_t c = 0; c < 6; c++) {
        assert_int_equal(chart->allocated[c], expected[c] * MIB);
        assert_int_equal(chart->reserved[c], expected[c] * MIB);
        assert_int_equal(bands_at(chart, c), expected[c] * MIB);
    }
    assert_false(chart->has_reserved);
    assert_int_equal(chart->band_count, 1);
    timeline_free(&timeline);
    snapshot_free(snapshot);
}

static void memory_outside_of_the_allocator_is_no_part_of_its_sum(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    add_segment(snapshot, ACTION_SEGMENT_ALLOC, 0, 0x1000000, 8 * MIB, 1);
    add(snapshot, ACTION_ALLOC, 0, 0x1000000, MIB, 2);
    add_segment(snapshot, ACTION_SEGMENT_ALLOC, ENTRY_OUTSIDE, 0x5000000, 3 * MIB, 3);
    add_segment(snapshot, ACTION_ALLOC, ENTRY_OUTSIDE, 0x5000000, 3 * MIB, 3);
    add_segment(snapshot, ACTION_FREE_COMPLETED, ENTRY_OUTSIDE, 0x5000000, 3 * MIB, 4);
    add_segment(snapshot, ACTION_SEGMENT_FREE, ENTRY_OUTSIDE, 0x5000000, 3 * MIB, 4);
    struct timeline timeline = build(snapshot, TIMELINE_ENTRIES, 100, 10);
    const struct timeline_chart *chart = &timeline.charts[0];
    assert_true(chart->has_outside);
    assert_int_equal(chart->peak_allocated, MIB);
    assert_int_equal(chart->peak_reserved, 8 * MIB);
    assert_int_equal(chart->peak_used, 11 * MIB);
    assert_int_equal(chart->used[6], 8 * MIB);
    timeline_free(&timeline);
    snapshot_free(snapshot);
}

static void the_devices_memory_is_a_line_if_it_is_near(void **state)
{
    (void)state;
    for (int near = 0; near < 2; near++) {
        struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
        uint32_t device = snapshot_device(snapshot, 0, 0);
        snapshot->devices[device].total = near ? 16 * MIB : 640 * MIB;
        add_segment(snapshot, ACTION_SEGMENT_ALLOC, 0, 0x1000000, 8 * MIB, 1);
        add(snapshot, ACTION_ALLOC, 0, 0x1000000, MIB, 2);
        struct timeline timeline = build(snapshot, TIMELINE_ENTRIES, 100, 10);
        char *svg = draw(&timeline);
        assert_int_equal(strstr(svg, "<path class=\"limit\"") != NULL, near);
        assert_non_null(strstr(svg, near ? "the device has 16.00 MiB" : "the device has 640.00 MiB"));
        free(svg);
        timeline_free(&timeline);
        snapshot_free(snapshot);
    }
}

static void a_pool_is_as_high_as_what_it_reserved(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    const uint64_t base = 0x10000000;
    add(snapshot, ACTION_SEGMENT_MAP, 0, base, 20 * MIB, 1);
    add(snapshot, ACTION_ALLOC, 0, base, 4 * MIB, 2);
    add(snapshot, ACTION_ALLOC, 0, base + 4 * MIB, 4 * MIB, 3);
    add(snapshot, ACTION_FREE_COMPLETED, 0, base, 4 * MIB, 4);
    add(snapshot, ACTION_FREE_COMPLETED, 0, base + 4 * MIB, 4 * MIB, 5);
    add(snapshot, ACTION_SEGMENT_MAP, 0, base + 20 * MIB, 20 * MIB, 6);
    add(snapshot, ACTION_ALLOC, 0, base + 10 * MIB, 12 * MIB, 7);
    struct segment segment = {.address = base, .total_size = 40 * MIB, .is_expandable = true, .pool = NONE32, .context = CONTEXT_NONE};
    struct block block = {.address = base + 10 * MIB, .size = 12 * MIB, .requested = 12 * MIB, .context = CONTEXT_NONE,
                          .state = BLOCK_ACTIVE_ALLOCATED};
    assert_int_equal(state_add_segment(&snapshot->end, &segment), 0);
    assert_int_equal(state_add_block(&snapshot->end, &block), 0);
    struct timeline timeline = build(snapshot, TIMELINE_ENTRIES, 100, 10);
    const struct timeline_chart *chart = &timeline.charts[0];
    const uint64_t reserved[] = {0, 20, 20, 20, 20, 20, 40, 40}, allocated[] = {0, 0, 4, 8, 4, 0, 0, 12};
    for (uint32_t c = 0; c < 8; c++) {
        assert_int_equal(chart->reserved[c], reserved[c] * MIB);
        assert_int_equal(chart->allocated[c], allocated[c] * MIB);
    }
    timeline_free(&timeline);
    snapshot_free(snapshot);
}

static void what_was_there_before_is_a_band_of_its_own(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    add(snapshot, ACTION_ALLOC, 0, 0x500000, MIB, 10);
    add(snapshot, ACTION_FREE_COMPLETED, 0, 0x900000, 2 * MIB, 20); /* nobody saw it being allocated */
    add(snapshot, ACTION_FREE_COMPLETED, 0, 0x500000, MIB, 30);
    add_end(snapshot, 0, 0x100000, 3 * MIB);
    struct timeline timeline = build(snapshot, TIMELINE_ENTRIES, 100, 10);
    const struct timeline_chart *chart = &timeline.charts[0];
    const uint64_t before[] = {5, 5, 3, 3}, allocated[] = {5, 6, 4, 3};
    assert_true(chart->has_before);
    for (uint32_t c = 0; c < 4; c++) {
        assert_int_equal(chart->before[c], before[c] * MIB);
        assert_int_equal(chart->allocated[c], allocated[c] * MIB);
    }
    char *svg = draw(&timeline);
    assert_non_null(strstr(svg, "allocated before recording"));
    free(svg);
    timeline_free(&timeline);
    snapshot_free(snapshot);
}

static void devices_have_charts_of_their_own_and_times_go_up(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    add(snapshot, ACTION_ALLOC, 1, 0x1000, 512, 1000);
    add(snapshot, ACTION_ALLOC, 3, 0x1000, 4096, 900); /* back in time: as late as the one before */
    add(snapshot, ACTION_OOM, 3, 77, MIB, 1500);
    add(snapshot, ACTION_FREE_COMPLETED, 1, 0x1000, 512, 2000);
    add_end(snapshot, 3, 0x1000, 4096);
    struct timeline timeline = build(snapshot, TIMELINE_AUTO, 10, 10);
    assert_true(timeline.is_time);
    assert_int_equal(timeline.count, 2);
    assert_int_equal(timeline.charts[0].device, 1);
    assert_int_equal(timeline.charts[0].peak_allocated, 512);
    assert_int_equal(timeline.charts[1].peak_allocated, 4096);
    assert_int_equal(timeline.charts[0].event_count, 0);
    assert_int_equal(timeline.charts[1].event_count, 1);
    assert_int_equal(timeline.charts[1].events[0].entry, 2);
    timeline_free(&timeline);
    snapshot_free(snapshot);
}

static void a_peak_of_a_moment_is_in_its_column(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    for (int i = 0; i < 50000; i++) {
        uint64_t size = i == 31234 ? 777 * MIB : 1000;
        add(snapshot, ACTION_ALLOC, 0, 0x1000, size, 2 * i);
        add(snapshot, ACTION_FREE_COMPLETED, 0, 0x1000, size, 2 * i + 1);
    }
    for (int axis = TIMELINE_TIME; axis <= TIMELINE_ENTRIES; axis++) {
        struct timeline timeline = build(snapshot, axis, 100, 0);
        const struct timeline_chart *chart = &timeline.charts[0];
        assert_int_equal(chart->peak_allocated, 777 * MIB);
        assert_int_equal(chart->peak_moment, 2 * 31234 + 1);
        for (uint32_t c = 0; c < 100; c++)
            assert_int_equal(chart->allocated[c], c == 62 ? 777 * MIB : 1000);
        timeline_free(&timeline);
    }
    snapshot_free(snapshot);
}

static void without_entries_recording_was_off(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    struct timeline_options options = {TIMELINE_AUTO, 10, 10, 0};
    struct timeline timeline;
    struct error err = {0};
    add_end(snapshot, 0, 0x1000, 4096);
    assert_int_equal(timeline_build(snapshot, NULL, &options, &timeline, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.message, "recording was off"));
    snapshot_free(snapshot);
}

static void hostile_sizes_and_contradictions_stay_within_the_picture(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    for (int i = 0; i < 40; i++)
        add(snapshot, i % 5 == 4 ? ACTION_FREE_COMPLETED : ACTION_ALLOC, 0, (uint64_t)(i * 7 % 11), UINT64_MAX - (uint64_t)i, i);
    add(snapshot, ACTION_SEGMENT_UNMAP, 0, 0, UINT64_MAX, 41);
    add(snapshot, ACTION_SEGMENT_FREE, 0, 0, UINT64_MAX, 42);
    struct timeline timeline = build(snapshot, TIMELINE_AUTO, 64, 100);
    char *svg = draw(&timeline), *again = draw(&timeline);
    assert_string_equal(svg, again);
    assert_null(strstr(svg, "v--"));
    free(svg);
    free(again);
    timeline_free(&timeline);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_add_up_to_the_state_in_every_file),
        cmocka_unit_test(running_totals_are_right),
        cmocka_unit_test(running_totals_are_right_without_an_end),
        cmocka_unit_test(where_nothing_caches_segments_are_allocations),
        cmocka_unit_test(memory_outside_of_the_allocator_is_no_part_of_its_sum),
        cmocka_unit_test(the_devices_memory_is_a_line_if_it_is_near),
        cmocka_unit_test(a_pool_is_as_high_as_what_it_reserved),
        cmocka_unit_test(what_was_there_before_is_a_band_of_its_own),
        cmocka_unit_test(devices_have_charts_of_their_own_and_times_go_up),
        cmocka_unit_test(a_peak_of_a_moment_is_in_its_column),
        cmocka_unit_test(without_entries_recording_was_off),
        cmocka_unit_test(hostile_sizes_and_contradictions_stay_within_the_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
