/* Real snapshots through snapshot.bin, JSON and CSV: sizes as promised, the same bytes twice, nothing lost. */
#include "sample.h"

#include "format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const struct {
    const char *name;
    size_t entries;
} files[] = {
    {"expandable", 4395}, {"expandable_mid", 4392}, {"frag", 9580},     {"frag_conf", 10264},  {"frag_seed11", 9793},
    {"frag_seed13", 9475}, {"graphs", 52},          {"kvcache", 18913}, {"leak_after", 456},   {"leak_before", 180},
    {"mempool", 29},       {"mempool_end", 55},     {"mempool_oom", 31}, {"pressure", 24222},  {"resnet", 2876},
    {"train", 4395},       {"train_cpp", 373},      {"whatif", 30039},
};
enum { FILES = sizeof(files) / sizeof(files[0]) };

static char path[4096];

static struct snapshot *open_file(size_t i)
{
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    snprintf(path, sizeof(path), "%s/%s.pickle.gz", TEST_DATA, files[i].name);
    if (format_read(path, NULL, &snapshot, &err))
        fail_msg("%s: %s", path, err.message);
    assert_int_equal(snapshot->entries.count, files[i].entries);
    return snapshot;
}

/* whatif takes at most 8 bytes an entry; every file of over 1,000 entries at most 0.9 of the gzip'ed pickle. */
static void files_are_as_small_as_promised(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        struct snapshot *snapshot = open_file(i);
        struct stat about;
        size_t length;
        unsigned char *bytes = sample_bin(snapshot, &length);
        assert_int_equal(stat(path, &about), 0);
        if (files[i].entries > 1000 && length * 10 > (size_t)about.st_size * 9)
            fail_msg("%s: %zu bytes, the pickle %lld", path, length, (long long)about.st_size);
        if (strcmp(files[i].name, "whatif") == 0)
            assert_in_range(length, 1, 8 * 30039);
        free(bytes);
        snapshot_free(snapshot);
    }
}

static void every_file_gives_the_same_bytes_after_reading(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        struct snapshot *snapshot = open_file(i), *again = NULL;
        size_t length, again_length;
        unsigned char *bytes = sample_bin(snapshot, &length);
        assert_int_equal(format_read_memory(bytes, length, NULL, &again, NULL), 0);
        unsigned char *again_bytes = sample_bin(again, &again_length);
        assert_int_equal(length, again_length);
        assert_memory_equal(bytes, again_bytes, length);
        free(bytes);
        free(again_bytes);
        snapshot_free(snapshot);
        snapshot_free(again);
    }
}

static unsigned char *write_as(const struct snapshot *snapshot, const char *format, const char *view, size_t *length)
{
    struct format_write_options options = {.view = view};
    struct output *output;
    unsigned char *bytes = NULL;
    assert_int_equal(output_to_memory(&bytes, length, &output, NULL), 0);
    assert_int_equal(format_write(snapshot, format, &options, output, NULL), 0);
    assert_int_equal(output_commit(output, NULL), 0);
    return bytes;
}

/* A pickle that went through snapshot.bin is the pickle that did not. */
static void pickles_are_the_same_through_snapshot_bin(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        struct snapshot *snapshot = open_file(i), *again = NULL;
        size_t length, direct_length, through_length;
        unsigned char *bytes = sample_bin(snapshot, &length);
        assert_int_equal(format_read_memory(bytes, length, NULL, &again, NULL), 0);
        unsigned char *direct = write_as(snapshot, "pickle", NULL, &direct_length);
        unsigned char *through = write_as(again, "pickle", NULL, &through_length);
        assert_int_equal(direct_length, through_length);
        assert_memory_equal(direct, through, direct_length);
        free(bytes);
        free(direct);
        free(through);
        snapshot_free(snapshot);
        snapshot_free(again);
    }
}

static size_t count_lines(const unsigned char *bytes, size_t length)
{
    size_t lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    return lines;
}

static void csv_has_a_row_for_each_entry_segment_and_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i += 3) {
        struct snapshot *snapshot = open_file(i);
        size_t length;
        unsigned char *bytes = write_as(snapshot, "csv", NULL, &length);
        assert_int_equal(count_lines(bytes, length), files[i].entries + 1);
        free(bytes);
        bytes = write_as(snapshot, "csv", "segments", &length);
        assert_int_equal(count_lines(bytes, length), snapshot->end.segment_count + 1);
        free(bytes);
        bytes = write_as(snapshot, "csv", "blocks", &length);
        assert_int_equal(count_lines(bytes, length), snapshot->end.block_count + 1);
        free(bytes);
        snapshot_free(snapshot);
    }
}

static uint32_t object(struct snapshot *snapshot, const char *text)
{
    return snapshot_string_object(snapshot, snapshot_string(snapshot, text, strlen(text)));
}

