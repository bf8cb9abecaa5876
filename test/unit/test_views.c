/* PyTorch's text views: every file of test/data against what PyTorch printed, and corners that no file there has. */
#include "analyze/coverage.h"
#include "analyze/segsum.h"
#include "base/input.h"
#include "format/torch_read.h"
#include "render/torch_text.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

enum { SEGSUM, TRACE, SEGMENTS, MEMORY };

static struct snapshot *read_pickle(const char *name)
{
    char path[512];
    struct input *input;
    struct snapshot *snapshot;
    struct error err = {0};
    snprintf(path, sizeof(path), TEST_DATA "/%s.pickle.gz", name);
    assert_int_equal(input_open(path, 0, &input, &err), 0);
    assert_int_equal(torch_read(input, NULL, &snapshot, &err), 0);
    input_close(input);
    return snapshot;
}

static char *read_whole(const char *path, size_t *length)
{
    size_t capacity = 8 << 20;
    char *text = malloc(capacity);
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    int got = gzread(file, text, (unsigned)capacity);
    assert_true(got > 0 && (size_t)got < capacity);
    *length = (size_t)got;
    gzclose(file);
    return text;
}

static int write_view(int view, const struct snapshot *snapshot, struct output *output)
{
    const struct state *state = &snapshot->end;
    struct error err = {0};
    switch (view) {
    case SEGSUM:
        return torch_text_segsum(snapshot, state, output, &err);
    case TRACE:
        return torch_text_trace(snapshot, state, snapshot->entries.count, NULL, output, &err);
    default:
        return torch_text_folded(snapshot, state, view == MEMORY ? FLAME_MEMORY : FLAME_SEGMENTS, output, &err);
    }
}

static char *view_text(int view, const struct snapshot *snapshot, size_t *length)
{
    struct output *output;
    struct error err = {0};
    unsigned char *bytes;
    assert_int_equal(output_to_memory(&bytes, length, &output, &err), 0);
    assert_int_equal(write_view(view, snapshot, output), 0);
    assert_int_equal(output_commit(output, &err), 0);
    return (char *)bytes;
}

/* Equal, or the first line that differs. */
static void assert_same(const char *what, const char *got, size_t got_length, const char *want, size_t want_length)
{
    size_t at = 0, line = 1;
    if (got_length == want_length && memcmp(got, want, got_length) == 0)
        return;
    for (; at < got_length && at < want_length && got[at] == want[at]; at++)
        line += got[at] == '\n';
    fail_msg("%s: line %zu differs (byte %zu; %zu bytes, not %zu)", what, line, at, got_length, want_length);
}

static void assert_view(int view, const char *name, const char *suffix)
{
    char path[512];
    size_t got_length, want_length;
    struct snapshot *snapshot = read_pickle(name);
    snprintf(path, sizeof(path), TEST_DATA "/%s%s", name, suffix);
    char *want = read_whole(path, &want_length), *got = view_text(view, snapshot, &got_length);
    assert_same(path, got, got_length, want, want_length);
    free(want);
    free(got);
    snapshot_free(snapshot);
}

static unsigned for_all_files(int view, const char *suffix)
{
    DIR *folder = opendir(TEST_DATA);
    unsigned files = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *end = strstr(entry->d_name, ".pickle.gz");
        if (!end)
            continue;
        *end = '\0';
        assert_view(view, entry->d_name, suffix);
        files++;
    }
    closedir(folder);
    return files;
}

static void segsum_prints_pytorchs_bytes_for_every_file(void **state)
{
    (void)state;
    assert_int_equal(for_all_files(SEGSUM, ".segsum.txt"), 18);
}

static void trace_prints_pytorchs_bytes_for_every_file(void **state)
{
    (void)state;
    assert_int_equal(for_all_files(TRACE, ".trace.txt.gz"), 18);
}

static void segments_view_prints_pytorchs_bytes_for_every_file(void **state)
{
    (void)state;
    assert_int_equal(for_all_files(SEGMENTS, ".flame_segments.txt.gz"), 18);
}

static void memory_view_prints_pytorchs_bytes_for_every_file(void **state)
{
    (void)state;
    assert_int_equal(for_all_files(MEMORY, ".flame_memory.txt.gz"), 18);
}

