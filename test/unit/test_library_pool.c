/* Private pools and captures of graphs, as torch.cuda.MemPool, use_mem_pool and CUDAGraph have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "library_calls.h"

#include <pthread.h>

static int clean(void **state)
{
    (void)state;
    start_afresh();
    return 0;
}

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

struct source { /* memory that nobody touches, at made-up addresses */
    uintptr_t next;
    int allocs, frees, device, stops, nested, flushes;
    size_t last_size, freed_size;
    void *last_pointer, *last_freed, *stream;
    void *kept;
};

static void *source_alloc(void *self, size_t size, int device, void *stream)
{
    struct source *source = self;
    source->allocs++;
    source->device = device;
    source->last_size = size;
    source->stream = stream;
    if (source->stops)
        return NULL;
    if (source->nested) { /* it asks for memory itself: not from the pool that asks it */
        put(get(3000, device, NULL));
        assert_int_equal(stats_of(device).num_ooms, 0);
    }
    if (!source->next)
        source->next = (uintptr_t)0x5000000000;
    source->last_pointer = (void *)source->next;
    source->next += size;
    return source->last_pointer;
}

static void source_free(void *self, void *pointer, size_t size, int device, void *stream)
{
    struct source *source = self;
    source->frees++;
    source->last_freed = pointer;
    source->freed_size = size;
    assert_int_equal(device, source->device);
    assert_ptr_equal(stream, source->stream);
    if (source->flushes)
        OK(cudamem_empty_cache(&error));
}

static cudamem_pool *pool_from(struct source *source, int device)
{
    cudamem_pool *pool;
    const cudamem_pool_options options = {
        .struct_size = sizeof(options), .alloc = source_alloc, .free = source_free, .self = source};
    OK(cudamem_pool_create(&options, device, &pool, &error));
    return pool;
}

static cudamem_pool *pool_with(int use_on_oom, int no_split)
{
    cudamem_pool *pool;
    const cudamem_pool_options options = {
        .struct_size = sizeof(options), .use_on_oom = use_on_oom, .no_split = no_split};
    OK(cudamem_pool_create(&options, 0, &pool, &error));
    return pool;
}

static void *get_from(cudamem_pool *pool, size_t size, int device, CUstream stream)
{
    OK(cudamem_pool_begin(pool, device, &error));
    void *pointer = get(size, device, stream);
    OK(cudamem_pool_end(pool, device, &error));
    return pointer;
}

