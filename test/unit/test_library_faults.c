/*
 * Every call of the driver fails once: one scenario over the public library, in a fresh process for each entry point and
 * each of its calls.  Whatever fails answers with a status and a sentence; what was handed out can be freed, and
 * in the end nothing is held.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "library_world.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SURVIVED = 0, NOT_REACHED = 3, NO_SENTENCE = 10, WRONG_STATUS, LOST_BLOCK, NOT_EMPTY };
#define SPECIAL ((size_t)1 << 50) /* no device has that */

static bool is_lost; /* nothing works any more: not even giving back */

/* The answer of a call: fine, or a failure that says what it is. */
static bool fine(int status, const cudamem_error *error)
{
    if (status == CUDAMEM_OK)
        return true;
    if (strlen(error->message) < 5)
        _exit(NO_SENTENCE);
    if (status > 0 || status != error->status)
        _exit(WRONG_STATUS);
    return false;
}
#define FINE(call) __extension__({ cudamem_error error = CUDAMEM_ERROR_INIT; int status_ = (call); fine(status_, &error); })

static void *blocks[32];
static int block_count;

static void *take(size_t size, int device, CUstream stream)
{
    void *pointer = &pointer;
    bool got = FINE(cudamem_alloc(size, device, stream, &pointer, &error));
    if (got != (pointer != NULL))
        _exit(WRONG_STATUS);
    if (got)
        blocks[block_count++] = pointer;
    return pointer;
}

static void give_all(void)
{
    while (block_count)
        if (!FINE(cudamem_free(blocks[--block_count], &error)) && !is_lost)
            _exit(LOST_BLOCK);
}

/* An uncached block's free is the driver's, which may fail: then it is still there. */
static void past_the_cache(void)
{
    void *pointer;
    FINE(cudamem_set_caching(0, &error));
    if (FINE(cudamem_alloc(5000, 0, NULL, &pointer, &error)))
        FINE(cudamem_free(pointer, &error));
    FINE(cudamem_set_caching(1, &error));
}

static void on_streams(CUstream stream, CUstream other)
{
    void *block = take(3 * MIB, 0, stream), *base;
    size_t size;
    take(1000, 0, NULL);
    take(1000, -1, NULL);
    take(30 * MIB, 1, NULL);
    FINE(cudamem_record_stream(block, other, &error));
    if (block)
        FINE(cudamem_base(block, &base, &size, &error));
    give_all();
    take(40 * MIB, 0, stream);
    FINE(cudamem_empty_cache(&error));
    take(SPECIAL, 0, stream);
    give_all();
}

static void in_expandable_segments(void)
{
    FINE(cudamem_set_allocator_settings("expandable_segments:True", &error));
    take(30 * MIB, 0, NULL);
    take(50 * MIB, 0, NULL);
    take(1000, 1, NULL);
    give_all();
    FINE(cudamem_empty_cache(&error));
    FINE(cudamem_set_allocator_settings("expandable_segments:False", &error));
}

static void *source_alloc(void *self, size_t size, int device, void *stream)
{
    (void)device, (void)stream;
    uintptr_t *next = self;
    void *start = (void *)*next;
    *next += size;
    return start;
}

static void source_free(void *self, void *pointer, size_t size, int device, void *stream)
{
    (void)pointer, (void)size, (void)device, (void)stream;
    *(uintptr_t *)self += 1 << 30;
}

static void in_a_pool(CUstream stream, bool callbacks)
{
    static uintptr_t next = (uintptr_t)0x500000000000;
    const cudamem_pool_options options = {.struct_size = sizeof(options), .alloc = callbacks ? source_alloc : NULL,
                                          .free = callbacks ? source_free : NULL, .self = &next};
    cudamem_pool *pool;
    if (!FINE(cudamem_pool_create(&options, 0, &pool, &error)))
        return;
    if (FINE(cudamem_pool_begin(pool, 0, &error))) {
        take(1000, 0, stream);
        take(SPECIAL, 0, stream);
        FINE(cudamem_pool_end(pool, 0, &error));
    }
    give_all();
    FINE(cudamem_pool_destroy(pool, &error));
}

