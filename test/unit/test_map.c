/* The map: groups, items, cells and sums that stay exact whatever is drawn as one; and its picture, well-formed, bounded,
 * equal for equal states, to scale, with labels that fit. */
#include "analyze/map.h"
#include "render/svg.h"
#include "render/svg_map.h"
#include "render/svg_map_parts.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "svg_support.h"

#define MIB ((uint64_t)1 << 20)
#define BASE ((uint64_t)1 << 40)

static uint32_t stack_of(struct snapshot *snapshot, const char *file, const char *name, size_t length)
{
    struct frame frame = {.name = snapshot_shared_string(snapshot, name, length),
                          .filename = snapshot_shared_string(snapshot, file, strlen(file)), .line = 7, .module = NONE32};
    return snapshot_add_context(snapshot,
                                snapshot_push_frame(snapshot, STACK_EMPTY, snapshot_add_frame(snapshot, &frame)));
}

static struct segment segment_at(uint64_t address, uint64_t size, int64_t stream, uint32_t pool)
{
    return (struct segment){.address = address, .total_size = size, .stream = stream, .context = CONTEXT_NONE,
                            .pool = pool, .is_large = true};
}

static void add_block(struct snapshot *snapshot, uint64_t size, uint64_t requested, enum block_state state, uint32_t context)
{
    struct state *end = &snapshot->end;
    const struct segment *segment = &end->segments[end->segment_count - 1];
    uint64_t at = segment->address;
    if (segment->block_count) {
        const struct block *last = &end->blocks[end->block_count - 1];
        at = last->address + last->size;
    }
    struct block block = {.address = at, .size = size, .requested = requested, .context = context, .state = (uint8_t)state};
    assert_int_equal(state_add_block(end, &block), 0);
}

static void add_segment(struct snapshot *snapshot, const struct segment *segment)
{
    assert_int_equal(state_add_segment(&snapshot->end, segment), 0);
}

/* Segments of `size`, four blocks in each, their places by a simple generator. */
static struct snapshot *many_segments(unsigned count, uint64_t size, unsigned streams)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    uint32_t context = stack_of(snapshot, "model.py", "forward", 7), pool = snapshot_pool(snapshot, 0, 0);
    uint64_t random = 1;
    for (unsigned i = 0; i < count; i++) {
        struct segment segment = segment_at(BASE + i * size, size, i % streams, pool);
        uint64_t left = size;
        add_segment(snapshot, &segment);
        for (unsigned b = 0; b < 4; b++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t part = b == 3 ? left : (random >> 33) % (left / 512 + 1) * 512;
            add_block(snapshot, part, part - part / 8, (enum block_state)((random >> 60) % 3), context);
            left -= part;
        }
    }
    return snapshot;
}

static void make(const struct snapshot *snapshot, enum map_color color, struct map *map)
{
    struct error err = {0};
    assert_int_equal(map_build(snapshot, &snapshot->end, NULL, color, map, &err), 0);
}

static char *picture(const struct snapshot *snapshot, enum map_color color)
{
    struct svg_map_options options = {"a <title> & more", ""};
    struct error err = {0};
    struct output *output;
    struct map map;
    unsigned char *bytes;
    size_t length;
    make(snapshot, color, &map);
    assert_int_equal(output_to_memory(&bytes, &length, &output, &err), 0);
    assert_int_equal(svg_map(&map, &options, output, &err), 0);
    map_free(&map);
    return take(output, &bytes, &length);
}

/* --- the model --------------------------------------------------------------------------------------------------- */

/* All cells' bytes by what they are; runs count with the parts that they tell. */
static struct map_sums sum_cells(const struct map *map, uint64_t least, uint64_t *cells)
{
    struct map_sums sums = {0};
    struct map_walk walk;
    struct map_cell cell;
    for (size_t g = 0; g < map->group_count; g++) {
        size_t at = map->groups[g].first_item, end = at + map->groups[g].item_count;
        while (at < end) {
            size_t run = map_item_run(map, at, end, least, &cell);
            bool more = run == 1;
            if (more)
                map_walk_start(&walk, map, &map->items[at], least);
            for (uint64_t offset = 0; !more || map_walk_next(&walk, &cell); offset += cell.size) {
                if (more)
                    assert_int_equal(cell.offset, offset);
                sums.reserved += cell.kind == MAP_UNMAPPED && cell.pieces == 1 ? 0 : cell.bytes;
                sums.bytes[MAP_ALLOCATED] += cell.living;
                sums.wasted += cell.wasted;
                ++*cells;
                if (!more)
                    break;
            }
            at += run;
        }
    }
    return sums;
}

