/* The public allocator as torch.cuda.memory's documentation has it: blocks, streams, the cache, limits, settings,
 * watchers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "library_calls.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

static int clean(void **state)
{
    (void)state;
    start_afresh();
    return 0;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static void a_freed_block_serves_the_next_request_without_the_driver(void **state)
{
    (void)state;
    void *first = get(1000, 0, NULL);
    unsigned long long before = world.calls(NULL);
    put(first);
    assert_ptr_equal(get(1000, 0, NULL), first);
    put(first);
    assert_true(world.calls(NULL) == before);
    cudamem_memory_stats stats = stats_of(0);
    assert_int_equal(stats.segment.all.current, 1);
    assert_int_equal(stats.allocated_bytes.all.peak, 1024);
    assert_int_equal(stats.requested_bytes.all.peak, 1000);
}

static void each_device_and_each_stream_has_its_own_blocks(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    void *plain = get(1000, 0, NULL), *other_device = get(1000, 1, NULL);
    put(plain);
    put(other_device);
    void *other_stream = get(1000, 0, stream);
    assert_ptr_not_equal(other_stream, plain);
    assert_int_equal(stats_of(0).segment.all.current, 2);
    assert_int_equal(stats_of(1).segment.all.current, 1);
    put(other_stream);
}

static void minus_one_is_the_current_device(void **state)
{
    (void)state;
    CUcontext contexts[2];
    assert_int_equal(world.retain(&contexts[0], 0), 0);
    assert_int_equal(world.retain(&contexts[1], 1), 0);
    world.set_current(contexts[1]);
    put(get(1000, -1, NULL));
    assert_int_equal(stats_of(-1).segment.all.current, 1);
    world.set_current(NULL);
    put(get(1000, -1, NULL));
    world.set_current(contexts[0]);
    assert_int_equal(stats_of(0).segment.all.current, 1);
    assert_int_equal(stats_of(1).segment.all.current, 1);
}

static void nothing_is_no_block_and_too_much_is_out_of_memory(void **state)
{
    (void)state;
    void *pointer = &pointer;
    OK(cudamem_alloc(0, 0, NULL, &pointer, NULL));
    assert_null(pointer);
    OK(cudamem_free(NULL, NULL));
    pointer = &pointer;
    FAILS(CUDAMEM_ERROR_OUT_OF_MEMORY, cudamem_alloc(SIZE_MAX, 0, NULL, &pointer, &error));
    assert_null(pointer);
    assert_int_equal(stats_of(0).num_ooms, 0); /* refused before the allocator, as there */
    FAILS(CUDAMEM_ERROR_OUT_OF_MEMORY, cudamem_alloc((size_t)1 << 50, 0, NULL, &pointer, &error));
    assert_non_null(strstr(message, "GPU 0"));
    assert_int_equal(stats_of(0).num_ooms, 1);
    assert_int_equal(stats_of(0).num_alloc_retries, 1);
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_alloc(1, 0, NULL, NULL, &error));
}

static void a_device_that_is_not_there_is_named(void **state)
{
    (void)state;
    void *pointer;
    static const int wrong[] = {2, 63, 64, 1000000, -2, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char number[16];
        FAILS(CUDAMEM_ERROR_NOT_FOUND, cudamem_alloc(512, wrong[i], NULL, &pointer, &error));
        snprintf(number, sizeof(number), "%d", wrong[i]);
        assert_non_null(strstr(message, number));
        FAILS(CUDAMEM_ERROR_NOT_FOUND, cudamem_set_memory_fraction(0.5, wrong[i], &error));
        cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
        FAILS(CUDAMEM_ERROR_NOT_FOUND, cudamem_get_memory_stats(wrong[i], &stats, &error));
    }
}

static void what_is_not_ours_is_refused_and_nothing_changes(void **state)
{
    (void)state;
    void *block = get(4096, 0, NULL);
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_free((char *)block + 512, &error));
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_free(&message, &error));
    assert_int_equal(stats_of(0).allocation.all.current, 1);
    put(block);
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_free(block, &error));
    assert_int_equal(stats_of(0).allocation.all.freed, 1);
}