static int uses(const cudamem_pool *pool)
{
    int count = -1;
    OK(cudamem_pool_use_count(pool, &count, &error));
    return count;
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

static void a_scope_sends_this_threads_requests_to_the_pool(void **state)
{
    (void)state;
    cudamem_pool *pool = pool_with(0, 0);
    put(get(1000, 0, NULL)); /* free in the default pool: not for the scope */
    assert_int_equal(cudamem_pool_get_id(pool).first, 0);
    assert_true(cudamem_pool_get_id(pool).second > 0);
    assert_int_equal(uses(pool), 1);
    OK(cudamem_pool_begin(pool, 0, &error));
    assert_int_equal(uses(pool), 2);
    void *inside = get(1000, 0, NULL);
    OK(cudamem_pool_end(pool, 0, &error));
    assert_int_equal(uses(pool), 1);
    assert_int_equal(stats_of(0).segment.all.current, 2);
    put(inside);
    assert_ptr_not_equal(get_from(pool, 600, 0, NULL), NULL);
    assert_int_equal(stats_of(0).segment.all.current, 2); /* its free block serves its own */
    put(inside);
    OK(cudamem_pool_destroy(pool, &error));
    assert_int_equal(stats_of(0).segment.all.current, 1);
}

static void *in_another_thread(void *pointer)
{
    put(get(1000, 0, NULL));
    return pointer;
}

static void other_threads_are_not_in_the_scope(void **state)
{
    (void)state;
    struct source source = {0};
    pthread_t thread;
    cudamem_pool *pool = pool_from(&source, 0);
    OK(cudamem_pool_begin(pool, 0, &error));
    pthread_create(&thread, NULL, in_another_thread, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(source.allocs, 0);
    OK(cudamem_pool_end(pool, 0, &error));
    OK(cudamem_pool_destroy(pool, &error));
}

static void scopes_open_and_close_once(void **state)
{
    (void)state;
    cudamem_pool *pool = pool_with(0, 0), *other = pool_with(0, 0);
    FAILS(CUDAMEM_ERROR_STATE, cudamem_pool_end(pool, 0, &error));
    OK(cudamem_pool_begin(pool, 0, &error));
    FAILS(CUDAMEM_ERROR_STATE, cudamem_pool_begin(pool, 0, &error));
    assert_int_equal(uses(pool), 2);
    FAILS(CUDAMEM_ERROR_STATE, cudamem_pool_destroy(pool, &error));
    OK(cudamem_pool_begin(other, 0, &error)); /* others nest */
    void *inner = get(1000, 0, NULL);
    OK(cudamem_pool_end(other, 0, &error));
    put(inner);
    OK(cudamem_pool_destroy(other, &error)); /* its segment stays until a flush, because a scope is open */
    assert_int_equal(stats_of(0).segment.all.current, 1);
    OK(cudamem_pool_end(pool, 0, &error));
    FAILS(CUDAMEM_ERROR_STATE, cudamem_pool_end(pool, 0, &error));
    FAILS(CUDAMEM_ERROR_STATE, cudamem_pool_end(pool, 1, &error));
    OK(cudamem_empty_cache(&error));
    assert_int_equal(stats_of(0).segment.all.current, 0);
    OK(cudamem_pool_destroy(pool, &error));
    OK(cudamem_pool_destroy(NULL, &error));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_pool_begin(NULL, 0, &error));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_pool_create(NULL, 0, NULL, &error));
    FAILS(CUDAMEM_ERROR_NOT_FOUND, cudamem_pool_create(NULL, 99, &pool, &error));
    assert_null(pool);
}

static void segments_come_from_the_callbacks_and_go_back_to_them(void **state)
{
    (void)state;
    struct source source = {0};
    CUstream stream = stream_on(1);
    cudamem_pool *pool = pool_from(&source, 1);
    unsigned long long driver = world.calls("cuMemAlloc_v2");
    void *first = get_from(pool, 1000, 1, stream), *second = get_from(pool, 1000, 1, stream);
    assert_int_equal(source.allocs, 1);
    assert_int_equal(source.last_size, 2 * MIB);
    assert_int_equal(source.device, 1);
    assert_ptr_equal(source.stream, stream);
    assert_ptr_equal(first, source.last_pointer);
    assert_ptr_equal(second, (char *)first + 1024);
    assert_true(world.calls("cuMemAlloc_v2") == driver);
    assert_int_equal(stats_of(1).reserved_bytes.small_pool.current, 2 * MIB);
    put(first);
    put(second);
    assert_int_equal(source.frees, 0);
    OK(cudamem_pool_destroy(pool, &error));
    assert_int_equal(source.frees, 1);
    assert_int_equal(source.freed_size, 2 * MIB);
}

static void no_memory_from_a_callback_is_a_failed_segment(void **state)
{
    (void)state;
    struct source source = {.stops = 1};
    void *pointer;
    cudamem_pool *pool = pool_from(&source, 0);
    OK(cudamem_pool_begin(pool, 0, &error));
    FAILS(CUDAMEM_ERROR_OUT_OF_MEMORY, cudamem_alloc(1000, 0, NULL, &pointer, &error));
    assert_null(pointer);
    assert_int_equal(source.allocs, 1);
    assert_int_equal(stats_of(0).num_ooms, 1);
    source.stops = 0;
    void *block = get(1000, 0, NULL);
    OK(cudamem_pool_end(pool, 0, &error));
    put(block);
    OK(cudamem_pool_destroy(pool, &error));
    assert_int_equal(source.frees, 1);
}

