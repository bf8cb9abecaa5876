/* The allocator on a CUDA driver: the simulator's here (argument: its libcuda.so.1), any other one where there is a device. */
#include "alloc/allocator.h"
#include "base/error.h"
#include "device/driver_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static const char *library;

struct world {
    struct driver_memory *memory;
    struct allocator *allocator;
    uint64_t free_before, free_start;
};

static uint64_t free_bytes(struct world *world)
{
    uint64_t available, total;
    struct memory_device device = driver_memory_table(world->memory);
    device.memory_info(device.self, &available, &total);
    assert_true(total >= available && total);
    return available;
}

static void begin(struct world *world, const char *conf, uint64_t limit)
{
    struct error err = {0};
    struct allocator_options options = {.limit = limit};
    if (driver_memory_open(library, 0, &world->memory, &err))
        fail_msg("%s", err.message);
    settings_init(&options.settings);
    assert_int_equal(settings_parse(&options.settings, conf, &err), 0);
    options.device = driver_memory_table(world->memory);
    world->allocator = allocator_new(&options);
    assert_non_null(world->allocator);
    world->free_start = free_bytes(world);
}

static void end(struct world *world)
{
    struct error err;
    assert_true(allocator_is_valid(world->allocator, &err));
    assert_int_equal(allocator_empty_cache(world->allocator, 0), 0);
    assert_int_equal(allocator_reserved(world->allocator), 0);
    assert_int_equal(free_bytes(world), world->free_start);
    allocator_free(world->allocator);
    driver_memory_close(world->memory);
}

static void segments_come_from_the_driver_and_go_back(void **state)
{
    (void)state;
    struct world world;
    uint64_t small, large;
    begin(&world, "", ALLOCATOR_NO_LIMIT);
    assert_int_equal(allocator_malloc(world.allocator, 1000, 0, 0, &small), 0);
    assert_int_equal(allocator_malloc(world.allocator, 30 * MIB, 0, 0, &large), 0);
    assert_int_equal(world.free_start - free_bytes(&world), 32 * MIB);
    assert_int_equal(allocator_release(world.allocator, small, 0), 0);
    assert_int_equal(allocator_release(world.allocator, large, 0), 0);
    assert_int_equal(world.free_start - free_bytes(&world), 32 * MIB);
    end(&world);
}

static void expandable_segments_map_and_unmap_pages(void **state)
{
    (void)state;
    struct world world;
    uint64_t first, second;
    begin(&world, "expandable_segments:True", ALLOCATOR_NO_LIMIT);
    assert_int_equal(allocator_malloc(world.allocator, 30 * MIB, 0, 0, &first), 0);
    assert_int_equal(world.free_start - free_bytes(&world), 40 * MIB);
    assert_int_equal(allocator_malloc(world.allocator, 30 * MIB, 0, 0, &second), 0);
    assert_int_equal(second, first + 30 * MIB);
    assert_int_equal(world.free_start - free_bytes(&world), 60 * MIB);
    assert_int_equal(allocator_release(world.allocator, first, 0), 0);
    assert_int_equal(allocator_empty_cache(world.allocator, 0), 0);
    assert_int_equal(world.free_start - free_bytes(&world), 40 * MIB); /* the page that both use stays */
    assert_int_equal(allocator_release(world.allocator, second, 0), 0);
    end(&world);
}

static void a_full_device_is_an_out_of_memory_and_no_error(void **state)
{
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True"};
    for (int i = 0; i < 2; i++) {
        struct world world;
        uint64_t address;
        begin(&world, confs[i], ALLOCATOR_NO_LIMIT);
        assert_int_equal(allocator_malloc(world.allocator, world.free_start + 64 * MIB, 0, 0, &address),
                         ALLOCATOR_OUT_OF_MEMORY);
        assert_int_equal(allocator_stats(world.allocator)->num_ooms, 1);
        assert_int_equal(allocator_stats(world.allocator)->num_alloc_retries, 1);
        end(&world);
    }
}

static void a_block_that_another_stream_used_waits_for_its_event(void **state)
{
    (void)state;
    struct world world;
    uint64_t block, next;
    const int64_t other = 2; /* CU_STREAM_PER_THREAD: there without being made */
    begin(&world, "", ALLOCATOR_NO_LIMIT);
    assert_int_equal(allocator_malloc(world.allocator, 5 * MIB, 0, 0, &block), 0);
    assert_int_equal(allocator_record_stream(world.allocator, block, other), 0);
    assert_int_equal(allocator_release(world.allocator, block, 0), 0);
    assert_int_equal(allocator_malloc(world.allocator, 100, 0, 0, &next), 0); /* looks at the events */
    assert_int_equal(allocator_stats(world.allocator)->kinds[MEMORY_STAT_ACTIVE][MEMORY_POOL_ALL].current, 1);
    assert_int_equal(allocator_release(world.allocator, next, 0), 0);
    end(&world);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    struct driver_memory *memory;
    struct error err = {0};
    assert_int_equal(driver_memory_open("libcuda-nowhere.so.1", 0, &memory, &err), STATUS_NOT_FOUND);
    assert_null(memory);
    assert_non_null(strstr(err.message, "libcuda-nowhere"));
    assert_int_equal(driver_memory_open(library, 999, &memory, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.message, "999"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_come_from_the_driver_and_go_back),
        cmocka_unit_test(expandable_segments_map_and_unmap_pages),
        cmocka_unit_test(a_full_device_is_an_out_of_memory_and_no_error),
        cmocka_unit_test(a_block_that_another_stream_used_waits_for_its_event),
        cmocka_unit_test(what_is_missing_is_named),
    };
    library = argc > 1 ? argv[1] : "libcuda.so.1";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