static void a_stream_of_another_context_is_refused(void **state)
{
    (void)state;
    void *pointer;
    CUstream stream = stream_on(1);
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_alloc(1000, 0, stream, &pointer, &error));
    assert_non_null(strstr(message, "another context"));
    void *block = get(1000, 0, NULL);
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_record_stream(block, stream, &error));
    put(block);
    put(get(1000, 1, stream));
}

/* --- other streams ------------------------------------------------------------------------------------------------ */

static void a_block_waits_for_the_streams_that_used_it(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    void *block = get(30 * MIB, 0, NULL);
    world.manual(1);
    world_work(stream);
    OK(cudamem_record_stream(block, stream, NULL));
    OK(cudamem_record_stream(block, NULL, NULL)); /* its own: no reason to wait */
    put(block);
    assert_int_equal(stats_of(0).allocated_bytes.all.current, 0);
    assert_int_equal(stats_of(0).active_bytes.all.current, 30 * MIB);
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_free(block, &error));
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_record_stream(block, stream, &error));
    void *meanwhile = get(30 * MIB, 0, NULL);
    assert_ptr_not_equal(meanwhile, block);
    world.manual(0);
    world.stream_synchronize(stream);
    void *later = get(30 * MIB, 0, NULL);
    assert_ptr_equal(later, block);
    put(later);
    put(meanwhile);
}

static void streams_of_foreign_memory_are_ignored(void **state)
{
    (void)state;
    OK(cudamem_record_stream(NULL, NULL, NULL));
    OK(cudamem_record_stream(&message, NULL, NULL));
}

static void a_block_whose_event_cannot_be_recorded_is_not_lost(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    void *block = get(30 * MIB, 0, NULL);
    OK(cudamem_record_stream(block, stream, NULL));
    world_fail("cuEventRecord", "400"); /* as for a stream that was destroyed: all of the device is waited for */
    unsigned long long waited = world.calls("cuCtxSynchronize");
    put(block);
    assert_true(world.calls("cuCtxSynchronize") == waited + 1);
    put(get(1000, 0, NULL));
    assert_int_equal(stats_of(0).active_bytes.all.current, 0);
}

static void emptying_the_cache_waits_and_gives_back(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    void *block = get(30 * MIB, 0, NULL), *small = get(10, 0, NULL);
    OK(cudamem_record_stream(block, stream, NULL));
    put(block);
    OK(cudamem_empty_cache(NULL));
    cudamem_memory_stats stats = stats_of(0);
    assert_int_equal(stats.reserved_bytes.all.current, 2 * MIB);
    assert_int_equal(stats.num_sync_all_streams, 1);
    assert_int_equal(stats.num_device_free, 1);
    put(small);
}

static void a_base_is_where_the_segment_begins(void **state)
{
    (void)state;
    void *first = get(1000, 0, NULL), *second = get(5000, 0, NULL), *base;
    size_t size;
    OK(cudamem_base(second, &base, &size, NULL));
    assert_ptr_equal(base, first);
    assert_int_equal(size, 2 * MIB);
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_base(&size, &base, &size, &error));
    put(first);
    put(second);
    OK(cudamem_set_allocator_settings("expandable_segments:True", NULL));
    OK(cudamem_empty_cache(NULL));
    first = get(1000, 0, NULL);
    FAILS(CUDAMEM_ERROR_UNSUPPORTED, cudamem_base(first, &base, &size, &error));
    put(first);
}

/* --- caching off, limits, settings -------------------------------------------------------------------------------- */

static void without_caching_each_call_is_the_drivers(void **state)
{
    (void)state;
    void *cached = get(1000, 0, NULL);
    OK(cudamem_set_caching(0, NULL));
    unsigned long long allocated = world.calls("cuMemAlloc_v2"), freed = world.calls("cuMemFree_v2");
    void *one = get(1000, 0, NULL), *two = get(1000, 1, NULL);
    assert_true(world.calls("cuMemAlloc_v2") == allocated + 2);
    put(cached); /* from before the switch: back into the cache */
    assert_true(world.calls("cuMemFree_v2") == freed);
    put(one);
    assert_true(world.calls("cuMemFree_v2") == freed + 1);
    OK(cudamem_set_caching(1, NULL));
    put(two); /* from before, too: the driver's */
    assert_true(world.calls("cuMemFree_v2") == freed + 2);
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_free(two, &error));
    assert_int_equal(stats_of(0).allocation.all.allocated, 1);
}