static void callbacks_may_use_the_library(void **state)
{
    (void)state;
    struct source source = {.nested = 1, .flushes = 1};
    cudamem_pool *pool = pool_from(&source, 0);
    void *block = get_from(pool, 1000, 0, NULL);
    assert_int_equal(source.allocs, 1);
    put(block);
    OK(cudamem_pool_destroy(pool, &error));
    assert_int_equal(source.frees, 1);
}

static void the_same_memory_twice_is_no_memory(void **state)
{
    (void)state;
    struct source source = {0};
    void *pointer;
    cudamem_pool *pool = pool_from(&source, 0);
    void *block = get_from(pool, 1000, 0, NULL);
    source.next = (uintptr_t)source.last_pointer;
    OK(cudamem_pool_begin(pool, 0, &error));
    FAILS(CUDAMEM_ERROR_OUT_OF_MEMORY, cudamem_alloc(5 * MIB, 0, NULL, &pointer, &error));
    OK(cudamem_pool_end(pool, 0, &error));
    put(block);
    OK(cudamem_pool_destroy(pool, &error));
}

static void one_callback_alone_is_refused(void **state)
{
    (void)state;
    cudamem_pool *pool;
    const cudamem_pool_options options = {.struct_size = sizeof(options), .alloc = source_alloc};
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_pool_create(&options, 0, &pool, &error));
    assert_null(pool);
}

static void callbacks_have_no_expandable_segments(void **state)
{
    (void)state;
    struct source source = {0};
    OK(cudamem_set_allocator_settings("expandable_segments:True", &error));
    cudamem_pool *pool = pool_from(&source, 0);
    void *block = get_from(pool, 5 * MIB, 0, NULL);
    assert_int_equal(source.last_size, 20 * MIB);
    void *rest = get_from(pool, 14 * MIB + 512, 0, NULL); /* leaves less than is split off a plain segment */
    assert_int_equal(stats_of(0).allocated_bytes.all.current, 20 * MIB);
    put(block);
    put(rest);
    OK(cudamem_pool_destroy(pool, &error));
    assert_int_equal(source.frees, 1);
}

static void no_split_hands_out_whole_segments(void **state)
{
    (void)state;
    cudamem_pool *pool = pool_with(0, 1);
    void *block = get_from(pool, MIB, 0, NULL);
    cudamem_memory_stats stats = stats_of(0);
    assert_int_equal(stats.allocated_bytes.small_pool.current, 2 * MIB);
    assert_int_equal(stats.requested_bytes.small_pool.current, MIB);
    put(block);
    OK(cudamem_pool_destroy(pool, &error));
}

static void a_pool_for_emergencies_lends_what_is_free(void **state)
{
    (void)state;
    void *pointer;
    for (int lends = 0; lends < 2; lends++) {
        cudamem_pool *pool = pool_with(lends, 0);
        put(get_from(pool, 100 * MIB, 0, NULL));
        OK(cudamem_set_memory_fraction(128.0 / 16384, 0, &error));
        int status = cudamem_alloc(90 * MIB, 0, NULL, &pointer, NULL);
        assert_int_equal(status, lends ? CUDAMEM_OK : CUDAMEM_ERROR_OUT_OF_MEMORY);
        put(pointer);
        OK(cudamem_set_memory_fraction(1, 0, &error));
        OK(cudamem_pool_destroy(pool, &error));
    }
}

static void a_block_outlives_its_pools_handle(void **state)
{
    (void)state;
    struct source source = {0};
    cudamem_pool *pool = pool_from(&source, 0);
    void *block = get_from(pool, 1000, 0, NULL);
    OK(cudamem_pool_destroy(pool, &error));
    OK(cudamem_empty_cache(&error));
    assert_int_equal(source.frees, 0);
    put(block);
    assert_int_equal(source.frees, 0); /* cached, until a flush */
    OK(cudamem_empty_cache(&error));
    assert_int_equal(source.frees, 1);
    assert_int_equal(stats_of(0).reserved_bytes.all.current, 0);
}

