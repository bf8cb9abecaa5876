/*
 * Random requests, frees, streams, events, pools, scopes, limits, settings and refusals of the device, made from a
 * seed: after every step the allocator and the naive one agree in everything that can be seen.
 *
 * CUDAMEM_TEST_SEED=N runs that seed alone and says each step; CUDAMEM_TEST_FULL=1 runs many more.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB SETTINGS_MIB

enum { HELD = 150, POOLS = 5, STEPS = 300 };

struct profile { /* in percent where it is a number */
    int expandable, pools, faults, resettings;
    bool limited, without_events, lending; /* lending: a small device, pools with use_on_oom */
};

struct held {
    uint64_t of[HELD];
    size_t count;
};

struct driver {
    struct pair *pair;
    const struct profile *profile;
    uint64_t random, capacity;
    unsigned streams;
    struct held held, freed; /* freed: some of the last ones */
    struct settings settings;
    uint64_t sizes[8]; /* asked for before */
    unsigned scopes;
};

static const int64_t streams[] = {0, 7, INT64_C(0x55d0c0ffee00), -16};

static uint64_t draw(struct driver *d, uint64_t below)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return (d->random >> 11) % below;
}

static bool chance(struct driver *d, int percent)
{
    return draw(d, 100) < (uint64_t)percent;
}

/* --- what is asked for -------------------------------------------------------------------------------------------- */

static uint64_t new_size(struct driver *d)
{
    switch (draw(d, 9)) {
    case 0:
    case 1:
    case 2:
        return 1 + (draw(d, MIB) >> draw(d, 12));
    case 3:
        return MIB - 1024 + draw(d, 2048);
    case 4:
        return MIB + draw(d, 9 * MIB);
    case 5:
        return 10 * MIB - 1024 + draw(d, 2048);
    case 6:
        return 10 * MIB + draw(d, 50 * MIB);
    case 7: /* at the edges of splitting: the segment's rest is 1 MiB or nearly */
        return 2 * MIB * (1 + draw(d, 20)) + MIB * draw(d, 2) + 512 * draw(d, 3) - 512;
    default:
        return draw(d, 4) ? 20 * MIB + draw(d, d->capacity / 2) : draw(d, 30) ? 1 + draw(d, d->capacity * 5 / 4)
                                                                              : ALLOCATOR_MAX_REQUEST - draw(d, 2);
    }
}

static uint64_t some_size(struct driver *d)
{
    uint64_t *old = &d->sizes[draw(d, sizeof(d->sizes) / sizeof(d->sizes[0]))];
    if (chance(d, 70) || !*old)
        *old = new_size(d);
    return *old;
}

static void add_text(char *text, size_t size, const char *format, uint64_t n)
{
    size_t length = strlen(text);
    length += (size_t)snprintf(text + length, size - length, "%s", length ? "," : "");
    snprintf(text + length, size - length, format, (int)n);
}

static void some_settings_text(struct driver *d, char *text, size_t size)
{
    static const char *const roundups[] = {
        "roundup_power2_divisions:[1:2,4:8,>:4]", "roundup_power2_divisions:[2:1,16:4]",
        "roundup_power2_divisions:[>:16]"};
    text[0] = '\0';
    if (d->profile->expandable)
        add_text(text, size, chance(d, d->profile->expandable) ? "expandable_segments:True"
                                                               : "expandable_segments:False", 0);
    if (chance(d, 15))
        add_text(text, size, "large_segment_size_mb:%d", 11 + draw(d, 20));
    if (chance(d, 40))
        add_text(text, size, "max_split_size_mb:%d", 20 + draw(d, 2) * draw(d, 100));
    if (chance(d, 20))
        add_text(text, size, "max_non_split_rounding_mb:%d", 20 + draw(d, 60));
    if (chance(d, 40))
        add_text(text, size, chance(d, 50) ? "garbage_collection_threshold:0.5" : "garbage_collection_threshold:0.%02d",
                 1 + draw(d, 99));
    if (chance(d, 20))
        add_text(text, size, "roundup_power2_divisions:%d", (uint64_t)1 << draw(d, 6));
    else if (chance(d, 15))
        add_text(text, size, roundups[draw(d, 3)], 0);
}

/* Settings that are valid after those in force. */
static void some_settings(struct driver *d, char *text, size_t size)
{
    struct settings made;
    do {
        some_settings_text(d, text, size);
        made = d->settings;
    } while (settings_parse(&made, text, NULL));
    d->settings = made;
}

static uint64_t some_limit(struct driver *d)
{
    uint64_t limit = d->capacity / 2 + draw(d, d->capacity * 3 / 4);
    return chance(d, 25) ? ALLOCATOR_NO_LIMIT : chance(d, 60) ? limit / (4 * MIB) * (4 * MIB) : limit;
}

