/* memory_summary's table against PyTorch's own, from the statistics beside it. */
#include "analyze/summary.h"
#include "render/summary_text.h"

#include <cjson/cJSON.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *bytes = calloc(1, 1 << 20);
    size_t length = fread(bytes, 1, (1 << 20) - 1, file);
    fclose(file);
    bytes[length] = '\0';
    return bytes;
}

static void load_stats(const char *path, struct statistics *statistics)
{
    memset(statistics, 0, sizeof(*statistics));
    char *bytes = read_file(path);
    assert_non_null(bytes);
    cJSON *json = cJSON_Parse(bytes);
    assert_non_null(json);
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int i = 0; i < MEMORY_STATS_KEYS; i++) {
        cJSON *item = cJSON_GetObjectItemCaseSensitive(json, keys[i].name);
        assert_non_null(item);
        *(int64_t *)(void *)((char *)&statistics->values + keys[i].offset) = (int64_t)item->valuedouble;
    }
    cJSON_Delete(json);
    free(bytes);
}

static void check_file(const char *stats_path, bool abbreviated)
{
    char path[600];
    size_t stem = strlen(stats_path) - strlen(".stats.json");
    snprintf(path, sizeof(path), "%.*s.summary%s.txt", (int)stem, stats_path, abbreviated ? "_abbreviated" : "");
    char *expected = read_file(path);
    if (!expected)
        return;
    struct statistics statistics;
    load_stats(stats_path, &statistics);
    struct text text = {0};
    summary_text(&statistics, abbreviated, &text);
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
    free(expected);
}

static void every_summary_of_the_data_is_reproduced_byte_for_byte(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(TEST_DATA "/*.summary.txt", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 24);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char path[600];
        size_t stem = strlen(found.gl_pathv[i]) - strlen(".summary.txt");
        snprintf(path, sizeof(path), "%.*s.stats.json", (int)stem, found.gl_pathv[i]);
        check_file(path, false);
        check_file(path, true);
    }
    globfree(&found);
}

/* Every line 77 columns, from "|===" to a newline. */
static void check_shape(const char *text)
{
    assert_memory_equal(text, "|===", 4);
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        assert_int_equal(end - line, 77);
        assert_int_equal(line[0], '|');
        assert_int_equal(end[-1], '|');
        line = end + 1;
    }
}

static void case_49_every_line_has_77_columns_also_with_marked_numbers(void **state)
{
    (void)state;
    struct statistics statistics;
    load_stats(TEST_DATA "/whatif.stats.json", &statistics);
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int mark = STATISTICS_EXACT; mark <= STATISTICS_UNKNOWN; mark++) {
        for (int i = 0; i < MEMORY_STATS_KEYS; i++)
            *(int64_t *)(void *)((char *)&statistics.bounds + keys[i].offset) = mark;
        struct text text = {0};
        summary_text(&statistics, false, &text);
        check_shape(text_string(&text));
        if (mark == STATISTICS_AT_LEAST)
            assert_non_null(strstr(text_string(&text), ">="));
        text_free(&text);
    }
}

static void a_marked_number_of_six_digits_fits_its_cell(void **state)
{
    (void)state;
    struct statistics statistics = {0};
    memory_stats_init(&statistics.values);
    struct memory_stat *all = &statistics.values.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL];
    all->peak = INT64_C(158721) * 1024;
    statistics.bounds.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].peak = STATISTICS_AT_LEAST;
    struct text text = {0};
    summary_text(&statistics, true, &text);
    assert_non_null(strstr(text_string(&text), "|>=158721 KiB|"));
    check_shape(text_string(&text));
    text_free(&text);
}

static void case_46_a_fresh_process_gets_a_table_of_zeros(void **state)
{
    (void)state;
    struct statistics statistics = {0};
    memory_stats_init(&statistics.values);
    struct text text = {0};
    summary_text(&statistics, false, &text);
    check_shape(text_string(&text));
    assert_non_null(strstr(text_string(&text), "| Allocated memory      |      0 B   |      0 B   |      0 B   |      0 B   |\n"));
    assert_non_null(strstr(text_string(&text), "| Allocations           |       0    |       0    |       0    |       0    |\n"));
    for (const char *digit = strpbrk(text_string(&text) + 250, "123456789"); digit; digit = NULL)
        fail_msg("a number that is not zero: %.20s", digit);
    text_free(&text);
}

static void case_47_an_80_gb_card_is_counted_in_powers_of_1024(void **state)
{
    (void)state;
    struct statistics statistics = {0};
    statistics.values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].current = INT64_C(81352720384);
    struct summary_row rows[SUMMARY_MAX_ROWS];
    size_t count = summary_rows(&statistics, true, rows);
    assert_true(count == 11);
    assert_int_equal(rows[3].cells[SUMMARY_CURRENT].shown, 77584);
    assert_int_equal(rows[3].cells[SUMMARY_CURRENT].unit, 2);
}

static void case_48_the_rows_of_a_column_share_the_unit_of_the_all_row(void **state)
{
    (void)state;
    struct statistics statistics = {0};
    struct memory_stat *stats = statistics.values.kinds[MEMORY_STAT_ALLOCATED_BYTES];
    stats[MEMORY_POOL_ALL].current = 315853824;
    stats[MEMORY_POOL_LARGE].current = 261554176;
    stats[MEMORY_POOL_SMALL].current = 54299648;
    stats[MEMORY_POOL_ALL].peak = INT64_C(14341) << 20;
    stats[MEMORY_POOL_LARGE].peak = INT64_C(14313) << 20;
    stats[MEMORY_POOL_SMALL].peak = (INT64_C(79) << 20) + 5;
    struct text text = {0};
    summary_text(&statistics, false, &text);
    assert_non_null(strstr(text_string(&text), "| Allocated memory      | 308451 KiB |  14341 MiB |"));
    assert_non_null(strstr(text_string(&text), "|       from large pool | 255424 KiB |  14313 MiB |"));
    assert_non_null(strstr(text_string(&text), "|       from small pool |  53027 KiB |     79 MiB |"));
    text_free(&text);
}

static void counts_go_to_thousands_at_750000(void **state)
{
    (void)state;
    struct statistics statistics = {0};
    statistics.values.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL].allocated = 749999;
    statistics.values.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL].freed = 750000;
    struct summary_row rows[SUMMARY_MAX_ROWS];
    summary_rows(&statistics, true, rows);
    assert_int_equal(rows[5].cells[SUMMARY_ALLOCATED].shown, 749999);
    assert_int_equal(rows[5].cells[SUMMARY_ALLOCATED].unit, 0);
    assert_int_equal(rows[5].cells[SUMMARY_FREED].shown, 750);
    assert_int_equal(rows[5].cells[SUMMARY_FREED].unit, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_summary_of_the_data_is_reproduced_byte_for_byte),
        cmocka_unit_test(case_49_every_line_has_77_columns_also_with_marked_numbers),
        cmocka_unit_test(a_marked_number_of_six_digits_fits_its_cell),
        cmocka_unit_test(case_46_a_fresh_process_gets_a_table_of_zeros),
        cmocka_unit_test(case_47_an_80_gb_card_is_counted_in_powers_of_1024),
        cmocka_unit_test(case_48_the_rows_of_a_column_share_the_unit_of_the_all_row),
        cmocka_unit_test(counts_go_to_thousands_at_750000),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
