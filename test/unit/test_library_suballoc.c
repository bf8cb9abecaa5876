/* Pieces of blocks that the program hands out itself, on the simulated driver. */
#include "library_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char *pool;

static void sub(size_t at, size_t size)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    if (cudamem_suballoc(pool + at, size, 0, NULL, &error))
        fail_msg("%s", error.message);
}

static cudamem_snapshot *snapshot_now(void)
{
    cudamem_snapshot *snapshot;
    assert_int_equal(cudamem_memory_snapshot(NULL, &snapshot, NULL), CUDAMEM_OK);
    return snapshot;
}

/* "SIZE STATE;..." of the one segment's blocks, in KiB. */
static const char *blocks_now(void)
{
    static char text[1000];
    size_t used = 0;
    cudamem_snapshot *snapshot = snapshot_now();
    cudamem_segment segment = {.struct_size = sizeof(segment)};
    uint64_t at, allocated = 0;
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 1);
    assert_int_equal(cudamem_snapshot_segment(snapshot, 0, &segment), CUDAMEM_OK);
    at = segment.address;
    text[0] = 0;
    for (size_t i = 0; i < cudamem_snapshot_block_count(snapshot); i++) {
        cudamem_block block = {.struct_size = sizeof(block)};
        assert_int_equal(cudamem_snapshot_block(snapshot, i, &block), CUDAMEM_OK);
        assert_int_equal(block.address, at);
        at += block.size;
        allocated += block.state == 1 ? block.size : 0;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%llu %s;", (unsigned long long)block.size / 1024,
                                 block.state ? "used" : "free");
    }
    assert_int_equal(at, segment.address + segment.total_size);
    assert_int_equal(allocated, segment.allocated_size);
    cudamem_snapshot_close(snapshot);
    return text;
}

/* "ACTION SIZE;..." of the history, in KiB. */
static const char *entries_now(void)
{
    static char text[4000];
    size_t used = 0;
    cudamem_snapshot *snapshot = snapshot_now();
    text[0] = 0;
    for (size_t i = 0; i < cudamem_snapshot_entry_count(snapshot); i++) {
        cudamem_entry entry = {.struct_size = sizeof(entry)};
        assert_int_equal(cudamem_snapshot_entry(snapshot, i, &entry), CUDAMEM_OK);
        if (entry.action != CUDAMEM_ACTION_SNAPSHOT)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %llu;", cudamem_action_name(entry.action),
                                     (unsigned long long)entry.size / 1024);
    }
    cudamem_snapshot_close(snapshot);
    return text;
}