static void memory_that_callbacks_hold_is_released_before_a_request_fails(void **state)
{
    (void)state;
    struct source source = {0};
    cudamem_pool *pool = pool_from(&source, 0);
    void *block = get_from(pool, 100 * MIB, 0, NULL);
    OK(cudamem_pool_destroy(pool, &error));
    put(block);
    OK(cudamem_set_memory_fraction(128.0 / 16384, 0, &error));
    put(get(100 * MIB, 0, NULL));
    assert_int_equal(source.frees, 1);
    assert_int_equal(stats_of(0).num_alloc_retries, 1);
}

/* --- what users reported ------------------------------------------------------------------------------------------- */

struct heard {
    int segment_frees;
    uint64_t size, address;
};

static void hear(void *self, const cudamem_trace_event *event)
{
    struct heard *heard = self;
    if (event->action != CUDAMEM_ACTION_SEGMENT_FREE)
        return;
    heard->segment_frees++;
    heard->size = event->size;
    heard->address = event->address;
}

static void a_dropped_pools_memory_goes_back_once_by_its_own_function(void **state)
{
    (void)state;
    struct source source = {0};
    struct heard heard = {0};
    uint64_t id;
    cudamem_pool *pool = pool_from(&source, 0);
    OK(cudamem_attach_trace_tracker(hear, &heard, &id, &error));
    put(get_from(pool, 5 * MIB, 0, NULL));
    OK(cudamem_pool_destroy(pool, &error));
    OK(cudamem_empty_cache(&error));
    OK(cudamem_detach(id, &error));
    assert_int_equal(heard.segment_frees, 1);
    assert_int_equal(heard.size, 20971520);
    assert_int_equal(source.frees, 1);
    assert_int_equal(source.freed_size, 20971520);
    assert_int_equal((uintptr_t)source.last_freed, heard.address);
}

static void segments_are_freed_by_whom_they_are_of(void **state)
{
    (void)state;
    struct source first = {0}, second = {.next = (uintptr_t)0x6000000000};
    cudamem_pool *one = pool_from(&first, 0), *two = pool_from(&second, 0);
    unsigned long long freed = world.calls("cuMemFree_v2");
    void *blocks[] = {get_from(one, 5 * MIB, 0, NULL), get_from(two, 30 * MIB, 0, NULL), get(50 * MIB, 0, NULL)};
    for (int i = 0; i < 3; i++)
        put(blocks[i]);
    OK(cudamem_pool_destroy(two, &error));
    OK(cudamem_pool_destroy(one, &error));
    OK(cudamem_empty_cache(&error));
    assert_int_equal(first.frees, 1);
    assert_ptr_equal(first.last_freed, blocks[0]);
    assert_int_equal(second.frees, 1);
    assert_ptr_equal(second.last_freed, blocks[1]);
    assert_true(world.calls("cuMemFree_v2") == freed + 1);
}

static void a_pool_on_two_devices_is_two_pools_of_one_id(void **state)
{
    (void)state;
    struct source source = {0};
    cudamem_pool *pool = pool_from(&source, 0);
    OK(cudamem_pool_begin(pool, 0, &error));
    OK(cudamem_pool_begin(pool, 1, &error));
    void *here = get(1000, 0, NULL);
    assert_int_equal(source.device, 0);
    void *there = get(1000, 1, NULL);
    assert_int_equal(source.device, 1);
    OK(cudamem_pool_end(pool, 1, &error));
    assert_int_equal(uses(pool), 2);
    OK(cudamem_pool_end(pool, 0, &error));
    assert_int_equal(stats_of(0).segment.all.current, 1);
    assert_int_equal(stats_of(1).segment.all.current, 1);
    put(there);
    OK(cudamem_empty_cache(&error)); /* nobody holds it on device 1 */
    assert_int_equal(stats_of(1).segment.all.current, 0);
    assert_int_equal(source.frees, 1);
    source.device = 0;
    put(here);
    OK(cudamem_pool_destroy(pool, &error));
    assert_int_equal(source.frees, 2);
}

