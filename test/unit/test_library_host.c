/* The pinned host allocator of the public library, by PyTorch's words about host_memory_stats, on the simulated driver. */
#include "library_world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void *take(size_t size)
{
    void *pointer = NULL;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    if (cudamem_host_alloc(size, &pointer, &error))
        fail_msg("%s", error.message);
    assert_non_null(pointer);
    return pointer;
}

static void give(void *pointer)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    if (cudamem_host_free(pointer, &error))
        fail_msg("%s", error.message);
}

static cudamem_host_memory_stats stats_now(void)
{
    cudamem_host_memory_stats stats = {.struct_size = sizeof(stats)};
    assert_int_equal(cudamem_get_host_memory_stats(&stats, NULL), CUDAMEM_OK);
    return stats;
}

/* Nothing owned, numbers at zero. */
static int begin(void **state)
{
    (void)state;
    world.manual(0);
    assert_int_equal(cudamem_host_empty_cache(NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_reset_accumulated_host_memory_stats(NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_reset_peak_host_memory_stats(NULL), CUDAMEM_OK);
    cudamem_host_memory_stats stats = stats_now();
    assert_int_equal(stats.allocations.current, 0);
    assert_int_equal(stats.active_bytes.current, 0);
    return 0;
}

static void assert_stat(cudamem_stat stat, int64_t current, int64_t peak, int64_t allocated, int64_t freed)
{
    assert_int_equal(stat.current, current);
    assert_int_equal(stat.peak, peak);
    assert_int_equal(stat.allocated, allocated);
    assert_int_equal(stat.freed, freed);
}

static void sizes_are_powers_of_two(void **state)
{
    (void)state;
    static const struct {
        size_t asked, bytes;
    } sizes[] = {{1, 1}, {2, 2}, {3, 4}, {4096, 4096}, {4097, 8192}, {100000, 131072}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t before = stats_now().allocated_bytes.current;
        memset(take(sizes[i].asked), 1, sizes[i].asked);
        assert_int_equal(stats_now().allocated_bytes.current - before, sizes[i].bytes);
    }
    /* All of it is still handed out: give it back by the visitor's own numbers. */
    assert_int_equal(stats_now().active_requests.current, 6);
}

static void a_freed_block_serves_the_next_request_of_its_power_and_is_never_split(void **state)
{
    (void)state;
    void *big = take(1 << 20), *other;
    give(big);
    other = take(600 << 10); /* the same power */
    assert_ptr_equal(other, big);
    give(other);
    other = take(512 << 10); /* half of it */
    assert_ptr_not_equal(other, big);
    cudamem_host_memory_stats stats = stats_now();
    assert_int_equal(stats.num_host_alloc, 2);
    assert_int_equal(stats.num_host_free, 0);
    give(other);
}

static void the_numbers_follow_their_definitions(void **state)
{
    (void)state;
    void *a = take(1000), *b = take(1000), *c = take(3000);
    give(a);
    cudamem_host_memory_stats stats = stats_now();
    assert_stat(stats.allocations, 3, 3, 3, 0);
    assert_stat(stats.allocated_bytes, 1024 * 2 + 4096, 1024 * 2 + 4096, 1024 * 2 + 4096, 0);
    assert_stat(stats.active_requests, 2, 3, 3, 1);
    assert_stat(stats.active_bytes, 1024 + 4096, 1024 * 2 + 4096, 1024 * 2 + 4096, 1024);
    assert_int_equal(stats.num_host_alloc, 3);
    assert_int_equal(stats.host_alloc_time.count, 3);
    assert_true(stats.host_alloc_time.max <= stats.host_alloc_time.total);
    assert_int_equal(stats.host_alloc_time.avg, stats.host_alloc_time.total / 3);
    give(b);
    give(c);
    assert_int_equal(cudamem_host_empty_cache(NULL), CUDAMEM_OK);
    stats = stats_now();
    assert_stat(stats.allocations, 0, 3, 3, 3);
    assert_stat(stats.allocated_bytes, 0, 1024 * 2 + 4096, 1024 * 2 + 4096, 1024 * 2 + 4096);
    assert_int_equal(stats.num_host_free, 3);
    assert_int_equal(stats.host_free_time.count, 3);
}

static void resets_begin_sums_and_peaks_anew(void **state)
{
    (void)state;
    void *a = take(1000), *b = take(1000);
    give(a);
    assert_int_equal(cudamem_reset_accumulated_host_memory_stats(NULL), CUDAMEM_OK);
    cudamem_host_memory_stats stats = stats_now();
    assert_stat(stats.active_requests, 1, 2, 0, 0);
    assert_stat(stats.allocations, 2, 2, 0, 0);
    assert_int_equal(stats.num_host_alloc, 0);
    assert_int_equal(stats.host_alloc_time.count, 0);
    assert_int_equal(stats.host_alloc_time.total, 0);
    assert_int_equal(cudamem_reset_peak_host_memory_stats(NULL), CUDAMEM_OK);
    stats = stats_now();
    assert_stat(stats.active_requests, 1, 1, 0, 0);
    assert_int_equal(stats.host_alloc_time.max, 0);
    give(b);
}

static void a_block_waits_for_the_streams_that_used_it(void **state)
{
    (void)state;
    CUstream first = world_stream(), second = world_stream();
    world.manual(1);
    void *block = take(5000);
    world_work(first);
    world_work(second);
    assert_int_equal(cudamem_host_record_stream(block, first, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_host_record_stream(block, second, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_host_record_stream(block, second, NULL), CUDAMEM_OK);
    give(block);
    assert_int_equal(stats_now().active_requests.current, 1);
    void *other = take(5000);
    assert_ptr_not_equal(other, block);
    world.complete(first, 1000);
    void *third = take(5000);
    assert_ptr_not_equal(third, block);
    world.complete(second, 1000);
    void *fourth = take(5000);
    assert_ptr_equal(fourth, block);
    world.manual(0);
    give(other);
    give(third);
    give(fourth);
    assert_int_equal(stats_now().active_requests.current, 0);
    world.stream_destroy(first);
    world.stream_destroy(second);
}

static void events_are_used_again(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    give(take(100)); /* what was made before is there */
    for (int i = 0; i < 3; i++) {
        void *block = take(100);
        assert_int_equal(cudamem_host_record_stream(block, stream, NULL), CUDAMEM_OK);
        give(block);
    }
    unsigned long long made = world.calls("cuEventCreate");
    for (int i = 0; i < 100; i++) {
        void *block = take(100);
        assert_int_equal(cudamem_host_record_stream(block, stream, NULL), CUDAMEM_OK);
        give(block);
    }
    assert_int_equal(world.calls("cuEventCreate"), made);
    give(take(100));
    world.stream_destroy(stream);
}

static void empty_cache_leaves_what_a_stream_still_uses(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    world.manual(1);
    void *used = take(5000), *unused = take(5000);
    world_work(stream);
    assert_int_equal(cudamem_host_record_stream(used, stream, NULL), CUDAMEM_OK);
    give(used);
    give(unused);
    assert_int_equal(cudamem_host_empty_cache(NULL), CUDAMEM_OK);
    assert_int_equal(stats_now().allocations.current, 1);
    world.complete(stream, 1000);
    assert_int_equal(cudamem_host_empty_cache(NULL), CUDAMEM_OK);
    assert_int_equal(stats_now().allocations.current, 0);
    world.manual(0);
    world.stream_destroy(stream);
}

static void a_capture_is_left_alone(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    CUgraph graph;
    void *block = take(5000);
    assert_int_equal(cudamem_host_record_stream(block, stream, NULL), CUDAMEM_OK);
    assert_int_equal(world.begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    give(block);
    void *other = take(5000);
    assert_ptr_not_equal(other, block); /* who could say that the stream is done with it? */
    assert_int_equal(world.end_capture(stream, &graph), CUDA_SUCCESS); /* and the capture is whole */
    void *third = take(5000);
    assert_ptr_equal(third, block);
    give(other);
    give(third);
    world.graph_destroy(graph);
    world.stream_destroy(stream);
}

static void nonsense_is_refused_with_a_sentence(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    void *pointer = &error;
    assert_int_equal(cudamem_host_alloc(0, &pointer, NULL), CUDAMEM_OK);
    assert_null(pointer);
    assert_int_equal(cudamem_host_free(NULL, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_host_alloc(1, NULL, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_host_alloc(SIZE_MAX, &pointer, &error), CUDAMEM_ERROR_OUT_OF_MEMORY);
    assert_null(pointer);
    assert_int_equal(cudamem_host_free(&error, &error), CUDAMEM_ERROR_INVALID);
    assert_non_null(strstr(error.message, "cudamem_host_alloc"));
    void *block = take(64);
    give(block);
    assert_int_equal(cudamem_host_free(block, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(cudamem_host_record_stream(block, NULL, &error), CUDAMEM_ERROR_INVALID);
    cudamem_host_memory_stats none = {.struct_size = 0};
    assert_int_equal(cudamem_get_host_memory_stats(&none, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_visit_host_memory_stats(NULL, NULL, &error), CUDAMEM_ERROR_USAGE);
}

struct keys {
    char last[64];
    int count;
    int64_t active;
};

static int visit(void *self, const char *key, int64_t value)
{
    struct keys *keys = self;
    assert_true(key && strlen(key) < sizeof(keys->last) && strcmp(keys->last, key) < 0);
    memcpy(keys->last, key, strlen(key) + 1);
    keys->count++;
    if (!strcmp(key, "active_bytes.current"))
        keys->active = value;
    return 0;
}

static void visitor_and_json_have_pytorchs_keys(void **state)
{
    (void)state;
    char *flat, *nested, line[256], path[4096];
    struct keys keys = {.count = 0};
    void *block = take(100);
    assert_int_equal(cudamem_visit_host_memory_stats(visit, &keys, NULL), 0);
    assert_int_equal(keys.count, 28);
    assert_int_equal(keys.active, 128);
    assert_int_equal(cudamem_host_memory_stats_json(0, &flat, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_host_memory_stats_json(1, &nested, NULL), CUDAMEM_OK);
    snprintf(path, sizeof(path), "%s/host.stats.json", TEST_DATA); /* the keys of a real run */
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int count = 0;
    const char *at = flat;
    while (fgets(line, sizeof(line), file)) {
        char *end = strrchr(line, '"');
        if (!end || !at)
            continue;
        end[1] = 0;
        at = strstr(at, line);
        assert_non_null(at);
        count++;
    }
    fclose(file);
    assert_int_equal(count, 28);
    assert_non_null(strstr(nested, "\"active_bytes\": {\"current\": 128, \"peak\": 128, \"allocated\": 128, \"freed\": 0}"));
    assert_int_equal(strncmp(nested, "{\"num_host_alloc\": 1, ", 22), 0);
    cudamem_text_free(flat);
    cudamem_text_free(nested);
    give(block);
}

static void every_failure_of_the_driver_is_told(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    void *pointer;
    world_fail("cuMemHostAlloc", "oom");
    assert_int_equal(cudamem_host_alloc(777, &pointer, &error), CUDAMEM_ERROR_OUT_OF_MEMORY);
    assert_null(pointer);
    assert_non_null(strstr(error.message, "CUDA_ERROR_OUT_OF_MEMORY"));
    assert_int_equal(stats_now().allocations.current, 0);

    give(take(777));
    world_fail("cuMemFreeHost", "1");
    assert_int_equal(cudamem_host_empty_cache(&error), CUDAMEM_ERROR_DRIVER);
    assert_int_equal(stats_now().allocations.current, 0);

    /* An event that cannot be had: the stream is waited for instead. */
    CUstream stream = world_stream();
    static const char *const calls[] = {"cuEventCreate", "cuEventRecord"};
    for (int i = 0; i < 2; i++) {
        void *block = take(777);
        assert_int_equal(cudamem_host_record_stream(block, stream, NULL), CUDAMEM_OK);
        world_fail(calls[i], "2");
        give(block);
        void *again = take(777);
        assert_ptr_equal(again, block);
        give(again);
    }
    world.stream_destroy(stream);
}

/* A bit of everything; whatever fails says so, and hands out nothing. */
static bool scenario(CUstream stream)
{
    void *blocks[4];
    cudamem_error error = CUDAMEM_ERROR_INIT;
    int failures = 0;
    for (int i = 0; i < 4; i++) {
        error.message[0] = 0;
        if (cudamem_host_alloc((size_t)1000 << i % 2, &blocks[i], &error)) {
            failures++;
            assert_null(blocks[i]);
            assert_true(error.message[0]);
            continue;
        }
        memset(blocks[i], i, (size_t)1000 << i % 2);
        failures += i != 3 && cudamem_host_record_stream(blocks[i], i == 1 ? NULL : stream, &error) != CUDAMEM_OK;
        failures += i < 2 && cudamem_host_free(blocks[i], &error) != CUDAMEM_OK;
    }
    for (int i = 2; i < 4; i++)
        failures += cudamem_host_free(blocks[i], &error) != CUDAMEM_OK;
    failures += cudamem_host_empty_cache(&error) != CUDAMEM_OK;
    return !failures;
}

static void no_call_that_fails_leaves_anything_behind(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cuMemHostAlloc", "cuMemFreeHost", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuCtxPushCurrent_v2",
        "cuCtxPopCurrent_v2", "cuStreamGetCtx", "cuStreamGetCaptureInfo_v2", "cuThreadExchangeStreamCaptureMode",
        "cuCtxGetDevice", "cuCtxSynchronize"};
    CUstream stream = world_stream();
    assert_true(scenario(stream));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsigned long long before = world.calls(names[i]);
        assert_true(scenario(stream));
        unsigned long long count = world.calls(names[i]) - before;
        for (unsigned long long n = 1; n <= count; n++) {
            char fault[96];
            snprintf(fault, sizeof(fault), "%s:%llu=1", names[i], n);
            assert_int_equal(world.faults(fault), 0);
            scenario(stream);
            for (int again = 0; again < 3 && !scenario(stream); again++) {
                /* a failure that the first run did not come to */
            }
            if (!scenario(stream))
                fail_msg("%s:%llu: it does not work any more", names[i], n);
            if (stats_now().active_bytes.current || stats_now().allocations.current)
                fail_msg("%s:%llu: something is left", names[i], n);
        }
    }
    world.stream_destroy(stream);
}

static void *take_and_give(void *argument)
{
    CUstream stream = argument;
    void *held[8] = {NULL};
    for (unsigned i = 0; i < 2000; i++) {
        void **place = &held[i % 8];
        if (*place) {
            if (i % 3 == 0)
                cudamem_host_record_stream(*place, stream, NULL);
            assert_int_equal(*(unsigned *)*place, i - 8);
            give(*place);
        }
        *place = take(4 + i % 7000);
        *(unsigned *)*place = i;
    }
    for (unsigned i = 0; i < 8; i++)
        give(held[i]);
    return NULL;
}

static void threads_do_not_get_each_others_blocks(void **state)
{
    (void)state;
    pthread_t threads[4];
    CUstream streams[4];
    for (int i = 0; i < 4; i++) {
        streams[i] = world_stream();
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, streams[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        world.stream_synchronize(streams[i]);
    }
    assert_int_equal(cudamem_host_empty_cache(NULL), CUDAMEM_OK);
    assert_int_equal(stats_now().allocations.current, 0);
    assert_int_equal(stats_now().active_bytes.current, 0);
    for (int i = 0; i < 4; i++)
        world.stream_destroy(streams[i]);
}

static void before_the_first_request_all_is_zero(void **state)
{
    (void)state;
    cudamem_host_memory_stats stats = stats_now();
    assert_stat(stats.allocations, 0, 0, 0, 0);
    assert_int_equal(stats.num_host_alloc, 0);
    assert_int_equal(world.calls("cuMemHostAlloc"), 0);
    assert_int_equal(cudamem_host_empty_cache(NULL), CUDAMEM_OK);
}

int main(void)
{
    world_open("1:16GiB");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_request_all_is_zero),
        cmocka_unit_test_setup(a_freed_block_serves_the_next_request_of_its_power_and_is_never_split, begin),
        cmocka_unit_test_setup(the_numbers_follow_their_definitions, begin),
        cmocka_unit_test_setup(resets_begin_sums_and_peaks_anew, begin),
        cmocka_unit_test_setup(a_block_waits_for_the_streams_that_used_it, begin),
        cmocka_unit_test_setup(events_are_used_again, begin),
        cmocka_unit_test_setup(empty_cache_leaves_what_a_stream_still_uses, begin),
        cmocka_unit_test_setup(a_capture_is_left_alone, begin),
        cmocka_unit_test_setup(nonsense_is_refused_with_a_sentence, begin),
        cmocka_unit_test_setup(visitor_and_json_have_pytorchs_keys, begin),
        cmocka_unit_test_setup(every_failure_of_the_driver_is_told, begin),
        cmocka_unit_test_setup(no_call_that_fails_leaves_anything_behind, begin),
        cmocka_unit_test_setup(threads_do_not_get_each_others_blocks, begin),
        cmocka_unit_test_setup(sizes_are_powers_of_two, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