static void sums_are_exact_whatever_is_drawn_as_one(void **state)
{
    struct snapshot *snapshot = many_segments(500, 2 * MIB, 3);
    uint64_t reserved = 0, living = 0, wasted = 0, before = UINT64_MAX;
    struct map map;
    (void)state;
    for (size_t i = 0; i < snapshot->end.block_count; i++) {
        const struct block *block = &snapshot->end.blocks[i];
        bool is_living = block->state != BLOCK_INACTIVE;
        living += is_living ? block->size : 0;
        wasted += is_living ? block->size - block->requested : 0;
    }
    for (size_t i = 0; i < snapshot->end.segment_count; i++)
        reserved += snapshot->end.segments[i].total_size;
    make(snapshot, MAP_BY_STATE, &map);
    assert_int_equal(map.total.reserved, reserved);
    assert_int_equal(map.total.bytes[MAP_ALLOCATED] + map.total.bytes[MAP_PENDING], living);
    assert_int_equal(map.total.wasted, wasted);
    for (uint64_t least = 1; least < 2 * reserved; least *= 64) {
        uint64_t cells = 0;
        struct map_sums sums = sum_cells(&map, least, &cells);
        assert_int_equal(sums.reserved, reserved);
        assert_int_equal(sums.bytes[MAP_ALLOCATED], living);
        assert_int_equal(sums.wasted, wasted);
        assert_true(cells <= before);
        before = cells;
    }
    assert_int_equal(before, 3); /* a stream each */
    map_free(&map);
    snapshot_free(snapshot);
}

static void groups_are_devices_pools_and_streams_by_address(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    uint32_t common = snapshot_pool(snapshot, 0, 0), private = snapshot_pool(snapshot, 0, 2);
    const struct {
        uint64_t address;
        int64_t stream;
        uint32_t pool;
        uint16_t device;
    } given[] = {{3 * BASE, 0, common, 1}, {2 * BASE, 0, private, 0}, {BASE, 0, common, 0}, {BASE / 2, 9, common, 0},
                 {BASE / 4, 0, common, 0}, {BASE / 8, 0, NONE32, 0}};
    static const size_t expected[] = {4, 2, 3, 1, 5, 0}, sizes[] = {2, 1, 1, 1, 1};
    struct map map;
    (void)state;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        struct segment segment = segment_at(given[i].address, MIB, given[i].stream, given[i].pool);
        segment.device = given[i].device;
        add_segment(snapshot, &segment);
    }
    make(snapshot, MAP_BY_STATE, &map);
    assert_int_equal(map.group_count, 5);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(map.order[i], expected[i]);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(map.groups[i].item_count, sizes[i]);
    assert_int_equal(map.total.bytes[MAP_BARE], 6 * MIB); /* there are no blocks */
    struct text text = {0};
    map_heading(&map, &map.groups[2], &text);
    assert_string_equal(text_string(&text), "device 0, private pool (0, 2), stream 0: 1 segment, 1.00 MiB reserved, "
                                            "0 B in 0 blocks, 1.00 MiB without a block");
    text_free(&text);
    map_free(&map);
    snapshot_free(snapshot);
}

static void of_a_thousand_streams_the_largest_have_a_group_and_all_are_counted(void **state)
{
    struct snapshot *snapshot = many_segments(3000, 2 * MIB, 1000);
    struct map map;
    uint64_t segments = 0, items = 0, stands_for = 0;
    (void)state;
    make(snapshot, MAP_BY_STATE, &map);
    assert_int_equal(map.group_count, MAP_GROUP_MOST);
    for (size_t i = 0; i < map.group_count; i++) {
        segments += map.groups[i].sums.segments;
        items += map.groups[i].item_count;
        stands_for += map.groups[i].stands_for;
    }
    assert_int_equal(segments, 3000);
    assert_int_equal(items, 3000);
    assert_int_equal(stands_for, 1000);
    assert_int_equal(map.total.reserved, 6000 * MIB);
    map_free(&map);
    snapshot_free(snapshot);
}

