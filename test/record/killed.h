/* Is a ring file what the killed program says of itself?  Uses format and snapshot. */
#ifndef RECORD_KILLED_H
#define RECORD_KILLED_H

#include "progress.h"

#include <stdbool.h>

/* Reads the file and compares; prints what is wrong and returns false.  stacks: every entry has one, which begins in the
 * program. */
bool killed_check(const char *path, const struct progress *progress, const char *program, bool stacks);

/* Reads a copy that the program made of its file. */
bool killed_check_copy(const char *path);

#endif