static uint64_t some_held(struct driver *d)
{
    return d->held.count ? d->held.of[draw(d, d->held.count)] : 0;
}

static uint64_t some_freed(struct driver *d)
{
    return d->freed.count ? d->freed.of[draw(d, d->freed.count)] : 1;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void fill_fault(struct driver *d, struct step *step)
{
    if (chance(d, 50)) {
        step->kind = chance(d, 50) ? STEP_REFUSE_GET : STEP_REFUSE_MAP;
        step->size = 1 + draw(d, 4);
        step->status = chance(d, 85) ? MEMORY_DEVICE_FULL : 700;
        return;
    }
    step->kind = chance(d, 70) ? STEP_FREE : STEP_RECORD_STREAM; /* of what is no live block's address */
    step->address = chance(d, 50) ? some_freed(d) : some_held(d) + 512;
    for (size_t i = 0; i < d->held.count; i++)
        if (d->held.of[i] == step->address)
            step->address = 1;
}

static void fill_pool(struct driver *d, struct step *step)
{
    static const enum step_kind kinds[] = {
        STEP_POOL_CREATE, STEP_POOL_CREATE, STEP_POOL_CREATE, STEP_POOL_RELEASE, STEP_POOL_RELEASE, STEP_POOL_RETAIN,
        STEP_POOL_FLUSH,  STEP_POOL_FLUSH,  STEP_SCOPE_BEGIN, STEP_SCOPE_BEGIN,  STEP_SCOPE_BEGIN,  STEP_SCOPE_END};
    int64_t number = (int64_t)draw(d, 20) ? 1 + (int64_t)draw(d, POOLS - 1) : 0;
    step->kind = kinds[draw(d, sizeof(kinds) / sizeof(kinds[0]))];
    step->pool = number % 2 ? (struct pool_id){0, number} : (struct pool_id){number, 0};
    step->pool_options.use_on_oom = chance(d, d->profile->lending ? 90 : 50);
    step->pool_options.no_split = chance(d, 25);
    if (chance(d, 50))
        step->only_stream = &streams[draw(d, d->streams)];
}

static void fill_rare(struct driver *d, struct step *step)
{
    uint64_t choice = draw(d, 100);
    if (choice < 20 && d->profile->without_events) {
        step->kind = STEP_COMPLETE;
        step->address = some_freed(d);
    } else if (choice < 20) {
        step->kind = STEP_PROGRESS;
        step->size = draw(d, 6);
    } else if (choice < 35) {
        step->kind = STEP_EMPTY_CACHE;
    } else if (choice < 35 + (uint64_t)d->profile->resettings) {
        step->kind = STEP_SETTINGS;
        some_settings(d, step->text, sizeof(step->text));
        step->settings = d->settings;
    } else if (choice < 50 && d->profile->limited) {
        step->kind = STEP_LIMIT;
        step->size = some_limit(d);
    } else {
        step->kind = STEP_FIND;
        step->address = some_held(d) + draw(d, 4 * MIB);
    }
}

/* Much is taken for some time, then much given back. */
static struct step some_step(struct driver *d, int number)
{
    struct step step = {.stream = streams[draw(d, d->streams)], .context = draw(d, 4) ? 1 + draw(d, 1000) : 0};
    uint64_t allocating = number / 40 % 3 == 0 ? 65 : number / 40 % 3 == 1 ? 45 : 25, choice = draw(d, 100);
    if (chance(d, d->profile->pools)) {
        fill_pool(d, &step);
    } else if (d->scopes && chance(d, 10)) {
        fill_pool(d, &step);
        step.kind = STEP_SCOPE_END;
    } else if (chance(d, d->profile->faults)) {
        fill_fault(d, &step);
    } else if (choice < 15) {
        fill_rare(d, &step);
    } else if (choice < 22 && d->held.count) {
        step.kind = STEP_RECORD_STREAM;
        step.address = some_held(d);
    } else if ((draw(d, 100) < allocating || !d->held.count) && d->held.count < HELD) {
        step.kind = STEP_MALLOC;
        step.size = some_size(d);
    } else {
        step.kind = STEP_FREE;
        step.address = some_held(d);
    }
    return step;
}

static void remember(struct driver *d, const struct step *step)
{
    const struct side *real = &d->pair->sides[0];
    if (real->status)
        return;
    if (step->kind == STEP_MALLOC)
        d->held.of[d->held.count++] = real->address;
    if (step->kind == STEP_FREE) {
        size_t i = 0;
        while (d->held.of[i] != step->address)
            i++;
        d->held.of[i] = d->held.of[--d->held.count];
        d->freed.of[d->freed.count < HELD ? d->freed.count++ : draw(d, HELD)] = step->address;
    }
    if (step->kind == STEP_SCOPE_BEGIN)
        d->scopes++;
    if (step->kind == STEP_SCOPE_END)
        d->scopes--;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static bool is_told(void)
{
    return getenv("CUDAMEM_TEST_SEED") != NULL;
}

static void take(struct driver *d, uint64_t seed, int number, const struct step *step)
{
    char text[500];
    step_print(step, text, sizeof(text));
    if (is_told())
        printf("%d: %s\n", number, text);
    if (!pair_step(d->pair, step))
        fail_msg("seed %lu, step %d (%s): %s", (unsigned long)seed, number, text, d->pair->difference);
    remember(d, step);
}

/* Everything is freed, every pool dropped: nothing is left. */
static void give_all_back(struct driver *d, uint64_t seed)
{
    for (int64_t n = 1; n < POOLS; n++) {
        struct step step = {.kind = STEP_SCOPE_END, .pool = n % 2 ? (struct pool_id){0, n} : (struct pool_id){n, 0}};
        take(d, seed, STEPS, &step);
        step.kind = STEP_POOL_RELEASE;
        while (allocator_pool_uses(d->pair->real, step.pool))
            take(d, seed, STEPS, &step);
    }
    while (d->held.count) {
        struct step step = {.kind = STEP_FREE, .address = d->held.of[0]};
        take(d, seed, STEPS, &step);
    }
    struct step step = {.kind = STEP_EMPTY_CACHE};
    take(d, seed, STEPS, &step);
    if (!d->profile->without_events)
        assert_int_equal(allocator_reserved(d->pair->real), 0);
}

static void run(const struct profile *profile, uint64_t seed)
{
    struct driver *d = calloc(1, sizeof(*d));
    char text[200];
    d->profile = profile;
    d->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < 8; i++)
        draw(d, 2);
    d->capacity = (48 + draw(d, profile->lending ? 100 : 900)) * 2 * MIB;
    d->streams = 1 + (unsigned)draw(d, sizeof(streams) / sizeof(streams[0]));
    settings_init(&d->settings);
    some_settings(d, text, sizeof(text));
    uint64_t limit = profile->limited ? some_limit(d) : ALLOCATOR_NO_LIMIT;
    if (is_told())
        printf("seed %lu: capacity %lu limit %lu conf '%s'\n", (unsigned long)seed, (unsigned long)d->capacity,
               (unsigned long)limit, text);
    d->pair = pair_new(d->capacity, !profile->without_events, &d->settings, limit);
    for (int number = 0; number < STEPS; number++) {
        struct step step = some_step(d, number);
        take(d, seed, number, &step);
    }
    give_all_back(d, seed);
    pair_free(d->pair);
    free(d);
}

static void run_seeds(const struct profile *profile, uint64_t from)
{
    const char *one = getenv("CUDAMEM_TEST_SEED");
    uint64_t number = getenv("CUDAMEM_TEST_FULL") ? 4000 : 150;
    for (uint64_t seed = from; seed < from + number; seed++)
        if (!one || strtoull(one, NULL, 10) == seed)
            run(profile, seed);
}

static void requests_and_streams_agree(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.limited = false}, 100000);
}

