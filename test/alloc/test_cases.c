/*
 * What users reported of PyTorch's allocator, with their numbers: half a card unusable after one big segment was carved
 * up, small pieces that cannot serve a big request, memory cached where the request does not look, expandable segments
 * on a path that did not know them, one pool id on two devices.  Uses src/alloc, fake_device.h.
 */
#include "fake_device.h"

#include "alloc/allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB SETTINGS_MIB
#define GIB (1024 * MIB)

struct run {
    struct fake_device device;
    struct allocator *allocator;
    struct allocator_event events[2000];
    size_t event_count;
    uint64_t by_action[ALLOCATOR_OOM + 1];
};

static void run_event(void *self, const struct allocator_event *event)
{
    struct run *run = self;
    run->events[run->event_count++ % 2000] = *event;
    run->by_action[event->action]++;
}

static void run_begin(struct run *run, uint64_t capacity, const char *conf, uint64_t limit)
{
    struct allocator_options options = {.limit = limit, .trace = run_event, .trace_self = run};
    *run = (struct run){0};
    settings_init(&options.settings);
    assert_int_equal(settings_parse(&options.settings, conf, NULL), 0);
    options.device = fake_device_init(&run->device, capacity, true);
    run->allocator = allocator_new(&options);
    assert_non_null(run->allocator);
}

static void run_end(struct run *run)
{
    struct error err = {0};
    assert_true(allocator_is_valid(run->allocator, &err));
    assert_null(run->device.fault);
    allocator_free(run->allocator);
}

static uint64_t get(struct run *run, uint64_t size)
{
    uint64_t address = 0;
    assert_int_equal(allocator_malloc(run->allocator, size, 0, 1, &address), 0);
    return address;
}

static void give(struct run *run, uint64_t address)
{
    assert_int_equal(allocator_release(run->allocator, address, 0), 0);
}

static const struct memory_stat *statistic(const struct run *run, enum memory_stat_kind kind)
{
    return &allocator_stats(run->allocator)->kinds[kind][MEMORY_POOL_ALL];
}

/* --- 11,643,387,904 bytes, freed, with three small pieces cut from them, do not serve the same request again ------ */

#define BIG UINT64_C(11643387904)
#define PIECE UINT64_C(16515072)

static int carve(struct run *run, const char *conf)
{
    uint64_t again;
    run_begin(run, 16 * GIB, conf, ALLOCATOR_NO_LIMIT);
    give(run, get(run, BIG));
    for (int i = 0; i < 3; i++)
        get(run, PIECE);
    return allocator_malloc(run->allocator, BIG, 0, 1, &again);
}

static void a_carved_up_segment_makes_its_like_run_out_of_memory(void **state)
{
    (void)state;
    struct run run;
    assert_int_equal(carve(&run, ""), ALLOCATOR_OUT_OF_MEMORY);
    assert_int_equal(run.events[run.event_count - 1].action, ALLOCATOR_OOM);
    assert_int_equal(run.events[run.event_count - 1].size, BIG);
    assert_int_equal(run.events[run.event_count - 1].address, 16 * GIB - BIG); /* what the device had free */
    assert_int_equal(allocator_reserved(run.allocator), BIG);
    assert_int_equal(statistic(&run, MEMORY_STAT_SEGMENT)->current, 1);
    assert_int_equal(statistic(&run, MEMORY_STAT_INACTIVE_SPLIT_BYTES)->current, UINT64_C(11593842688));
    run_end(&run);
}

static void max_split_size_keeps_the_big_segment_whole(void **state)
{
    (void)state;
    struct run run;
    assert_int_equal(carve(&run, "max_split_size_mb:200"), 0);
    assert_int_equal(run.by_action[ALLOCATOR_OOM], 0);
    assert_int_equal(statistic(&run, MEMORY_STAT_RESERVED_BYTES)->peak, UINT64_C(11693719552));
    assert_int_equal(UINT64_C(11693719552), BIG + 3 * UINT64_C(16777216));
    assert_int_equal(allocator_stats(run.allocator)->num_alloc_retries, 0);
    run_end(&run);
}

/* --- expandable segments with max_split_size and collection, under pressure --------------------------------------- */

static void expandable_segments_are_unmapped_never_freed(void **state)
{
    (void)state;
    struct run run;
    uint64_t held[4] = {0}, refused = 0;
    run_begin(&run, 400 * MIB, "expandable_segments:True,max_split_size_mb:40,garbage_collection_threshold:0.4",
              320 * MIB);
    for (int round = 0; round < 60; round++) {
        int one = round % 4;
        if (held[one])
            give(&run, held[one]);
        held[one] = 0;
        if (allocator_malloc(run.allocator, (uint64_t)(1 + round * 37 % 130) * MIB, round / 7 % 2, 1, &held[one]))
            refused++;
    }
    assert_int_equal(refused, run.by_action[ALLOCATOR_OOM]);
    assert_true(run.by_action[ALLOCATOR_SEGMENT_UNMAP] > 0 && allocator_stats(run.allocator)->num_alloc_retries > 0);
    assert_int_equal(run.by_action[ALLOCATOR_SEGMENT_FREE], 0);
    assert_int_equal(run.by_action[ALLOCATOR_SEGMENT_ALLOC], 0);
    assert_int_equal(run.device.releases, 0);
    assert_int_equal(run.device.used, allocator_reserved(run.allocator));
    run_end(&run);
}

/* --- what a pool without a handle has cached is released before a request fails ----------------------------------- */

