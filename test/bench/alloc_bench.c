/*
 * Pairs of a cached allocation and its free, for counting instructions: alloc_bench.sh runs this under callgrind, which
 * counts inside pairs_run() and pairs_run_queue() alone.  Prints the time of a pair, too (without callgrind).
 *
 * usage: alloc_bench PAIR FILL FREE PAIRS
 *   PAIR   exact         one size, served by a whole block of it
 *          exact_each    a size drawn anew each time, served whole
 *          exact_queue   the same, the block of 32 pairs ago is freed
 *          split         one size, cut off a larger block and merged back
 *          split_each    a size drawn anew each time
 *          split_large   one size of the large pool
 *   FILL   what is free besides: `varied` sizes, `equal` or `ascending` ones
 *   FREE   so many free blocks
 */
#include "alloc/allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB SETTINGS_MIB
#define SEPARATOR 512u /* stays allocated between free blocks */
enum { SIZES = 4096, HELD = 32 };

enum shape { EXACT, EXACT_EACH, EXACT_QUEUE, SPLIT, SPLIT_EACH, SPLIT_LARGE, SHAPES };
static const char *const shape_names[SHAPES] = {"exact", "exact_each",  "exact_queue",
                                                "split", "split_each", "split_large"};

static uint64_t random_state = 1;
static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

static int segment_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    uint64_t *next = self;
    (void)stream;
    *address = *next;
    *next += (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    return 0;
}

static void segment_release(void *self, uint64_t address, uint64_t size)
{
    (void)self, (void)address, (void)size;
}

static void memory_info(void *self, uint64_t *free_bytes, uint64_t *total)
{
    (void)self;
    *free_bytes = *total = UINT64_C(1) << 40;
}

static struct allocator *make(uint64_t *next)
{
    struct allocator_options options = {
        .device = {.self = next, .segment_get = segment_get, .segment_release = segment_release,
                   .memory_info = memory_info},
        .limit = ALLOCATOR_NO_LIMIT};
    settings_init(&options.settings);
    *next = UINT64_C(0x700000000000);
    struct allocator *a = allocator_new(&options);
    if (!a)
        exit(1);
    return a;
}

static uint64_t get(struct allocator *a, uint64_t size)
{
    uint64_t address;
    if (allocator_malloc(a, size, 0, 0, &address))
        exit(1);
    return address;
}

static void put(struct allocator *a, uint64_t address)
{
    if (allocator_release(a, address, 0))
        exit(1);
}

static uint64_t fill_size(const char *fill, size_t at, size_t count)
{
    if (strcmp(fill, "equal") == 0)
        return 4096;
    if (strcmp(fill, "ascending") == 0)
        return SEPARATOR * (2 + at * 126 / count);
    return SEPARATOR * (2 + draw(126));
}

/* `count` free blocks of 1 to 64 KiB (in the large pool: of 1 to 5 MiB), each beside one that stays allocated.  Keeps
 * the sizes of the first ones. */
static void fill(struct allocator *a, const char *how, size_t count, bool large, uint64_t *sizes)
{
    uint64_t *addresses = malloc((count + 1) * sizeof(*addresses));
    if (!addresses)
        exit(1);
    for (size_t i = 0; i < count; i++) {
        uint64_t size = fill_size(how, i, count) * (large ? 64 : 1) + (large ? MIB : 0);
        addresses[i] = get(a, size);
        get(a, large ? 2 * MIB : SEPARATOR);
        if (i < SIZES)
            sizes[i] = size;
    }
    for (size_t i = 0; i < count; i++)
        put(a, addresses[i]);
    free(addresses);
}