/* --- captures ------------------------------------------------------------------------------------------------------ */

static cudamem_capture *capture_on(CUstream stream, cudamem_pool *pool)
{
    cudamem_capture *capture;
    assert_int_equal(world.begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    OK(cudamem_capture_begin(0, stream, pool, &capture, &error));
    return capture;
}

static void end_capture(CUstream stream, cudamem_capture *capture)
{
    CUgraph graph;
    assert_int_equal(world.end_capture(stream, &graph), 0);
    OK(cudamem_capture_end(capture, &error));
    assert_int_equal(world.graph_destroy(graph), 0);
}

static void a_capturing_streams_requests_go_to_the_captures_pool(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    put(get(1000, 0, stream));
    put(get(1000, 0, NULL));
    cudamem_capture *capture = capture_on(stream, NULL);
    assert_true(cudamem_capture_pool_id(capture).first > 0);
    assert_int_equal(cudamem_capture_pool_id(capture).second, 0);
    void *captured = get(1000, 0, stream), *plain = get(1000, 0, NULL);
    assert_int_equal(stats_of(0).segment.all.current, 3);
    put(captured); /* its own stream: at once, and used again in the capture */
    assert_ptr_equal(get(1000, 0, stream), captured);
    end_capture(stream, capture);
    FAILS(CUDAMEM_ERROR_STATE, cudamem_capture_end(capture, &error));
    void *after = get(1000, 0, stream); /* from the default pool again */
    assert_int_equal(stats_of(0).segment.all.current, 3);
    put(captured);
    put(plain);
    put(after);
    OK(cudamem_empty_cache(&error));
    assert_int_equal(stats_of(0).segment.all.current, 1); /* the graph has the addresses */
    OK(cudamem_capture_close(capture, &error));
    OK(cudamem_empty_cache(&error));
    assert_int_equal(stats_of(0).segment.all.current, 0);
    OK(cudamem_capture_close(NULL, &error));
}

static void no_event_is_looked_at_while_a_capture_is_open(void **state)
{
    (void)state;
    CUstream stream = world_stream(), other = world_stream();
    void *waits = get(30 * MIB, 0, NULL), *deferred = get(40 * MIB, 0, NULL), *pointer;
    OK(cudamem_record_stream(waits, other, &error));
    OK(cudamem_record_stream(deferred, other, &error));
    put(waits);
    cudamem_capture *capture = capture_on(stream, NULL);
    unsigned long long queries = world.calls("cuEventQuery"), records = world.calls("cuEventRecord"),
                       waited = world.calls("cuEventSynchronize");
    put(deferred);
    put(get(1000, 0, stream));
    put(get(1000, 0, NULL));
    assert_int_equal(cudamem_alloc((size_t)1 << 50, 0, stream, &pointer, NULL), CUDAMEM_ERROR_OUT_OF_MEMORY);
    assert_int_equal(stats_of(0).num_alloc_retries, 0); /* straight to the end: nothing is flushed */
    assert_true(world.calls("cuEventQuery") == queries);
    assert_true(world.calls("cuEventRecord") == records);
    assert_true(world.calls("cuEventSynchronize") == waited);
    assert_int_equal(stats_of(0).active_bytes.all.current, 70 * MIB);
    end_capture(stream, capture);
    put(get(1000, 0, NULL));
    assert_true(world.calls("cuEventRecord") == records + 1);
    assert_int_equal(stats_of(0).active_bytes.all.current, 0);
    OK(cudamem_capture_close(capture, &error));
}

static void captures_share_a_pool_that_is_given(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    cudamem_pool *pool = pool_with(0, 0);
    cudamem_capture *one = capture_on(stream, pool);
    assert_int_equal(cudamem_capture_pool_id(one).second, cudamem_pool_get_id(pool).second);
    void *block = get(1000, 0, stream);
    put(block);
    FAILS(CUDAMEM_ERROR_STATE, cudamem_pool_destroy(pool, &error));
    end_capture(stream, one);
    assert_int_equal(uses(pool), 2);
    cudamem_capture *two = capture_on(stream, pool);
    assert_ptr_equal(get(1000, 0, stream), block);
    put(block);
    end_capture(stream, two);
    assert_int_equal(uses(pool), 3);
    OK(cudamem_pool_destroy(pool, &error));
    assert_int_equal(stats_of(0).segment.all.current, 1); /* two graphs use it */
    OK(cudamem_capture_close(one, &error));
    OK(cudamem_capture_close(two, &error));
    OK(cudamem_empty_cache(&error));
    assert_int_equal(stats_of(0).segment.all.current, 0);
}

static void a_stream_that_does_not_capture_is_refused(void **state)
{
    (void)state;
    cudamem_capture *capture;
    CUstream stream = world_stream();
    FAILS(CUDAMEM_ERROR_STATE, cudamem_capture_begin(0, stream, NULL, &capture, &error));
    assert_null(capture);
    FAILS(CUDAMEM_ERROR_STATE, cudamem_capture_begin(0, NULL, NULL, &capture, &error));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_capture_begin(0, stream, NULL, NULL, &error));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_capture_end(NULL, &error));
    put(get(1000, 0, stream));
}

