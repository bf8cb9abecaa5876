/*
 * A growable text buffer.  A zeroed struct is an empty one.  Failure is sticky: appends after the first one that
 * found no memory do nothing, and the caller asks once, at the end, with text_failed().
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes; /* NUL-terminated once anything was appended */
    size_t length, capacity;
    bool failed;
};

void text_free(struct text *text);
void text_clear(struct text *text); /* empty it, keep the memory */
void text_append(struct text *text, const char *bytes, size_t length);
void text_add(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *text_string(const struct text *text); /* never NULL */

static inline void text_char(struct text *text, char c)
{
    text_append(text, &c, 1);
}

static inline bool text_failed(const struct text *text)
{
    return text->failed;
}

/* Append with control characters (and DEL, and invalid UTF-8) shown as \xNN: what may go to a terminal. */
void text_add_printable(struct text *text, const char *bytes, size_t length);

/* Append as a JSON string with its quotes.  Bytes that are no UTF-8 become lone surrogates \udcNN, which is how Python
 * writes and reads such names: nothing is lost. */
void text_add_json(struct text *text, const char *bytes, size_t length);

#endif
