/* Flame trees turned round, coloured, and two as one: the sums stay, what is gone is kept, what leaked is named. */
#include "analyze/flame.h"
#include "render/svg_flame.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "svg_support.h"

static uint32_t frame_of(struct snapshot *snapshot, const char *name, int64_t line)
{
    struct frame frame = {.name = snapshot_shared_string(snapshot, name, strlen(name)),
                          .filename = snapshot_shared_string(snapshot, "/src/a.py", 9), .line = line, .module = NONE32};
    return snapshot_add_frame(snapshot, &frame);
}

/* A segment of one block, allocated by names[0], called by names[1], ... */
static void add_block(struct snapshot *snapshot, uint64_t address, uint64_t size, uint64_t requested, int64_t line,
                      const char *inner, const char *outer)
{
    uint32_t stack = snapshot_push_frame(snapshot, STACK_EMPTY, frame_of(snapshot, outer, 1));
    stack = snapshot_push_frame(snapshot, stack, frame_of(snapshot, inner, line));
    struct segment segment = {.address = address, .total_size = size, .context = CONTEXT_NONE, .pool = NONE32};
    struct block block = {.address = address, .size = size, .requested = requested, .state = BLOCK_ACTIVE_ALLOCATED,
                          .context = snapshot_add_context(snapshot, stack)};
    assert_int_equal(state_add_segment(&snapshot->end, &segment), 0);
    assert_int_equal(state_add_block(&snapshot->end, &block), 0);
}

static void make(const struct snapshot *snapshot, const struct flame_options *options, struct flame_tree *tree)
{
    struct error err = {0};
    assert_int_equal(flame_tree_make(snapshot, &snapshot->end, options, tree, &err), 0);
}

/* The node of a label whose parent's label is `under`; fails if there is none. */
static uint32_t find(const struct flame_tree *tree, const char *under, const char *label)
{
    for (uint32_t i = 1; i < tree->count; i++)
        if (strcmp(frame_label_text(tree->texts, tree->nodes[i].label, NULL), label) == 0 &&
            strcmp(frame_label_text(tree->texts, tree->nodes[tree->nodes[i].parent].label, NULL), under) == 0)
            return i;
    fail_msg("no %s under %s", label, under);
    return 0;
}

static char *draw(const struct flame_tree *tree, const struct svg_flame_options *options)
{
    struct output *output;
    struct error err = {0};
    unsigned char *bytes;
    size_t length;
    assert_int_equal(output_to_memory(&bytes, &length, &output, &err), 0);
    assert_int_equal(svg_flame(tree, options, output, &err), 0);
    char *text = take(output, &bytes, &length);
    assert_well_formed(text);
    return text;
}

static struct snapshot *two_callers(void)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    add_block(snapshot, 4096, 1000, 1000, 5, "alloc", "train");
    add_block(snapshot, 8192, 500, 500, 5, "alloc", "eval");
    add_block(snapshot, 16384, 200, 200, 6, "other", "eval");
    return snapshot;
}

static void reversed_callees_gather_what_their_callers_have(void **state)
{
    struct snapshot *snapshot = two_callers();
    struct flame_options options = {.view = FLAME_MEMORY, .reversed = true};
    struct flame_tree tree;
    (void)state;
    make(snapshot, &options, &tree);
    assert_int_equal(tree.nodes[0].total, 1700);
    assert_int_equal(tree.nodes[find(&tree, "active_allocated", "a.py:5:alloc")].total, 1500);
    assert_int_equal(tree.nodes[find(&tree, "a.py:5:alloc", "a.py:1:train")].total, 1000);
    assert_int_equal(tree.nodes[find(&tree, "a.py:5:alloc", "a.py:1:eval")].total, 500);
    assert_int_equal(tree.nodes[find(&tree, "a.py:6:other", "a.py:1:eval")].total, 200);
    flame_tree_free(&tree);
    snapshot_free(snapshot);
}

static void a_box_has_the_shade_of_most_of_its_bytes(void **state)
{
    static const uint8_t shades[] = {2, 4, 4};
    static const struct svg_legend legend[] = {{"k2", "two"}, {"k4", "four"}};
    struct snapshot *snapshot = two_callers();
    struct flame_options options = {.view = FLAME_MEMORY, .shades = shades, .reversed = true};
    struct svg_flame_options how = {.title = "t", .color = SVG_FLAME_SHADE, .shades = legend, .shade_count = 2,
                                    .shade_letter = 'k'};
    struct flame_tree tree;
    (void)state;
    make(snapshot, &options, &tree);
    assert_int_equal(tree.nodes[find(&tree, "active_allocated", "a.py:5:alloc")].shade, 2);
    assert_int_equal(tree.nodes[find(&tree, "a.py:5:alloc", "a.py:1:eval")].shade, 4);
    char *text = draw(&tree, &how);
    assert_non_null(strstr(text, "<g class=\"k2\" data-b=\"0,1500\">"));
    assert_non_null(strstr(text, ">four</text>"));
    free(text);
    how = (struct svg_flame_options){.title = "t", .color = SVG_FLAME_STATE};
    text = draw(&tree, &how);
    assert_non_null(strstr(text, "<g class=\"a0\" data-b=\"0,1500\"><title>a.py:5:alloc"));
    free(text);
    flame_tree_free(&tree);
    snapshot_free(snapshot);
}

