/* Moments, peaks and selection. */
#include "analyze/moment.h"
#include "analyze/selection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void add_entry(struct snapshot *s, enum action action, uint16_t device, int64_t stream, uint64_t address,
                      uint64_t size, int64_t time)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = action;
    entry.device = device;
    entry.stream = stream;
    entry.address = address;
    entry.size = size;
    entry.time = time;
    entry.context = CONTEXT_NONE;
    assert_int_equal(snapshot_add_entry(s, &entry), 0);
}

static uint64_t resolve(const struct snapshot *s, const char *text, int device)
{
    struct moment moment;
    struct error err;
    uint64_t number = 0;
    if (moment_parse(text, &moment, &err) || moment_resolve(s, &moment, device, &number, &err))
        fail_msg("%s: %s", text, err.message);
    return number;
}

static int refuse(const struct snapshot *s, const char *text)
{
    struct moment moment;
    struct error err = {0};
    uint64_t number;
    int status = moment_parse(text, &moment, &err);
    if (!status)
        status = moment_resolve(s, &moment, MOMENT_ALL_DEVICES, &number, &err);
    if (status)
        assert_true(strlen(err.message) > 10);
    return status;
}

static void every_way_to_name_a_moment_is_understood(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        enum moment_kind kind;
        uint64_t number;
        int64_t microseconds;
    } cases[] = {{"@end", MOMENT_END, 1, 0},
                 {"start", MOMENT_START, 1, 0},
                 {"@peak", MOMENT_PEAK, 1, 0},
                 {"@peak-reserved", MOMENT_PEAK_RESERVED, 1, 0},
                 {"@oom", MOMENT_OOM, 1, 0},
                 {"@oom12", MOMENT_OOM, 12, 0},
                 {"@#4711", MOMENT_ENTRY, 4711, 0},
                 {"@12.5s", MOMENT_SINCE_START, 1, 12500000},
                 {"@0.000001s", MOMENT_SINCE_START, 1, 1},
                 {"@-10s", MOMENT_BEFORE_END, 1, 10000000},
                 {"@mark:a b", MOMENT_MARK, 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct moment moment;
        assert_int_equal(moment_parse(cases[i].text, &moment, NULL), 0);
        assert_int_equal(moment.kind, cases[i].kind);
        assert_int_equal(moment.number, cases[i].number);
        assert_int_equal(moment.microseconds, cases[i].microseconds);
    }
    static const char *const wrong[] = {"", "@", "@ende", "@#", "@#x", "@oom0", "@oomx", "@12", "@s", "@.5s", "@12.5", "@mark:",
                                        "@-", "@#99999999999999999999", "@9999999999999999s", "@peak "};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(moment_is(wrong[i]));
}

static void moments_are_found_by_number_time_failure_and_mark(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    const int64_t t0 = INT64_C(1700000000000000);
    for (int i = 0; i < 10; i++)
        add_entry(s, i == 3 || i == 7 ? ACTION_OOM : ACTION_ALLOC, i == 7, 0, 512 * (uint64_t)(i + 1), 512, t0 + i * 1000000);
    struct annotation mark = {.name = snapshot_shared_string(s, "forward", 7), .time = t0 + 4500000, .shape = SHAPE_OURS};
    struct annotation end = mark;
    end.stage = 1;
    end.time = t0 + 100;
    snapshot_add_annotation(s, &end);
    snapshot_add_annotation(s, &mark);
    assert_int_equal(resolve(s, "@end", -1), 10);
    assert_int_equal(resolve(s, "@start", -1), 0);
    assert_int_equal(resolve(s, "@#7", -1), 7);
    assert_int_equal(resolve(s, "@#10", -1), 10);
    assert_int_equal(resolve(s, "@oom", -1), 4);
    assert_int_equal(resolve(s, "@oom2", -1), 8);
    assert_int_equal(resolve(s, "@oom", 1), 8);
    assert_int_equal(resolve(s, "@2.5s", -1), 3);
    assert_int_equal(resolve(s, "@2s", -1), 3);
    assert_int_equal(resolve(s, "@-2s", -1), 8);
    assert_int_equal(resolve(s, "@-9s", -1), 1);
    assert_int_equal(resolve(s, "@mark:forward", -1), 5);
    assert_int_equal(refuse(s, "@#11"), STATUS_NOT_FOUND);
    assert_int_equal(refuse(s, "@oom3"), STATUS_NOT_FOUND);
    assert_int_equal(refuse(s, "@10s"), STATUS_NOT_FOUND);
    assert_int_equal(refuse(s, "@mark:backward"), STATUS_NOT_FOUND);
    assert_int_equal(refuse(s, "@nonsense"), STATUS_USAGE);
    snapshot_free(s);
}

