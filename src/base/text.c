/* Growable text; uses base/array. */
#include "base/text.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(struct text *text)
{
    free(text->bytes);
    memset(text, 0, sizeof(*text));
}

void text_clear(struct text *text)
{
    text->length = 0;
    if (text->bytes)
        text->bytes[0] = '\0';
}

const char *text_string(const struct text *text)
{
    return text->bytes ? text->bytes : "";
}

static bool text_room(struct text *text, size_t extra)
{
    size_t need;
    if (text->failed || add_overflows(text->length, extra, &need) || add_overflows(need, 1, &need) ||
        array_reserve(&text->bytes, &text->capacity, need, 1)) {
        text->failed = true;
        return false;
    }
    return true;
}

void text_append(struct text *text, const char *bytes, size_t length)
{
    if (!text_room(text, length))
        return;
    if (length)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        text->failed = true;
    else if (text_room(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

/* Bytes of the valid UTF-8 sequence at s that may be shown, 0 if it is none. */
static size_t printable_sequence(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t length = s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : 0;
    if (!length || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if (s[0] == 0xc2 && s[1] < 0xa0) /* C1 controls */
        return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0)
        return 0;
    if (s[0] == 0xed && s[1] >= 0xa0) /* surrogates */
        return 0;
    if (s[0] == 0xf0 && s[1] < 0x90)
        return 0;
    if (s[0] == 0xf4 && s[1] >= 0x90)
        return 0;
    return length;
}

void text_add_printable(struct text *text, const char *bytes, size_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    while (length) {
        size_t step = printable_sequence(s, length);
        if (step) {
            text_append(text, (const char *)s, step);
        } else {
            text_printf(text, "\\x%02x", s[0]);
            step = 1;
        }
        s += step;
        length -= step;
    }
}

void text_add_json(struct text *text, const char *bytes, size_t length)
{
    static const char escapes[] = "\bb\ff\nn\rr\tt\"\"\\\\"; /* pairs: the byte, its letter */
    const unsigned char *s = (const unsigned char *)bytes;
    text_char(text, '"');
    for (size_t i = 0; i < length;) {
        size_t run = i, step = 0;
        while (run < length && s[run] != '"' && s[run] != '\\' && (step = printable_sequence(s + run, length - run)))
            run += step;
        text_append(text, bytes + i, run - i);
        i = run;
        if (i == length)
            break;
        const char *pair = escapes;
        while (*pair && (unsigned char)*pair != s[i])
            pair += 2;
        if (*pair) {
            text_char(text, '\\');
            text_char(text, pair[1]);
        } else if (s[i] == 0xc2 && i + 1 < length && (s[i + 1] & 0xc0) == 0x80) { /* C1 controls */
            text_printf(text, "\\u00%02x", s[++i]);
        } else {
            text_printf(text, "\\u%04x", s[i] < 0x80 ? s[i] : 0xdc00u + s[i]);
        }
        i++;
    }
    text_char(text, '"');
}