static void compare_prints_pytorchs_bytes_for_every_pair(void **state)
{
    static const char *const pairs[][2] = {
        {"kvcache", "graphs"}, {"leak_before", "leak_after"}, {"mempool", "mempool_end"}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct snapshot *before = read_pickle(pairs[i][0]), *after = read_pickle(pairs[i][1]);
        struct output *output;
        struct error err = {0};
        unsigned char *got;
        size_t got_length, want_length;
        char path[512];
        assert_int_equal(output_to_memory(&got, &got_length, &output, &err), 0);
        assert_int_equal(torch_text_compare(before, &before->end, after, &after->end, output, &err), 0);
        assert_int_equal(output_commit(output, &err), 0);
        snprintf(path, sizeof(path), TEST_DATA "/%s-%s.compare.txt", pairs[i][0], pairs[i][1]);
        char *want = read_whole(path, &want_length);
        assert_same(path, (const char *)got, got_length, want, want_length);
        free(want);
        free(got);
        snapshot_free(before);
        snapshot_free(after);
    }
}

/* The range that PyTorch's list of intervals would give: the first one added that holds the address. */
static void the_first_range_that_holds_an_address_owns_it(void **state)
{
    struct {
        uint64_t start, size;
    } ranges[400];
    uint32_t seed = 7;
    (void)state;
    struct coverage *coverage = coverage_new(400);
    for (int i = 0; i < 400; i++) {
        seed = seed * 1664525 + 1013904223;
        ranges[i].start = seed >> 20;
        seed = seed * 1664525 + 1013904223;
        ranges[i].size = i % 50 == 0 ? 0 : seed >> 25;
        coverage_plan(coverage, ranges[i].start, ranges[i].size);
    }
    ranges[399].start = UINT64_MAX - 3;
    ranges[399].size = 3;
    coverage_plan(coverage, ranges[399].start, ranges[399].size);
    assert_int_equal(coverage_ready(coverage), 0);
    for (uint32_t added = 0; added < 400; added++) {
        coverage_add(coverage, ranges[added].start, ranges[added].size, added);
        for (int probe = 0; probe < 40; probe++) {
            seed = seed * 1664525 + 1013904223;
            uint64_t address = probe ? seed >> 20 : UINT64_MAX - 2, start;
            uint32_t expected = UINT32_MAX;
            for (uint32_t i = 0; i <= added && expected == UINT32_MAX; i++)
                if (address - ranges[i].start < ranges[i].size)
                    expected = i;
            assert_int_equal(coverage_find(coverage, address, &start), expected);
            if (expected != UINT32_MAX)
                assert_int_equal(start, ranges[expected].start);
        }
    }
    coverage_free(coverage);
}

static void add_entry(struct snapshot *snapshot, enum action action, uint64_t address, uint64_t size)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = action;
    entry.address = address;
    entry.size = size;
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
}

static void assert_text(int view, const struct snapshot *snapshot, const char *expected)
{
    size_t length;
    char *text = view_text(view, snapshot, &length);
    assert_same("text", text, length, expected, strlen(expected));
    free(text);
}

static void a_segment_at_an_old_address_keeps_the_first_name_in_the_trace(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    (void)state;
    add_entry(snapshot, ACTION_SEGMENT_ALLOC, 4096, 2097152);
    add_entry(snapshot, ACTION_SEGMENT_FREE, 4096, 2097152);
    add_entry(snapshot, ACTION_SEGMENT_ALLOC, 4096, 4194304);
    add_entry(snapshot, ACTION_ALLOC, 4608, 512);
    add_entry(snapshot, ACTION_ALLOC, 4096 + 2097152, 1024);
    add_entry(snapshot, ACTION_FREE_REQUESTED, 4608, 512);
    add_entry(snapshot, ACTION_FREE_COMPLETED, 99, 7);
    add_entry(snapshot, ACTION_SEGMENT_FREE, 77, 2048);
    add_entry(snapshot, ACTION_ALLOC, 4608, 256);
    add_entry(snapshot, ACTION_OOM, 3 << 20, 1536);
    assert_text(TRACE, snapshot,
                "Device 0 ----------------\n10 entries\na = cudaMalloc(4096, 2.0MiB)\ncudaFree(a) # 2.0MiB\n"
                "b = cudaMalloc(4096, 4.0MiB)\nc = a[512:512.0B]\nd = b[2097152:1.0KiB]\ndel c # 512.0B\n"
                "# free completed for 99 7.0B\ncudaFree(77) # 2.0KiB\ne = a[512:256.0B]\n"
                "raise OutOfMemoryError # 1.5KiB requested, 3.0MiB free in CUDA\nTOTAL MEM: 9.0B");
    snapshot_free(snapshot);
}

