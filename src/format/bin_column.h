/*
 * A column: a run of 64-bit numbers in the smallest of a few simple encodings (bin_layout.h), and the bytes that a
 * section is put together in.
 *
 * The sink remembers where the statistics of its bytes change (between columns, between byte planes), so that zlib
 * starts a new block there.  Failure (no memory) is sticky in sink->bytes.  Which encoding is taken depends on the
 * values alone.  Decoding trusts nothing.  Not thread safe.
 */
#ifndef FORMAT_BIN_COLUMN_H
#define FORMAT_BIN_COLUMN_H

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bin_sink {
    struct text bytes;
    size_t *marks; /* offsets at which a new zlib block is to start */
    size_t mark_count, mark_capacity;
    struct bin_trial *trial; /* made when first needed */
};

void bin_sink_clear(struct bin_sink *sink); /* keeps memory */
void bin_sink_free(struct bin_sink *sink);
void bin_sink_mark(struct bin_sink *sink);

void bin_put_varint(struct bin_sink *sink, uint64_t number);

/* A table's head, then its columns, then its end. */
void bin_put_table(struct bin_sink *sink, uint64_t rows);
void bin_put_table_end(struct bin_sink *sink);

void bin_put_column(struct bin_sink *sink, unsigned number, const uint64_t *values, size_t count);
void bin_put_bytes_column(struct bin_sink *sink, unsigned number, const void *bytes, size_t count);

/* Pack what the sink holds with zlib; 0 or STATUS_NO_MEMORY.  packed is appended to. */
int bin_pack(const struct bin_sink *sink, struct text *packed);

struct bin_cursor {
    const unsigned char *at, *end;
};

struct bin_column {
    uint64_t number, count, length;
    unsigned encoding;
    const unsigned char *bytes;
};

bool bin_get_varint(struct bin_cursor *cursor, uint64_t *number);

/* The head of a table: at most BIN_ROWS rows. */
bool bin_get_table(struct bin_cursor *cursor, uint64_t *rows);

/* The next column's head, the cursor moved behind it; number 0 is the table's end.  False: malformed. */
bool bin_get_column(struct bin_cursor *cursor, struct bin_column *column);

/* All column->count values; false: malformed or not an encoding that we know. */
bool bin_decode_column(const struct bin_column *column, uint64_t *values);

#endif
