/* src/base without files: arrays, tables, strings, text, sizes, errors, statistics. */
#include "base/array.h"
#include "base/error.h"
#include "base/memory_stats.h"
#include "base/size.h"
#include "base/strings.h"
#include "base/ordered_bits.h"
#include "base/table.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void array_keeps_its_elements_while_growing(void **unused)
{
    uint32_t *items = NULL;
    size_t capacity = 0;
    (void)unused;
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(array_reserve(&items, &capacity, i + 1, sizeof(*items)), STATUS_OK);
        assert_true(capacity > i);
        items[i] = i * 7;
    }
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(items[i], i * 7);
    assert_true(capacity < 10000 * 2);
    free(items);
}

static void array_refuses_sizes_that_overflow(void **unused)
{
    uint64_t *items = NULL;
    size_t capacity = 0, sum;
    (void)unused;
    assert_int_equal(array_reserve(&items, &capacity, SIZE_MAX / 4, sizeof(*items)), STATUS_NO_MEMORY);
    assert_null(items);
    assert_int_equal(capacity, 0);
    assert_true(add_overflows(SIZE_MAX, 1, &sum));
    assert_false(add_overflows(SIZE_MAX - 1, 1, &sum));
    assert_true(multiply_overflows(SIZE_MAX / 2, 3, &sum));
    assert_false(multiply_overflows(6, 7, &sum));
    assert_int_equal(sum, 42);
}

static void table_agrees_with_a_plain_map_through_insertions_and_removals(void **unused)
{
    enum { KEYS = 700, STEPS = 200000 };
    struct table table = {0};
    uint64_t keys[KEYS];
    uint32_t values[KEYS];
    bool there[KEYS] = {false};
    size_t count = 0;
    (void)unused;
    for (size_t i = 0; i < KEYS; i++) /* neighbours, far apart, and the extremes */
        keys[i] = i < 300 ? i : i < 600 ? random_next() : UINT64_MAX - i + 600;
    for (size_t step = 0; step < STEPS; step++) {
        size_t i = random_next() % KEYS;
        uint32_t value = (uint32_t)random_next();
        switch (random_next() % 3) {
        case 0:
            assert_int_equal(table_set(&table, keys[i], value), STATUS_OK);
            count += !there[i];
            there[i] = true;
            values[i] = value;
            break;
        case 1:
            assert_int_equal(table_remove(&table, keys[i]), there[i]);
            count -= there[i];
            there[i] = false;
            break;
        default:
            if (random_next() % 4 == 0) {
                uint32_t *place = table_at(&table, keys[i], value);
                assert_non_null(place);
                if (!there[i])
                    values[i] = value;
                count += !there[i];
                there[i] = true;
                assert_int_equal(*place, values[i]);
            }
        }
        assert_int_equal(table.count, count);
        if (step % 512)
            continue;
        for (size_t k = 0; k < KEYS; k++) {
            assert_int_equal(table_has(&table, keys[k]), there[k]);
            assert_int_equal(table_get(&table, keys[k], 12345), there[k] ? values[k] : 12345);
        }
    }
    table_free(&table);
    assert_int_equal(table.count, 0);
}

static void empty_table_has_nothing(void **unused)
{
    struct table table = {0};
    (void)unused;
    assert_false(table_has(&table, 0));
    assert_false(table_remove(&table, 0));
    assert_int_equal(table_get(&table, 0, 9), 9);
    table_free(&table);
}

static void ordered_bits_find_their_neighbours(void **unused)
{
    (void)unused;
    static const size_t bounds[] = {1, 63, 64, 65, 4096, 4097, 20000};
    uint64_t seed = 7;
    for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
        size_t bound = bounds[b];
        bool *plain = calloc(bound, sizeof(*plain));
        struct ordered_bits bits;
        assert_non_null(plain);
        assert_int_equal(ordered_bits_init(&bits, bound), 0);
        assert_true(ordered_bits_at_or_below(&bits, bound - 1) == ORDERED_BITS_NONE);
        for (int step = 0; step < 3000; step++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t number = (seed >> 33) % bound, below = number, above = number;
            bool add = seed >> 62 & 1;
            plain[number] = add;
            add ? ordered_bits_add(&bits, number) : ordered_bits_remove(&bits, number);
            number = (seed >> 20) % bound;
            assert_int_equal(ordered_bits_has(&bits, number), plain[number]);
            for (below = number; below != SIZE_MAX && !plain[below]; below--)
                ;
            for (above = number; above < bound && !plain[above]; above++)
                ;
            assert_true(ordered_bits_at_or_below(&bits, number) == (below == SIZE_MAX ? ORDERED_BITS_NONE : below));
            assert_true(ordered_bits_at_or_above(&bits, number) == (above == bound ? ORDERED_BITS_NONE : above));
        }
        ordered_bits_free(&bits);
        free(plain);
    }
}