static void parts_of_one_expandable_segment_are_one_item_with_what_is_not_mapped(void **state)
{
    static const struct {
        uint64_t address, size;
        bool is_large, is_expandable;
    } given[] = {{BASE, 20 * MIB, true, true},           {BASE + 24 * MIB, 40 * MIB, true, true},
                 {BASE + 164 * MIB, 20 * MIB, true, true}, {BASE + 184 * MIB, 2 * MIB, false, true},
                 {BASE + 190 * MIB, 2 * MIB, true, false}, {BASE * 4, 2 * MIB, true, true}};
    static const uint64_t cells[] = {20 * MIB, 4 * MIB, 40 * MIB, 10 * MIB, 20 * MIB}; /* 100 MiB are cut to 80 / 8 */
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    uint32_t pool = snapshot_pool(snapshot, 0, 0);
    struct map_walk walk;
    struct map_cell cell;
    struct map map;
    (void)state;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        struct segment segment = segment_at(given[i].address, given[i].size, 0, pool);
        segment.is_large = given[i].is_large;
        segment.is_expandable = given[i].is_expandable;
        add_segment(snapshot, &segment);
        add_block(snapshot, given[i].size, given[i].size, BLOCK_ACTIVE_ALLOCATED, CONTEXT_NONE);
    }
    make(snapshot, MAP_BY_STATE, &map);
    assert_int_equal(map.item_count, 4); /* the last lies too far away to be of the same reservation */
    assert_int_equal(map.items[0].count, 3);
    assert_int_equal(map.total.reserved, 86 * MIB);
    assert_int_equal(map.total.bytes[MAP_UNMAPPED], 104 * MIB);
    map_walk_start(&walk, &map, &map.items[0], 1);
    for (size_t i = 0; i < 5; i++) {
        assert_true(map_walk_next(&walk, &cell));
        assert_int_equal(cell.kind, i % 2 ? MAP_UNMAPPED : MAP_ALLOCATED);
        assert_int_equal(cell.size, cells[i]);
        assert_int_equal(cell.bytes, i == 3 ? 100 * MIB : cells[i]);
    }
    assert_false(map_walk_next(&walk, &cell));
    map_free(&map);
    char *text = picture(snapshot, MAP_BY_STATE);
    assert_non_null(strstr(text, "Long unmapped parts are drawn short."));
    assert_non_null(strstr(text, "<title>100.00 MiB not mapped (104,857,600 bytes)"));
    free(text);
    snapshot_free(snapshot);
}

static void blocks_are_shaded_by_size_owner_and_age(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    uint32_t pool = snapshot_pool(snapshot, 0, 0), contexts[10];
    static const uint64_t sizes[] = {512, 64 << 10, (64 << 10) + 512, MIB, 10 * MIB, 64 * MIB, 512 * MIB, 600 * MIB};
    static const uint8_t by_size[] = {0, 0, 1, 1, 2, 3, 4, 5}, by_owner[] = {7, 6, 5, 4, 3, 2, 1, 0};
    static const uint8_t by_age[] = {5, 4, 4, 3, 2, 2, 1, 0}; /* the first was there before the trace */
    static const uint64_t times[] = {0, 0, 4000, 6000, 9000, 9899, 9950, 9990};
    struct segment segment = segment_at(BASE, 0, 0, pool);
    struct map map;
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        segment.total_size += sizes[i];
    add_segment(snapshot, &segment);
    for (unsigned i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof(name), "owner_%u", i);
        contexts[i] = stack_of(snapshot, "model.py", name, strlen(name));
        add_block(snapshot, sizes[i], sizes[i], BLOCK_ACTIVE_ALLOCATED, contexts[i]);
        struct entry entry;
        entry_init(&entry);
        entry.action = i ? ACTION_ALLOC : ACTION_SNAPSHOT;
        entry.address = i ? snapshot->end.blocks[i].address : 0;
        entry.size = sizes[i];
        entry.time = (int64_t)times[i];
        assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
    }
    struct entry last;
    entry_init(&last);
    last.action = ACTION_SNAPSHOT;
    last.time = 10000;
    assert_int_equal(snapshot_add_entry(snapshot, &last), 0);
    snapshot->end.moment = snapshot->entries.count;
    static const struct {
        enum map_color color;
        const uint8_t *shades;
    } cases[] = {{MAP_BY_SIZE, by_size}, {MAP_BY_STACK, by_owner}, {MAP_BY_AGE, by_age}};
    for (unsigned c = 0; c < 3; c++) {
        uint64_t sum = 0;
        make(snapshot, cases[c].color, &map);
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(map.shade_of[i], cases[c].shades[i]);
        for (unsigned i = 0; i < map.shade_count; i++)
            sum += map.shades[i].bytes;
        assert_int_equal(sum, segment.total_size);
        map_free(&map);
        char *text = picture(snapshot, cases[c].color);
        assert_well_formed(text);
        free(text);
    }
    snapshot_free(snapshot);
}