static void memory_cached_in_a_dropped_pool_is_released_for_the_default_pool(void **state)
{
    (void)state;
    struct run run;
    const struct pool_id id = {0, 1};
    run_begin(&run, 5 * GIB, "", ALLOCATOR_NO_LIMIT);
    assert_int_equal(allocator_pool_create(run.allocator, id, &(struct pool_options){false, false}), 0);
    assert_int_equal(allocator_scope_begin(run.allocator, id, NULL, NULL), 0);
    uint64_t cached = get(&run, 4 * GIB);
    give(&run, cached);
    assert_int_equal(allocator_scope_end(run.allocator, id), 0);
    assert_int_equal(allocator_pool_release(run.allocator, id), 0); /* the scope's use */
    uint64_t address;
    assert_int_equal(allocator_malloc(run.allocator, 4 * GIB, 0, 1, &address), ALLOCATOR_OUT_OF_MEMORY);
    assert_int_equal(run.by_action[ALLOCATOR_SEGMENT_FREE], 0); /* the handle keeps what the pool has */
    assert_int_equal(allocator_pool_release(run.allocator, id), 0); /* the handle */
    size_t before = run.event_count;
    get(&run, 4 * GIB);
    const struct allocator_event *events = &run.events[before];
    assert_int_equal(run.event_count, before + 3);
    assert_int_equal(events[0].action, ALLOCATOR_SEGMENT_FREE);
    assert_int_equal(events[0].address, cached);
    assert_int_equal(events[0].size, 4 * GIB);
    assert_int_equal(events[0].pool.second, 1);
    assert_int_equal(events[1].action, ALLOCATOR_SEGMENT_ALLOC);
    assert_int_equal(events[1].pool.second, 0);
    assert_int_equal(events[2].action, ALLOCATOR_ALLOC);
    assert_int_equal(run.by_action[ALLOCATOR_OOM], 1);
    assert_int_equal(allocator_pool_uses(run.allocator, id), 0);
    run_end(&run);
}

/* --- eight freed pieces and one buffer of their sum --------------------------------------------------------------- */

static void move_and_flatten(struct run *run, bool flush)
{
    uint64_t pieces[8];
    run_begin(run, 10 * GIB, "", ALLOCATOR_NO_LIMIT);
    for (int i = 0; i < 8; i++)
        pieces[i] = get(run, 400000000);
    for (int i = 0; i < 8; i++)
        give(run, pieces[i]);
    if (flush)
        assert_int_equal(allocator_empty_cache(run->allocator, 0), 0);
    get(run, UINT64_C(3200000000));
}

static void freed_pieces_do_not_serve_one_flat_buffer(void **state)
{
    (void)state;
    struct run run;
    move_and_flatten(&run, false);
    assert_int_equal(statistic(&run, MEMORY_STAT_RESERVED_BYTES)->peak, UINT64_C(6404702208));
    assert_int_equal(UINT64_C(6404702208), 8 * UINT64_C(400556032) + UINT64_C(3200253952));
    assert_int_equal(allocator_reserved(run.allocator), UINT64_C(6404702208));
    run_end(&run);
    move_and_flatten(&run, true);
    assert_int_equal(statistic(&run, MEMORY_STAT_RESERVED_BYTES)->peak, UINT64_C(3204448256));
    assert_int_equal(allocator_reserved(run.allocator), UINT64_C(3200253952));
    run_end(&run);
}

/* --- one pool id on two devices ----------------------------------------------------------------------------------- */

static void one_pool_id_on_two_devices_is_two_pools(void **state)
{
    (void)state;
    struct run runs[2];
    uint64_t inside[2];
    const struct pool_id id = {0, 1};
    for (int i = 0; i < 2; i++) {
        run_begin(&runs[i], GIB, "", ALLOCATOR_NO_LIMIT);
        assert_int_equal(allocator_pool_uses(runs[i].allocator, id), 0); /* the other's does not show here */
        assert_int_equal(allocator_pool_create(runs[i].allocator, id, &(struct pool_options){false, i == 1}), 0);
        assert_int_equal(allocator_scope_begin(runs[i].allocator, id, NULL, NULL), 0);
        inside[i] = get(&runs[i], 1000);
        assert_int_equal(runs[i].events[0].pool.second, 1);
        assert_int_equal(allocator_scope_end(runs[i].allocator, id), 0);
        assert_int_equal(allocator_pool_release(runs[i].allocator, id), 0);
    }
    assert_int_equal(statistic(&runs[0], MEMORY_STAT_ALLOCATED_BYTES)->current, 1024);
    assert_int_equal(statistic(&runs[1], MEMORY_STAT_ALLOCATED_BYTES)->current, 2 * MIB); /* its own no_split */
    give(&runs[0], inside[0]);
    assert_int_equal(allocator_pool_release(runs[0].allocator, id), 0);
    assert_int_equal(allocator_pool_flush(runs[0].allocator, id, 0), 0);
    assert_int_equal(allocator_reserved(runs[0].allocator), 0);
    assert_int_equal(allocator_pool_uses(runs[0].allocator, id), 0);
    assert_int_equal(allocator_pool_uses(runs[1].allocator, id), 1);
    assert_int_equal(allocator_reserved(runs[1].allocator), 2 * MIB);
    for (int i = 0; i < 2; i++)
        run_end(&runs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_carved_up_segment_makes_its_like_run_out_of_memory),
        cmocka_unit_test(max_split_size_keeps_the_big_segment_whole),
        cmocka_unit_test(expandable_segments_are_unmapped_never_freed),
        cmocka_unit_test(memory_cached_in_a_dropped_pool_is_released_for_the_default_pool),
        cmocka_unit_test(freed_pieces_do_not_serve_one_flat_buffer),
        cmocka_unit_test(one_pool_id_on_two_devices_is_two_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
