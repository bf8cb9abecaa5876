/*
 * Sizes as people write them: 512, 64KiB, 20M (= MiB), 1.5GiB.
 */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define SIZE_TEXT 32 /* room for any formatted size */

/* "1.50 GiB"; below 1024 "N B".  Returns buffer, for use inside a printf. */
const char *size_format(uint64_t bytes, char buffer[SIZE_TEXT]);

/* With a sign: "+1.50 GiB", "-512 B"; the difference after - before. */
const char *size_format_delta(uint64_t before, uint64_t after, char buffer[SIZE_TEXT]);

/* Parse; the whole of text must be a size.  Fractions are allowed with a unit and are rounded down to a byte. */
int size_parse(const char *text, uint64_t *bytes, struct error *err);

/* "MIN..MAX", either end may be empty; a single size means exactly that one. */
int size_parse_range(const char *text, uint64_t *low, uint64_t *high, struct error *err);

#endif