static void hash_tells_lengths_and_bytes_apart(void **unused)
{
    (void)unused;
    assert_true(hash_bytes("", 0) != hash_bytes("\0", 1));
    assert_true(hash_bytes("\0", 1) != hash_bytes("\0\0", 2));
    assert_true(hash_bytes("abcdefgh", 8) != hash_bytes("abcdefgi", 8));
    assert_true(hash_bytes("abcdefghx", 9) != hash_bytes("abcdefghy", 9));
    assert_true(hash_bytes("same", 4) == hash_bytes("same", 4));
}

static void strings_number_by_first_appearance(void **unused)
{
    struct strings *strings = strings_new();
    (void)unused;
    assert_non_null(strings);
    assert_int_equal(strings_intern_text(strings, ""), 0);
    assert_int_equal(strings_intern_text(strings, "one"), 1);
    assert_int_equal(strings_intern(strings, "t\0o", 3), 2);
    assert_int_equal(strings_intern(strings, "t\0p", 3), 3);
    assert_int_equal(strings_intern_text(strings, "one"), 1);
    assert_int_equal(strings_find(strings, "t\0o", 3), 2);
    assert_int_equal(strings_find(strings, "t", 1), STRING_NONE);
    assert_int_equal(strings_length(strings, 2), 3);
    assert_memory_equal(strings_text(strings, 2), "t\0o", 4);
    assert_string_equal(strings_text(strings, STRING_NONE), "");
    assert_int_equal(strings_count(strings), 4);
    strings_free(strings);
}

static void strings_stay_where_they_are(void **unused)
{
    enum { COUNT = 50000 };
    struct strings *strings = strings_new();
    static const char *places[COUNT];
    char text[64];
    (void)unused;
    for (unsigned i = 0; i < COUNT; i++) {
        int length = snprintf(text, sizeof(text), "string %u", i);
        assert_int_equal(strings_intern(strings, text, (size_t)length), i + 1);
        places[i] = strings_text(strings, i + 1);
    }
    char *large = malloc(300000);
    memset(large, 'x', 300000);
    assert_int_equal(strings_intern(strings, large, 300000), COUNT + 1);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(text, sizeof(text), "string %u", i);
        assert_ptr_equal(strings_text(strings, i + 1), places[i]);
        assert_string_equal(places[i], text);
        assert_int_equal(strings_intern_text(strings, text), i + 1);
    }
    assert_memory_equal(strings_text(strings, COUNT + 1), large, 300000);
    free(large);
    strings_free(strings);
}

static void text_grows_and_formats(void **unused)
{
    struct text text = {0};
    (void)unused;
    assert_string_equal(text_string(&text), "");
    for (int i = 0; i < 1000; i++)
        text_printf(&text, "%d,", i);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4);
    assert_memory_equal(text_string(&text), "0,1,2,", 6);
    text_clear(&text);
    assert_string_equal(text_string(&text), "");
    text_add(&text, "a");
    text_char(&text, 'b');
    text_append(&text, "\0c", 2);
    assert_int_equal(text.length, 4);
    assert_memory_equal(text_string(&text), "ab\0c", 5);
    assert_false(text_failed(&text));
    text_free(&text);
}

static void assert_printable(const char *bytes, size_t length, const char *shown)
{
    struct text text = {0};
    text_add_printable(&text, bytes, length);
    assert_string_equal(text_string(&text), shown);
    text_free(&text);
}