static void cells_that_a_spreadsheet_would_run_are_made_harmless(void **state)
{
    (void)state;
    const char *const names[] = {"=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "a,b", "say \"x\"", "two\nlines", "plain"};
    const char *const cells[] = {"\"'=1+1\"", "\"'+1\"", "\"'-1\"", "\"'@SUM(A1)\"", "\"'\tx\"", "\"'\rx\"",
                                 "\"a,b\"",   "\"say \"\"x\"\"\"", "\"two\nlines\"", ",plain,"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
        struct entry entry;
        entry_init(&entry);
        entry.compile_context = object(snapshot, names[i]);
        assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
        size_t length;
        unsigned char *bytes = write_as(snapshot, "csv", NULL, &length);
        unsigned char *text = realloc(bytes, length + 1);
        text[length] = '\0';
        if (!strstr((char *)text, cells[i]))
            fail_msg("%s gives %s", names[i], (char *)text);
        free(text);
        snapshot_free(snapshot);
    }
}

/* Numbers above 2^53 are exact, strange names stay inside their strings. */
static void json_keeps_large_numbers_and_strange_names(void **state)
{
    (void)state;
    struct snapshot *snapshot = sample_full();
    snapshot->setting_count = 1; /* the other one contains itself */
    size_t length;
    unsigned char *bytes = write_as(snapshot, "json", NULL, &length);
    unsigned char *text = realloc(bytes, length + 1);
    text[length] = '\0';
    assert_non_null(strstr((char *)text, "\"addr\":18446744073709543424"));
    assert_non_null(strstr((char *)text, "\"size\":18446744073709551615"));
    assert_non_null(strstr((char *)text, "\"name\":\"f<lambda>&\\\"'\""));
    assert_non_null(strstr((char *)text, "\"mystery\":{\"stack\":3}"));
    assert_non_null(strstr((char *)text, "\"action\":\"defrag\""));
    free(text);
    snapshot_free(snapshot);
}

static void values_that_never_end_are_refused_as_json(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    value list = values_container(snapshot->values, VALUE_LIST);
    for (int i = 0; i < 64; i++) { /* 2^64 items */
        value outer = values_container(snapshot->values, VALUE_LIST);
        value twice[] = {list, list};
        assert_int_equal(values_append(snapshot->values, outer, twice, 2), 0);
        list = outer;
    }
    snapshot_add_setting(snapshot, snapshot_string(snapshot, "bomb", 4), list);
    struct output *output;
    struct error err = {0};
    unsigned char *bytes;
    size_t length;
    assert_int_equal(output_to_memory(&bytes, &length, &output, NULL), 0);
    assert_int_equal(format_write(snapshot, "json", NULL, output, &err), STATUS_UNSUPPORTED);
    output_abandon(output);
    snapshot_free(snapshot);
}

/* A part of a pickle and the same part of its snapshot.bin agree. */
static void a_range_of_entries_is_the_same_from_both_formats(void **state)
{
    (void)state;
    struct format_options options = {.first_entry = 100, .last_entry = 4000};
    struct snapshot *whole = open_file(15), *from_pickle = NULL, *from_bin = NULL;
    size_t length, a_length, b_length;
    unsigned char *bytes = sample_bin(whole, &length);
    assert_int_equal(format_read(path, &options, &from_pickle, NULL), 0);
    assert_int_equal(format_read_memory(bytes, length, &options, &from_bin, NULL), 0);
    assert_int_equal(from_pickle->entries.count, 3900);
    unsigned char *a = write_as(from_pickle, "json", NULL, &a_length), *b = write_as(from_bin, "json", NULL, &b_length);
    assert_int_equal(a_length, b_length);
    assert_memory_equal(a, b, a_length);
    free(a);
    free(b);
    free(bytes);
    snapshot_free(whole);
    snapshot_free(from_pickle);
    snapshot_free(from_bin);
}

static void formats_are_found_by_name(void **state)
{
    (void)state;
    assert_string_equal(format_by_name("pickle")->suffix, ".pickle");
    assert_null(format_by_name("folded"));
    struct error err = {0};
    assert_int_equal(format_write(NULL, "ring", NULL, NULL, &err), STATUS_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_as_small_as_promised),
        cmocka_unit_test(every_file_gives_the_same_bytes_after_reading),
        cmocka_unit_test(pickles_are_the_same_through_snapshot_bin),
        cmocka_unit_test(csv_has_a_row_for_each_entry_segment_and_block),
        cmocka_unit_test(cells_that_a_spreadsheet_would_run_are_made_harmless),
        cmocka_unit_test(json_keeps_large_numbers_and_strange_names),
        cmocka_unit_test(values_that_never_end_are_refused_as_json),
        cmocka_unit_test(a_range_of_entries_is_the_same_from_both_formats),
        cmocka_unit_test(formats_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
