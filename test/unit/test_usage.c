/* Owners of memory by stacks, what is beyond what is known, and selection by annotations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/selection.h"
#include "analyze/usage.h"

#define MIB (UINT64_C(1) << 20)

static uint32_t push_native(struct snapshot *s, uint32_t stack, const char *path)
{
    struct module module = {.path = snapshot_string(s, path, strlen(path))};
    struct frame frame = {.name = STRING_NONE, .filename = STRING_NONE, .module = snapshot_add_module(s, &module),
                          .flags = FRAME_NATIVE};
    return snapshot_push_frame(s, stack, snapshot_add_frame(s, &frame));
}

static uint32_t push_python(struct snapshot *s, uint32_t stack, const char *file)
{
    struct frame frame = {.name = snapshot_shared_string(s, "f", 1), .filename = snapshot_shared_string(s, file, strlen(file)),
                          .line = 1, .module = NONE32, .flags = FRAME_PYTHON};
    return snapshot_push_frame(s, stack, snapshot_add_frame(s, &frame));
}

/* Outermost first; a name that ends in .py is Python's. */
static uint32_t stack_of(struct snapshot *s, const char *const *frames)
{
    uint32_t stack = STACK_EMPTY;
    for (; *frames; frames++) {
        size_t length = strlen(*frames);
        stack = length > 3 && strcmp(*frames + length - 3, ".py") == 0 ? push_python(s, stack, *frames)
                                                                       : push_native(s, stack, *frames);
    }
    return snapshot_add_context(s, stack);
}