/* --- the lock is let go for a segment -------------------------------------------------------------------------------- */

static void a_segment_may_be_asked_for_without_the_lock(void **state)
{
    (void)state;
    OK(cudamem_set_allocator_settings("release_lock_on_cudamalloc:True", &error));
    put(get(30 * MIB, 0, NULL));
    assert_int_equal(stats_of(0).segment.all.current, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_scope_sends_this_threads_requests_to_the_pool, clean),
        cmocka_unit_test_setup(other_threads_are_not_in_the_scope, clean),
        cmocka_unit_test_setup(scopes_open_and_close_once, clean),
        cmocka_unit_test_setup(segments_come_from_the_callbacks_and_go_back_to_them, clean),
        cmocka_unit_test_setup(no_memory_from_a_callback_is_a_failed_segment, clean),
        cmocka_unit_test_setup(callbacks_may_use_the_library, clean),
        cmocka_unit_test_setup(the_same_memory_twice_is_no_memory, clean),
        cmocka_unit_test_setup(one_callback_alone_is_refused, clean),
        cmocka_unit_test_setup(callbacks_have_no_expandable_segments, clean),
        cmocka_unit_test_setup(no_split_hands_out_whole_segments, clean),
        cmocka_unit_test_setup(a_pool_for_emergencies_lends_what_is_free, clean),
        cmocka_unit_test_setup(a_block_outlives_its_pools_handle, clean),
        cmocka_unit_test_setup(memory_that_callbacks_hold_is_released_before_a_request_fails, clean),
        cmocka_unit_test_setup(a_dropped_pools_memory_goes_back_once_by_its_own_function, clean),
        cmocka_unit_test_setup(segments_are_freed_by_whom_they_are_of, clean),
        cmocka_unit_test_setup(a_pool_on_two_devices_is_two_pools_of_one_id, clean),
        cmocka_unit_test_setup(a_capturing_streams_requests_go_to_the_captures_pool, clean),
        cmocka_unit_test_setup(no_event_is_looked_at_while_a_capture_is_open, clean),
        cmocka_unit_test_setup(captures_share_a_pool_that_is_given, clean),
        cmocka_unit_test_setup(a_stream_that_does_not_capture_is_refused, clean),
        cmocka_unit_test_setup(a_segment_may_be_asked_for_without_the_lock, clean),
    };
    world_open("2:16GiB");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
