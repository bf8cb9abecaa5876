/* Python's repr(), against what Python printed for the same values. */
#include "render/python_repr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct written {
    unsigned char *bytes;
    size_t length;
    struct output *output;
};

static void begin(struct written *written)
{
    struct error err = {0};
    assert_int_equal(output_to_memory(&written->bytes, &written->length, &written->output, &err), 0);
}

static void assert_written(struct written *written, const char *expected)
{
    struct error err = {0};
    assert_int_equal(output_commit(written->output, &err), 0);
    assert_int_equal(written->length, strlen(expected));
    assert_memory_equal(written->bytes, expected, written->length);
    free(written->bytes);
}

static void assert_string(const char *bytes, size_t length, const char *expected)
{
    struct written written;
    begin(&written);
    repr_string(written.output, bytes, length);
    assert_written(&written, expected);
}

#define STRING(text, expected) assert_string(text, sizeof(text) - 1, expected)

static void strings_are_quoted_and_escaped_as_python_does(void **state)
{
    (void)state;
    STRING("", "''");
    STRING("plain", "'plain'");
    STRING("it's", "\"it's\"");
    STRING("say \"hi\"", "'say \"hi\"'");
    STRING("it's \"both\"", "'it\\'s \"both\"'");
    STRING("back\\slash", "'back\\\\slash'");
    STRING("\t\n\r\x01\x7f\0", "'\\t\\n\\r\\x01\\x7f\\x00'");
    STRING("h\xc3\xa9llo \xe2\x82\xac", "'h\xc3\xa9llo \xe2\x82\xac'");
    STRING("nbsp\xc2\xa0soft\xc2\xad", "'nbsp\\xa0soft\\xad'");
    STRING("\xe2\x80\x8e\xe2\x80\xa8\xef\xbb\xbf", "'\\u200e\\u2028\\ufeff'");
    STRING("\xf0\x9f\x98\x80\xf3\xa0\x80\x81\xf4\x8f\xbf\xbf", "'\xf0\x9f\x98\x80\\U000e0001\\U0010ffff'");
    STRING("\xed\xa0\x80\xed\xb2\x80", "'\\ud800\\udc80'"); /* lone surrogates, as pickles can have them */
    STRING("bad\xff\xc3", "'bad\\xff\\xc3'");
}

static void assert_float(double number, const char *expected)
{
    struct written written;
    begin(&written);
    repr_float(written.output, number);
    assert_written(&written, expected);
}

static void floats_are_the_shortest_that_read_back(void **state)
{
    (void)state;
    assert_float(0.0, "0.0");
    assert_float(-0.0, "-0.0");
    assert_float(0.6, "0.6");
    assert_float(1.0, "1.0");
    assert_float(0.1 + 0.2, "0.30000000000000004");
    assert_float(1e15, "1000000000000000.0");
    assert_float(1e16, "1e+16");
    assert_float(1.5e300, "1.5e+300");
    assert_float(0.0001, "0.0001");
    assert_float(0.00001, "1e-05");
    assert_float(123456.789, "123456.789");
    assert_float(1796084505132747.0, "1796084505132747.0");
    assert_float(5e-324, "5e-324");
    assert_float(__builtin_inf(), "inf");
    assert_float(-__builtin_inf(), "-inf");
    assert_float(__builtin_nan(""), "nan");
}

static void assert_value(const struct snapshot *snapshot, value content, const char *expected)
{
    struct written written;
    struct error err = {0};
    begin(&written);
    assert_int_equal(repr_value(snapshot, content, written.output, &err), 0);
    assert_written(&written, expected);
}

static value string_value(struct snapshot *snapshot, const char *text)
{
    return value_make(VALUE_STRING, snapshot_shared_string(snapshot, text, strlen(text)));
}

static void integers_of_any_length_are_decimal(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    unsigned char bytes[16] = {0};
    (void)state;
    assert_value(snapshot, values_int(snapshot->values, -5), "-5");
    assert_value(snapshot, values_int(snapshot->values, INT64_MIN), "-9223372036854775808");
    assert_value(snapshot, values_unsigned(snapshot->values, UINT64_MAX), "18446744073709551615");
    bytes[9] = 1; /* 2^72 */
    assert_value(snapshot, values_long(snapshot->values, bytes, 10), "4722366482869645213696");
    memset(bytes, 0xff, sizeof(bytes));
    bytes[0] = 0; /* -256 in 16 bytes */
    assert_value(snapshot, values_long(snapshot->values, bytes, sizeof(bytes)), "-256");
    memset(bytes, 0, sizeof(bytes));
    bytes[15] = 0x80; /* -2^127 */
    assert_value(snapshot, values_long(snapshot->values, bytes, sizeof(bytes)),
                 "-170141183460469231731687303715884105728");
    snapshot_free(snapshot);
}