static void a_fraction_limits_what_is_reserved(void **state)
{
    (void)state;
    double fraction = 0;
    void *pointer;
    OK(cudamem_memory_fraction(0, &fraction, NULL));
    assert_true(fraction == 1);
    OK(cudamem_set_memory_fraction(1.0 / 128, 0, NULL)); /* 128 of 16384 MiB */
    OK(cudamem_memory_fraction(0, &fraction, NULL));
    assert_true(fraction == 1.0 / 128);
    OK(cudamem_memory_fraction(1, &fraction, NULL));
    assert_true(fraction == 1);
    void *most = get(128 * MIB, 0, NULL);
    FAILS(CUDAMEM_ERROR_OUT_OF_MEMORY, cudamem_alloc(1, 0, NULL, &pointer, &error));
    assert_non_null(strstr(message, "allowed"));
    put(most);
    static const double wrong[] = {-0.01, 1.01, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        FAILS(CUDAMEM_ERROR_USAGE, cudamem_set_memory_fraction(wrong[i], 0, &error));
    OK(cudamem_set_memory_fraction(0, 0, NULL));
    OK(cudamem_empty_cache(NULL));
    FAILS(CUDAMEM_ERROR_OUT_OF_MEMORY, cudamem_alloc(1, 0, NULL, &pointer, &error));
}

static void settings_are_in_force_from_the_next_call_on(void **state)
{
    (void)state;
    OK(cudamem_set_allocator_settings("roundup_power2_divisions:4", NULL));
    void *block = get(5 * MIB + 1, 0, NULL);
    assert_int_equal(stats_of(0).allocated_bytes.all.current, 6 * MIB);
    put(block);
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_set_allocator_settings("max_split_size_mb:1", &error));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_set_allocator_settings("no_such_thing:1", &error));
    assert_non_null(strstr(message, "no_such_thing"));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_set_allocator_settings(NULL, &error));
    assert_string_equal(cudamem_allocator_backend(), "native");
}

/* --- watchers ----------------------------------------------------------------------------------------------------- */

struct watch {
    int calls, device, status;
    size_t size, total, free_bytes;
    int32_t actions[64];
    uint64_t sizes[64];
};

static void observe(void *self, int device, size_t size, size_t total, size_t free_bytes)
{
    struct watch *watch = self;
    void *pointer;
    watch->calls++;
    watch->device = device;
    watch->size = size;
    watch->total = total;
    watch->free_bytes = free_bytes;
    put(get(1000, device, NULL));                                             /* it may ask for memory, */
    watch->status = cudamem_alloc((size_t)1 << 50, device, NULL, &pointer, NULL); /* and fail without being called again */
}

static void observers_hear_of_requests_that_fail(void **state)
{
    (void)state;
    struct watch watch = {0};
    void *pointer;
    uint64_t id;
    OK(cudamem_attach_oom_observer(observe, &watch, &id, NULL));
    FAILS(CUDAMEM_ERROR_OUT_OF_MEMORY, cudamem_alloc(((size_t)1 << 50) - 5, 1, NULL, &pointer, &error));
    assert_int_equal(watch.calls, 1);
    assert_int_equal(watch.device, 1);
    assert_true(watch.size == (size_t)1 << 50); /* the segment */
    assert_true(watch.total == 16384 * MIB);
    assert_in_range(watch.free_bytes, 1, watch.total);
    assert_int_equal(watch.status, CUDAMEM_ERROR_OUT_OF_MEMORY);
    OK(cudamem_detach(id, NULL));
    assert_int_equal(cudamem_alloc((size_t)1 << 50, 1, NULL, &pointer, NULL), CUDAMEM_ERROR_OUT_OF_MEMORY);
    assert_int_equal(watch.calls, 1);
    FAILS(CUDAMEM_ERROR_NOT_FOUND, cudamem_detach(id, &error));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_attach_oom_observer(NULL, NULL, &id, &error));
}