static void case_18_without_times_entries_count_and_times_are_refused(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    add_entry(s, ACTION_ALLOC, 0, 0, 512, 512, 0);
    add_entry(s, ACTION_ALLOC, 0, 0, 1024, 512, 0);
    s->entries.flags[0] = s->entries.flags[1] = ENTRY_NO_TIME;
    assert_int_equal(refuse(s, "@1s"), STATUS_NOT_FOUND);
    assert_int_equal(resolve(s, "@#1", -1), 1);
    s->entries.flags[0] = s->entries.flags[1] = 0; /* equal times keep the file's order */
    assert_int_equal(resolve(s, "@0s", -1), 2);
    snapshot_free(s);
}

static struct moment_peak peak_of(const struct snapshot *s, int device)
{
    struct moment_peak allocated;
    assert_int_equal(moment_peaks(s, device, &allocated, NULL, NULL), 0);
    return allocated;
}

static void alloc_and_free(struct snapshot *s, const int *sizes, size_t count)
{
    uint64_t next = 0, address[16] = {0};
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] > 0) {
            address[next] = 4096 * (next + 1);
            add_entry(s, ACTION_ALLOC, 0, 0, address[next++], (uint64_t)sizes[i], 0);
            continue;
        }
        add_entry(s, ACTION_FREE_REQUESTED, 0, 0, 4096, (uint64_t)-sizes[i], 0);
        add_entry(s, ACTION_FREE_COMPLETED, 0, 0, 4096, (uint64_t)-sizes[i], 0);
    }
}

static void add_living(struct snapshot *s, uint64_t bytes)
{
    struct segment segment = {.address = 1 << 20, .total_size = bytes, .pool = NONE32, .context = CONTEXT_NONE};
    struct block block = {.address = 1 << 20, .size = bytes, .requested = bytes, .context = CONTEXT_NONE,
                          .state = BLOCK_ACTIVE_ALLOCATED};
    state_add_segment(&s->end, &segment);
    state_add_block(&s->end, &block);
}

static void case_55_the_peak_counts_bytes_that_live_together(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    const int sizes[] = {5, 7, -5, 1, 1, 1};
    alloc_and_free(s, sizes, 6);
    add_living(s, 10);
    struct moment_peak peak = peak_of(s, -1);
    assert_int_equal(peak.bytes, 12);
    assert_int_equal(peak.moment, 2);
    snapshot_free(s);
}

static void case_10_what_lived_before_the_trace_counts_in_the_peak(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    const int sizes[] = {5, 7, -5};
    alloc_and_free(s, sizes, 3);
    add_living(s, 1007); /* 1000 of them from before */
    assert_int_equal(peak_of(s, -1).bytes, 1012);
    snapshot_free(s);
}

static void case_54_a_window_of_frees_never_makes_a_negative_total(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    const int sizes[] = {-5, -7, -100};
    alloc_and_free(s, sizes, 3);
    struct moment_peak peak = peak_of(s, -1);
    assert_int_equal(peak.bytes, 112); /* all of it was there before the first free */
    assert_int_equal(peak.moment, 0);
    add_living(s, 50);
    assert_int_equal(peak_of(s, -1).bytes, 162);
    snapshot_free(s);
}

