/*
 * A snapshot as CSV (RFC 4180), under a header row, by view:
 *
 *   entries   the trace, one entry a row (NULL means this)
 *   segments  the segments at the end
 *   blocks    the blocks at the end; `segment` is the segment's number
 *
 * A stack is its number and one cell of frames, innermost first, "name@file:line" with semicolons between.  Cells that a
 * spreadsheet would run as a formula start with an apostrophe; addresses are hexadecimal.  Streamed.
 */
#ifndef FORMAT_CSV_WRITE_H
#define FORMAT_CSV_WRITE_H

#include "base/error.h"
#include "base/output.h"
#include "snapshot/snapshot.h"

int csv_write(const struct snapshot *snapshot, const char *view, struct output *output, struct error *err);

#endif