static void diff(const struct snapshot *before, const struct snapshot *after, enum flame_width width, bool ignore_lines,
                 struct flame_tree *result)
{
    struct flame_options options = {.view = FLAME_MEMORY, .whole_blocks = true};
    struct flame_tree first, second;
    struct error err = {0};
    make(before, &options, &first);
    make(after, &options, &second);
    assert_int_equal(flame_tree_diff(&first, &second, width, ignore_lines, result, &err), 0);
    flame_tree_free(&first);
    flame_tree_free(&second);
}

static void two_trees_are_one_by_label_and_widths_are_as_asked(void **state)
{
    struct snapshot *before = two_callers(), *after = snapshot_new(SOURCE_RECORDED);
    static const uint64_t totals[] = {1000 + 500 + 200 + 2000, 700 + 2000, 300 + 500 + 200 + 2000};
    struct flame_tree tree;
    (void)state;
    add_block(after, 4096, 700, 700, 5, "alloc", "train");
    add_block(after, 8192, 2000, 10, 8, "leak", "train"); /* rounding counts to the stack */
    for (int width = FLAME_WIDTH_LARGER; width <= FLAME_WIDTH_CHANGE; width++) {
        diff(before, after, (enum flame_width)width, false, &tree);
        uint32_t shrunk = find(&tree, "a.py:1:train", "a.py:5:alloc"), leak = find(&tree, "a.py:1:train", "a.py:8:leak"),
                 gone = find(&tree, "a.py:1:eval", "a.py:6:other");
        assert_int_equal(tree.nodes[0].total, totals[width]);
        assert_int_equal(tree.before[0], 1700);
        assert_int_equal(tree.after[0], 2700);
        assert_int_equal(tree.before[shrunk], 1000);
        assert_int_equal(tree.after[shrunk], 700);
        assert_int_equal(tree.before[leak], 0);
        assert_int_equal(tree.after[leak], 2000);
        assert_int_equal(tree.before[gone], 200);
        assert_int_equal(tree.nodes[gone].total, width == FLAME_WIDTH_AFTER ? 0 : 200);
        flame_tree_free(&tree);
    }
    snapshot_free(before);
    snapshot_free(after);
}

static void what_grew_is_red_and_what_shrank_is_blue_and_both_say_how_much(void **state)
{
    struct snapshot *before = two_callers(), *after = two_callers();
    struct svg_flame_options how = {.title = "t"};
    struct flame_tree tree;
    (void)state;
    before->end.blocks[1].size = before->end.blocks[1].requested = 100; /* 100 -> 500 */
    after->end.blocks[0].size = after->end.blocks[0].requested = 950;   /* 1000 -> 950 */
    diff(before, after, FLAME_WIDTH_LARGER, false, &tree);
    char *text = draw(&tree, &how);
    assert_non_null(strstr(text, "<g class=\"v1\" data-b=\"0,1000\"><title>a.py:1:train\n-50 B (1000 B before, 950 B after)"));
    assert_non_null(strstr(text, "<title>a.py:5:alloc\n+400 B (100 B before, 500 B after)"));
    assert_non_null(strstr(text, "<g class=\"m3\""));
    assert_non_null(strstr(text, "<g class=\"j0\""));
    assert_non_null(strstr(text, "\nno change ("));
    free(text);
    flame_tree_free(&tree);
    snapshot_free(before);
    snapshot_free(after);
}

static void without_lines_edited_code_is_the_same(void **state)
{
    struct snapshot *before = two_callers(), *after = snapshot_new(SOURCE_RECORDED);
    struct flame_tree tree;
    (void)state;
    add_block(after, 4096, 1000, 1000, 99, "alloc", "train");
    diff(before, after, FLAME_WIDTH_LARGER, true, &tree);
    uint32_t node = find(&tree, "a.py:train", "a.py:alloc");
    assert_int_equal(tree.before[node], 1000);
    assert_int_equal(tree.after[node], 1000);
    flame_tree_free(&tree);
    snapshot_free(before);
    snapshot_free(after);
}

static void nothing_compared_with_nothing_is_a_picture_too(void **state)
{
    struct snapshot *empty = snapshot_new(SOURCE_RECORDED);
    struct svg_flame_options how = {.title = "t"};
    struct flame_tree tree;
    (void)state;
    diff(empty, empty, FLAME_WIDTH_CHANGE, false, &tree);
    char *text = draw(&tree, &how);
    assert_non_null(strstr(text, "Nothing changed."));
    free(text);
    flame_tree_free(&tree);
    snapshot_free(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reversed_callees_gather_what_their_callers_have),
        cmocka_unit_test(a_box_has_the_shade_of_most_of_its_bytes),
        cmocka_unit_test(two_trees_are_one_by_label_and_widths_are_as_asked),
        cmocka_unit_test(what_grew_is_red_and_what_shrank_is_blue_and_both_say_how_much),
        cmocka_unit_test(without_lines_edited_code_is_the_same),
        cmocka_unit_test(nothing_compared_with_nothing_is_a_picture_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