static void case_38_reserved_rises_by_ten_three_times(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    s->processes[0].implied_blocks = true;
    for (uint64_t i = 0; i < 3; i++) {
        add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, (i + 1) << 30, 10 << 20, 0);
        struct segment segment = {.address = (i + 1) << 30, .total_size = 10 << 20, .pool = NONE32, .context = CONTEXT_NONE};
        state_add_segment(&s->end, &segment);
    }
    struct moment_peak allocated, reserved;
    assert_int_equal(moment_peaks(s, -1, &allocated, &reserved, NULL), 0);
    assert_int_equal(allocated.bytes, 30 << 20);
    assert_int_equal(reserved.bytes, 30 << 20);
    assert_int_equal(reserved.moment, 3);
    snapshot_free(s);
}

static void the_peak_of_a_device_leaves_the_others_out(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    add_entry(s, ACTION_ALLOC, 0, 0, 4096, 100, 0);
    add_entry(s, ACTION_ALLOC, 1, 0, 4096, 70, 0);
    add_entry(s, ACTION_FREE_REQUESTED, 0, 0, 4096, 100, 0);
    add_entry(s, ACTION_FREE_COMPLETED, 0, 0, 4096, 100, 0);
    add_entry(s, ACTION_ALLOC, 1, 0, 8192, 20, 0);
    add_living(s, 90);
    s->end.segments[0].device = 1;
    assert_int_equal(peak_of(s, -1).bytes, 170);
    assert_int_equal(peak_of(s, 0).bytes, 100);
    assert_int_equal(peak_of(s, 0).moment, 1);
    assert_int_equal(peak_of(s, 1).bytes, 90);
    assert_int_equal(peak_of(s, 1).moment, 5);
    snapshot_free(s);
}

/* --- selection -------------------------------------------------------------------------------------------------- */

static uint32_t push(struct snapshot *s, uint32_t stack, const char *file, const char *name, int line)
{
    struct frame frame = {.name = snapshot_shared_string(s, name, strlen(name)),
                          .filename = snapshot_shared_string(s, file, strlen(file)), .line = line, .module = NONE32,
                          .flags = FRAME_PYTHON};
    return snapshot_push_frame(s, stack, snapshot_add_frame(s, &frame));
}

static uint64_t selected(struct snapshot *s, const char *name, const char *text)
{
    struct selection selection;
    struct error err;
    uint64_t bits = 0;
    selection_init(&selection);
    if (selection_set(&selection, name, text, &err) || selection_bind(&selection, s, &err))
        fail_msg("--%s %s: %s", name, text, err.message);
    for (size_t i = 0; i < s->entries.count; i++)
        bits |= (uint64_t)selection_has_entry(&selection, i) << i;
    selection_free(&selection);
    return bits;
}

static void each_selection_chooses_its_entries(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    const int64_t t0 = INT64_C(1700000000000000);
    add_entry(s, ACTION_ALLOC, 0, 0, 4096, 100, t0);
    add_entry(s, ACTION_ALLOC, 1, 7, 4096, 1000, t0 + 1000000);
    add_entry(s, ACTION_OOM, 0, 7, 0, 5000, t0 + 2000000);
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, 1 << 20, 1 << 20, t0 + 3500000);
    uint32_t outer = push(s, STACK_EMPTY, "/home/u/train.py", "main", 3);
    s->entries.context[1] = snapshot_add_context(s, push(s, outer, "/home/u/model.py", "forward", 40));
    s->entries.context[2] = snapshot_add_context(s, outer);
    assert_int_equal(selected(s, "device", "1"), 0x2);
    assert_int_equal(selected(s, "device", "all"), 0xf);
    assert_int_equal(selected(s, "stream", "7"), 0x6);
    assert_int_equal(selected(s, "stream", "0x7"), 0x6);
    assert_int_equal(selected(s, "size", "1000..5000"), 0x6);
    assert_int_equal(selected(s, "size", "1MiB"), 0x8);
    assert_int_equal(selected(s, "entries", "1..3"), 0x6);
    assert_int_equal(selected(s, "entries", "2.."), 0xc);
    assert_int_equal(selected(s, "entries", "..1"), 0x1);
    assert_int_equal(selected(s, "entries", "2"), 0x4);
    assert_int_equal(selected(s, "time", "1..2.5s"), 0x6);
    assert_int_equal(selected(s, "time", "3.5s.."), 0x8);
    assert_int_equal(selected(s, "action", "alloc,oom"), 0x7);
    assert_int_equal(selected(s, "stack", "model\\.py"), 0x2);
    assert_int_equal(selected(s, "stack", "train.py:3:main"), 0x6);
    assert_int_equal(selected(s, "not-stack", "forward"), 0xd);
    static const char *const wrong[][2] = {{"device", "x"}, {"device", "-1"}, {"stream", ""}, {"pool", "1"}, {"size", "10..5"},
                                           {"entries", "a..b"}, {"entries", ""}, {"time", "5..1"}, {"action", "alloc,nope"},
                                           {"action", ""}, {"stack", "("}, {"frames", "some"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct selection selection;
        struct error err = {0};
        selection_init(&selection);
        assert_int_equal(selection_set(&selection, wrong[i][0], wrong[i][1], &err), STATUS_USAGE);
        assert_true(strlen(err.message) > 5);
        selection_free(&selection);
    }
    snapshot_free(s);
}

