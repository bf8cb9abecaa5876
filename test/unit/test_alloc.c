/* The allocator: settings, free sets, the rules of splitting and giving back, and random requests with every invariant
 * checked after every step. */
#include "alloc/allocator.h"
#include "alloc/free_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB SETTINGS_MIB

static uint64_t random_state;
static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

/* A device that counts upward, fails when told to, and whose events are done when told to. */
struct fake {
    uint64_t next, gets, releases, events, done_up_to, mapped;
    unsigned fail_one_in; /* 0: never */
};

static int fake_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct fake *fake = self;
    (void)stream;
    if (fake->fail_one_in && draw(fake->fail_one_in) == 0)
        return MEMORY_DEVICE_FULL;
    *address = fake->next;
    fake->next += (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    fake->gets++;
    return 0;
}
static void fake_release(void *self, uint64_t address, uint64_t size)
{
    (void)address, (void)size;
    ((struct fake *)self)->releases++;
}
static int fake_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct fake *fake = self;
    *address = (fake->next + 20 * MIB - 1) / (20 * MIB) * (20 * MIB);
    fake->next = *address + size;
    return 0;
}
static void fake_unreserve(void *self, uint64_t address, uint64_t size)
{
    (void)self, (void)address, (void)size;
}
static int fake_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct fake *fake = self;
    assert_int_equal(address % page, 0);
    assert_int_equal(size % page, 0);
    if (fake->fail_one_in && draw(fake->fail_one_in) == 0)
        return MEMORY_DEVICE_FULL;
    fake->mapped += size;
    return 0;
}
static void fake_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    (void)address, (void)page;
    ((struct fake *)self)->mapped -= size;
}
static int fake_event(void *self, int64_t stream, uint64_t *event)
{
    (void)stream;
    *event = ++((struct fake *)self)->events;
    return 0;
}
static bool fake_done(void *self, uint64_t event)
{
    return event <= ((struct fake *)self)->done_up_to;
}
static void fake_wait(void *self, uint64_t event)
{
    struct fake *fake = self;
    fake->done_up_to = event > fake->done_up_to ? event : fake->done_up_to;
}
static void fake_info(void *self, uint64_t *free_bytes, uint64_t *total)
{
    (void)self;
    *free_bytes = 0;
    *total = 1024 * MIB;
}

static struct allocator *make(struct fake *fake, const char *conf, uint64_t limit)
{
    struct allocator_options options = {
        .device = {.self = fake, .segment_get = fake_get, .segment_release = fake_release,
                   .address_reserve = fake_reserve, .address_release = fake_unreserve, .map = fake_map,
                   .unmap = fake_unmap, .event_record = fake_event, .event_done = fake_done, .event_wait = fake_wait,
                   .memory_info = fake_info},
        .limit = limit};
    struct error err;
    *fake = (struct fake){.next = UINT64_C(0x700000000000)};
    settings_init(&options.settings);
    assert_int_equal(settings_parse(&options.settings, conf, &err), 0);
    struct allocator *a = allocator_new(&options);
    assert_non_null(a);
    return a;
}

static uint64_t get(struct allocator *a, uint64_t size, int64_t stream)
{
    uint64_t address = 0;
    assert_int_equal(allocator_malloc(a, size, stream, 1, &address), 0);
    return address;
}

static int64_t now(struct allocator *a, enum memory_stat_kind kind)
{
    return allocator_stats(a)->kinds[kind][MEMORY_POOL_ALL].current;
}

/* --- settings --------------------------------------------------------------------------------------------------- */