static void names_go_on_with_numbers_and_devices_apart(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct output *output;
    struct error err = {0};
    unsigned char *text;
    size_t length;
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        struct entry entry;
        entry_init(&entry);
        entry.action = ACTION_ALLOC;
        entry.device = i % 2 ? 1 : 0;
        entry.address = 4096 + i;
        assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
    }
    assert_int_equal(output_to_memory(&text, &length, &output, &err), 0);
    assert_int_equal(torch_text_trace(snapshot, &snapshot->end, 56, NULL, output, &err), 0);
    assert_int_equal(output_commit(output, &err), 0);
    text = realloc(text, length + 1);
    text[length] = '\0';
    assert_non_null(strstr((char *)text, "Device 0 ----------------\n28 entries\na = MEM[4096:0.0B]\n"));
    assert_non_null(strstr((char *)text,
                           "z = MEM[4146:0.0B]\na1 = MEM[4148:0.0B]\nb1 = MEM[4150:0.0B]\nTOTAL MEM: 27.0BDevice 1 "
                           "----------------\n28 entries\na = MEM[4097:0.0B]\n"));
    free(text);
    snapshot_free(snapshot);
}

static void add_segment(struct snapshot *snapshot, uint64_t address, uint64_t size)
{
    struct segment segment = {.address = address, .total_size = size, .context = CONTEXT_NONE, .pool = NONE32};
    assert_int_equal(state_add_segment(&snapshot->end, &segment), 0);
}

static void add_block(struct snapshot *snapshot, uint64_t address, uint64_t size, uint64_t requested,
                      enum block_state state, uint32_t context)
{
    struct block block = {
        .address = address, .size = size, .requested = requested, .state = (uint8_t)state, .context = context};
    assert_int_equal(state_add_block(&snapshot->end, &block), 0);
}

static void segments_of_impossible_size_are_cut_and_summed(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct segsum *segsum;
    struct segsum_row row;
    struct error err = {0};
    (void)state;
    add_segment(snapshot, 0, UINT64_C(1) << 62);
    add_block(snapshot, 0, UINT64_C(1) << 62, UINT64_MAX, BLOCK_ACTIVE_ALLOCATED, CONTEXT_NONE);
    add_segment(snapshot, 0, 0);
    assert_int_equal(segsum_new(snapshot, &snapshot->end, &segsum, &err), 0);
    assert_int_equal(segsum_next(segsum, &row), 1);
    assert_true(row.is_cut);
    assert_int_equal(row.page_count, SEGSUM_MAX_PAGES);
    assert_int_equal(segsum_next(segsum, &row), 0);
    segsum_free(segsum);
    snapshot_free(snapshot);
}

static uint32_t one_frame_context(struct snapshot *snapshot, const char *file, const char *name)
{
    struct frame frame = {.name = snapshot_shared_string(snapshot, name, strlen(name)),
                          .line = 3,
                          .module = NONE32,
                          .filename = snapshot_shared_string(snapshot, file, strlen(file))};
    return snapshot_add_context(snapshot,
                                snapshot_push_frame(snapshot, STACK_EMPTY, snapshot_add_frame(snapshot, &frame)));
}

static void gaps_may_be_negative_in_lines_and_never_in_the_tree(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct flame_tree tree;
    struct error err = {0};
    (void)state;
    add_segment(snapshot, 512, 4096);
    add_block(snapshot, 512, 1024, 1000, BLOCK_ACTIVE_ALLOCATED, one_frame_context(snapshot, "/a/b.py", "f"));
    add_block(snapshot, 1536, 1024, 3000, BLOCK_INACTIVE, CONTEXT_NONE);
    add_block(snapshot, 2560, 1024, 2000, BLOCK_ACTIVE_PENDING_FREE, one_frame_context(snapshot, "x/ceval.c", "g"));
    add_block(snapshot, 3584, 1024, 0, BLOCK_INACTIVE, CONTEXT_NONE);
    assert_text(MEMORY, snapshot,
                "stream_0;active_allocated;b.py:3:f 1000\nstream_0;active_allocated;<gaps> 24\n"
                "stream_0;inactive;<non-python> 3000\nstream_0;inactive;<gaps> -1976\n"
                "stream_0;active_pending_free; 2000\nstream_0;active_pending_free;<gaps> -976\n"
                "stream_0;inactive;<non-python> 0\nstream_0;inactive;<gaps> 1024\n");
    assert_int_equal(flame_tree_build(snapshot, &snapshot->end, FLAME_SEGMENTS, NULL, &tree, &err), 0);
    assert_int_equal(tree.nodes[0].total, 4096);
    for (size_t i = 0; i < tree.count; i++) {
        uint64_t sum = tree.nodes[i].self;
        for (uint32_t child = tree.nodes[i].first_child; child != NONE32; child = tree.nodes[child].next_sibling)
            sum += tree.nodes[child].total;
        assert_int_equal(tree.nodes[i].total, sum);
    }
    flame_tree_free(&tree);
    snapshot_free(snapshot);
}

