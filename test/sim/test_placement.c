/* The placement rule against recorded runs, and its invariants under random use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/placement.h"

#define MIB (1ull << 20)
#define TOP 0x7f0000000000ull

/* How many of the recording's placements the rule explains; each is put where the recording has it. */
static void explain(const char *name, unsigned *right, unsigned *all)
{
    char path[512], line[256];
    snprintf(path, sizeof path, "%s/placement_%s.txt", TEST_DATA, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    struct placement *p = placement_new(TOP);
    *right = *all = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long long a = 0, b = 0, c = 0;
        if (sscanf(line, "seed %llx %llu %llx", &a, &b, &c) == 3) {
            assert_true(placement_seed(p, a, b, c));
        } else if (sscanf(line, "place %llx %llu", &a, &b) == 2) {
            assert_int_equal(placement_get(p, b), a);
        } else if (sscanf(line, "open %llx", &a) == 1) {
            placement_open(p, a);
        } else if (sscanf(line, "alloc %llx %llu", &a, &b) == 2) {
            uint64_t predicted = placement_get(p, b);
            ++*all;
            if (predicted == a) {
                ++*right;
            } else {
                assert_true(placement_put(p, predicted));
                assert_true(placement_take(p, a, b));
            }
        } else if (sscanf(line, "free %llx", &a) == 1) {
            assert_true(placement_put(p, a));
        } else {
            assert_int_equal(line[0], '#');
        }
        assert_true(placement_is_valid(p));
    }
    fclose(file);
    placement_free(p);
}

static void rule_explains_every_placement_of_the_recordings(void **state)
{
    static const struct {
        const char *name;
        unsigned all;
    } recordings[] = {{"pressure", 140}, {"frag", 153}, {"frag_conf", 482}, {"whatif", 64}, {"kvcache", 5}};
    (void)state;
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++) {
        unsigned right, all;
        explain(recordings[i].name, &right, &all);
        assert_int_equal(all, recordings[i].all);
        assert_int_equal(right, recordings[i].all);
    }
}

static void sizes_round_up_to_pages(void **state)
{
    (void)state;
    assert_int_equal(placement_round(1), 2 * MIB);
    assert_int_equal(placement_round(2 * MIB), 2 * MIB);
    assert_int_equal(placement_round(2 * MIB + 1), 4 * MIB);
    assert_int_equal(placement_round(UINT64_MAX), 0);
}

static void first_chunk_lies_at_the_top_and_its_hole_is_used(void **state)
{
    struct placement *p = placement_new(TOP);
    (void)state;
    assert_int_equal(placement_get(p, 20 * MIB), TOP - 32 * MIB);
    assert_int_equal(placement_get(p, 2 * MIB), TOP - 12 * MIB);
    assert_int_equal(placement_get(p, 12 * MIB), TOP - 64 * MIB); /* 10 are left: a new chunk below */
    assert_int_equal(placement_get(p, 10 * MIB), TOP - 52 * MIB); /* the newest chunk that has room, not the tightest */
    placement_free(p);
}

static void gap_must_be_strictly_larger(void **state)
{
    struct placement *p = placement_new(TOP);
    (void)state;
    uint64_t a = placement_get(p, 64 * MIB), b = placement_get(p, 32 * MIB), c = placement_get(p, 32 * MIB);
    assert_int_equal(c, TOP - 128 * MIB);
    assert_true(placement_put(p, a)); /* a gap of 64 */
    assert_int_equal(placement_get(p, 64 * MIB), TOP - 192 * MIB);
    assert_int_equal(placement_get(p, 32 * MIB), TOP - 32 * MIB); /* at the gap's top */
    assert_true(placement_put(p, b));                             /* joins what is left of it: 64 again */
    assert_int_equal(placement_get(p, 64 * MIB), TOP - 256 * MIB);
    assert_int_equal(placement_get(p, 48 * MIB), TOP - 320 * MIB);
    placement_free(p);
}

static void lowest_gap_joins_the_open_space(void **state)
{
    struct placement *p = placement_new(TOP);
    (void)state;
    uint64_t a = placement_get(p, 32 * MIB), b = placement_get(p, 32 * MIB);
    assert_true(placement_put(p, b));
    assert_int_equal(placement_get(p, 32 * MIB), b);
    assert_true(placement_put(p, a));
    assert_true(placement_put(p, b)); /* both together reach the open space */
    assert_int_equal(placement_get(p, 128 * MIB), TOP - 128 * MIB);
    placement_free(p);
}

static void what_is_no_segment_cannot_be_given_back(void **state)
{
    struct placement *p = placement_new(TOP);
    (void)state;
    uint64_t a = placement_get(p, 4 * MIB);
    assert_false(placement_put(p, a + 2 * MIB));
    assert_false(placement_put(p, 0));
    assert_true(placement_put(p, a));
    assert_false(placement_put(p, a));
    assert_int_equal(placement_get(p, UINT64_MAX - MIB), 0);
    assert_int_equal(placement_get(p, TOP), 0); /* no address below it */
    placement_free(p);
}