static void every_setting_is_read(void **state)
{
    (void)state;
    struct settings s;
    struct error err;
    settings_init(&s);
    assert_int_equal(settings_parse(&s, " max_split_size_mb : 64 , garbage_collection_threshold:0.6,"
        "roundup_power2_divisions:[256:1,512:2,>:8],expandable_segments:True,max_non_split_rounding_mb:30,"
        "large_segment_size_mb:40,release_lock_on_cudamalloc:True,graph_capture_record_stream_reuse:True,"
        "per_process_memory_fraction:0.5,backend:native,pinned_use_background_threads:True,"
        "pinned_use_cuda_host_register:True,pinned_num_register_threads:8,pinned_reserve_segment_size_mb:3", &err), 0);
    assert_int_equal(s.max_split_size, 64 * MIB);
    assert_int_equal(s.max_non_split_rounding, 30 * MIB);
    assert_int_equal(s.large_segment_size, 40 * MIB);
    assert_true(s.garbage_collection_threshold == 0.6 && s.per_process_memory_fraction == 0.5);
    assert_true(s.expandable_segments && s.release_lock_on_device_malloc && s.graph_capture_record_stream_reuse);
    assert_true(s.pinned_use_background_threads && s.pinned_use_host_register);
    assert_int_equal(s.pinned_num_register_threads, 8);
    assert_int_equal(s.pinned_reserve_segment_size, 3 * MIB);
    assert_int_equal(s.roundup_divisions[0], 1);
    assert_int_equal(s.roundup_divisions[8], 1);
    assert_int_equal(s.roundup_divisions[9], 2);
    assert_int_equal(s.roundup_divisions[10], 8);
    assert_int_equal(s.roundup_divisions[15], 8);
    assert_int_equal(settings_parse(&s, "", &err), 0); /* each reading forgets three of them, keeps the others */
    assert_int_equal(s.max_split_size, SETTINGS_UNLIMITED);
    assert_true(s.garbage_collection_threshold == 0 && s.roundup_divisions[9] == 0 && s.expandable_segments);
}

static void wrong_settings_are_refused_with_what_and_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *what, *where;
    } cases[] = {
        {"max_split_size_mb:19", "max_split_size_mb", "character 19"},
        {"max_split_size_mb:x", "whole number", "character 19"},
        {"max_split_size_mb", "':' and a value", "character 18"},
        {"garbage_collection_threshold:1", "between 0 and 1", "character 30"},
        {"garbage_collection_threshold:0", "between 0 and 1", "character 30"},
        {"expandable_segments:true", "True or False", "character 21"},
        {"expandable_segments:True,nonsense:1", "nonsense", "character 26"},
        {"expandable_segments:True,,", "name", "character 26"},
        {"roundup_power2_divisions:3", "power of two", "character 26"},
        {"roundup_power2_divisions:[3:4]", "power of two", "character 27"},
        {"roundup_power2_divisions:[256:3]", "power of two", "character 31"},
        {"roundup_power2_divisions:[256:4", "',' or ']'", "character 32"},
        {"roundup_power2_divisions:[]", "boundary", "character"},
        {"max_non_split_rounding_mb:5", "too small", "character 27"},
        {"large_segment_size_mb:10", "too small", "character 23"},
        {"per_process_memory_fraction:1.5", "between 0 and 1", "character 29"},
        {"pinned_num_register_threads:3", "power of two", "character 29"},
        {"pinned_num_register_threads:256", "at most 128", "character 29"},
        {"pinned_reserve_segment_size_mb:0", "more than 0", "character 32"},
        {"backend:cudaMallocAsync", "native", "character 9"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct settings s;
        struct error err = {0};
        settings_init(&s);
        if (settings_parse(&s, cases[i].text, &err) != STATUS_USAGE)
            fail_msg("'%s' is taken", cases[i].text);
        if (!strstr(err.message, cases[i].what) || !strstr(err.message, cases[i].where))
            fail_msg("'%s': %s", cases[i].text, err.message);
    }
}

