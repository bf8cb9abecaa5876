/*
 * One chunk of entries (at most BIN_ROWS) as a table of columns, and back.  Chunks do not depend on each other.
 */
#ifndef FORMAT_BIN_CHUNK_H
#define FORMAT_BIN_CHUNK_H

#include "format/bin_column.h"
#include "format/bin_live.h"

/* Entries [first, first + count).  context_next: the context that counts as new, 0 before the first chunk; moved on. */
void bin_put_chunk(struct bin_sink *sink, const struct snapshot *snapshot, size_t first, size_t count,
                   uint32_t *context_next, struct bin_work *work);

/* What the chunk says of itself, without decoding it. */
bool bin_chunk_bounds(struct bin_cursor cursor, uint64_t *first, uint64_t *count);

/* Append a chunk to the entries, whose optional columns exist already and whose capacity suffices.  False: malformed. */
bool bin_get_chunk(struct bin_cursor cursor, struct entries *entries, struct bin_work *work);

#endif
