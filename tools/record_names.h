/*
 * Names of several processes' files that tell them apart by themselves: by rank, host or program, as the pattern says.
 */
#ifndef TOOLS_RECORD_NAMES_H
#define TOOLS_RECORD_NAMES_H

#include "tools/record_folder.h"

/* For each ring: does no other one get the same name from the pattern?  The caller frees; NULL: no memory. */
bool *record_names_unique(const struct record_file *rings, size_t count, const char *pattern);

#endif