static void every_tree_weighs_what_its_segments_weigh(void **state)
{
    static const char *const names[] = {"frag_seed11", "frag_conf", "train_cpp", "expandable", "mempool_oom", "graphs"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct snapshot *snapshot = read_pickle(names[i]);
        uint64_t reserved = 0, allocated = 0;
        for (size_t s = 0; s < snapshot->end.segment_count; s++) {
            reserved += snapshot->end.segments[s].total_size;
            allocated += snapshot->end.segments[s].allocated_size;
        }
        for (int view = FLAME_SEGMENTS; view <= FLAME_MEMORY; view++) {
            struct flame_tree tree;
            struct error err = {0};
            uint64_t drawn = 0;
            assert_int_equal(flame_tree_build(snapshot, &snapshot->end, (enum flame_view)view, NULL, &tree, &err), 0);
            assert_int_equal(tree.nodes[0].total, reserved);
            for (size_t n = 0; n < tree.count; n++)
                if (tree.nodes[n].kind == FLAME_KIND_ALLOCATED)
                    drawn += tree.nodes[n].total;
            assert_int_equal(drawn, allocated);
            flame_tree_free(&tree);
        }
        snapshot_free(snapshot);
    }
}

/* A file of 1.13, protocol 0: {'segments': [{..., 'blocks': [{'size', 'state', 'history': [...]}, ...]}]}. */
static const char old_pickle[] =
    "(dS'segments'\n(l(dS'device'\nI0\nsS'address'\nI4096\nsS'total_size'\nI4096\nsS'allocated_size'\n"
    "I1024\nsS'active_size'\nI1024\n"
    "sS'stream'\nI0\nsS'segment_type'\nS'small'\nsS'blocks'\n(l"
    "(dS'size'\nI1024\nsS'state'\nS'active_allocated'\nsS'history'\n(l"
    "(dS'addr'\nI4096\nsS'real_size'\nI700\nsS'frames'\n(l(dS'name'\nS'inner'\n"
    "sS'filename'\nS'/x/m.py'\nsS'line'\nI5\nsa"
    "(dS'name'\nS'outer'\nsS'filename'\nS'/x/m.py'\nsS'line'\nI9\nsasa"
    "(dS'addr'\nI4796\nsS'real_size'\nI100\nsasa"
    "(dS'size'\nI3072\nsS'state'\nS'inactive'\nsasasS'device_traces'\n(ls.";

static void old_blocks_with_a_history_give_a_line_each(void **state)
{
    struct input *input;
    struct snapshot *snapshot;
    struct error err = {0};
    (void)state;
    assert_int_equal(input_from_memory(old_pickle, sizeof(old_pickle) - 1, 0, &input, &err), 0);
    if (torch_read(input, NULL, &snapshot, &err))
        fail_msg("%s", err.message);
    input_close(input);
    assert_text(MEMORY, snapshot,
                "stream_0;active_allocated;m.py:9:outer;m.py:5:inner 700\nstream_0;active_allocated;<no-context> 100\n"
                "stream_0;active_allocated;<gaps> 224\nstream_0;inactive;<non-python> 3072\n");
    size_t length;
    char *text = view_text(SEGSUM, snapshot, &length);
    assert_non_null(strstr(text, "total_allocated: 700.0B\n"));
    free(text);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segsum_prints_pytorchs_bytes_for_every_file),
        cmocka_unit_test(trace_prints_pytorchs_bytes_for_every_file),
        cmocka_unit_test(segments_view_prints_pytorchs_bytes_for_every_file),
        cmocka_unit_test(memory_view_prints_pytorchs_bytes_for_every_file),
        cmocka_unit_test(compare_prints_pytorchs_bytes_for_every_pair),
        cmocka_unit_test(the_first_range_that_holds_an_address_owns_it),
        cmocka_unit_test(a_segment_at_an_old_address_keeps_the_first_name_in_the_trace),
        cmocka_unit_test(names_go_on_with_numbers_and_devices_apart),
        cmocka_unit_test(segments_of_impossible_size_are_cut_and_summed),
        cmocka_unit_test(gaps_may_be_negative_in_lines_and_never_in_the_tree),
        cmocka_unit_test(every_tree_weighs_what_its_segments_weigh),
        cmocka_unit_test(old_blocks_with_a_history_give_a_line_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