static void sums_beyond_64_bits_are_refused(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct segment segment = segment_at(0, UINT64_MAX, 0, NONE32);
    struct error err = {0};
    struct map map;
    (void)state;
    add_segment(snapshot, &segment);
    segment.device = 1;
    add_segment(snapshot, &segment);
    assert_int_equal(map_build(snapshot, &snapshot->end, NULL, MAP_BY_STATE, &map, &err), STATUS_INPUT);
    snapshot_free(snapshot);
}

/* --- the picture ------------------------------------------------------------------------------------------------- */

static void pieces_are_to_scale_and_on_the_page(void **state)
{
    struct snapshot *snapshot = many_segments(12, 64 * MIB, 2);
    (void)state;
    char *text = picture(snapshot, MAP_BY_STATE);
    uint64_t row;
    assert_int_equal(sscanf(strstr(text, "data-r=\""), "data-r=\"%" SCNu64, &row), 1);
    double scale = SVG_PAGE_INNER / (double)row;
    unsigned cells = 0;
    for (const char *at = text; (at = strstr(at, "data-b=\"")) != NULL; at++, cells++) {
        uint64_t bytes;
        double drawn = 0, x, width;
        unsigned y;
        assert_int_equal(sscanf(at, "data-b=\"%" SCNu64, &bytes), 1);
        const char *piece = strstr(at, "<path d=\"") + 9, *end = strstr(piece, "\"/>");
        for (; piece && piece < end; piece = strchr(piece + 1, 'M')) {
            assert_int_equal(sscanf(piece, "M%lf %uh%lf", &x, &y, &width), 3);
            assert_true(x >= SVG_PAGE_MARGIN && x + width <= SVG_PAGE_WIDTH - SVG_PAGE_MARGIN + 0.001);
            drawn += width;
        }
        if (fabs(drawn - (double)bytes * scale) > 0.7)
            fail_msg("%" PRIu64 " bytes are %.2f pixels wide, not %.2f: %.200s", bytes, drawn, (double)bytes * scale, at);
    }
    assert_true(cells >= 40);
    free(text);
    snapshot_free(snapshot);
}

static void labels_fit_their_blocks_without_a_script(void **state)
{
    struct snapshot *snapshot = many_segments(40, 64 * MIB, 2);
    unsigned labels = 0;
    (void)state;
    char *text = picture(snapshot, MAP_BY_STACK);
    for (const char *at = text; (at = strstr(at, "data-b=\"")) != NULL; at++) {
        const char *path = strstr(at, "<path d=\""), *end = strstr(at, "</g>"), *label = strstr(at, "<text x=\"");
        double x, width, label_x;
        if (!label || label > end || strchr(path, 'z')[1] == 'M')
            continue; /* none, or on several rows */
        assert_int_equal(sscanf(path, "<path d=\"M%lf %*uh%lf", &x, &width), 2);
        assert_int_equal(sscanf(label, "<text x=\"%lf", &label_x), 1);
        const char *from = strchr(label, '>') + 1, *name = strstr(label, "dx=\"10\">");
        double pixels = (double)strcspn(from, "<") * SVG_COLUMN_TENTHS / 10;
        if (name && name < end)
            pixels += 10 + (double)svg_columns(name + 8, strcspn(name + 8, "<")) * SVG_COLUMN_TENTHS / 10;
        assert_true(label_x >= x && label_x + pixels <= x + width);
        assert_null(memmem(from, strcspn(from, "<"), "\xe2\x80\xa6", 3)); /* a size is whole */
        labels++;
    }
    assert_true(labels > 20);
    free(text);
    snapshot_free(snapshot);
}

static void equal_states_give_equal_bytes(void **state)
{
    struct snapshot *one = many_segments(100, 2 * MIB, 3), *other = many_segments(100, 2 * MIB, 3);
    (void)state;
    for (int color = MAP_BY_STATE; color <= MAP_BY_STACK; color++) {
        char *first = picture(one, (enum map_color)color), *second = picture(other, (enum map_color)color);
        assert_string_equal(first, second);
        assert_well_formed(first);
        free(first);
        free(second);
    }
    snapshot_free(one);
    snapshot_free(other);
}