static void requests_are_rounded(void **state)
{
    (void)state;
    static const struct {
        const char *conf;
        uint64_t requested, rounded;
    } cases[] = {
        {"", 0, 512}, {"", 1, 512}, {"", 512, 512}, {"", 513, 1024}, {"", MIB + 1, MIB + 512},
        {"roundup_power2_divisions:4", 1200, 1536}, /* not above 4 * 512: the plain rule */
        {"roundup_power2_divisions:4", 2049, 2560}, {"roundup_power2_divisions:4", 1200 * 1024, 1280 * 1024},
        {"roundup_power2_divisions:4", 4 * MIB, 4 * MIB}, {"roundup_power2_divisions:8", 4 * MIB + 1, 4 * MIB + MIB / 2},
        {"roundup_power2_divisions:2", 7 * MIB, 8 * MIB}, {"roundup_power2_divisions:1", 7 * MIB + 1, 7 * MIB + 512},
        {"roundup_power2_divisions:[16:2,32:1,>:4]", 3 * MIB + 1, 4 * MIB},
        {"roundup_power2_divisions:[16:2,32:1,>:4]", 33 * MIB + 1, 33 * MIB + 512},
        {"roundup_power2_divisions:[16:2,32:1,>:4]", 65 * MIB, 80 * MIB},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct settings s;
        settings_init(&s);
        assert_int_equal(settings_parse(&s, cases[i].conf, NULL), 0);
        if (settings_round(&s, cases[i].requested) != cases[i].rounded)
            fail_msg("%s: %zu is rounded to %zu", cases[i].conf, (size_t)cases[i].requested,
                     (size_t)settings_round(&s, cases[i].requested));
    }
    struct settings s;
    settings_init(&s);
    assert_int_equal(settings_segment_size(&s, MIB), 2 * MIB);
    assert_int_equal(settings_segment_size(&s, MIB + 512), 20 * MIB);
    assert_int_equal(settings_segment_size(&s, 10 * MIB), 10 * MIB);
    assert_int_equal(settings_segment_size(&s, 10 * MIB + 512), 12 * MIB);
}

/* --- free sets -------------------------------------------------------------------------------------------------- */

struct naive {
    struct free_key keys[2000];
    size_t count;
};

static size_t naive_bound(const struct naive *naive, uint64_t size, uint64_t address)
{
    size_t at = 0;
    while (at < naive->count && (naive->keys[at].size < size ||
                                 (naive->keys[at].size == size && naive->keys[at].address < address)))
        at++;
    return at;
}

static void a_free_set_is_a_sorted_list(void **state)
{
    (void)state;
    static struct naive naive;
    struct free_set set = {0};
    struct free_position at;
    random_state = 7;
    for (int step = 0; step < 20000; step++) {
        uint64_t size = draw(step % 3000 < 1000 ? 10 : 1000), address = draw(1000);
        size_t place = naive_bound(&naive, size, address);
        bool there = place < naive.count && naive.keys[place].size == size && naive.keys[place].address == address;
        assert_int_equal(free_set_lower_bound(&set, size, address, &at), place < naive.count);
        if (place < naive.count)
            assert_int_equal(free_set_block(&set, at), naive.keys[place].size * 1000 + naive.keys[place].address + 1);
        bool grow = step / 4000 % 2 == 0 ? draw(3) > 0 : draw(3) == 0;
        if (grow && !there && naive.count < 2000) {
            memmove(&naive.keys[place + 1], &naive.keys[place], (naive.count++ - place) * sizeof(naive.keys[0]));
            naive.keys[place] = (struct free_key){size, address};
            assert_int_equal(free_set_insert(&set, size, address, (uint32_t)(size * 1000 + address + 1)), 0);
        } else if (!grow && place < naive.count) {
            if (step % 2)
                free_set_remove_at(&set, at);
            else
                free_set_remove(&set, naive.keys[place].size, naive.keys[place].address);
            memmove(&naive.keys[place], &naive.keys[place + 1], (--naive.count - place) * sizeof(naive.keys[0]));
        }
        assert_int_equal(set.count, naive.count);
        if (step % 97)
            continue;
        size_t seen = 0;
        for (bool more = free_set_first(&set, &at); more; more = free_set_next(&set, &at), seen++)
            assert_int_equal(free_set_block(&set, at), naive.keys[seen].size * 1000 + naive.keys[seen].address + 1);
        assert_int_equal(seen, naive.count);
        for (bool more = free_set_last(&set, &at); more; more = free_set_previous(&set, &at))
            assert_int_equal(free_set_block(&set, at), naive.keys[seen - 1].size * 1000 + naive.keys[seen - 1].address + 1),
                seen--;
        assert_int_equal(seen, 0);
    }
    free_set_free(&set);
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

static void blocks_are_split_where_the_rest_is_worth_it(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "", ALLOCATOR_NO_LIMIT);
    uint64_t first = get(a, 1, 0), second = get(a, 513, 0);
    assert_int_equal(second, first + 512); /* small: the front of one 2 MiB segment */
    assert_int_equal(now(a, MEMORY_STAT_RESERVED_BYTES), 2 * MIB);
    uint64_t large = get(a, 2 * MIB, 0);
    assert_int_equal(get(a, 17 * MIB + MIB / 2, 0), large + 2 * MIB); /* half a MiB more is not worth it */
    assert_int_equal(now(a, MEMORY_STAT_ACTIVE_BYTES), 512 + 1024 + 20 * MIB);
    allocator_free(a);

    a = make(&fake, "", ALLOCATOR_NO_LIMIT);
    get(a, 19 * MIB, 0); /* a 20 MiB segment, rest 1 MiB: the whole is handed out */
    assert_int_equal(now(a, MEMORY_STAT_ACTIVE_BYTES), 20 * MIB);
    assert_int_equal(now(a, MEMORY_STAT_REQUESTED_BYTES), 19 * MIB);
    assert_int_equal(now(a, MEMORY_STAT_INACTIVE_SPLIT), 0);
    allocator_free(a);
}