static void printable_text_has_no_controls_and_no_broken_utf8(void **unused)
{
    (void)unused;
    assert_printable("plain ~", 7, "plain ~");
    assert_printable("\033[31m", 5, "\\x1b[31m");
    assert_printable("a\nb\tc\0d", 7, "a\\x0ab\\x09c\\x00d");
    assert_printable("\x7f", 1, "\\x7f");
    assert_printable("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_printable("\xc2\x9b", 2, "\\xc2\\x9b");             /* a C1 control */
    assert_printable("\xc0\xaf", 2, "\\xc0\\xaf");             /* overlong */
    assert_printable("\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf");
    assert_printable("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");    /* a surrogate */
    assert_printable("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80");
    assert_printable("\xf5\x80\x80\x80", 4, "\\xf5\\x80\\x80\\x80");
    assert_printable("\xe2\x82", 2, "\\xe2\\x82");             /* cut */
    assert_printable("\xc3(", 2, "\\xc3(");
    assert_printable("\xff", 1, "\\xff");
}

static void sizes_print_with_two_decimals(void **unused)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"}, {1023, "1023 B"}, {1024, "1.00 KiB"}, {1536, "1.50 KiB"}, {1610612736, "1.50 GiB"},
        {1048575, "1.00 MiB"}, {81352720384, "75.77 GiB"}, {UINT64_MAX, "16.00 EiB"},
    };
    char text[SIZE_TEXT];
    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(size_format(cases[i].bytes, text), cases[i].text);
    assert_string_equal(size_format_delta(512, 1536, text), "+1.00 KiB");
    assert_string_equal(size_format_delta(1024, 512, text), "-512 B");
    assert_string_equal(size_format_delta(5, 5, text), "+0 B");
}

static void sizes_parse_as_people_write_them(void **unused)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"512", 512}, {"64KiB", 65536}, {"20M", 20971520}, {"1.5GiB", 1610612736}, {"2k", 2048}, {"3 MiB", 3145728},
        {"256Ki", 262144}, {"7B", 7}, {"1TB", UINT64_C(1) << 40}, {"18446744073709551615", UINT64_MAX},
        {"0.5K", 512}, {"15.999999999E", 18446744072556630835u},
    };
    static const char *const bad[] = {"", "x", "-1", "1.5.2M", "12Q", "12 apples", "16E", "18446744073709551616", "MiB",
                                      "1e3", "0x10", " 1", "1 "};
    struct error err;
    uint64_t bytes;
    (void)unused;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(size_parse(good[i].text, &bytes, &err), STATUS_OK);
        if (i != 11)
            assert_int_equal(bytes, good[i].bytes);
        else
            assert_in_range(bytes, UINT64_C(0xffffffff00000000) - (UINT64_C(1) << 34), UINT64_MAX);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (size_parse(bad[i], &bytes, &err) != STATUS_USAGE && strcmp(bad[i], "1 ") != 0)
            fail_msg("'%s' was taken for a size", bad[i]);
    }
}

static void size_ranges_may_be_open(void **unused)
{
    struct error err;
    uint64_t low, high;
    (void)unused;
    assert_int_equal(size_parse_range("1K..2M", &low, &high, &err), STATUS_OK);
    assert_int_equal(low, 1024);
    assert_int_equal(high, 2097152);
    assert_int_equal(size_parse_range("..512", &low, &high, &err), STATUS_OK);
    assert_int_equal(low, 0);
    assert_int_equal(high, 512);
    assert_int_equal(size_parse_range("4096..", &low, &high, &err), STATUS_OK);
    assert_int_equal(low, 4096);
    assert_true(high == UINT64_MAX);
    assert_int_equal(size_parse_range("1.5K", &low, &high, &err), STATUS_OK);
    assert_int_equal(low, 1536);
    assert_int_equal(high, 1536);
    assert_int_equal(size_parse_range("2..1", &low, &high, &err), STATUS_USAGE);
    assert_int_equal(size_parse_range("a..b", &low, &high, &err), STATUS_USAGE);
}

