/* Events whose slot a stalled thread held when the ring came round to it: they are counted as lost, and what lives is
 * right without them. */
#include "ring_support.h"

#include "record/internal.h"
#include "snapshot/state.h"

#define SIZE UINT64_C(4096)

/* A thread that stalled where the ring's next event belongs. */
static void stall(void)
{
    uint64_t place = recorder.devices[0].head & (recorder.slots - 1);
    recorder.rings[0][place].sequence |= RING_BUSY;
}

static bool lives(const struct snapshot *snapshot, uint64_t address)
{
    for (size_t i = 0; i < snapshot->end.segment_count; i++)
        if (snapshot->end.segments[i].address == address)
            return true;
    return false;
}

static void record_lost_allocation(void *context)
{
    (void)context;
    start(100, 0);
    put_alloc(BASE, SIZE);
    put_free(BASE);
    put_alloc(BASE + SIZE, SIZE);
    stall();
    put_alloc(BASE, SIZE);
}

static void memory_whose_allocation_was_lost_lives_though_an_earlier_end_at_its_address_is_there(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_lost_allocation, NULL);
    assert_int_equal(snapshot->devices[0].lost_entries, 1);
    assert_int_equal(snapshot->entries.count, 3);
    assert_int_equal(snapshot->end.segment_count, 2);
    assert_true(lives(snapshot, BASE));
    assert_true(lives(snapshot, BASE + SIZE));
    snapshot_free(snapshot);
}

static void record_lost_free(void *context)
{
    (void)context;
    start(100, 0);
    put_alloc(BASE, SIZE);
    put_alloc(BASE + SIZE, SIZE);
    stall();
    put_free(BASE);
    put_alloc(BASE + 2 * SIZE, SIZE);
}

static void memory_whose_end_was_lost_does_not_live(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_lost_free, NULL);
    assert_int_equal(snapshot->devices[0].lost_entries, 1);
    assert_int_equal(snapshot->entries.count, 3);
    assert_int_equal(snapshot->end.segment_count, 2);
    assert_false(lives(snapshot, BASE));
    assert_true(lives(snapshot, BASE + 2 * SIZE));
    snapshot_free(snapshot);
}

/* Killed between its entry and the table: the entry is the thread's last. */
static void record_cut_off(void *context)
{
    (void)context;
    start(100, 0);
    put_alloc(BASE, SIZE);
    stall();
    put_free(BASE);
    put_alloc(BASE + SIZE, SIZE);
    for (uint64_t i = 0; i < RING_LIVE_FIRST; i++)
        recorder.live_keys[0][i] = 0;
}

static void the_last_allocation_of_a_thread_that_was_killed_lives(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_cut_off, NULL);
    assert_int_equal(snapshot->devices[0].lost_entries, 1);
    assert_int_equal(snapshot->end.segment_count, 1);
    assert_true(lives(snapshot, BASE + SIZE));
    snapshot_free(snapshot);
}

/* A segment that was cut into blocks, whose allocation was lost after another had lived there. */
static void record_lost_segment(void *context)
{
    (void)context;
    start(100, 0);
    put_alloc(BASE, 8 * SIZE);
    put_free(BASE);
    stall();
    put_alloc(BASE, 8 * SIZE);
    put(RECORD_ALLOC, BASE, SIZE);
    recorder_holds_block(BASE, BASE, BASE + SIZE);
    put(RECORD_ALLOC, BASE + 2 * SIZE, SIZE);
}

static void blocks_lie_in_the_segment_whose_allocation_was_lost(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_lost_segment, NULL);
    assert_int_equal(snapshot->end.segment_count, 1);
    assert_int_equal(snapshot->end.segments[0].total_size, 8 * SIZE);
    assert_int_equal(snapshot->end.segments[0].allocated_size, 2 * SIZE);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_whose_allocation_was_lost_lives_though_an_earlier_end_at_its_address_is_there),
        cmocka_unit_test(memory_whose_end_was_lost_does_not_live),
        cmocka_unit_test(the_last_allocation_of_a_thread_that_was_killed_lives),
        cmocka_unit_test(blocks_lie_in_the_segment_whose_allocation_was_lost),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