static void freed_neighbours_merge_and_flush_gives_back(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "", ALLOCATOR_NO_LIMIT);
    uint64_t addresses[4];
    for (int i = 0; i < 4; i++)
        addresses[i] = get(a, 1000, 0);
    assert_int_equal(allocator_release(a, addresses[0], 0), 0);
    assert_int_equal(allocator_release(a, addresses[2], 0), 0);
    assert_int_equal(now(a, MEMORY_STAT_INACTIVE_SPLIT), 3);
    assert_int_equal(allocator_empty_cache(a, 0), 0);
    assert_int_equal(fake.releases, 0); /* nothing is whole */
    assert_int_equal(allocator_release(a, addresses[1], 0), 0);
    assert_int_equal(now(a, MEMORY_STAT_INACTIVE_SPLIT), 2);
    assert_int_equal(allocator_release(a, addresses[3], 0), 0);
    assert_int_equal(now(a, MEMORY_STAT_INACTIVE_SPLIT), 0);
    assert_int_equal(allocator_release(a, addresses[3], 0), ALLOCATOR_INVALID);
    assert_int_equal(allocator_release(a, 12345, 0), ALLOCATOR_INVALID);
    assert_int_equal(allocator_empty_cache(a, 0), 0);
    assert_int_equal(fake.releases, 1);
    assert_int_equal(allocator_reserved(a), 0);
    allocator_free(a);
}

static void a_limit_retries_then_refuses(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "", 64 * MIB);
    uint64_t address, cached = get(a, 40 * MIB, 0);
    assert_int_equal(allocator_release(a, cached, 0), 0);
    get(a, 50 * MIB, 0); /* the cached segment goes first */
    assert_int_equal(allocator_stats(a)->num_alloc_retries, 1);
    assert_int_equal(fake.releases, 1);
    assert_int_equal(allocator_malloc(a, 20 * MIB, 0, 1, &address), ALLOCATOR_OUT_OF_MEMORY);
    assert_int_equal(allocator_stats(a)->num_ooms, 1);
    assert_int_equal(allocator_stats(a)->num_alloc_retries, 2);
    allocator_free(a);
}

static void collection_releases_what_is_old(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "garbage_collection_threshold:0.5", 100 * MIB);
    uint64_t one = get(a, 30 * MIB, 0), two = get(a, 30 * MIB, 0);
    allocator_release(a, one, 0);
    allocator_release(a, two, 0);
    get(a, 40 * MIB, 0); /* 60 of 50 MiB are reserved: both are of the mean age, both go though one would do */
    assert_int_equal(fake.releases, 2);
    assert_int_equal(allocator_stats(a)->num_alloc_retries, 0);
    assert_int_equal(now(a, MEMORY_STAT_SEGMENT), 1);
    allocator_free(a);
}

static void oversize_blocks_are_kept_for_their_like_and_released_first(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "max_split_size_mb:20", 80 * MIB);
    uint64_t big = get(a, 60 * MIB, 0);
    assert_int_equal(allocator_stats(a)->oversize_allocations.current, 1);
    allocator_release(a, big, 0);
    assert_int_not_equal(get(a, 2 * MIB, 0), big); /* a small one does not break it */
    get(a, 30 * MIB, 0);
    assert_int_equal(fake.releases, 1); /* more than 20 MiB too large: released, not used */
    assert_int_equal(allocator_stats(a)->num_alloc_retries, 0);
    assert_int_equal(allocator_stats(a)->oversize_segments.current, 2);
    allocator_free(a);
}