static void track(void *self, const cudamem_trace_event *event)
{
    struct watch *watch = self;
    void *pointer;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    if (watch->calls < 64) {
        watch->actions[watch->calls] = event->action;
        watch->sizes[watch->calls++] = event->size;
    }
    uint64_t id;
    char *text;
    cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
    static const char settings[] = "expandable_segments:True";
    int answers[] = {cudamem_alloc(1, event->device, NULL, &pointer, &error),
                     cudamem_free((void *)(uintptr_t)event->address, &error),
                     cudamem_record_stream((void *)(uintptr_t)event->address, NULL, &error),
                     cudamem_empty_cache(&error),
                     cudamem_set_allocator_settings(settings, &error),
                     cudamem_get_memory_stats(event->device, &stats, &error),
                     cudamem_memory_summary(event->device, 0, &text, &error),
                     cudamem_free_mutex_lock(&error),
                     cudamem_attach_trace_tracker(track, self, &id, &error),
                     cudamem_set_memory_fraction(0.5, event->device, &error)};
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        if (answers[i] != CUDAMEM_ERROR_REENTERED)
            watch->status = (int)i + 1;
}

static void trackers_hear_everything_and_may_call_nothing(void **state)
{
    (void)state;
    struct watch watch = {0};
    uint64_t id;
    OK(cudamem_attach_trace_tracker(track, &watch, &id, NULL));
    put(get(1000, 0, NULL));
    OK(cudamem_empty_cache(NULL));
    OK(cudamem_detach(id, NULL));
    put(get(1000, 0, NULL));
    static const int32_t actions[] = {CUDAMEM_ACTION_SEGMENT_ALLOC, CUDAMEM_ACTION_ALLOC, CUDAMEM_ACTION_FREE_REQUESTED,
                                      CUDAMEM_ACTION_FREE_COMPLETED, CUDAMEM_ACTION_SEGMENT_FREE};
    assert_int_equal(watch.calls, 5);
    assert_memory_equal(watch.actions, actions, sizeof(actions));
    assert_int_equal(watch.sizes[0], 2 * MIB);
    assert_int_equal(watch.sizes[1], 1000);
    assert_int_equal(watch.status, 0);
}

/* --- the mutex ---------------------------------------------------------------------------------------------------- */

static _Atomic int reached;

static void *allocate_elsewhere(void *argument)
{
    reached = 1;
    put(get(1000, 0, NULL));
    reached = 2;
    return argument;
}

static void *hold_it_as_well(void *argument)
{
    OK(cudamem_free_mutex_lock(NULL));
    reached = 3;
    OK(cudamem_free_mutex_unlock(NULL));
    return argument;
}

static void who_holds_the_mutex_goes_on_and_others_wait(void **state)
{
    (void)state;
    pthread_t thread;
    put(get(1000, 0, NULL));
    OK(cudamem_free_mutex_lock(NULL));
    OK(cudamem_free_mutex_lock(NULL));
    reached = 0;
    assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, NULL), 0);
    while (!reached)
        usleep(100);
    usleep(2000);
    put(get(1000, 0, NULL));
    OK(cudamem_free_mutex_unlock(NULL));
    assert_int_equal(reached, 1);
    assert_int_equal(stats_of(0).allocation.all.allocated, 2);
    OK(cudamem_free_mutex_unlock(NULL));
    pthread_join(thread, NULL);
    assert_int_equal(reached, 2);
    assert_int_equal(pthread_create(&thread, NULL, hold_it_as_well, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(reached, 3);
    FAILS(CUDAMEM_ERROR_STATE, cudamem_free_mutex_unlock(&error));
}

/* --- before the first use, and after the last ----------------------------------------------------------------------- */

static int no_visit(void *self, const char *key, int64_t value)
{
    (void)self, (void)key, (void)value;
    return 1;
}

static void before_the_first_use_there_is_nothing(void **state)
{
    (void)state;
    uint64_t bytes = 1;
    char *text;
    cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
    OK(cudamem_get_memory_stats(0, &stats, NULL));
    assert_int_equal(stats.is_used, 0);
    assert_int_equal(cudamem_visit_memory_stats(-1, no_visit, NULL, NULL), 0);
    OK(cudamem_memory_allocated(-1, &bytes, NULL));
    assert_int_equal(bytes, 0);
    OK(cudamem_memory_stats_json(-1, 1, &text, NULL));
    assert_string_equal(text, "{}");
    cudamem_text_free(text);
    OK(cudamem_empty_cache(NULL));
    OK(cudamem_reset_peak_memory_stats(-1, NULL));
    FAILS(CUDAMEM_ERROR_INVALID, cudamem_free(&bytes, &error));
    OK(cudamem_free(NULL, NULL));
}

static void wrong_settings_of_the_environment_are_said_until_others_are_set(void **state)
{
    (void)state;
    void *pointer;
    double fraction = 0;
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_alloc(1000, 0, NULL, &pointer, &error));
    assert_non_null(strstr(message, "CUDAMEM_ALLOC_CONF: "));
    assert_non_null(strstr(message, "nonsense"));
    OK(cudamem_set_allocator_settings("per_process_memory_fraction:0.5", NULL));
    put(get(1000, 0, NULL));
    OK(cudamem_memory_fraction(0, &fraction, &error));
    assert_true(fraction == 0.5);
    OK(cudamem_set_allocator_settings("per_process_memory_fraction:1.0", NULL));
}