static void taken_places_are_learnt_and_never_overlap(void **state)
{
    struct placement *p = placement_new(TOP);
    (void)state;
    uint64_t a = TOP - 320 * MIB;
    assert_true(placement_take(p, a, 20 * MIB));
    assert_false(placement_take(p, a + 2 * MIB, 2 * MIB));
    assert_int_equal(placement_get(p, 12 * MIB), a + 20 * MIB);    /* the hole after it */
    assert_int_equal(placement_get(p, 32 * MIB), TOP - 32 * MIB);  /* what was jumped over is a gap */
    assert_true(placement_is_valid(p));
    placement_free(p);
}

static void random_use_keeps_every_invariant(void **state)
{
    struct placement *p = placement_new(TOP);
    struct {
        uint64_t address, bytes;
    } live[64] = {{0, 0}};
    unsigned long long seed = 12345;
    (void)state;
    for (int i = 0; i < 4000; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        size_t k = (size_t)(seed >> 33) % 64;
        if (live[k].address) {
            assert_true(placement_put(p, live[k].address));
            live[k].address = 0;
        } else {
            live[k].bytes = placement_round((seed >> 20) % (100 * MIB) + 1);
            live[k].address = placement_get(p, live[k].bytes);
            assert_int_not_equal(live[k].address, 0);
            for (size_t other = 0; other < 64; other++)
                if (other != k && live[other].address)
                    assert_true(live[other].address + live[other].bytes <= live[k].address ||
                                live[k].address + live[k].bytes <= live[other].address);
        }
        assert_true(placement_is_valid(p));
    }
    for (size_t k = 0; k < 64; k++)
        if (live[k].address)
            assert_true(placement_put(p, live[k].address));
    assert_int_equal(placement_get(p, 32 * MIB), TOP - 32 * MIB); /* all came back */
    placement_free(p);
}

static void holes_of_others_are_used_and_their_age_counts(void **state)
{
    struct placement *p = placement_new(TOP);
    (void)state;
    uint64_t first = placement_get(p, 20 * MIB); /* its chunk keeps a hole of 12 */
    assert_false(placement_hole(p, placement_low(p) - 64 * MIB, placement_low(p))); /* open space is no hole */
    assert_false(placement_hole(p, first, first + 20 * MIB));                      /* nor is a segment */
    assert_true(placement_hole(p, TOP + 4 * MIB, TOP + 20 * MIB));                 /* its chunk is the newest now */
    assert_true(placement_is_valid(p));
    uint64_t inside = placement_get(p, 2 * MIB);
    assert_int_equal(inside, TOP + 4 * MIB);
    assert_true(placement_age(p, inside));
    assert_int_equal(placement_get(p, 2 * MIB), first + 20 * MIB);
    assert_int_equal(placement_get(p, 14 * MIB), TOP + 6 * MIB); /* nothing younger has room */
    assert_true(placement_put(p, inside));
    assert_true(placement_put(p, TOP + 6 * MIB)); /* whole again, and not given back: others are in its chunk */
    assert_int_equal(placement_get(p, 16 * MIB), TOP + 4 * MIB);
    assert_false(placement_age(p, TOP + 400 * MIB));
    assert_true(placement_is_valid(p));
    placement_free(p);
}

static void a_hole_opens_in_what_was_known_to_be_others(void **state)
{
    struct placement *p = placement_new(TOP);
    (void)state;
    assert_true(placement_seed(p, TOP + 40 * MIB, 4 * MIB, TOP + 48 * MIB)); /* 32 to 40 and 48 to 64 are others' */
    assert_true(placement_hole(p, TOP + 50 * MIB, TOP + 60 * MIB));
    assert_true(placement_is_valid(p));
    assert_int_equal(placement_get(p, 10 * MIB), TOP + 50 * MIB);
    assert_true(placement_hole(p, TOP + 10 * MIB, TOP + 36 * MIB)); /* across the end of the chunk */
    assert_true(placement_is_valid(p));
    assert_int_equal(placement_get(p, 26 * MIB), TOP + 10 * MIB);
    placement_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_explains_every_placement_of_the_recordings),
        cmocka_unit_test(sizes_round_up_to_pages),
        cmocka_unit_test(first_chunk_lies_at_the_top_and_its_hole_is_used),
        cmocka_unit_test(gap_must_be_strictly_larger),
        cmocka_unit_test(lowest_gap_joins_the_open_space),
        cmocka_unit_test(what_is_no_segment_cannot_be_given_back),
        cmocka_unit_test(taken_places_are_learnt_and_never_overlap),
        cmocka_unit_test(random_use_keeps_every_invariant),
        cmocka_unit_test(holes_of_others_are_used_and_their_age_counts),
        cmocka_unit_test(a_hole_opens_in_what_was_known_to_be_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