static void limits_collections_and_settings_agree(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.limited = true, .resettings = 8, .faults = 3}, 200000);
}

static void expandable_segments_agree(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.expandable = 100, .faults = 5}, 300000);
}

static void expandable_segments_switched_on_and_off_agree(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.expandable = 60, .faults = 3, .resettings = 8, .limited = true}, 400000);
}

static void private_pools_and_scopes_agree(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.pools = 8, .faults = 3, .limited = true}, 500000);
}

static void pools_that_lend_on_oom_agree(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.expandable = 30, .pools = 10, .resettings = 8, .lending = true}, 800000);
}

static void everything_together_agrees(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.expandable = 50, .pools = 6, .faults = 4, .resettings = 5, .limited = true}, 600000);
}

static void frees_that_are_ended_by_the_caller_agree(void **state)
{
    (void)state;
    run_seeds(&(struct profile){.expandable = 30, .pools = 3, .faults = 3, .limited = true, .without_events = true},
              700000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_and_streams_agree),
        cmocka_unit_test(limits_collections_and_settings_agree),
        cmocka_unit_test(expandable_segments_agree),
        cmocka_unit_test(expandable_segments_switched_on_and_off_agree),
        cmocka_unit_test(private_pools_and_scopes_agree),
        cmocka_unit_test(pools_that_lend_on_oom_agree),
        cmocka_unit_test(everything_together_agrees),
        cmocka_unit_test(frees_that_are_ended_by_the_caller_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
