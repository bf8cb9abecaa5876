/* The emitter: the same document as JSON, for a terminal, for a pipe. */
#include "base/text.h"
#include "render/emitter.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct emitter_column columns[] = {
    {"delta", "change", EMITTER_NUMBER}, {"blocks", NULL, EMITTER_NUMBER}, {"stack", NULL, EMITTER_LIST}};

static void row(struct emitter *e, int64_t delta, uint64_t blocks, const char *first, const char *second)
{
    emitter_row(e);
    emitter_delta(e, "delta", delta);
    emitter_count(e, NULL, blocks);
    emitter_begin_strings(e, "stack");
    emitter_item(e, first, strlen(first));
    if (second)
        emitter_item(e, second, strlen(second));
    emitter_end_strings(e);
}

static void document(struct emitter *e)
{
    emitter_text(e, "program", "train\x1b[31m.py");
    emitter_size(e, "total_bytes", UINT64_C(18446744073709551615));
    emitter_lower_bound(e);
    emitter_size(e, "peak", 1610612736);
    emitter_absent(e, "rank");
    emitter_begin_list(e, "devices", "Devices");
    for (int i = 0; i < 2; i++) {
        emitter_begin_object(e, NULL, "");
        emitter_count(e, "id", (uint64_t)i);
        emitter_bool(e, "is_exact", i == 0);
        emitter_end(e);
    }
    emitter_end(e);
    emitter_note(e, "%d stacks changed", 2);
    emitter_begin_table(e, "stacks", "", columns, 3);
    row(e, 1610612736, 12, "step", "main");
    row(e, -512, 1, "tab\there", NULL);
    emitter_end(e);
    emitter_address(e, "address", 0xdeadbeef);
    emitter_percent(e, "share", 12.34);
    emitter_real(e, "threshold", 0.6);
    emitter_duration(e, "time_span", 12500000);
    emitter_time(e, "start", INT64_C(1700000000123456));
}

static char *render(struct emitter_options options, void (*write)(struct emitter *))
{
    unsigned char *bytes = NULL;
    size_t length = 0;
    struct output *output;
    struct error err;
    assert_int_equal(output_to_memory(&bytes, &length, &output, &err), 0);
    struct emitter *e = emitter_new(output, &options);
    assert_non_null(e);
    write(e);
    assert_int_equal(emitter_finish(e, &err), 0);
    assert_int_equal(output_commit(output, &err), 0);
    char *text = malloc(length + 1);
    memcpy(text, bytes, length);
    text[length] = '\0';
    free(bytes);
    return text;
}

static void json_has_integers_as_text_and_stable_keys(void **unused)
{
    (void)unused;
    char *text = render((struct emitter_options){.json = true}, document);
    assert_string_equal(text,
                        "{\n"
                        "  \"program\": \"train\\u001b[31m.py\",\n"
                        "  \"total_bytes\": 18446744073709551615,\n"
                        "  \"peak\": 1610612736,\n"
                        "  \"peak_is_lower_bound\": true,\n"
                        "  \"rank\": null,\n"
                        "  \"devices\": [\n"
                        "    {\n"
                        "      \"id\": 0,\n"
                        "      \"is_exact\": true\n"
                        "    },\n"
                        "    {\n"
                        "      \"id\": 1,\n"
                        "      \"is_exact\": false\n"
                        "    }\n"
                        "  ],\n"
                        "  \"stacks\": [\n"
                        "    {\"delta\": 1610612736, \"blocks\": 12, \"stack\": [\"step\", \"main\"]},\n"
                        "    {\"delta\": -512, \"blocks\": 1, \"stack\": [\"tab\\there\"]}\n"
                        "  ],\n"
                        "  \"address\": 3735928559,\n"
                        "  \"share\": 12.3,\n"
                        "  \"threshold\": 0.6,\n"
                        "  \"time_span\": 12500000,\n"
                        "  \"start\": 1700000000123456\n"
                        "}\n");
    cJSON *parsed = cJSON_Parse(text);
    assert_non_null(parsed);
    cJSON_Delete(parsed);
    free(text);
}

static void a_pipe_gets_one_record_a_line(void **unused)
{
    (void)unused;
    char *text = render((struct emitter_options){0}, document);
    assert_string_equal(text,
                        "program train\\x1b[31m.py\n"
                        "total_bytes 16.00 EiB\n"
                        "peak >=1.50 GiB\n"
                        "rank -\n"
                        "devices.0.id 0\n"
                        "devices.0.is_exact yes\n"
                        "devices.1.id 1\n"
                        "devices.1.is_exact no\n"
                        "# 2 stacks changed\n"
                        "#delta\tblocks\tstack\n"
                        "+1.50 GiB\t12\tstep;main\n"
                        "-512 B\t1\ttab\\x09here\n"
                        "address 0xdeadbeef\n"
                        "share 12.3%\n"
                        "threshold 0.6\n"
                        "time_span 12.500 s\n"
                        "start 2023-11-14T22:13:20.123456Z\n");
    free(text);
    text = render((struct emitter_options){.exact_bytes = true}, document);
    assert_non_null(strstr(text, "\n+1610612736\t12\tstep;main\n-512\t1\t"));
    assert_non_null(strstr(text, "peak >=1610612736\n"));
    free(text);
}

