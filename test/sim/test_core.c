/* The simulated device's core: limits, sharing of pages, virtual memory, streams and events, pools, faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "sim/sim.h"

#define MIB (1ull << 20)

static struct sim *make(const char *devices, bool manual)
{
    struct sim_config config = {.manual = manual};
    struct error err;
    assert_int_equal(sim_config_devices(&config, devices, &err), 0);
    struct sim *sim = sim_new(&config);
    assert_non_null(sim);
    return sim;
}

static uint64_t available(struct sim *sim, unsigned device)
{
    uint64_t a, t;
    assert_int_equal(sim_info(sim, device, &a, &t), 0);
    return a;
}

static void devices_are_read_from_text(void **state)
{
    struct sim_config config = {0};
    struct error err;
    (void)state;
    assert_int_equal(sim_config_devices(&config, "2:16GiB", &err), 0);
    assert_int_equal(config.devices, 2);
    assert_int_equal(config.bytes[1], 16384 * MIB);
    assert_int_equal(sim_config_devices(&config, "1GiB,3:64MiB", &err), 0);
    assert_int_equal(config.devices, 4);
    assert_int_equal(config.bytes[0], 1024 * MIB);
    assert_int_equal(config.bytes[3], 64 * MIB);
    assert_int_equal(sim_config_devices(&config, "0:1GiB", &err), 0);
    assert_int_equal(config.devices, 0);
    assert_int_equal(sim_config_devices(&config, "3", &err), 0);
    assert_int_equal(config.devices, 3);
    assert_int_equal(config.bytes[2], 16384 * MIB);
    assert_int_equal(sim_config_devices(&config, "2147483648,1", &err), 0);
    assert_int_equal(config.devices, 2);
    assert_int_equal(config.bytes[0], 2048 * MIB);
    assert_int_equal(sim_config_devices(&config, "0", &err), 0);
    assert_int_equal(config.devices, 0);
    assert_int_equal(sim_config_devices(&config, NULL, &err), 0);
    assert_int_equal(config.devices, 1);
    static const char *wrong[] = {"", "x", "2:", "17", "-1", "2 ", "1,", "99999", "1000000", "-1:1GiB", "17:1GiB", "1:1MiB", "1:1TiB", "2:1GiB,", "9:1GiB,8:1GiB"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(sim_config_devices(&config, wrong[i], &err), 0);
}

static void memory_ends_exactly_at_the_limit(void **state)
{
    struct sim *sim = make("64MiB", false);
    uint64_t a, b, c;
    (void)state;
    assert_int_equal(sim_get(sim, 0, 60 * MIB, SIM_PLAIN, NULL, &a), CUDA_SUCCESS);
    assert_int_equal(sim_get(sim, 0, 4 * MIB + 1, SIM_PLAIN, NULL, &b), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(available(sim, 0), 4 * MIB);
    assert_int_equal(sim_get(sim, 0, 4 * MIB, SIM_PLAIN, NULL, &b), CUDA_SUCCESS);
    assert_int_equal(available(sim, 0), 0);
    assert_int_equal(sim_get(sim, 0, 1, SIM_PLAIN, NULL, &c), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(sim_release(sim, a), CUDA_SUCCESS);
    assert_int_equal(sim_release(sim, a), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(available(sim, 0), 60 * MIB);
    assert_int_equal(sim_get(sim, 0, 0, SIM_PLAIN, NULL, &c), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_get(sim, 1, 1, SIM_PLAIN, NULL, &c), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_get(sim, 0, UINT64_MAX, SIM_PLAIN, NULL, &c), CUDA_ERROR_OUT_OF_MEMORY);
    sim_free(sim);
}

/* The addresses and free bytes of driver 580 for the same requests, as far as they do not depend on what was there. */
static void small_requests_share_pages_as_on_a_real_driver(void **state)
{
    static const uint64_t sizes[] = {1, 1, 256, 512, 513, 4096, 65536, 100000, 524288, 1048575};
    static const uint64_t offsets[] = {0, 0x200, 0x400, 0x600, 0x800, 0xc00, 0x1c00, 0x11c00, 0x2a400, 0xaa400};
    struct sim *sim = make("1GiB", false);
    uint64_t a[10], next, one;
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(sim_get(sim, 0, sizes[i], SIM_PLAIN, NULL, &a[i]), CUDA_SUCCESS);
        assert_int_equal(a[i] - a[0], offsets[i]);
        assert_int_equal(available(sim, 0), 1022 * MIB);
    }
    assert_int_equal(sim_get(sim, 0, MIB, SIM_PLAIN, NULL, &next), CUDA_SUCCESS); /* does not fit there any more */
    assert_int_equal(available(sim, 0), 1020 * MIB);
    assert_int_equal(sim_get(sim, 0, MIB + 1, SIM_PLAIN, NULL, &one), CUDA_SUCCESS); /* and this takes its own pages */
    assert_int_equal(available(sim, 0), 1018 * MIB);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(available(sim, 0), 1018 * MIB);
        assert_int_equal(sim_release(sim, a[i]), CUDA_SUCCESS);
    }
    assert_int_equal(available(sim, 0), 1020 * MIB);
    assert_int_equal(sim_release(sim, one), CUDA_SUCCESS);
    assert_int_equal(sim_release(sim, next), CUDA_SUCCESS);
    assert_int_equal(available(sim, 0), 1024 * MIB);
    sim_free(sim);
}

