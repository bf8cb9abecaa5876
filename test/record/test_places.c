/* The wrappers' small table agrees with a plain array under any mixture of additions and removals. */
#include "preload/places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define KEYS 3000

static uint64_t key_of(unsigned i)
{
    return (uint64_t)(i % 7 ? i : i * 4096u) * 2097152u + 1; /* many that are alike in their low bits */
}

static void agrees_with_an_array(void **state)
{
    (void)state;
    static uint64_t wanted[KEYS];
    struct places places = {0};
    uint64_t random = 12345;
    size_t count = 0;
    memset(wanted, 0, sizeof(wanted));
    for (unsigned turn = 0; turn < 200000; turn++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned i = (unsigned)(random >> 33) % KEYS;
        if ((random >> 20) % 3) {
            struct place *place = places_add(&places, key_of(i));
            assert_non_null(place);
            assert_true(place->size == wanted[i]);
            count += wanted[i] == 0;
            place->size = wanted[i] = turn + 1;
        } else {
            places_remove(&places, key_of(i));
            count -= wanted[i] != 0;
            wanted[i] = 0;
        }
        assert_int_equal(places.count, count);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        const struct place *place = places_find(&places, key_of(i));
        assert_true(wanted[i] ? place && place->size == wanted[i] : !place);
    }
    size_t at = 0, walked = 0;
    while (places_next(&places, &at))
        walked++;
    assert_int_equal(walked, count);
}

static void no_key_is_no_entry(void **state)
{
    (void)state;
    struct places places = {0};
    assert_null(places_find(&places, 1));
    assert_null(places_add(&places, 0));
    places_remove(&places, 5);
    assert_int_equal(places.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_an_array), cmocka_unit_test(no_key_is_no_entry)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
