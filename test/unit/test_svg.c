/* Flame graphs: well-formed whatever the names, equal for equal trees, never a negative width, sums exact. */
#include "base/array.h"
#include "render/svg.h"
#include "render/svg_flame.h"
#include "render/svg_flame_parts.h"
#include "render/svg_page.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "svg_support.h"

static char *draw(const struct snapshot *snapshot, enum flame_view view, const char *title)
{
    struct svg_flame_options options = {title, "the numbers"};
    struct flame_tree tree;
    struct output *output;
    struct error err = {0};
    unsigned char *bytes;
    size_t length;
    assert_int_equal(flame_tree_build(snapshot, &snapshot->end, view, NULL, &tree, &err), 0);
    assert_int_equal(output_to_memory(&bytes, &length, &output, &err), 0);
    assert_int_equal(svg_flame(&tree, &options, output, &err), 0);
    flame_tree_free(&tree);
    return take(output, &bytes, &length);
}

static void assert_escaped(const char *bytes, size_t length, size_t columns, const char *expected)
{
    struct output *output;
    struct error err = {0};
    unsigned char *written;
    size_t size;
    assert_int_equal(output_to_memory(&written, &size, &output, &err), 0);
    svg_text(output, bytes, length, columns);
    char *text = take(output, &written, &size);
    assert_string_equal(text, expected);
    free(text);
}

#define ESCAPED(text, expected) assert_escaped(text, sizeof(text) - 1, SIZE_MAX, expected)

static void markup_and_what_xml_forbids_is_escaped(void **state)
{
    (void)state;
    ESCAPED("<a href=\"x\" b='y'>&amp;]]>", "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;]]&gt;");
    ESCAPED("\0\x1b[31m\n\x7f", "\\x00\\x1b[31m\\x0a\\x7f");
    ESCAPED("caf\xc3\xa9 \xe6\x97\xa5\xf0\x9f\x98\x80", "caf\xc3\xa9 \xe6\x97\xa5\xf0\x9f\x98\x80");
    ESCAPED("\xff\xc3(", "\\xff\\xc3(");                                   /* no UTF-8 */
    ESCAPED("\xed\xa0\x80", "\\xed\\xa0\\x80");                            /* a surrogate */
    ESCAPED("\xef\xbf\xbe\xef\xbf\xbf", "\\xef\\xbf\\xbe\\xef\\xbf\\xbf"); /* no characters */
    ESCAPED("a\xe2\x80\xae"
            "b",
            "a\\xe2\\x80\\xae"
            "b");                      /* right-to-left override */
    ESCAPED("\xc2\x85", "\\xc2\\x85"); /* C1 control */
}

static void long_text_is_cut_with_an_ellipsis_that_counts(void **state)
{
    (void)state;
    assert_escaped("abcdef", 6, 6, "abcdef");
    assert_escaped("abcdef", 6, 5, "abcd\xe2\x80\xa6");
    assert_escaped("abcdef", 6, 1, "\xe2\x80\xa6");
    assert_escaped("abcdef", 6, 0, "");
    assert_escaped("\xe6\x97\xa5\xe6\x9c\xac", 6, 4, "\xe6\x97\xa5\xe6\x9c\xac"); /* wide: two columns each */
    assert_escaped("\xe6\x97\xa5\xe6\x9c\xac", 6, 3, "\xe6\x97\xa5\xe2\x80\xa6");
    assert_escaped("a\x01"
                   "b",
                   3, 5, "a\xe2\x80\xa6"); /* \x01 is four columns and is not torn apart */
}

static uint32_t add_stack(struct snapshot *snapshot, const char *const *names, const size_t *lengths, size_t count)
{
    uint32_t stack = STACK_EMPTY, file = snapshot_shared_string(snapshot, "f.py", 4);
    for (size_t i = 0; i < count; i++) {
        struct frame frame = {.name = snapshot_shared_string(snapshot, names[i], lengths[i]),
                              .filename = file,
                              .line = 1,
                              .module = NONE32};
        stack = snapshot_push_frame(snapshot, stack, snapshot_add_frame(snapshot, &frame));
    }
    return snapshot_add_context(snapshot, stack);
}

static void add_segment(struct snapshot *snapshot, uint64_t address, uint64_t size, uint32_t context)
{
    struct segment segment = {.address = address, .total_size = size, .context = CONTEXT_NONE, .pool = NONE32};
    struct block block = {
        .address = address, .size = size, .requested = size, .context = context, .state = BLOCK_ACTIVE_ALLOCATED};
    assert_int_equal(state_add_segment(&snapshot->end, &segment), 0);
    assert_int_equal(state_add_block(&snapshot->end, &block), 0);
}

