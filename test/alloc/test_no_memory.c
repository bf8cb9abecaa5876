/*
 * Host memory that runs out: a short life of an allocator, in which the n-th request for host memory fails, for every
 * n, alone or with all that follow.  Calls then say STATUS_NO_MEMORY or succeed, nothing is touched that is not there
 * (the sanitizers watch), no memory is handed out twice, and the allocator can be used on and freed.  Linked with
 * --wrap of malloc, calloc and realloc.
 */
#include "fake_device.h"

#include "alloc/allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB SETTINGS_MIB

static unsigned long countdown; /* 0: none fails */
static bool all_after, has_failed;

static bool fails(void)
{
    if (all_after && has_failed)
        return true;
    has_failed |= countdown == 1;
    return countdown && --countdown == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

/* --- a life ------------------------------------------------------------------------------------------------------- */

struct life {
    struct fake_device device;
    struct allocator *allocator;
    uint64_t held[200], sizes[200];
    size_t count;
    unsigned long no_memory; /* calls that said so */
};

static void said(struct life *life, int status)
{
    if (status != 0 && status != STATUS_NO_MEMORY && status != ALLOCATOR_OUT_OF_MEMORY && status != ALLOCATOR_INVALID)
        fail_msg("a call returned %d", status);
    life->no_memory += status == STATUS_NO_MEMORY;
}

static void get(struct life *life, uint64_t size, int64_t stream)
{
    uint64_t address = 0;
    int status = allocator_malloc(life->allocator, size, stream, 1, &address);
    said(life, status);
    if (status)
        return;
    for (size_t i = 0; i < life->count; i++)
        if (address < life->held[i] + life->sizes[i] && life->held[i] < address + size)
            fail_msg("memory was handed out twice");
    life->held[life->count] = address;
    life->sizes[life->count++] = size;
}

static void give(struct life *life, size_t i)
{
    uint64_t address = life->held[i];
    life->held[i] = life->held[--life->count];
    life->sizes[i] = life->sizes[life->count];
    said(life, allocator_release(life->allocator, address, 0));
}

static void resettle(struct life *life, const char *conf)
{
    struct settings settings;
    settings_init(&settings);
    assert_int_equal(settings_parse(&settings, conf, NULL), 0);
    allocator_set_settings(life->allocator, &settings);
}

static void many_blocks_and_streams(struct life *life)
{
    for (int i = 0; i < 100; i++)
        get(life, 600 + (uint64_t)i * 5000, i % 3);
    for (size_t i = 0; i < life->count; i += 3) {
        said(life, allocator_record_stream(life->allocator, life->held[i], 5));
        said(life, allocator_record_stream(life->allocator, life->held[i], 6));
    }
    for (size_t i = 0; i < life->count; i++)
        give(life, i);
}

static void pools_and_scopes(struct life *life)
{
    for (int64_t n = 1; n < 4; n++) {
        const struct pool_id id = {0, n};
        said(life, allocator_pool_create(life->allocator, id, &(struct pool_options){n == 1, n == 2}));
        said(life, allocator_scope_begin(life->allocator, id, NULL, NULL));
        get(life, 3 * MIB, 0);
        get(life, 3000, 8 + n);
        if (life->count) {
            said(life, allocator_record_stream(life->allocator, life->held[0], 7));
            give(life, 0);
        }
        said(life, allocator_scope_end(life->allocator, id));
        said(life, allocator_pool_release(life->allocator, id));
        said(life, allocator_pool_release(life->allocator, id));
        said(life, allocator_pool_flush(life->allocator, id, 0));
    }
}

static void pressure(struct life *life)
{
    resettle(life, "garbage_collection_threshold:0.5,max_split_size_mb:20");
    allocator_set_limit(life->allocator, 150 * MIB);
    for (uint64_t i = 0; i < 8; i++) {
        get(life, (20 + i) * MIB, 0);
        if (i % 2 && life->count)
            give(life, life->count - 1);
    }
    said(life, allocator_empty_cache(life->allocator, 0));
}

static void lived(struct life *life)
{
    many_blocks_and_streams(life);
    pools_and_scopes(life);
    resettle(life, "expandable_segments:True");
    for (uint64_t i = 1; i < 12; i++)
        get(life, i * 3 * MIB, (int64_t)i % 2);
    for (size_t i = 0; i < life->count; i += 2)
        give(life, i);
    said(life, allocator_empty_cache(life->allocator, 0));
    pressure(life);
    while (life->count)
        give(life, 0);
    said(life, allocator_empty_cache(life->allocator, 0));
}

static struct life *born(unsigned long failing, bool all)
{
    struct allocator_options options = {.limit = ALLOCATOR_NO_LIMIT};
    struct life *life = calloc(1, sizeof(*life));
    settings_init(&options.settings);
    options.device = fake_device_init(&life->device, 600 * MIB, true);
    countdown = failing;
    all_after = all;
    has_failed = false;
    life->allocator = allocator_new(&options);
    return life;
}

/* One life; false when it asked for less than n. */
static bool live_with_failure(unsigned long n, bool all)
{
    struct life *life = born(n, all);
    struct error err = {0};
    if (life->allocator)
        lived(life);
    bool failed = has_failed;
    countdown = 0;
    all_after = false;
    if (life->allocator && !failed)
        assert_true(allocator_is_valid(life->allocator, &err));
    if (failed && life->allocator && !life->no_memory && !allocator_is_valid(life->allocator, &err))
        fail_msg("failure %lu was hushed up: %s", n, err.message);
    if (life->device.fault)
        fail_msg("failure %lu: %s", n, life->device.fault);
    if (life->allocator && failed && all)
        get(life, 1000, 0); /* with memory again it goes on */
    allocator_free(life->allocator);
    free(life);
    return failed;
}

static void each_failure_alone_is_survived(void **state)
{
    (void)state;
    unsigned long n = 1;
    while (live_with_failure(n, false))
        n++;
    assert_true(n > 50); /* there was something to fail */
}

static void memory_that_has_run_out_for_good_is_survived(void **state)
{
    (void)state;
    unsigned long n = 1;
    while (live_with_failure(n, true))
        n++;
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failure_alone_is_survived),
        cmocka_unit_test(memory_that_has_run_out_for_good_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
