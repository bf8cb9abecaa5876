/* Lines of Python's instructions, against what five versions of the interpreter say of their own code
 * (make_python_lines.py), and tables that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/python_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t from_hex(const char *text, unsigned char *bytes)
{
    size_t count = 0;
    unsigned byte;
    for (; sscanf(text, "%2x", &byte) == 1 && text[0] != '-'; text += 2)
        bytes[count++] = (unsigned char)byte;
    return count;
}

/* The rest of a line: OFFSET=LINE ...; each holds up to the next. */
static size_t check_offsets(char *parts, uint32_t version, const unsigned char *table, size_t size, int32_t first,
                            int32_t code_size)
{
    size_t checked = 0;
    long long wanted = 0;
    long from = -1, next;
    for (char *part = strtok(parts, " \n"); part; part = strtok(NULL, " \n")) {
        long long line;
        assert_int_equal(sscanf(part, "%ld=%lld", &next, &line), 2);
        for (; from < next; from += from < 0 ? 1 : 2, checked++)
            assert_int_equal(python_line(version, table, size, first, (int32_t)from), wanted);
        wanted = line;
    }
    for (; from < code_size; from += from < 0 ? 1 : 2, checked++)
        assert_int_equal(python_line(version, table, size, first, (int32_t)from), wanted);
    return checked;
}

static void lines_are_those_that_the_interpreters_tell(void **state)
{
    (void)state;
    static char line[65536], hex[32768];
    static unsigned char table[16384];
    FILE *file = fopen(TEST_DATA "/python_lines.txt", "r");
    size_t checked = 0;
    unsigned versions = 0;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        unsigned version;
        int first, code_size, used = 0;
        assert_int_equal(sscanf(line, "code %x %d %32767s %d %n", &version, &first, hex, &code_size, &used), 4);
        versions |= 1u << (version >> 16 & 0xff);
        size_t size = from_hex(hex, table);
        unsigned char *exact = malloc(size + 1); /* so that a sanitizer sees what is read beyond it */
        memcpy(exact, table, size);
        checked += check_offsets(line + used, version, exact, size, first, code_size);
        free(exact);
    }
    fclose(file);
    assert_true(checked > 5000);
    assert_int_equal(versions, 1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 13);
}

static void not_begun_is_on_the_first_line(void **state)
{
    (void)state;
    for (uint32_t minor = 9; minor < 15; minor++)
        assert_int_equal(python_line(3u << 24 | minor << 16, NULL, 0, 17, -1), 17);
}

static void beyond_the_table_there_is_no_line(void **state)
{
    (void)state;
    static const unsigned char ranges[] = {4, 1}, locations[] = {0x80 | 11 << 3 | 1, 0, 0};
    assert_int_equal(python_line(0x030a00f0, ranges, sizeof(ranges), 5, 2), 6);
    assert_int_equal(python_line(0x030a00f0, ranges, sizeof(ranges), 5, 4), PYTHON_LINE_NONE);
    assert_int_equal(python_line(0x030c00f0, locations, sizeof(locations), 5, 2), 6);
    assert_int_equal(python_line(0x030c00f0, locations, sizeof(locations), 5, 4), PYTHON_LINE_NONE);
}

static void bytes_that_are_no_table_do_no_harm(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)(round % 40);
        unsigned char *table = malloc(size + 1);
        for (size_t i = 0; i < size; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            table[i] = (unsigned char)(random >> 24);
        }
        unsigned char *exact = realloc(table, size ? size : 1);
        for (uint32_t minor = 8; minor < 15; minor++)
            python_line(3u << 24 | minor << 16, exact, size, INT32_MAX, (int32_t)(random % 300));
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_those_that_the_interpreters_tell),
        cmocka_unit_test(not_begun_is_on_the_first_line),
        cmocka_unit_test(beyond_the_table_there_is_no_line),
        cmocka_unit_test(bytes_that_are_no_table_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
