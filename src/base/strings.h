/*
 * An interner: equal bytes get equal numbers.  Numbers count from 0 in order of first appearance; 0 is always the
 * empty string.  Strings may hold any bytes, NUL included; a NUL follows each for convenience.  Pointers stay valid
 * for the interner's life.  Not thread safe.
 */
#ifndef BASE_STRINGS_H
#define BASE_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#define STRING_NONE UINT32_MAX /* no string at all, which is not the empty string */

struct strings;

struct strings *strings_new(void); /* NULL: no memory */
void strings_free(struct strings *strings);

/* The number of these bytes, STRING_NONE if memory or numbers ran out. */
uint32_t strings_intern(struct strings *strings, const char *bytes, size_t length);
uint32_t strings_intern_text(struct strings *strings, const char *text);

/* The number if already there, else STRING_NONE. */
uint32_t strings_find(const struct strings *strings, const char *bytes, size_t length);

uint32_t strings_count(const struct strings *strings);
const char *strings_text(const struct strings *strings, uint32_t number); /* "" for STRING_NONE */
size_t strings_length(const struct strings *strings, uint32_t number);

#endif