static void expandable_segments_grow_by_pages(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "expandable_segments:True", ALLOCATOR_NO_LIMIT);
    uint64_t first = get(a, 15 * MIB, 0), second = get(a, 10 * MIB, 0);
    assert_int_equal(second, first + 15 * MIB);
    assert_int_equal(now(a, MEMORY_STAT_RESERVED_BYTES), 40 * MIB);
    assert_int_equal(now(a, MEMORY_STAT_SEGMENT), 0);
    assert_int_equal(allocator_stats(a)->num_device_alloc, 2);
    allocator_release(a, second, 0);
    assert_int_equal(allocator_empty_cache(a, 0), 0);
    assert_int_equal(fake.mapped, 20 * MIB);
    assert_int_equal(now(a, MEMORY_STAT_RESERVED_BYTES), 20 * MIB);
    allocator_free(a);
}

static void a_scope_sends_requests_to_its_pool(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "", ALLOCATOR_NO_LIMIT);
    const struct pool_id id = {0, 7};
    uint64_t outside = get(a, 1024, 0);
    assert_int_equal(allocator_pool_create(a, id, &(struct pool_options){false, true}), 0);
    assert_int_equal(allocator_pool_uses(a, id), 1);
    assert_int_equal(allocator_scope_begin(a, id, NULL, NULL), 0);
    assert_int_equal(allocator_pool_uses(a, id), 2);
    uint64_t inside = get(a, MIB, 0);
    assert_int_equal(allocator_scope_end(a, id), 0);
    assert_int_equal(allocator_pool_release(a, id), 0);
    assert_int_not_equal(inside, outside + 1024);
    assert_int_equal(get(a, 1024, 0), outside + 1024);
    assert_int_equal(now(a, MEMORY_STAT_ALLOCATED_BYTES), 2 * MIB + 2048); /* no_split: the whole segment */
    assert_int_equal(now(a, MEMORY_STAT_REQUESTED_BYTES), MIB + 2048);
    assert_int_equal(allocator_scope_end(a, id), ALLOCATOR_INVALID);
    allocator_free(a);
}

static void a_pool_for_emergencies_lends_its_blocks(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "", 60 * MIB);
    const struct pool_id id = {0, 1};
    assert_int_equal(allocator_pool_create(a, id, &(struct pool_options){true, false}), 0);
    assert_int_equal(allocator_scope_begin(a, id, NULL, NULL), 0);
    uint64_t spare = get(a, 40 * MIB, 0);
    assert_int_equal(allocator_release(a, spare, 0), 0);
    assert_int_equal(allocator_scope_end(a, id), 0);
    uint64_t other = get(a, 15 * MIB, 0);
    assert_int_not_equal(other, spare);
    assert_int_equal(get(a, 30 * MIB, 0), spare); /* the limit refuses 30 more */
    assert_int_equal(allocator_stats(a)->num_alloc_retries, 0);
    allocator_free(a);
}

static void a_free_waits_for_the_other_stream(void **state)
{
    (void)state;
    struct fake fake;
    struct allocator *a = make(&fake, "", ALLOCATOR_NO_LIMIT);
    uint64_t address = get(a, 1024, 1);
    assert_int_equal(allocator_record_stream(a, address, 2), 0);
    assert_int_equal(allocator_record_stream(a, address, 1), 0);
    assert_int_equal(allocator_release(a, address, 0), 0);
    assert_int_equal(now(a, MEMORY_STAT_ALLOCATION), 0);
    assert_int_equal(now(a, MEMORY_STAT_ACTIVE), 1);
    uint64_t next = get(a, 1024, 1);
    assert_int_equal(next, address + 1024);
    fake.done_up_to = fake.events;
    assert_int_equal(get(a, 1024, 1), address);
    assert_int_equal(now(a, MEMORY_STAT_ACTIVE), 2);
    allocator_free(a);
}

/* --- random requests -------------------------------------------------------------------------------------------- */