static void errors_carry_status_place_and_text(void **unused)
{
    struct error err;
    (void)unused;
    assert_int_equal(error_set(&err, STATUS_INPUT, "bad %s", "thing"), STATUS_INPUT);
    assert_string_equal(err.message, "bad thing");
    assert_false(err.has_offset);
    assert_int_equal(error_at(&err, STATUS_INPUT, 42, "there"), STATUS_INPUT);
    assert_true(err.has_offset);
    assert_int_equal(err.offset, 42);
    error_prefix(&err, "in %s: ", "file");
    assert_string_equal(err.message, "in file: there");
    assert_int_equal(error_set(NULL, STATUS_OUTPUT, "nobody listens"), STATUS_OUTPUT);
    char longer[1000];
    memset(longer, 'y', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    error_prefix(&err, "%s", longer);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    error_set(&err, STATUS_INPUT, "%s", longer);
    error_prefix(&err, "before ");
    assert_memory_equal(err.message, "before yyy", 10);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

static void statistics_move_as_pytorchs_do(void **unused)
{
    struct memory_stats stats;
    (void)unused;
    memory_stats_init(&stats);
    assert_int_equal(stats.max_split_size, -1);
    memory_stats_increase(&stats, MEMORY_STAT_ALLOCATED_BYTES, MEMORY_POOL_SMALL, 512);
    memory_stats_increase(&stats, MEMORY_STAT_ALLOCATED_BYTES, MEMORY_POOL_LARGE, 1000);
    memory_stats_decrease(&stats, MEMORY_STAT_ALLOCATED_BYTES, MEMORY_POOL_SMALL, 512);
    const struct memory_stat *all = &stats.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL];
    const struct memory_stat *small = &stats.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_SMALL];
    assert_int_equal(all->current, 1000);
    assert_int_equal(all->peak, 1512);
    assert_int_equal(all->allocated, 1512);
    assert_int_equal(all->freed, 512);
    assert_int_equal(small->current, 0);
    assert_int_equal(small->peak, 512);
}

/* The keys of a real memory_stats(), in order, each with a field of its own. */
static void statistics_have_pytorchs_keys(void **unused)
{
    FILE *file = fopen(TEST_DATA "/whatif.stats.json", "r");
    const struct memory_stats_key *keys = memory_stats_keys();
    struct memory_stats stats;
    size_t found = 0;
    char line[256], name[128];
    long long value;
    (void)unused;
    assert_non_null(file);
    for (size_t i = 0; i < MEMORY_STATS_KEYS; i++) {
        memset(&stats, 0, sizeof(stats));
        *(int64_t *)(void *)((char *)&stats + keys[i].offset) = 77;
        for (size_t j = 0; j < MEMORY_STATS_KEYS; j++)
            assert_int_equal(memory_stats_value(&stats, &keys[j]), i == j ? 77 : 0);
    }
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, " \"%127[^\"]\": %lld", name, &value) == 2) {
            assert_true(found < MEMORY_STATS_KEYS);
            assert_string_equal(keys[found].name, name);
            found++;
        }
    fclose(file);
    assert_int_equal(found, MEMORY_STATS_KEYS);
    for (size_t i = 1; i < MEMORY_STATS_KEYS; i++)
        assert_true(strcmp(keys[i - 1].name, keys[i].name) < 0);
    memset(&stats, 0, sizeof(stats));
    stats.kinds[MEMORY_STAT_INACTIVE_SPLIT_BYTES][MEMORY_POOL_SMALL].peak = 5;
    for (size_t i = 0; i < MEMORY_STATS_KEYS; i++)
        assert_int_equal(memory_stats_value(&stats, &keys[i]),
                         strcmp(keys[i].name, "inactive_split_bytes.small_pool.peak") == 0 ? 5 : 0);
    assert_string_equal(memory_stat_kind_name(MEMORY_STAT_RESERVED_BYTES), "reserved_bytes");
    assert_string_equal(memory_pool_class_name(MEMORY_POOL_LARGE), "large_pool");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(array_keeps_its_elements_while_growing),
        cmocka_unit_test(array_refuses_sizes_that_overflow),
        cmocka_unit_test(table_agrees_with_a_plain_map_through_insertions_and_removals),
        cmocka_unit_test(empty_table_has_nothing),
        cmocka_unit_test(ordered_bits_find_their_neighbours),
        cmocka_unit_test(hash_tells_lengths_and_bytes_apart),
        cmocka_unit_test(strings_number_by_first_appearance),
        cmocka_unit_test(strings_stay_where_they_are),
        cmocka_unit_test(text_grows_and_formats),
        cmocka_unit_test(printable_text_has_no_controls_and_no_broken_utf8),
        cmocka_unit_test(sizes_print_with_two_decimals),
        cmocka_unit_test(sizes_parse_as_people_write_them),
        cmocka_unit_test(size_ranges_may_be_open),
        cmocka_unit_test(errors_carry_status_place_and_text),
        cmocka_unit_test(statistics_move_as_pytorchs_do),
        cmocka_unit_test(statistics_have_pytorchs_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