static int begin(void **state)
{
    (void)state;
    void *pointer;
    const cudamem_history_options off = {.struct_size = sizeof(off), .enabled = CUDAMEM_HISTORY_NONE};
    assert_int_equal(cudamem_record_memory_history(&off, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_empty_cache(NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_alloc(20 * MIB, 0, NULL, &pointer, NULL), CUDAMEM_OK);
    pool = pointer;
    return 0;
}

static int end(void **state)
{
    (void)state;
    return cudamem_free(pool, NULL);
}

static void pieces_stand_in_their_blocks_stead(void **state)
{
    (void)state;
    assert_string_equal(blocks_now(), "20480 used;");
    sub(4 * MIB, MIB);
    sub(0, 2 * MIB);
    sub(5 * MIB, 512 << 10);
    assert_string_equal(blocks_now(), "2048 used;2048 free;1024 used;512 used;14848 free;");
    assert_int_equal(cudamem_subfree(pool + 4 * MIB, NULL), CUDAMEM_OK);
    assert_string_equal(blocks_now(), "2048 used;3072 free;512 used;14848 free;");
    uint64_t bytes;
    assert_int_equal(cudamem_memory_allocated(0, &bytes, NULL), CUDAMEM_OK);
    assert_int_equal(bytes, 20 * MIB); /* the statistics are the allocator's */
}

static void the_history_tells_of_pieces_instead_of_the_block(void **state)
{
    (void)state;
    const cudamem_history_options options = {.struct_size = sizeof(options)};
    void *pointer;
    assert_int_equal(cudamem_record_memory_history(&options, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_alloc(30 * MIB, 0, NULL, &pointer, NULL), CUDAMEM_OK);
    char *other = pointer;
    assert_int_equal(cudamem_suballoc(other, MIB, -1, NULL, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_suballoc(other + MIB, 2 * MIB, -1, NULL, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_subfree(other, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_free(other, NULL), CUDAMEM_OK);
    assert_string_equal(entries_now(), "segment_alloc 30720;alloc 30720;free_requested 30720;free_completed 30720;"
                                       "alloc 1024;alloc 2048;free_requested 1024;free_completed 1024;"
                                       "free_requested 2048;free_completed 2048;");
    /* The address is a plain block's again. */
    assert_int_equal(cudamem_alloc(30 * MIB, 0, NULL, &pointer, NULL), CUDAMEM_OK);
    assert_ptr_equal(pointer, other);
    assert_int_equal(cudamem_free(pointer, NULL), CUDAMEM_OK);
    assert_non_null(strstr(entries_now(), "alloc 30720;free_requested 30720;free_completed 30720;"));
}

static void pieces_end_with_their_block_also_without_a_history(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    void *again;
    sub(0, MIB);
    assert_int_equal(cudamem_free(pool, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_subfree(pool, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(cudamem_suballoc(pool, MIB, 0, NULL, &error), CUDAMEM_ERROR_INVALID); /* nobody's block */
    assert_int_equal(cudamem_alloc(20 * MIB, 0, NULL, &again, NULL), CUDAMEM_OK);
    assert_ptr_equal(again, pool);
    assert_string_equal(blocks_now(), "20480 used;");
}

static void a_block_that_waits_for_a_stream_has_no_pieces(void **state)
{
    (void)state;
    CUstream stream = world_stream();
    sub(0, MIB);
    world.manual(1);
    world_work(stream);
    assert_int_equal(cudamem_record_stream(pool, stream, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_free(pool, NULL), CUDAMEM_OK);
    assert_string_equal(blocks_now(), "20480 used;");
    assert_int_equal(cudamem_subfree(pool, NULL), CUDAMEM_ERROR_INVALID);
    world.manual(0);
    world.stream_synchronize(stream);
    begin(NULL);
    assert_string_equal(blocks_now(), "20480 used;");
    world.stream_destroy(stream);
}

static void stacks_of_pieces_are_their_own(void **state)
{
    (void)state;
    const cudamem_history_options options = {.struct_size = sizeof(options), .context = CUDAMEM_CONTEXT_ALLOC};
    cudamem_entry entries[4];
    assert_int_equal(cudamem_record_memory_history(&options, NULL), CUDAMEM_OK);
    sub(0, MIB);
    assert_int_equal(cudamem_subfree(pool, NULL), CUDAMEM_OK);
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 5); /* the block's two, the piece's three */
    for (size_t i = 0; i < 3; i++) {
        entries[i].struct_size = sizeof(entries[i]);
        assert_int_equal(cudamem_snapshot_entry(snapshot, 2 + i, &entries[i]), CUDAMEM_OK);
        assert_int_equal(entries[i].context, entries[0].context);
        assert_true(cudamem_snapshot_stack(snapshot, entries[i].context, NULL, 0) > 0);
    }
    cudamem_snapshot_close(snapshot);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    assert_int_equal(cudamem_suballoc(NULL, 1, 0, NULL, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_suballoc(pool, 0, 0, NULL, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_suballoc(pool, SIZE_MAX, 0, NULL, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(cudamem_suballoc(pool + 19 * MIB, 2 * MIB, 0, NULL, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(cudamem_suballoc(&error, 1, 0, NULL, &error), CUDAMEM_ERROR_INVALID);
    assert_non_null(strstr(error.message, "cudamem_alloc()"));
    assert_true(cudamem_suballoc(pool, MIB, 9, NULL, &error) < 0);
    sub(0, MIB);
    assert_int_equal(cudamem_suballoc(pool, 512, 0, NULL, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(cudamem_subfree(pool + 1, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(cudamem_subfree(NULL, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_subfree(pool, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_subfree(pool, &error), CUDAMEM_ERROR_INVALID);
}

static void one_that_overlaps_is_left_out(void **state)
{
    (void)state;
    sub(0, 2 * MIB);
    sub(MIB, 2 * MIB);
    assert_string_equal(blocks_now(), "2048 used;18432 free;");
}

static void many_pieces_come_and_go(void **state)
{
    (void)state;
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 5000; i++)
            sub(i * 4096, 2048);
        for (size_t i = 0; i < 5000; i++)
            assert_int_equal(cudamem_subfree(pool + (i * 7919 % 5000) * 4096, NULL), CUDAMEM_OK);
    }
    assert_string_equal(blocks_now(), "20480 free;");
}

int main(void)
{
    world_open("2:4GiB");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_stand_in_their_blocks_stead, begin, end),
        cmocka_unit_test_setup_teardown(the_history_tells_of_pieces_instead_of_the_block, begin, end),
        cmocka_unit_test_setup_teardown(pieces_end_with_their_block_also_without_a_history, begin, end),
        cmocka_unit_test_setup_teardown(a_block_that_waits_for_a_stream_has_no_pieces, begin, end),
        cmocka_unit_test_setup_teardown(stacks_of_pieces_are_their_own, begin, end),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(one_that_overlaps_is_left_out, begin, end),
        cmocka_unit_test_setup_teardown(many_pieces_come_and_go, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
