/* The library as PyTorch's pluggable allocator: its signatures and hooks, called the way PyTorch calls them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "library_calls.h"

static int clean(void **state)
{
    (void)state;
    start_afresh();
    cudamem_torch_records_streams(0);
    return 0;
}

static void requests_are_served_and_failures_are_null(void **state)
{
    (void)state;
    void *(*alloc)(ptrdiff_t, int, void *) = cudamem_torch_alloc; /* by address, as there */
    void (*release)(void *, ptrdiff_t, int, void *) = cudamem_torch_free;
    void *block = alloc(1000, 1, NULL);
    assert_non_null(block);
    assert_int_equal(stats_of(1).requested_bytes.all.current, 1000);
    release(block, 1000, 1, NULL);
    assert_int_equal(stats_of(1).requested_bytes.all.current, 0);
    assert_null(alloc(0, 0, NULL));
    assert_null(alloc(-5, 0, NULL));
    assert_null(alloc((ptrdiff_t)1 << 50, 0, NULL));
    assert_null(alloc(1000, 99, NULL));
    release(NULL, 0, 0, NULL);
    release(block, 1000, 1, NULL); /* twice: nothing happens */
}

/* Work on `other` still uses the block when it is freed.  Is it used again before that is done? */
static bool comes_back_too_early(bool tell)
{
    CUstream own = world_stream(), other = world_stream();
    void *seen = cudamem_torch_alloc(30 * (ptrdiff_t)MIB, 0, other);
    void *block = cudamem_torch_alloc(30 * (ptrdiff_t)MIB, 0, own);
    world.manual(1);
    world_work(other);
    if (tell)
        cudamem_torch_record_stream(block, other);
    cudamem_torch_free(block, 30 * (ptrdiff_t)MIB, 0, own);
    void *again = cudamem_torch_alloc(30 * (ptrdiff_t)MIB, 0, own);
    bool early = again == block;
    world.manual(0);
    world.stream_synchronize(other);
    cudamem_torch_free(again, 30 * (ptrdiff_t)MIB, 0, own);
    cudamem_torch_free(seen, 30 * (ptrdiff_t)MIB, 0, other);
    again = cudamem_torch_alloc(30 * (ptrdiff_t)MIB, 0, own);
    cudamem_torch_free(again, 30 * (ptrdiff_t)MIB, 0, own);
    return early;
}

static void without_the_hook_a_free_waits_for_every_stream_that_was_seen(void **state)
{
    (void)state;
    assert_false(comes_back_too_early(false));
}

static void with_the_hook_it_waits_for_those_that_were_told(void **state)
{
    (void)state;
    assert_false(comes_back_too_early(true));
    assert_true(comes_back_too_early(false)); /* the hook was called: not told, so not in use */
}

static void with_the_hook_announced_a_free_block_is_used_again_at_once(void **state)
{
    (void)state;
    cudamem_torch_records_streams(1);
    assert_true(comes_back_too_early(false));
    assert_false(comes_back_too_early(true));
}

static void the_other_hooks_do_what_pytorch_calls_them_for(void **state)
{
    (void)state;
    size_t size = 0;
    double fraction = 0;
    cudamem_torch_init(2);
    void *first = cudamem_torch_alloc(1000, 0, NULL), *second = cudamem_torch_alloc(1000, 0, NULL);
    assert_ptr_equal(cudamem_torch_base_alloc(second, &size), first);
    assert_int_equal(size, 2 * MIB);
    assert_null(cudamem_torch_base_alloc(&size, &size));
    cudamem_torch_records_streams(1);
    cudamem_torch_free(first, 1000, 0, NULL);
    cudamem_torch_free(second, 1000, 0, NULL);
    cudamem_torch_reset();
    assert_int_equal(stats_of(0).reserved_bytes.all.current, 0);
    cudamem_torch_memory_fraction(0.25, 0);
    OK(cudamem_memory_fraction(0, &fraction, &error));
    assert_true(fraction == 0.25);
    cudamem_torch_memory_fraction(7, 0); /* refused */
    OK(cudamem_memory_fraction(0, &fraction, &error));
    assert_true(fraction == 0.25);
}

static int dropped;
static int takes_streams(void *self, void *stream)
{
    return stream == *(void **)self;
}
static void drop(void *self)
{
    (void)self;
    dropped++;
}

static void pools_take_what_their_filter_takes(void **state)
{
    (void)state;
    void *stream = world_stream();
    dropped = 0;
    cudamem_torch_records_streams(1);
    cudamem_torch_free(cudamem_torch_alloc(1000, 0, stream), 1000, 0, stream);
    assert_int_equal(cudamem_torch_begin_pool(0, 0, 1000001, takes_streams, drop, &stream), CUDAMEM_OK);
    assert_int_equal(cudamem_torch_begin_pool(0, 0, 1000001, takes_streams, drop, &stream), CUDAMEM_ERROR_STATE);
    assert_int_equal(dropped, 1);
    void *inside = cudamem_torch_alloc(1000, 0, stream), *outside = cudamem_torch_alloc(1000, 0, NULL);
    assert_int_equal(stats_of(0).segment.all.current, 3);
    assert_int_equal(cudamem_torch_end_pool(0, 0, 1000001), CUDAMEM_OK);
    assert_int_equal(dropped, 2);
    assert_int_equal(cudamem_torch_end_pool(0, 0, 1000001), CUDAMEM_ERROR_STATE);
    cudamem_torch_free(inside, 1000, 0, stream);
    cudamem_torch_free(outside, 1000, 0, NULL);
    cudamem_torch_reset();
    assert_int_equal(stats_of(0).segment.all.current, 1);
    assert_int_equal(cudamem_torch_release_pool(0, 0, 1000001), CUDAMEM_OK);
    cudamem_torch_reset();
    assert_int_equal(stats_of(0).segment.all.current, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(requests_are_served_and_failures_are_null, clean),
        cmocka_unit_test_setup(without_the_hook_a_free_waits_for_every_stream_that_was_seen, clean),
        cmocka_unit_test_setup(with_the_hook_it_waits_for_those_that_were_told, clean),
        cmocka_unit_test_setup(with_the_hook_announced_a_free_block_is_used_again_at_once, clean),
        cmocka_unit_test_setup(the_other_hooks_do_what_pytorch_calls_them_for, clean),
        cmocka_unit_test_setup(pools_take_what_their_filter_takes, clean),
    };
    world_open("2:16GiB");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