static void case_13_an_entry_without_a_pool_has_that_of_its_segment(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    uint32_t pool = snapshot_pool(s, 0, 1);
    add_entry(s, ACTION_ALLOC, 0, 0, (1 << 20) + 512, 100, 0); /* in an older segment at that place: unknown */
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, 1 << 20, 1 << 20, 0);
    add_entry(s, ACTION_ALLOC, 0, 0, (1 << 20) + 512, 100, 0);
    add_entry(s, ACTION_ALLOC, 0, 0, 1 << 30, 100, 0);
    struct segment segment = {.address = 1 << 20, .total_size = 1 << 20, .pool = pool, .context = CONTEXT_NONE};
    state_add_segment(&s->end, &segment);
    assert_int_equal(selected(s, "pool", "0:1"), 0x6);
    assert_int_equal(selected(s, "pool", "0:0"), 0);
    entries_need_pool(&s->entries); /* and with it, the entry's own word counts */
    s->entries.pool[3] = pool;
    assert_int_equal(selected(s, "pool", "0:1"), 0x8);
    snapshot_free(s);
}

static void plumbing_is_told_from_the_users_own_frames(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    static const struct {
        const char *file, *name;
        bool plumbing;
    } cases[] = {{"/home/u/train.py", "step", false},
                 {"/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", "forward", true},
                 {"/venv/lib/python3.11/site-packages/transformers/trainer.py", "train", false},
                 {"/usr/lib/python3.11/threading.py", "run", true},
                 {"<frozen runpy>", "_run_code", true},
                 {"/build/pytorch/aten/src/ATen/Functions.cpp", "empty", true},
                 {"??", "PyObject_Call", true}};
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        push(s, STACK_EMPTY, cases[i].file, cases[i].name, 1);
        if (selection_is_plumbing(s, i) != cases[i].plumbing)
            fail_msg("%s", cases[i].file);
    }
    snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_name_a_moment_is_understood),
        cmocka_unit_test(moments_are_found_by_number_time_failure_and_mark),
        cmocka_unit_test(case_18_without_times_entries_count_and_times_are_refused),
        cmocka_unit_test(case_55_the_peak_counts_bytes_that_live_together),
        cmocka_unit_test(case_10_what_lived_before_the_trace_counts_in_the_peak),
        cmocka_unit_test(case_54_a_window_of_frees_never_makes_a_negative_total),
        cmocka_unit_test(case_38_reserved_rises_by_ten_three_times),
        cmocka_unit_test(the_peak_of_a_device_leaves_the_others_out),
        cmocka_unit_test(each_selection_chooses_its_entries),
        cmocka_unit_test(case_13_an_entry_without_a_pool_has_that_of_its_segment),
        cmocka_unit_test(plumbing_is_told_from_the_users_own_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
