/* The store of plain data: numbers of any length, containers, giving back. */
#include "snapshot/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void integers_keep_their_value_whatever_their_length(void **state)
{
    (void)state;
    struct values *values = values_new();
    static const int64_t numbers[] = {0, 1, -1, 127, -128, INT32_MAX, INT32_MIN, (INT64_C(1) << 59) - 1, INT64_C(1) << 59,
                                      -(INT64_C(1) << 59), -(INT64_C(1) << 59) - 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t got = 7;
        uint64_t natural = 7;
        value v = values_int(values, numbers[i]);
        assert_true(values_get_int(values, v, &got));
        assert_true(got == numbers[i]);
        assert_int_equal(values_get_unsigned(values, v, &natural), numbers[i] >= 0);
        if (numbers[i] >= 0)
            assert_true(natural == (uint64_t)numbers[i]);
    }
    uint64_t natural = 0;
    int64_t number;
    value top = values_unsigned(values, UINT64_MAX);
    assert_int_equal(value_kind(top), VALUE_LONG);
    assert_true(values_get_unsigned(values, top, &natural) && natural == UINT64_MAX);
    assert_false(values_get_int(values, top, &number));
    values_free(values);
}

static void long_integers_are_shortened_to_what_they_need(void **state)
{
    (void)state;
    struct values *values = values_new();
    static const unsigned char padded[] = {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, negative[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const unsigned char wide[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0};
    int64_t number;
    size_t length;
    assert_true(values_get_int(values, values_long(values, padded, sizeof(padded)), &number) && number == 5);
    assert_true(values_get_int(values, values_long(values, negative, sizeof(negative)), &number) && number == -2);
    assert_true(values_get_int(values, values_long(values, NULL, 0), &number) && number == 0);
    value v = values_long(values, wide, sizeof(wide));
    const unsigned char *bytes = values_long_bytes(values, v, &length);
    assert_int_equal(length, 9);
    assert_memory_equal(bytes, wide, 9);
    uint64_t natural;
    assert_false(values_get_unsigned(values, v, &natural));
    values_free(values);
}

static void containers_grow_and_keep_order(void **state)
{
    (void)state;
    struct values *values = values_new();
    value list = values_container(values, VALUE_LIST), other = values_container(values, VALUE_DICT);
    for (int64_t i = 0; i < 5000; i++) {
        value item = values_int(values, i);
        assert_int_equal(values_append(values, list, &item, 1), 0);
        assert_int_equal(values_append(values, other, &item, 1), 0);
    }
    assert_int_equal(values_count(values, list), 5000);
    for (int64_t i = 0; i < 5000; i++) {
        assert_true(values_items(values, list)[i] == values_int(values, i));
        assert_true(values_items(values, other)[i] == values_int(values, i));
    }
    assert_true(values_append(values, values_int(values, 5), &list, 1) != 0);
    assert_int_equal(values_count(values, value_make(VALUE_LIST, 999)), 0);
    assert_int_equal(value_kind(values_container(values, VALUE_INT)), VALUE_MARK);
    assert_true(values_failed(values));
    values_free(values);
}

static void a_released_container_costs_nothing(void **state)
{
    (void)state;
    struct values *values = values_new();
    value items[16] = {0};
    size_t held = 0;
    for (int i = 0; i < 100000; i++) {
        value dict = values_container(values, VALUE_DICT);
        assert_int_equal(values_append(values, dict, items, 16), 0);
        values_notes(values, dict)->row = 5;
        values_release(values, dict);
        assert_null(values_notes(values, dict));
        if (i == 0)
            held = values_bytes_held(values);
    }
    assert_int_equal(values_bytes_held(values), held);
    value fresh = values_container(values, VALUE_LIST);
    assert_int_equal(values_notes(values, fresh)->row, 0);
    assert_int_equal(values_count(values, fresh), 0);
    values_free(values);
}

static void floats_and_bytes_come_back(void **state)
{
    (void)state;
    struct values *values = values_new();
    unsigned char big[200000];
    memset(big, 'x', sizeof(big));
    value number = values_float(values, -0.5), small = values_bytes(values, VALUE_BYTES, "a\0b", 3);
    value large = values_bytes(values, VALUE_BYTEARRAY, big, sizeof(big)), after = values_bytes(values, VALUE_BYTES, "c", 1);
    size_t length;
    assert_true(values_get_float(values, number) == -0.5);
    assert_memory_equal(values_get_bytes(values, small, &length), "a\0b", 3);
    assert_int_equal(length, 3);
    assert_memory_equal(values_get_bytes(values, large, &length), big, sizeof(big));
    assert_int_equal(length, sizeof(big));
    assert_memory_equal(values_get_bytes(values, after, &length), "c", 1);
    assert_null(values_get_bytes(values, number, &length));
    values_free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_keep_their_value_whatever_their_length),
        cmocka_unit_test(long_integers_are_shortened_to_what_they_need),
        cmocka_unit_test(containers_grow_and_keep_order),
        cmocka_unit_test(a_released_container_costs_nothing),
        cmocka_unit_test(floats_and_bytes_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
