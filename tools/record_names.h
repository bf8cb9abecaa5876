/*
 * Names of several processes' files that tell them apart by themselves: by rank, host or program, as the pattern says.
 */
#ifndef TOOLS_RECORD_NAMES_H
#define TOOLS_RECORD_NAMES_H

#include "tools/record_folder.h"

/* For each ring: does no other one get the same name from the pattern?  The caller frees; NULL: no memory. */
bool *record_names_unique(const struct record_file *rings, size_t count, const char *pattern);

/* For each ring: of the programs that its process became one after the other, which one it is of: 1, 2, ... by their
 * starts, and 0 for the last one (mostly the only one).  The caller frees; NULL: no memory. */
uint32_t *record_names_images(const struct record_file *rings, size_t count);

#endif