static void devices_have_addresses_of_their_own(void **state)
{
    struct sim *sim = make("2:64MiB", false);
    struct sim_range range;
    uint64_t a, b;
    (void)state;
    assert_int_equal(sim_get(sim, 0, 32 * MIB, SIM_PLAIN, NULL, &a), CUDA_SUCCESS);
    assert_int_equal(sim_get(sim, 1, 32 * MIB, SIM_PLAIN, NULL, &b), CUDA_SUCCESS);
    assert_true(sim_find(sim, b + 17, &range));
    assert_int_equal(range.device, 1);
    assert_int_equal(range.address, b);
    assert_int_equal(range.bytes, 32 * MIB);
    assert_true(sim_find(sim, a, &range));
    assert_int_equal(range.device, 0);
    assert_false(sim_find(sim, a + 32 * MIB, &range));
    assert_int_equal(available(sim, 0), 32 * MIB);
    sim_free(sim);
}

static void copies_are_real(void **state)
{
    struct sim *sim = make("1:256GiB", false);
    char there[3000], back[3000];
    uint64_t a, b, big;
    (void)state;
    for (size_t i = 0; i < sizeof there; i++)
        there[i] = (char)(i * 13);
    assert_int_equal(sim_get(sim, 0, sizeof there, SIM_PLAIN, NULL, &a), CUDA_SUCCESS);
    assert_int_equal(sim_get(sim, 0, sizeof there, SIM_PLAIN, NULL, &b), CUDA_SUCCESS);
    assert_int_equal(sim_get(sim, 0, 200ull << 30, SIM_PLAIN, NULL, &big), CUDA_SUCCESS); /* costs nothing untouched */
    assert_int_equal(sim_copy(sim, a, (uint64_t)(uintptr_t)there, sizeof there), CUDA_SUCCESS);
    assert_int_equal(sim_copy(sim, b, a, sizeof there), CUDA_SUCCESS);
    assert_int_equal(sim_copy(sim, (uint64_t)(uintptr_t)back, b + 100, sizeof there - 100), CUDA_SUCCESS);
    assert_memory_equal(back, there + 100, sizeof there - 100);
    assert_int_equal(sim_fill(sim, a, 0x01020304, 4, 10), CUDA_SUCCESS);
    assert_int_equal(sim_copy(sim, (uint64_t)(uintptr_t)back, a, 44), CUDA_SUCCESS);
    assert_memory_equal(back, "\4\3\2\1\4\3\2\1", 8);
    assert_memory_equal(back + 40, there + 40, 4);
    assert_int_equal(sim_fill(sim, a + 1, 1, 2, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_copy(sim, a, b + 64 * MIB, 1), CUDA_ERROR_INVALID_VALUE);
    sim_free(sim);
}

static void mappings_follow_the_driver_s_rules(void **state)
{
    struct sim *sim = make("64MiB", false);
    uint64_t base, other, g, g2, g3;
    (void)state;
    assert_int_equal(sim_create(sim, 0, 100, &g), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_create(sim, 0, 20 * MIB, &g), CUDA_SUCCESS);
    assert_int_equal(sim_create(sim, 0, 2 * MIB, &g2), CUDA_SUCCESS);
    assert_int_equal(sim_create(sim, 0, 44 * MIB, &g3), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(available(sim, 0), 42 * MIB);
    assert_int_equal(sim_reserve(sim, 64 * MIB, 0, 0, &base), CUDA_SUCCESS);
    assert_int_equal(sim_reserve(sim, 100, 0, 0, &other), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_reserve(sim, 2 * MIB, 0, base, &other), CUDA_SUCCESS); /* only a wish */
    assert_int_not_equal(other, base);
    assert_int_equal(sim_unreserve(sim, other, 2 * MIB), CUDA_SUCCESS);
    assert_int_equal(sim_map(sim, base, 20 * MIB, 0, g), CUDA_SUCCESS);
    assert_int_equal(sim_map(sim, base, 2 * MIB, 0, g2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_map(sim, base + 20 * MIB, MIB, 0, g2), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(sim_map(sim, base + 64 * MIB, 2 * MIB, 0, g2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_fill(sim, base, 1, 1, 16), CUDA_ERROR_INVALID_VALUE); /* no access yet */
    assert_int_equal(sim_allow(sim, base, 64 * MIB, true), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_allow(sim, base, 20 * MIB, true), CUDA_SUCCESS);
    assert_int_equal(sim_fill(sim, base, 7, 1, 16), CUDA_SUCCESS);
    assert_int_equal(sim_unreserve(sim, base, 64 * MIB), CUDA_ERROR_INVALID_VALUE); /* in use */
    assert_int_equal(sim_drop(sim, g), CUDA_SUCCESS);
    assert_int_equal(available(sim, 0), 42 * MIB); /* still mapped */
    assert_int_equal(sim_drop(sim, g), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_unmap(sim, base, 10 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_unmap(sim, base, 20 * MIB), CUDA_SUCCESS);
    assert_int_equal(sim_unmap(sim, base, 20 * MIB), CUDA_SUCCESS);
    assert_int_equal(available(sim, 0), 62 * MIB);
    assert_int_equal(sim_unreserve(sim, base, 32 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_unreserve(sim, base, 64 * MIB), CUDA_SUCCESS);
    assert_int_equal(sim_drop(sim, g2), CUDA_SUCCESS);
    assert_int_equal(available(sim, 0), 64 * MIB);
    sim_free(sim);
}

static void mapped_contents_live_with_their_handle(void **state)
{
    struct sim *sim = make("64MiB", false);
    uint64_t base, g;
    unsigned char seen = 0;
    (void)state;
    assert_int_equal(sim_reserve(sim, 8 * MIB, 0, 0, &base), CUDA_SUCCESS);
    assert_int_equal(sim_create(sim, 0, 2 * MIB, &g), CUDA_SUCCESS);
    assert_int_equal(sim_map(sim, base, 2 * MIB, 0, g), CUDA_SUCCESS);
    assert_int_equal(sim_map(sim, base + 2 * MIB, 2 * MIB, 0, g), CUDA_SUCCESS); /* twice the same memory */
    assert_int_equal(sim_allow(sim, base, 4 * MIB, true), CUDA_SUCCESS);
    assert_int_equal(sim_fill(sim, base + 5, 99, 1, 1), CUDA_SUCCESS);
    assert_int_equal(sim_copy(sim, (uint64_t)(uintptr_t)&seen, base + 2 * MIB + 5, 1), CUDA_SUCCESS);
    assert_int_equal(seen, 99);
    sim_free(sim);
}

static void count_call(void *data)
{
    ++*(int *)data;
}

static void streams_run_at_once_unless_manual(void **state)
{
    struct sim *sim = make("64MiB", false);
    struct sim_stream *stream = sim_stream_new(sim, 0);
    struct sim_event *event = sim_event_new(sim);
    int calls = 0;
    (void)state;
    assert_true(sim_event_done(event)); /* never recorded */
    assert_int_equal(sim_stream_call(stream, count_call, &calls), CUDA_SUCCESS);
    assert_int_equal(calls, 1);
    assert_int_equal(sim_event_record(event, stream), CUDA_SUCCESS);
    assert_true(sim_event_done(event));
    sim_set_manual(sim, true);
    assert_int_equal(sim_event_record(event, stream), CUDA_SUCCESS);
    assert_int_equal(sim_stream_call(stream, count_call, &calls), CUDA_SUCCESS);
    assert_false(sim_event_done(event));
    assert_int_equal(sim_complete(sim, stream, 1), 1);
    assert_true(sim_event_done(event));
    assert_int_equal(calls, 1);
    assert_false(sim_stream_done(stream));
    sim_set_manual(sim, false); /* catches up */
    assert_int_equal(calls, 2);
    assert_true(sim_stream_done(stream));
    sim_event_free(event);
    sim_stream_free(stream);
    sim_free(sim);
}

static void waiting_streams_wait_until_told(void **state)
{
    struct sim *sim = make("64MiB", true);
    struct sim_stream *first = sim_stream_new(sim, 0), *second = sim_stream_new(sim, 0);
    struct sim_event *event = sim_event_new(sim);
    int calls = 0;
    (void)state;
    sim_stream_call(first, count_call, &calls);
    sim_event_record(event, first);
    sim_stream_wait(second, event);
    sim_stream_call(second, count_call, &calls);
    assert_int_equal(sim_complete(sim, second, 10), 0); /* stands before the wait */
    assert_int_equal(calls, 0);
    assert_int_equal(sim_complete(sim, first, 2), 2);
    assert_int_equal(calls, 1);
    assert_int_equal(sim_complete(sim, second, 10), 2);
    assert_int_equal(calls, 2);

    /* Whoever synchronises makes the time pass that others need. */
    sim_event_record(event, first);
    sim_stream_wait(second, event);
    sim_stream_call(second, count_call, &calls);
    sim_stream_finish(second);
    assert_int_equal(calls, 3);
    assert_true(sim_event_done(event));
    sim_event_record(event, second);
    sim_event_finish(event);
    assert_true(sim_event_done(event));

    /* An event may be recorded again, or freed, while somebody waits for it. */
    sim_event_record(event, first);
    sim_stream_wait(second, event);
    sim_event_free(event);
    sim_stream_free(first);
    assert_int_equal(sim_complete(sim, NULL, 10), 1);
    sim_stream_free(second);
    sim_free(sim);
}

static void pools_keep_the_driver_s_numbers(void **state)
{
    struct sim *sim = make("1GiB", false);
    struct sim_pool *pool = sim_pool_new(sim, 0, 0);
    struct sim_pool_numbers n;
    static const uint64_t sizes[] = {1, 1000, MIB, 40 * MIB, 1};
    static const uint64_t offsets[] = {0, 0x200, 0x600, 0x100600, 0x2900600};
    static const uint64_t reserved[] = {32 * MIB, 32 * MIB, 32 * MIB, 64 * MIB, 64 * MIB};
    uint64_t a[5];
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(sim_pool_get(pool, sizes[i], NULL, &a[i]), CUDA_SUCCESS);
        assert_int_equal(a[i] - a[0], offsets[i]);
        sim_pool_numbers(pool, &n);
        assert_int_equal(n.reserved, reserved[i]);
    }
    assert_int_equal(n.used, 42992618);
    assert_int_equal(available(sim, 0), 960 * MIB);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(sim_pool_put(sim, a[i]), CUDA_SUCCESS);
    assert_int_equal(sim_pool_put(sim, a[0]), CUDA_ERROR_INVALID_VALUE);
    sim_pool_numbers(pool, &n);
    assert_int_equal(n.used, 0);
    assert_int_equal(n.used_high, 42992618);
    assert_int_equal(n.reserved, 64 * MIB);
    sim_pool_settle(sim, 0);
    sim_pool_numbers(pool, &n);
    assert_int_equal(n.reserved, 0);
    assert_int_equal(n.reserved_high, 64 * MIB);
    assert_int_equal(available(sim, 0), 1024 * MIB);
    uint64_t threshold = 32 * MIB;
    sim_pool_set(pool, &threshold, true, true);
    assert_int_equal(sim_pool_get(pool, 40 * MIB, NULL, &a[0]), CUDA_SUCCESS);
    assert_int_equal(sim_pool_put(sim, a[0]), CUDA_SUCCESS);
    sim_pool_settle(sim, 0);
    sim_pool_numbers(pool, &n);
    assert_int_equal(n.reserved, 32 * MIB);
    assert_int_equal(sim_pool_get(pool, 1024 * MIB + 1, NULL, &a[0]), CUDA_ERROR_OUT_OF_MEMORY);
    sim_pool_free(pool);
    assert_int_equal(available(sim, 0), 1024 * MIB);
    sim_free(sim);
}

static void faults_come_when_asked_for(void **state)
{
    struct sim *sim = make("2:64MiB", false);
    struct error err;
    uint64_t a;
    (void)state;
    assert_int_equal(sim_faults(sim, "get:2=oom,create:1+=801", &err), 0);
    assert_int_equal(sim_get(sim, 0, 1, SIM_PLAIN, NULL, &a), CUDA_SUCCESS);
    assert_int_equal(sim_get(sim, 0, 1, SIM_PLAIN, NULL, &a), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(sim_get(sim, 0, 1, SIM_PLAIN, NULL, &a), CUDA_SUCCESS);
    assert_int_equal(sim_create(sim, 0, 2 * MIB, &a), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(sim_create(sim, 0, 2 * MIB, &a), CUDA_ERROR_NOT_SUPPORTED);
    sim_lose(sim, 1);
    assert_int_equal(sim_get(sim, 1, 1, SIM_PLAIN, NULL, &a), CUDA_ERROR_UNKNOWN);
    assert_int_equal(sim_get(sim, 0, 1, SIM_PLAIN, NULL, &a), CUDA_SUCCESS);
    assert_int_equal(sim_enter(sim, "anything"), CUDA_ERROR_UNKNOWN);
    static const char *wrong[] = {"x", "x:1", "x:0=1", "x:1=", "x:1=boom", ":1=1", "x:y=1", "x:1=1000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(sim_faults(sim, wrong[i], &err), 0);
    sim_free(sim);
}

static void a_lost_device_stays_lost(void **state)
{
    struct sim *sim = make("64MiB", false);
    struct error err;
    uint64_t a, b;
    (void)state;
    assert_int_equal(sim_get(sim, 0, 4 * MIB, SIM_PLAIN, NULL, &a), CUDA_SUCCESS);
    assert_int_equal(sim_faults(sim, "get:1=lost", &err), 0);
    assert_int_equal(sim_get(sim, 0, 1, SIM_PLAIN, NULL, &b), CUDA_ERROR_UNKNOWN);
    assert_int_equal(sim_get(sim, 0, 1, SIM_PLAIN, NULL, &b), CUDA_ERROR_UNKNOWN);
    assert_int_equal(sim_release(sim, a), CUDA_ERROR_UNKNOWN);
    assert_int_equal(sim_create(sim, 0, 2 * MIB, &b), CUDA_ERROR_UNKNOWN);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_read_from_text),
        cmocka_unit_test(memory_ends_exactly_at_the_limit),
        cmocka_unit_test(small_requests_share_pages_as_on_a_real_driver),
        cmocka_unit_test(devices_have_addresses_of_their_own),
        cmocka_unit_test(copies_are_real),
        cmocka_unit_test(mappings_follow_the_driver_s_rules),
        cmocka_unit_test(mapped_contents_live_with_their_handle),
        cmocka_unit_test(streams_run_at_once_unless_manual),
        cmocka_unit_test(waiting_streams_wait_until_told),
        cmocka_unit_test(pools_keep_the_driver_s_numbers),
        cmocka_unit_test(faults_come_when_asked_for),
        cmocka_unit_test(a_lost_device_stays_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