static void after_the_drivers_end_calls_answer(void **state)
{
    (void)state;
    void *cached = get(1000, 0, NULL), *pointer;
    CUstream stream = world_stream();
    OK(cudamem_record_stream(cached, stream, NULL));
    assert_int_equal(world.faults("cuMemAlloc_v2:1+=4,cuMemFree_v2:1+=4,cuEventRecord:1+=4,cuCtxPushCurrent_v2:1+=4,"
                                  "cuCtxSynchronize:1+=4,cuMemGetInfo_v2:1+=4,cuCtxGetDevice:1+=4,cuStreamGetCtx:1+=4"), 0);
    FAILS(CUDAMEM_ERROR_SHUT_DOWN, cudamem_alloc(30 * MIB, 0, NULL, &pointer, &error));
    FAILS(CUDAMEM_ERROR_SHUT_DOWN, cudamem_alloc(1000, -1, NULL, &pointer, &error));
    FAILS(CUDAMEM_ERROR_SHUT_DOWN, cudamem_alloc(1000, 0, (void *)0x1234000, &pointer, &error));
    put(cached);
    put(get(1000, 0, NULL)); /* from the cache */
    OK(cudamem_empty_cache(NULL));
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest first[] = {cmocka_unit_test(before_the_first_use_there_is_nothing),
                                       cmocka_unit_test(wrong_settings_of_the_environment_are_said_until_others_are_set)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_freed_block_serves_the_next_request_without_the_driver, clean),
        cmocka_unit_test_setup(each_device_and_each_stream_has_its_own_blocks, clean),
        cmocka_unit_test_setup(minus_one_is_the_current_device, clean),
        cmocka_unit_test_setup(nothing_is_no_block_and_too_much_is_out_of_memory, clean),
        cmocka_unit_test_setup(a_device_that_is_not_there_is_named, clean),
        cmocka_unit_test_setup(what_is_not_ours_is_refused_and_nothing_changes, clean),
        cmocka_unit_test_setup(a_stream_of_another_context_is_refused, clean),
        cmocka_unit_test_setup(a_block_waits_for_the_streams_that_used_it, clean),
        cmocka_unit_test_setup(streams_of_foreign_memory_are_ignored, clean),
        cmocka_unit_test_setup(a_block_whose_event_cannot_be_recorded_is_not_lost, clean),
        cmocka_unit_test_setup(emptying_the_cache_waits_and_gives_back, clean),
        cmocka_unit_test_setup(a_base_is_where_the_segment_begins, clean),
        cmocka_unit_test_setup(without_caching_each_call_is_the_drivers, clean),
        cmocka_unit_test_setup(a_fraction_limits_what_is_reserved, clean),
        cmocka_unit_test_setup(settings_are_in_force_from_the_next_call_on, clean),
        cmocka_unit_test_setup(observers_hear_of_requests_that_fail, clean),
        cmocka_unit_test_setup(trackers_hear_everything_and_may_call_nothing, clean),
        cmocka_unit_test_setup(who_holds_the_mutex_goes_on_and_others_wait, clean),
        cmocka_unit_test_setup(after_the_drivers_end_calls_answer, clean), /* the last one: nothing works after it */
    };
    setenv("CUDAMEM_ALLOC_CONF", "nonsense:1", 1);
    world_open("2:16GiB");
    return cmocka_run_group_tests(first, NULL, NULL) || cmocka_run_group_tests(tests, NULL, NULL);
}