static void a_hundred_thousand_segments_make_a_bounded_picture_that_says_so(void **state)
{
    struct snapshot *snapshot = many_segments(100000, 2 * MIB, 1000);
    (void)state;
    char *text = picture(snapshot, MAP_BY_STATE);
    unsigned cells = 0;
    for (const char *at = text; (at = strstr(at, "data-b=\"")) != NULL; at++)
        cells++;
    assert_in_range(cells, 1000, SVG_MAP_MOST);
    assert_true(strlen(text) < 5000000);
    assert_well_formed(text);
    assert_non_null(strstr(text, "100000 segments, 195.31 GiB reserved"));
    assert_non_null(strstr(text, "937 more, smaller, streams or pools"));
    assert_non_null(strstr(text, "are drawn as one"));
    free(text);
    snapshot_free(snapshot);
}

static void hostile_names_stay_text(void **state)
{
    static const char names[] = "</title></g></svg><script>alert(1)</script>\" onload=\"alert(1)\x01\x1b[31m\xff\xe2\x80\xae"
                                "gnp.exe]]>";
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct segment segment = segment_at(BASE, 20 * MIB, 0, NONE32);
    (void)state;
    add_segment(snapshot, &segment);
    add_block(snapshot, 20 * MIB, 19 * MIB, BLOCK_ACTIVE_ALLOCATED, stack_of(snapshot, "<&\"'>", names, sizeof(names) - 1));
    char *text = picture(snapshot, MAP_BY_STACK);
    assert_well_formed(text);
    assert_null(strstr(text, "<script>alert"));
    assert_null(strstr(text, "onload=\"alert"));
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_non_null(strstr(text, "a &lt;title&gt; &amp; more"));
    free(text);
    snapshot_free(snapshot);
}

static void nothing_and_segments_of_no_bytes_are_pictures_too(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct segment segment = segment_at(BASE, 0, 0, NONE32);
    (void)state;
    char *text = picture(snapshot, MAP_BY_AGE);
    assert_well_formed(text);
    assert_non_null(strstr(text, "There was no memory at this moment."));
    free(text);
    add_segment(snapshot, &segment);
    add_block(snapshot, 0, 0, BLOCK_ACTIVE_ALLOCATED, CONTEXT_NONE);
    text = picture(snapshot, MAP_BY_STATE);
    assert_well_formed(text);
    assert_non_null(strstr(text, "1 segment, 0 B reserved, 0 B in 1 block;"));
    free(text);
    snapshot_free(snapshot);
}

static void the_largest_segment_there_can_be_has_few_rows(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct segment segment = segment_at(0, UINT64_MAX, 0, NONE32);
    (void)state;
    add_segment(snapshot, &segment);
    add_block(snapshot, 1, 1, BLOCK_ACTIVE_ALLOCATED, CONTEXT_NONE);
    add_block(snapshot, UINT64_MAX - 1, 0, BLOCK_INACTIVE, CONTEXT_NONE);
    char *text = picture(snapshot, MAP_BY_STATE);
    assert_well_formed(text);
    assert_non_null(strstr(text, "; a row is 512.00 PiB"));
    free(text);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_whatever_is_drawn_as_one),
        cmocka_unit_test(groups_are_devices_pools_and_streams_by_address),
        cmocka_unit_test(of_a_thousand_streams_the_largest_have_a_group_and_all_are_counted),
        cmocka_unit_test(parts_of_one_expandable_segment_are_one_item_with_what_is_not_mapped),
        cmocka_unit_test(blocks_are_shaded_by_size_owner_and_age),
        cmocka_unit_test(sums_beyond_64_bits_are_refused),
        cmocka_unit_test(pieces_are_to_scale_and_on_the_page),
        cmocka_unit_test(labels_fit_their_blocks_without_a_script),
        cmocka_unit_test(equal_states_give_equal_bytes),
        cmocka_unit_test(a_hundred_thousand_segments_make_a_bounded_picture_that_says_so),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(the_largest_segment_there_can_be_has_few_rows),
        cmocka_unit_test(nothing_and_segments_of_no_bytes_are_pictures_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