static void hostile_names_stay_text(void **state)
{
    static char long_name[10001];
    const char *names[] = {"</title></g></svg><script>alert(1)</script>",
                           "\" onload=\"alert(1)",
                           "]]><x>&lt;",
                           "\x01\x02\n\t\x1b[2J\xff",
                           "a\0b",
                           "&#x3c;",
                           long_name};
    size_t lengths[] = {43, 18, 10, 9, 3, 6, 10000};
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    (void)state;
    memset(long_name, '<', 10000);
    add_segment(snapshot, 4096, 1 << 20, add_stack(snapshot, names, lengths, 7));
    char *text = draw(snapshot, FLAME_MEMORY, "<title> & \"more\" \x01");
    assert_well_formed(text);
    assert_null(strstr(text, "<script>alert"));
    assert_null(strstr(text, "onload=\"alert"));
    assert_non_null(strstr(text, "&lt;title&gt; &amp; &quot;more&quot; \\x01"));
    assert_true(strlen(text) < 64 * 1024); /* the long name is cut in the tooltip, too */
    free(text);
    snapshot_free(snapshot);
}

struct box {
    uint64_t offset, bytes;
    double x, width;
    unsigned row;
};

/* The boxes as the picture has them, in its order. */
static size_t read_boxes(const char *text, struct box **boxes)
{
    size_t count = 0, capacity = 0;
    *boxes = NULL;
    text = strstr(text, "<g id=\"frames\"");
    while ((text = strstr(text, "data-b=\"")) != NULL) {
        struct box box;
        assert_int_equal(sscanf(text, "data-b=\"%" SCNu64 ",%" SCNu64, &box.offset, &box.bytes), 2);
        text = strstr(text, "<rect x=");
        assert_int_equal(sscanf(text, "<rect x=\"%lf\" y=\"%u\" width=\"%lf\"", &box.x, &box.row, &box.width), 3);
        assert_int_equal(box.row % FLAME_ROW, 0);
        box.row /= FLAME_ROW;
        assert_int_equal(array_reserve(boxes, &capacity, count + 1, sizeof(**boxes)), 0);
        (*boxes)[count++] = box;
    }
    return count;
}

/* Each box lies in the one above it and begins where its neighbour ends, in bytes and in pixels. */
static void assert_tiled(const struct box *boxes, size_t count)
{
    uint64_t next[300] = {0};
    double right[300] = {0};
    size_t parent[300] = {0};
    for (size_t i = 0; i < count; i++) {
        const struct box *box = &boxes[i];
        unsigned row = box->row;
        assert_true(box->width >= 0 && box->x >= SVG_PAGE_MARGIN &&
                    box->x + box->width <= SVG_PAGE_WIDTH - SVG_PAGE_MARGIN + 0.001);
        if (row) {
            const struct box *above = &boxes[parent[row - 1]];
            assert_int_equal(box->offset, next[row]);
            assert_true(box->offset + box->bytes <= above->offset + above->bytes);
            assert_true(box->x >= right[row] - 0.001 && box->x + box->width <= above->x + above->width + 0.611);
        }
        next[row] = box->offset + box->bytes;
        right[row] = box->x + box->width;
        next[row + 1] = box->offset;
        right[row + 1] = box->x;
        parent[row] = i;
    }
}

static struct snapshot *many_stacks(unsigned stacks, unsigned depth, bool reversed)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    uint32_t file = snapshot_shared_string(snapshot, "model.py", 8), *frames = calloc(stacks, sizeof(*frames));
    for (unsigned i = 0; i < stacks; i++) {
        char name[32];
        snprintf(name, sizeof(name), "layer_%u", i);
        struct frame frame = {.name = snapshot_shared_string(snapshot, name, strlen(name)),
                              .filename = file,
                              .line = i,
                              .module = NONE32};
        frames[i] = snapshot_add_frame(snapshot, &frame);
    }
    for (unsigned n = 0; n < stacks; n++) {
        unsigned i = reversed ? stacks - 1 - n : n, at = i;
        uint32_t stack = STACK_EMPTY;
        for (unsigned d = 0; d < depth; d++, at /= 3)
            stack = snapshot_push_frame(snapshot, stack,
                                        frames[d + 1 == depth ? i : at * 7919u % (stacks < 61 ? stacks : 61)]);
        add_segment(snapshot, 4096 + (uint64_t)i * (1 << 22), 512 * (uint64_t)(1 + i * 31 % 4001),
                    snapshot_add_context(snapshot, stack));
    }
    free(frames);
    return snapshot;
}