static void containers_nest_and_end_where_they_hold_themselves(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    struct values *values = snapshot->values;
    (void)state;
    value list = values_container(values, VALUE_LIST), tuple = values_container(values, VALUE_TUPLE);
    value dict = values_container(values, VALUE_DICT), set = values_container(values, VALUE_SET);
    value one = values_int(values, 1), none = value_make(VALUE_NONE, 0), yes = value_make(VALUE_TRUE, 0);
    assert_value(snapshot, list, "[]");
    assert_value(snapshot, tuple, "()");
    assert_value(snapshot, dict, "{}");
    assert_value(snapshot, set, "set()");
    values_append(values, tuple, &one, 1);
    assert_value(snapshot, tuple, "(1,)");
    value pair[4] = {string_value(snapshot, "k'"), tuple, none, yes};
    values_append(values, dict, pair, 4);
    assert_value(snapshot, dict, "{\"k'\": (1,), None: True}");
    value items[3] = {dict, list, values_bytes(values, VALUE_BYTES, "a\0'", 3)};
    values_append(values, list, items, 3);
    assert_value(snapshot, list, "[{\"k'\": (1,), None: True}, [...], b\"a\\x00'\"]");
    values_append(values, set, &one, 1);
    assert_value(snapshot, set, "{1}");
    snapshot_free(snapshot);
}

static void lists_that_share_themselves_without_end_are_refused(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    struct written written;
    struct error err = {0};
    (void)state;
    value inner = string_value(snapshot, "lol");
    for (int i = 0; i < 40; i++) { /* 2^40 words if it were written out */
        value outer = values_container(snapshot->values, VALUE_LIST), twice[2] = {inner, inner};
        values_append(snapshot->values, outer, twice, 2);
        inner = outer;
    }
    begin(&written);
    assert_int_equal(repr_value(snapshot, inner, written.output, &err), STATUS_INPUT);
    assert_true(output_offset(written.output) < REPR_LIMIT + 4096);
    output_abandon(written.output);
    snapshot_free(snapshot);
}

static void an_entry_of_our_own_looks_like_pytorchs(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct frame frame = {.name = snapshot_shared_string(snapshot, "<lambda>", 8),
                          .line = 12,
                          .module = NONE32,
                          .filename = snapshot_shared_string(snapshot, "/a/b.py", 7)};
    struct written written;
    struct error err = {0};
    struct entry entry;
    (void)state;
    entry_init(&entry);
    entry.action = ACTION_SEGMENT_MAP;
    entry.address = UINT64_C(0xffff000000000000);
    entry.size = 2097152;
    entry.stream = -7;
    entry.time = 1796084505132747;
    entry.context = snapshot_add_context(
        snapshot, snapshot_push_frame(snapshot, STACK_EMPTY, snapshot_add_frame(snapshot, &frame)));
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
    entry.context = CONTEXT_NONE;
    entry.action = ACTION_OOM;
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
    begin(&written);
    assert_int_equal(repr_entry(snapshot, 0, written.output, &err), 0);
    assert_written(&written,
                   "{'action': 'segment_map', 'addr': 18446462598732840960, 'size': 2097152, 'stream': -7, 'time_us': "
                   "1796084505132747, 'compile_context': 'N/A', 'user_metadata': '', 'frames': [{'name': '<lambda>', "
                   "'filename': '/a/b.py', 'line': 12}]}");
    begin(&written);
    assert_int_equal(repr_entry(snapshot, 1, written.output, &err), 0);
    assert_written(&written,
                   "{'action': 'oom', 'device_free': 18446462598732840960, 'size': 2097152, 'stream': -7, 'time_us': "
                   "1796084505132747, 'compile_context': 'N/A', 'user_metadata': ''}");
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_quoted_and_escaped_as_python_does),
        cmocka_unit_test(floats_are_the_shortest_that_read_back),
        cmocka_unit_test(integers_of_any_length_are_decimal),
        cmocka_unit_test(containers_nest_and_end_where_they_hold_themselves),
        cmocka_unit_test(lists_that_share_themselves_without_end_are_refused),
        cmocka_unit_test(an_entry_of_our_own_looks_like_pytorchs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