/* What the pairs ask for, and what serves them. */
static void prepare(struct allocator *a, enum shape shape, const char *how, size_t count, uint64_t *sizes)
{
    const uint64_t target = 131 * SEPARATOR - 12; /* larger than all of the fill */
    bool large = shape == SPLIT_LARGE;
    uint64_t whole = large ? 9 * MIB : shape >= SPLIT ? 700 * SEPARATOR : target, held[HELD + 1];
    size_t wholes = shape == EXACT_QUEUE ? HELD + 1 : 1;
    for (size_t i = 0; i < wholes; i++) {
        held[i] = get(a, whole);
        get(a, large ? 2 * MIB : SEPARATOR);
    }
    fill(a, how, count, large, sizes);
    for (size_t i = 0; i < wholes; i++)
        put(a, held[i]);
    for (size_t i = 0; i < SIZES; i++)
        if (shape == EXACT_EACH)
            sizes[i] = count ? sizes[i % count] : target;
        else
            sizes[i] = large                 ? 6 * MIB
                       : shape == SPLIT_EACH ? SEPARATOR * (135 + draw(400))
                       : shape == SPLIT      ? 400 * SEPARATOR
                                             : target;
}

static __attribute__((noinline)) void pairs_run(struct allocator *a, const uint64_t *sizes, size_t pairs)
{
    uint64_t address;
    for (size_t i = 0; i < pairs; i++) {
        allocator_malloc(a, sizes[i % SIZES], 0, 0, &address);
        allocator_release(a, address, 0);
    }
}

static __attribute__((noinline)) void pairs_run_queue(struct allocator *a, uint64_t size, size_t pairs)
{
    uint64_t queue[HELD];
    for (size_t i = 0; i < HELD; i++)
        queue[i] = get(a, size);
    for (size_t i = 0; i < pairs; i++) {
        allocator_release(a, queue[i % HELD], 0);
        allocator_malloc(a, size, 0, 0, &queue[i % HELD]);
    }
}

/* Is a request of this size served whole?  A split leaves as many inactive pieces as before, or one more. */
static bool is_served_whole(struct allocator *a, uint64_t size)
{
    const struct memory_stat *pieces = &allocator_stats(a)->kinds[MEMORY_STAT_INACTIVE_SPLIT][MEMORY_POOL_ALL];
    int64_t before = pieces->current;
    uint64_t address = get(a, size);
    int64_t during = pieces->current;
    put(a, address);
    return during < before;
}

int main(int argc, char **argv)
{
    static uint64_t sizes[SIZES];
    enum shape shape = 0;
    while (argc == 5 && shape < SHAPES && strcmp(argv[1], shape_names[shape]) != 0)
        shape++;
    if (argc != 5 || shape == SHAPES) {
        fprintf(stderr, "usage: alloc_bench PAIR FILL FREE PAIRS\n");
        return 2;
    }
    size_t count = (size_t)atoll(argv[3]), pairs = (size_t)atoll(argv[4]);
    uint64_t next;
    struct allocator *a = make(&next);
    prepare(a, shape, argv[2], count, sizes);
    for (size_t i = 0; i < SIZES; i++) /* what is left of segments may be just as large: then another size */
        for (int tries = 0; is_served_whole(a, sizes[i]) != (shape < SPLIT); tries++) {
            if (tries == 100) {
                fprintf(stderr, "alloc_bench: requests are not served as %s says\n", argv[1]);
                return 1;
            }
            sizes[i] = i ? sizes[draw(i)] : sizes[i] - (shape == SPLIT_LARGE ? 256 : 1) * SEPARATOR;
        }
    int64_t segments = allocator_stats(a)->num_device_alloc;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (shape == EXACT_QUEUE)
        pairs_run_queue(a, sizes[0], pairs);
    else
        pairs_run(a, sizes, pairs);
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (allocator_stats(a)->num_device_alloc != segments) {
        fprintf(stderr, "alloc_bench: a request was not served from the cache\n");
        return 1;
    }
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("pair=%s fill=%s free=%zu ns_a_pair=%.1f\n", argv[1], argv[2], count, ns / (double)pairs);
    allocator_free(a);
    return 0;
}