static void a_terminal_gets_aligned_columns(void **unused)
{
    (void)unused;
    char *text = render((struct emitter_options){.layout = EMITTER_LAYOUT_ALIGNED, .width = 40}, document);
    assert_non_null(strstr(text, "program:      train\\x1b[31m.py\n"));
    assert_non_null(strstr(text, "total bytes:  16.00 EiB\n"));
    assert_non_null(strstr(text, "   change  blocks\n"
                                 "+1.50 GiB      12\n"
                                 "    step\n"
                                 "    main\n"
                                 "   -512 B       1\n"
                                 "    tab\\x09here\n"));
    assert_null(strchr(text, '\x1b'));
    assert_null(strstr(text, " \n")); /* no blanks at the end of a line */
    free(text);
    text = render((struct emitter_options){.layout = EMITTER_LAYOUT_ALIGNED, .color = EMITTER_COLOR_ALWAYS}, document);
    assert_non_null(strstr(text, "\033[31m+1.50 GiB\033[0m"));
    assert_null(strstr(text, "train\x1b"));
    free(text);
}

static void long_names(struct emitter *e)
{
    static const struct emitter_column wide[] = {{"size", NULL, EMITTER_NUMBER}, {"name", NULL, EMITTER_STRING}};
    static const struct emitter_column lists[] = {{"stack", NULL, EMITTER_LIST}};
    emitter_begin_table(e, "stacks", "", lists, 1);
    emitter_row(e);
    emitter_begin_strings(e, NULL);
    static const char path[] = "/a/path/that/is/longer/than/the/terminal/is/wide/file.py:12:\xc3\xa9nd";
    emitter_item(e, path, strlen(path));
    emitter_end_strings(e);
    emitter_end(e);
    emitter_begin_table(e, "names", "", wide, 2);
    emitter_row(e);
    emitter_size(e, NULL, 512);
    emitter_text(e, NULL, "a_name_that_is_much_longer_than_the_terminal_is_wide_and_\xc3\xa9nds");
    emitter_row(e);
    emitter_size(e, NULL, 1);
    emitter_end(e);
}

static void what_does_not_fit_a_terminal_is_cut_and_only_there(void **unused)
{
    (void)unused;
    char *text = render((struct emitter_options){.layout = EMITTER_LAYOUT_ALIGNED, .width = 40}, long_names);
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        int width = 0;
        for (const char *c = line; c < end; c++)
            width += ((unsigned char)*c & 0xc0) != 0x80;
        assert_true(width <= 40);
        line = end + 1;
    }
    assert_non_null(strstr(text, "...\n"));
    assert_non_null(strstr(text, "    ...e/terminal/is/wide/file.py:12:\xc3\xa9nd\n"));
    assert_non_null(strstr(text, "  1 B  -\n")); /* a missing field */
    free(text);
    text = render((struct emitter_options){0}, long_names);
    assert_non_null(strstr(text, "\xc3\xa9nds\n"));
    free(text);
}

static void hostile(struct emitter *e)
{
    static const char bytes[] = "a\0b\xff\xc2\x9b\"\\\n\xe2\x82\xac";
    emitter_string(e, "name", bytes, sizeof(bytes) - 1);
    for (int i = 0; i < 5; i++)
        emitter_begin_object(e, "deep", NULL); /* left open: finish closes them */
}

static void any_bytes_make_valid_json_and_harmless_text(void **unused)
{
    (void)unused;
    char *text = render((struct emitter_options){.json = true}, hostile);
    assert_non_null(strstr(text, "\"name\": \"a\\u0000b\\udcff\\u009b\\\"\\\\\\n\xe2\x82\xac\""));
    assert_non_null(strstr(text, "\"deep\": {}"));
    free(text);
    text = render((struct emitter_options){0}, hostile);
    assert_string_equal(text, "name a\\x00b\\xff\\xc2\\x9b\"\\\\x0a\xe2\x82\xac\n");
    free(text);
}

static void empty(struct emitter *e)
{
    emitter_begin_table(e, "stacks", "", columns, 3);
    emitter_end(e);
    emitter_begin_list(e, "devices", NULL);
    emitter_end(e);
}

static void empty_tables_and_lists_are_still_there(void **unused)
{
    (void)unused;
    char *text = render((struct emitter_options){.json = true}, empty);
    assert_string_equal(text, "{\n  \"stacks\": [],\n  \"devices\": []\n}\n");
    free(text);
    text = render((struct emitter_options){0}, empty);
    assert_string_equal(text, "#delta\tblocks\tstack\n");
    free(text);
}

static void no_color_is_heeded_and_words_are_checked(void **unused)
{
    (void)unused;
    enum emitter_color color;
    struct error err = {0};
    assert_int_equal(emitter_color_parse("never", &color, NULL), 0);
    assert_int_equal(color, EMITTER_COLOR_NEVER);
    assert_int_equal(emitter_color_parse(NULL, &color, NULL), 0);
    assert_int_equal(color, EMITTER_COLOR_AUTO);
    assert_int_equal(emitter_color_parse("maybe", &color, &err), STATUS_USAGE);
    assert_non_null(strstr(err.message, "auto"));
    char *text = render((struct emitter_options){.layout = EMITTER_LAYOUT_ALIGNED}, document); /* no terminal */
    assert_null(strchr(text, '\x1b'));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_integers_as_text_and_stable_keys),
        cmocka_unit_test(a_pipe_gets_one_record_a_line),
        cmocka_unit_test(a_terminal_gets_aligned_columns),
        cmocka_unit_test(what_does_not_fit_a_terminal_is_cut_and_only_there),
        cmocka_unit_test(any_bytes_make_valid_json_and_harmless_text),
        cmocka_unit_test(empty_tables_and_lists_are_still_there),
        cmocka_unit_test(no_color_is_heeded_and_words_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
