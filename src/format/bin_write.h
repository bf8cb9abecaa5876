/*
 * Writing snapshot.bin.  The same snapshot gives the same bytes, on any machine.  The packed file is put together in
 * memory (a few bytes an entry) because its header carries its sizes.
 */
#ifndef FORMAT_BIN_WRITE_H
#define FORMAT_BIN_WRITE_H

#include "base/error.h"
#include "base/output.h"
#include "snapshot/snapshot.h"

/* The caller commits or abandons the output. */
int bin_write(const struct snapshot *snapshot, struct output *output, struct error *err);

#endif