static void check_sums(struct allocator *a)
{
    const struct memory_stats *stats = allocator_stats(a);
    for (int kind = 0; kind < MEMORY_STAT_KINDS; kind++)
        for (int i = 0; i < MEMORY_POOL_CLASSES; i++) {
            const struct memory_stat *stat = &stats->kinds[kind][i];
            assert_true(stat->current >= 0 && stat->peak >= stat->current);
            assert_int_equal(stat->current, stat->allocated - stat->freed);
            if (i == MEMORY_POOL_ALL)
                assert_int_equal(stat->current, stats->kinds[kind][MEMORY_POOL_SMALL].current +
                                                    stats->kinds[kind][MEMORY_POOL_LARGE].current);
        }
}

static void random_run(const char *conf, uint64_t limit, unsigned fail_one_in, uint64_t seed)
{
    struct fake fake;
    struct allocator *a = make(&fake, conf, limit);
    struct error err = {0};
    uint64_t held[120];
    size_t count = 0;
    random_state = seed;
    fake.fail_one_in = fail_one_in;
    for (int step = 0; step < 1500; step++) {
        uint64_t action = draw(100), address;
        if (action < 50 && count < 120) {
            uint64_t size = draw(3) ? draw(2 * MIB) : draw(8) ? draw(30 * MIB) : draw(600);
            int status = allocator_malloc(a, size, (int64_t)draw(3), 1 + draw(9), &address);
            assert_true(status == 0 || (status == ALLOCATOR_OUT_OF_MEMORY && (fail_one_in || limit != UINT64_MAX)));
            if (!status)
                held[count++] = address;
        } else if (action < 90 && count) {
            size_t one = draw(count);
            if (draw(4) == 0)
                assert_int_equal(allocator_record_stream(a, held[one], (int64_t)draw(3)), 0);
            assert_int_equal(allocator_release(a, held[one], 0), 0);
            held[one] = held[--count];
        } else if (action < 97) {
            fake.done_up_to += draw(fake.events - fake.done_up_to + 1);
        } else if (action == 97) {
            assert_int_equal(allocator_empty_cache(a, 0), 0);
        }
        if (!allocator_is_valid(a, &err))
            fail_msg("%s, seed %d, step %d: %s", conf, (int)seed, step, err.message);
        /* the limit looks at the request; an expandable segment then grows by whole pages */
        assert_true(limit == ALLOCATOR_NO_LIMIT || allocator_reserved(a) <= limit + (strstr(conf, "expand") ? 20 * MIB : 0));
        check_sums(a);
    }
    while (count)
        assert_int_equal(allocator_release(a, held[--count], 0), 0);
    assert_int_equal(allocator_empty_cache(a, 0), 0);
    assert_int_equal(allocator_reserved(a), 0);
    assert_true(allocator_is_valid(a, &err));
    allocator_free(a);
}

static void random_requests_keep_every_invariant(void **state)
{
    (void)state;
    static const char *const confs[] = {
        "", "expandable_segments:True", "max_split_size_mb:20,roundup_power2_divisions:4",
        "garbage_collection_threshold:0.3", 
        "max_split_size_mb:24,garbage_collection_threshold:0.6,expandable_segments:True", "roundup_power2_divisions:[1:8,4:2,>:1]",
    };
    for (size_t i = 0; i < sizeof(confs) / sizeof(confs[0]); i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            random_run(confs[i], ALLOCATOR_NO_LIMIT, 0, seed);
            random_run(confs[i], 200 * MIB, 0, seed + 10);
            random_run(confs[i], 300 * MIB, 5, seed + 20);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_is_read),
        cmocka_unit_test(wrong_settings_are_refused_with_what_and_where),
        cmocka_unit_test(requests_are_rounded),
        cmocka_unit_test(a_free_set_is_a_sorted_list),
        cmocka_unit_test(blocks_are_split_where_the_rest_is_worth_it),
        cmocka_unit_test(freed_neighbours_merge_and_flush_gives_back),
        cmocka_unit_test(a_limit_retries_then_refuses),
        cmocka_unit_test(collection_releases_what_is_old),
        cmocka_unit_test(oversize_blocks_are_kept_for_their_like_and_released_first),
        cmocka_unit_test(expandable_segments_grow_by_pages),
        cmocka_unit_test(a_scope_sends_requests_to_its_pool),
        cmocka_unit_test(a_pool_for_emergencies_lends_its_blocks),
        cmocka_unit_test(a_free_waits_for_the_other_stream),
        cmocka_unit_test(random_requests_keep_every_invariant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
