/*
 * Lengths of time as users write them: 500ms, 30s, 1.5s, 5m, 2h, 1d.
 */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Whole milliseconds, more than none and at most 365 days; false: no such length. */
bool duration_parse(const char *text, int64_t *milliseconds);

#endif