static void the_owner_is_the_first_library_outside_cudas_own(void **unused)
{
    (void)unused;
    static const struct {
        const char *frames[6];
        const char *owner;
    } cases[] = {
        {{"/home/u/app", "/usr/lib/libcudart.so.13", "/usr/lib/libcuda.so.1", "/opt/lib/libcudamem-preload.so"}, "app"},
        {{"/home/u/app", "/home/u/libfakenccl.so", "/usr/lib/libcuda.so.1"}, "fakenccl"},
        {{"/home/u/app", "/usr/lib/libfoo.so.1.2", "/usr/lib/libcuda.so.1"}, "foo"},
        {{"/usr/bin/python3.12", "/v/site-packages/torch/lib/libtorch_cuda.so", "/v/nvidia/nccl/lib/libnccl.so.2"}, "NCCL"},
        {{"/v/torch/lib/libtorch_cuda.so", "/v/torch/lib/libc10_cuda.so", "/usr/lib/libcuda.so.580.1"}, "PyTorch"},
        {{"/v/torch/lib/libtorch_cuda.so", "/v/lib/libcublasLt.so.12", "/usr/lib/libcudart.so.12"}, "cuBLAS"},
        {{"/usr/bin/python3.12", "/v/jaxlib/libjax_common.so"}, "JAX"},
        {{"/usr/bin/python3.12", "/v/cupy/cuda/memory.cpython-312-x86_64-linux-gnu.so"}, "CuPy"},
        {{"/usr/bin/python3.12", "/v/librmm/lib64/librmm.so"}, "RMM"},
        {{"/usr/bin/python3.12", "/home/u/mine.cpython-312-x86_64-linux-gnu.so"}, "mine"},
        {{"/home/u/train.py", "/v/site-packages/thing/sub/core.py", "/usr/lib/libcuda.so.1"}, "thing"},
        {{"/home/u/train.py", "/usr/lib/python3.12/contextlib.py"}, "train.py"},
        {{"/v/torch/lib/libc10_cuda.so", "/home/u/train.py"}, "PyTorch"}, /* what is native says more */
        {{"/usr/bin/python3.12", "/usr/lib/libcuda.so.1"}, "unknown"},
        {{NULL}, "unknown"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct snapshot *s = snapshot_new(SOURCE_RECORDED);
        struct owners owners;
        struct error err = {0};
        uint32_t context = stack_of(s, cases[i].frames);
        assert_int_equal(owners_open(s, &owners, &err), STATUS_OK);
        assert_string_equal(owner_name(&owners, owner_of_context(&owners, context)), cases[i].owner);
        assert_int_equal(owner_of_context(&owners, CONTEXT_NONE), OWNER_UNKNOWN);
        owners_close(&owners);
        snapshot_free(s);
    }
    assert_non_null(strstr(owner_pool_advice("JAX"), "XLA_PYTHON_CLIENT_PREALLOCATE=false"));
    assert_non_null(owner_pool_advice("CuPy"));
    assert_non_null(owner_pool_advice("RMM"));
    assert_null(owner_pool_advice("PyTorch"));
}

static void add_segment(struct snapshot *s, uint64_t size, uint8_t kind, uint32_t context)
{
    struct segment segment = {.address = (s->end.segment_count + 1) << 40, .total_size = size, .kind = kind,
                              .context = context, .pool = NONE32};
    struct block block = {.address = segment.address, .size = size / 2, .context = context, .state = BLOCK_ACTIVE_ALLOCATED};
    struct block rest = {.address = segment.address + size / 2, .size = size / 2, .context = CONTEXT_NONE};
    assert_int_equal(state_add_segment(&s->end, &segment), 0);
    assert_int_equal(state_add_block(&s->end, &block), 0);
    assert_int_equal(state_add_block(&s->end, &rest), 0);
}

static void sums_are_by_owner_and_by_kind_without_the_hosts(void **unused)
{
    (void)unused;
    static const char *const mine[] = {"/home/u/app", NULL}, *const theirs[] = {"/home/u/app", "/usr/lib/libother.so", NULL};
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    uint32_t a = stack_of(s, mine), b = stack_of(s, theirs);
    add_segment(s, 4 * MIB, MEMORY_PLAIN, a);
    add_segment(s, 6 * MIB, MEMORY_GRAPH, b);
    add_segment(s, 2 * MIB, MEMORY_PLAIN, b);
    add_segment(s, 64 * MIB, MEMORY_HOST, a);
    add_segment(s, 32 * MIB, MEMORY_IMPORTED, a);
    struct usage usage;
    struct error err = {0};
    assert_int_equal(usage_collect(s, &s->end, &usage, &err), STATUS_OK);
    assert_int_equal(usage.owner_count, 2);
    assert_string_equal(owner_name(&usage.owners, usage.by_owner[0].owner), "other");
    assert_int_equal(usage.by_owner[0].reserved, 8 * MIB);
    assert_int_equal(usage.by_owner[0].allocated, 4 * MIB);
    assert_int_equal(usage.by_owner[0].segments, 2);
    assert_int_equal(usage.by_owner[0].largest, 6 * MIB);
    assert_string_equal(owner_name(&usage.owners, usage.by_owner[1].owner), "app");
    assert_int_equal(usage.by_owner[1].reserved, 4 * MIB);
    assert_int_equal(usage.by_kind[MEMORY_PLAIN].reserved, 6 * MIB);
    assert_int_equal(usage.by_kind[MEMORY_HOST].reserved, 64 * MIB);
    usage_free(&usage);
    snapshot_free(s);
}

static void what_is_beyond_what_is_known_is_never_negative(void **unused)
{
    (void)unused;
    struct usage_sample sample;
    struct device device = {.total = 16384 * MIB, .free_at_end = 13384 * MIB, .has_sample = true,
                            .known_bytes = 2200 * MIB, .pool_bytes = 0};
    assert_true(usage_sample(&device, &sample));
    assert_int_equal(sample.used, 3000 * MIB);
    assert_int_equal(sample.other, 800 * MIB);
    device.pool_bytes = 300 * MIB;
    assert_true(usage_sample(&device, &sample));
    assert_int_equal(sample.other, 500 * MIB);
    device.known_bytes = 3001 * MIB; /* managed memory, say, that is not on the device */
    assert_true(usage_sample(&device, &sample));
    assert_int_equal(sample.other, 0);
    device.known_bytes = device.pool_bytes = UINT64_MAX;
    assert_true(usage_sample(&device, &sample));
    assert_int_equal(sample.other, 0);
    device.free_at_end = device.total + 1;
    assert_false(usage_sample(&device, &sample));
    device.free_at_end = 0;
    device.has_sample = false;
    assert_false(usage_sample(&device, &sample));
}

/* --- annotations -------------------------------------------------------------------------------------------------- */

static void add_alloc(struct snapshot *s, uint32_t thread, int64_t time, uint64_t address)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = ACTION_ALLOC;
    entry.address = address;
    entry.size = 512;
    entry.time = time;
    entry.thread = thread;
    assert_int_equal(snapshot_add_entry(s, &entry), 0);
}

static void annotate(struct snapshot *s, const char *name, uint8_t stage, uint32_t thread, int64_t time, uint32_t later)
{
    struct annotation annotation = {.name = snapshot_shared_string(s, name, strlen(name)), .stage = stage,
                                    .thread = thread, .time = time, .later = later};
    assert_int_not_equal(snapshot_add_annotation(s, &annotation), NONE32);
}

static uint64_t selected(struct snapshot *s, const char *text)
{
    struct selection selection;
    struct error err;
    uint64_t bits = 0;
    selection_init(&selection);
    if (selection_set(&selection, "annotation", text, &err) || selection_bind(&selection, s, &err))
        fail_msg("%s: %s", text, err.message);
    assert_false(selection_is_everything(&selection));
    for (size_t i = 0; i < s->entries.count; i++)
        bits |= (uint64_t)selection_has_entry(&selection, i) << i;
    selection_free(&selection);
    return bits;
}

