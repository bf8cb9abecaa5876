/*
 * Reading snapshot.bin (man/cudamem-snapshot.5; the numbers are in bin_layout.h).
 *
 * Reads from any input, once, front to back; of a seekable one with a part wanted (options) only the sections needed,
 * found through the index at the end.  Every byte read is under a checksum; every length and index is checked before
 * use.  On failure *result is NULL and err says what is wrong and where.
 */
#ifndef FORMAT_BIN_READ_H
#define FORMAT_BIN_READ_H

#include "format/format.h"

bool bin_is_bin(const unsigned char *start, size_t length);

/* The beginning of one, too short to be sure. */
bool bin_is_start(const unsigned char *start, size_t length);

int bin_read(struct input *input, const struct format_options *options, struct snapshot **result, struct error *err);

#endif
