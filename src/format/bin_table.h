/*
 * Tables: rows of a C struct as columns, by a list of its fields that the writer and the reader share, so that they
 * cannot disagree.  A column that a file lacks leaves 0 (or "none") in its field; columns and tables that we do not
 * know are skipped.
 */
#ifndef FORMAT_BIN_TABLE_H
#define FORMAT_BIN_TABLE_H

#include "format/bin_column.h"
#include "snapshot/snapshot.h"

enum bin_field_kind {
    BIN_UNSIGNED,
    BIN_SIGNED,  /* zigzag on disk */
    BIN_NONEABLE, /* 32 bits, + 1 on disk, so that "none" is 0 */
    BIN_TRUTH,   /* a bool */
    BIN_OCTETS,  /* 8 bytes of a byte array, as a little-endian number */
};

struct bin_field {
    uint16_t column; /* number on disk; of the first, if the field repeats */
    uint16_t offset; /* in the struct */
    uint8_t size;    /* 1, 2, 4, 8 */
    uint8_t kind;    /* enum bin_field_kind */
    uint8_t repeat;  /* that many in a row, 0 means one */
};

struct bin_schema {
    const char *name; /* for messages */
    size_t row_size;
    const struct bin_field *fields;
    size_t field_count;
};

/* Facts about the whole file, one row of BIN_INFO. */
struct bin_info {
    uint8_t source;
    bool is_bare_list, has_raw, exact;
    uint8_t raw_kind;
    uint64_t raw_payload;
    uint32_t optional; /* enum bin_optional */
    uint32_t trace_count;
    uint16_t top_shape, settings_shape;
    uint64_t moment;
    uint64_t entries;
};

/* A value on disk: payload zigzag for integers, a node's number for what lives in the store, else as in value.h. */
struct bin_word {
    uint8_t kind;
    uint64_t payload;
};
struct bin_node {
    uint8_t kind;
    uint64_t length; /* items of a container (twice the pairs of a dict), bytes of the others */
};
struct bin_odd {
    uint64_t row;
    uint16_t slot;
    uint8_t row_kind;
    struct bin_word content;
};
struct bin_setting {
    uint32_t key;
    struct bin_word content;
};
struct bin_statistics {
    uint32_t device;
    struct memory_stats stats;
};
struct bin_checkpoint {
    uint64_t moment;
    bool exact;
    uint64_t segments, blocks;
};
struct bin_index_row { /* of sections, chunks (moment: first entry, count: entries) and checkpoints */
    uint32_t type;
    uint64_t offset, length, moment, count;
};

extern const struct bin_schema bin_schema_info, bin_schema_word, bin_schema_module, bin_schema_frame, bin_schema_stack,
    bin_schema_number32, bin_schema_number64, bin_schema_pool, bin_schema_shape, bin_schema_process, bin_schema_device,
    bin_schema_statistics, bin_schema_node, bin_schema_odd, bin_schema_setting, bin_schema_annotation,
    bin_schema_segment, bin_schema_block, bin_schema_checkpoint, bin_schema_index;

/* rows: count structs of schema->row_size bytes; count at most BIN_ROWS. */
void bin_put_rows(struct bin_sink *sink, const struct bin_schema *schema, const void *rows, size_t count);

/* The columns of a table whose head said `count` rows, to its end, into rows that are zero or hold defaults.
 * scratch: room for `count` numbers. */
bool bin_get_rows(struct bin_cursor *cursor, const struct bin_schema *schema, void *rows, size_t count,
                  uint64_t *scratch);

#endif