static void ranges_choose_what_their_thread_did_within(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    annotate(s, "step 1", 0, 11, 90, 0);
    add_alloc(s, 11, 100, 1 << 20); /* 0 */
    add_alloc(s, 12, 100, 2 << 20); /* 1: another thread */
    annotate(s, "inner", 0, 11, 100, 2);
    add_alloc(s, 11, 100, 3 << 20); /* 2: of the same microsecond as before the range */
    annotate(s, "inner", 1, 11, 100, 3);
    add_alloc(s, 11, 100, 4 << 20); /* 3 */
    annotate(s, "all", 0, 0, 110, 0);
    add_alloc(s, 12, 120, 5 << 20); /* 4 */
    annotate(s, "step 1", 1, 11, 130, 0);
    annotate(s, "step 1", 1, 11, 131, 0); /* one too many */
    add_alloc(s, 11, 140, 6 << 20); /* 5 */
    annotate(s, "all", 1, 0, 150, 0);
    annotate(s, "moment", 2, 11, 150, 0); /* no range */
    add_alloc(s, 11, 160, 7 << 20); /* 6 */
    annotate(s, "step 2", 0, 11, 170, 0);
    add_alloc(s, 11, 180, 1 << 20); /* 7: where the first was */
    assert_int_equal(selected(s, "step 1"), 0xd);
    assert_int_equal(selected(s, "inner"), 0x4);
    assert_int_equal(selected(s, "^all$"), 0x30);
    assert_int_equal(selected(s, "moment"), 0);
    assert_int_equal(selected(s, "^step"), 0x8d);
    assert_int_equal(selected(s, "step|all"), 0xbd);
    snapshot_free(s);
}

static void blocks_are_chosen_by_the_entry_that_made_them(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    add_alloc(s, 11, 100, 1 << 20);
    annotate(s, "range", 0, 11, 110, 0);
    add_alloc(s, 11, 120, 1 << 20); /* once more, its free was lost */
    add_alloc(s, 11, 130, 2 << 20);
    annotate(s, "range", 1, 11, 140, 0);
    add_alloc(s, 11, 150, 3 << 20);
    struct segment segment = {.address = 1 << 20, .total_size = 4 << 20, .context = CONTEXT_NONE, .pool = NONE32};
    assert_int_equal(state_add_segment(&s->end, &segment), 0);
    for (uint64_t address = 1 << 20; address < 5 << 20; address += 1 << 20) {
        struct block block = {.address = address, .size = 1 << 20, .context = CONTEXT_NONE, .state = BLOCK_ACTIVE_ALLOCATED};
        assert_int_equal(state_add_block(&s->end, &block), 0);
    }
    struct selection selection;
    struct error err;
    selection_init(&selection);
    assert_int_equal(selection_set(&selection, "annotation", "range", &err), STATUS_OK);
    assert_int_equal(selection_bind(&selection, s, &err), STATUS_OK);
    static const bool wanted[] = {true, true, false, false};
    s->end.moment = s->entries.count;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(selection_has_block(&selection, &s->end, &s->end.blocks[i]), wanted[i]);
    s->end.moment = 1; /* the first block, then */
    assert_false(selection_has_block(&selection, &s->end, &s->end.blocks[0]));
    selection_free(&selection);
    snapshot_free(s);
}

static void annotations_without_threads_are_everybodys(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    add_alloc(s, 0, 100, 1 << 20);
    annotate(s, "ProfilerStep", 0, 0, 150, 0);
    add_alloc(s, 0, 200, 2 << 20);
    annotate(s, "ProfilerStep", 1, 0, 250, 0);
    add_alloc(s, 0, 300, 3 << 20);
    assert_int_equal(selected(s, "Profiler"), 0x2);
    struct selection selection;
    struct error err = {0};
    selection_init(&selection);
    assert_int_equal(selection_set(&selection, "annotation", "(", &err), STATUS_USAGE);
    selection_free(&selection);
    snapshot_free(s);
}

static void the_innermost_range_gives_a_block_its_name(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    annotate(s, "all", 0, 0, 50, 0);
    annotate(s, "outer", 0, 11, 90, 0);
    add_alloc(s, 11, 100, 1 << 20); /* 0 */
    annotate(s, "inner", 0, 11, 110, 0);
    add_alloc(s, 11, 120, 2 << 20); /* 1 */
    annotate(s, "outer", 1, 11, 130, 0); /* of another domain: not the innermost one */
    add_alloc(s, 11, 140, 3 << 20); /* 2 */
    annotate(s, "inner", 1, 11, 150, 0);
    add_alloc(s, 11, 160, 4 << 20); /* 3 */
    annotate(s, "all", 1, 0, 170, 0);
    add_alloc(s, 11, 180, 5 << 20); /* 4 */
    static const char *const wanted[] = {"outer", "inner", "inner", "all", ""};
    uint32_t *names = ranges_innermost(s);
    assert_non_null(names);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(snapshot_object_text(s, names[i], NULL), wanted[i]);
    assert_int_equal(names[4], STRING_NONE);
    free(names);
    snapshot_free(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_owner_is_the_first_library_outside_cudas_own),
        cmocka_unit_test(sums_are_by_owner_and_by_kind_without_the_hosts),
        cmocka_unit_test(what_is_beyond_what_is_known_is_never_negative),
        cmocka_unit_test(ranges_choose_what_their_thread_did_within),
        cmocka_unit_test(blocks_are_chosen_by_the_entry_that_made_them),
        cmocka_unit_test(annotations_without_threads_are_everybodys),
        cmocka_unit_test(the_innermost_range_gives_a_block_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