static void boxes_tile_and_their_sums_are_exact(void **state)
{
    struct snapshot *snapshot = many_stacks(800, 12, false);
    struct box *boxes;
    uint64_t reserved = 0;
    (void)state;
    for (size_t i = 0; i < snapshot->end.segment_count; i++)
        reserved += snapshot->end.segments[i].total_size;
    for (int view = FLAME_SEGMENTS; view <= FLAME_MEMORY; view++) {
        char *text = draw(snapshot, (enum flame_view)view, "t");
        size_t count = read_boxes(text, &boxes);
        assert_true(count > 800);
        assert_int_equal(boxes[0].bytes, reserved);
        assert_tiled(boxes, count);
        assert_well_formed(text);
        free(boxes);
        free(text);
    }
    snapshot_free(snapshot);
}

static void equal_trees_give_equal_bytes_in_whatever_order_blocks_came(void **state)
{
    struct snapshot *one = many_stacks(300, 9, false), *other = many_stacks(300, 9, true);
    (void)state;
    char *first = draw(one, FLAME_MEMORY, "t"), *again = draw(one, FLAME_MEMORY, "t"),
         *second = draw(other, FLAME_MEMORY, "t");
    assert_string_equal(first, again);
    assert_string_equal(first, second);
    free(first);
    free(again);
    free(second);
    snapshot_free(one);
    snapshot_free(other);
}

static void of_a_hundred_thousand_stacks_the_widest_are_drawn_and_all_are_counted(void **state)
{
    struct snapshot *snapshot = many_stacks(100000, 8, false);
    struct box *boxes;
    uint64_t reserved = 0;
    (void)state;
    for (size_t i = 0; i < snapshot->end.segment_count; i++)
        reserved += snapshot->end.segments[i].total_size;
    char *text = draw(snapshot, FLAME_MEMORY, "t");
    size_t count = read_boxes(text, &boxes);
    assert_true(count > 1000 && count <= SVG_FLAME_MOST);
    assert_int_equal(boxes[0].bytes, reserved);
    assert_tiled(boxes, count);
    assert_non_null(strstr(text, "Not drawn: boxes smaller than "));
    assert_true(strlen(text) < 10000000);
    free(boxes);
    free(text);
    snapshot_free(snapshot);
}

static void labels_fit_their_boxes_without_a_script(void **state)
{
    struct snapshot *snapshot = many_stacks(40, 10, false);
    (void)state;
    char *text = draw(snapshot, FLAME_MEMORY, "t");
    unsigned labels = 0;
    for (const char *at = strstr(text, "<g id=\"frames\""); (at = strstr(at, "<rect x=\"")) != NULL; at++) {
        double x, width, label_x;
        assert_int_equal(sscanf(at, "<rect x=\"%lf\" y=\"%*u\" width=\"%lf\"", &x, &width), 2);
        const char *end = strstr(at, "</g>"), *label = strstr(at, "<text x=\"");
        if (!label || label > end)
            continue;
        assert_int_equal(sscanf(label, "<text x=\"%lf\"", &label_x), 1);
        const char *from = strchr(label, '>') + 1, *to = strpbrk(from, "<");
        const char *size = strstr(label, "dx=\"10\">");
        double pixels = (double)svg_columns(from, (size_t)(to - from)) * SVG_COLUMN_TENTHS / 10;
        if (size && size < end)
            pixels += 10 + (double)(strchr(size, '<') - size - 8) * SVG_COLUMN_TENTHS / 10;
        if (label_x < x || label_x + pixels > x + width)
            fail_msg("a label of %.1f pixels at %.2f in a box of %.2f at %.2f: %.200s", pixels, label_x, width, x, at);
        labels++;
    }
    assert_true(labels > 20);
    free(text);
    snapshot_free(snapshot);
}

static void an_empty_snapshot_is_a_picture_too(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    (void)state;
    char *text = draw(snapshot, FLAME_SEGMENTS, "t");
    assert_well_formed(text);
    assert_non_null(strstr(text, "Nothing was reserved at this moment."));
    free(text);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_and_what_xml_forbids_is_escaped),
        cmocka_unit_test(long_text_is_cut_with_an_ellipsis_that_counts),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(boxes_tile_and_their_sums_are_exact),
        cmocka_unit_test(equal_trees_give_equal_bytes_in_whatever_order_blocks_came),
        cmocka_unit_test(of_a_hundred_thousand_stacks_the_widest_are_drawn_and_all_are_counted),
        cmocka_unit_test(labels_fit_their_boxes_without_a_script),
        cmocka_unit_test(an_empty_snapshot_is_a_picture_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
