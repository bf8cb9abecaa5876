/* For tests of pictures: what was written, and whether it is XML.  To be included after cmocka.h. */
#ifndef TEST_UNIT_SVG_SUPPORT_H
#define TEST_UNIT_SVG_SUPPORT_H

#include "base/output.h"

#include <stdlib.h>
#include <string.h>

static inline char *take(struct output *output, unsigned char **bytes, size_t *length)
{
    struct error err = {0};
    assert_int_equal(output_commit(output, &err), 0);
    char *text = realloc(*bytes, *length + 1);
    text[*length] = '\0';
    return text;
}

/* Enough of XML to see a name that broke out: tags nest, text has no stray '<', entities are known, no control
 * characters. */
static inline void assert_well_formed(const char *text)
{
    char *open[16];
    unsigned depth = 0;
    for (const char *c = text; *c; c++) {
        assert_true((unsigned char)*c >= 0x20 || *c == '\n');
        if (*c == '&')
            assert_true(!strncmp(c, "&amp;", 5) || !strncmp(c, "&lt;", 4) || !strncmp(c, "&gt;", 4) ||
                        !strncmp(c, "&quot;", 6) || !strncmp(c, "&#39;", 5));
        if (*c != '<')
            continue;
        if (!strncmp(c, "<![CDATA[", 9)) {
            c = strstr(c, "]]>");
            assert_non_null(c);
            c += 2;
            continue;
        }
        const char *end = strchr(c, '>');
        assert_non_null(end);
        assert_null(memchr(c + 1, '<', (size_t)(end - c - 1)));
        if (c[1] == '/') {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(strncmp(open[depth] + 1, c + 2, (size_t)(end - c - 2)), 0);
        } else if (c[1] != '?' && end[-1] != '/') {
            assert_true(depth < 16);
            open[depth++] = (char *)c;
        }
        c = end;
    }
    assert_int_equal(depth, 0);
}

#endif