static void in_a_capture(CUstream stream)
{
    cudamem_capture *capture;
    CUgraph graph;
    if (world.begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
        return;
    if (FINE(cudamem_capture_begin(0, stream, NULL, &capture, &error))) {
        take(1000, 0, stream);
        take(1000, 0, NULL);
        FINE(cudamem_capture_end(capture, &error));
        FINE(cudamem_capture_close(capture, &error));
    }
    if (!world.end_capture(stream, &graph))
        world.graph_destroy(graph);
    give_all();
}

static void nothing_is_left(int device)
{
    cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
    FINE(cudamem_empty_cache(&error));
    if (!FINE(cudamem_get_memory_stats(device, &stats, &error)))
        _exit(WRONG_STATUS);
    if (stats.allocation.all.current || stats.active_bytes.all.current || stats.requested_bytes.all.current ||
        stats.reserved_bytes.all.current || stats.segment.all.current || stats.inactive_split_bytes.all.current)
        _exit(NOT_EMPTY);
}

static void scenario(const char *name, int n, const char *code)
{
    char text[96];
    world_open("2:1GiB");
    CUstream stream = world_stream(), other = world_stream();
    unsigned long long before = world.calls(name);
    snprintf(text, sizeof(text), "%s:%d=%s", name, n, code);
    if (world.faults(text))
        _exit(WRONG_STATUS);
    is_lost = strcmp(code, "lost") == 0;
    on_streams(stream, other);
    past_the_cache();
    in_expandable_segments();
    in_a_pool(stream, false);
    in_a_pool(stream, true);
    in_a_capture(stream);
    FINE(cudamem_set_memory_fraction(0.5, 1, &error));
    bool reached = world.calls(name) - before >= (unsigned)n;
    if (!is_lost) {
        nothing_is_left(0);
        nothing_is_left(1);
    }
    exit(reached ? SURVIVED : NOT_REACHED);
}

/* How many calls the scenario makes; each failed once. */
static int fail_each_call(const char *name, const char *code)
{
    for (int n = 1;; n++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child)
            scenario(name, n, code);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_REACHED)
            return n - 1;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != SURVIVED)
            fail_msg("call %d of %s fails with %s: wait status %#x", n, name, code, (unsigned)status);
    }
}

static void each_call_of_the_driver_may_fail(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int least; /* calls, for the scenario must reach them */
    } points[] = {
        {"cuDeviceGet", 2}, {"cuDevicePrimaryCtxRetain", 2}, {"cuCtxGetDevice", 1}, {"cuCtxPushCurrent_v2", 20},
        {"cuThreadExchangeStreamCaptureMode", 10}, {"cuMemAlloc_v2", 5}, {"cuMemFree_v2", 3}, {"cuMemGetInfo_v2", 2},
        {"cuMemAddressReserve", 1}, {"cuMemAddressFree", 1}, {"cuMemCreate", 3}, {"cuMemMap", 3}, {"cuMemSetAccess", 2},
        {"cuMemRelease", 3}, {"cuMemUnmap", 1}, {"cuEventCreate", 1}, {"cuEventRecord", 1}, {"cuEventQuery", 1},
        {"cuStreamGetCtx", 1}, {"cuStreamGetCaptureInfo_v2", 2}, {"cuInit", 1},
    };
    for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++) {
        int calls = fail_each_call(points[i].name, "999");
        if (calls < points[i].least)
            fail_msg("%s is called %d times only", points[i].name, calls);
    }
}

static void memory_may_run_out_at_each_call(void **state)
{
    (void)state;
    static const char *const names[] = {"cuMemAlloc_v2", "cuMemCreate", "cuMemMap", "cuMemAddressReserve"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_true(fail_each_call(names[i], "oom") > 0);
}

static void the_device_may_be_lost_at_each_call(void **state)
{
    (void)state;
    assert_true(fail_each_call("cuMemAlloc_v2", "lost") > 0);
    assert_true(fail_each_call("cuMemFree_v2", "lost") > 0);
    assert_true(fail_each_call("cuEventRecord", "lost") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_the_driver_may_fail),
        cmocka_unit_test(memory_may_run_out_at_each_call),
        cmocka_unit_test(the_device_may_be_lost_at_each_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
