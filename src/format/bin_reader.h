/*
 * The reader of snapshot.bin as its parts share it: bin_read.c finds sections and unpacks them, bin_read_parts.c turns
 * those that are not entries into rows.
 */
#ifndef FORMAT_BIN_READER_H
#define FORMAT_BIN_READER_H

#include "format/bin_chunk.h"
#include "format/bin_layout.h"
#include "format/bin_read.h"
#include "format/bin_table.h"

struct bin_reader {
    struct input *input;
    struct snapshot *snapshot;
    struct error *err;
    struct format_options options;
    bool random; /* sections by offset instead of in order */
    bool partial; /* not all entries are wanted */

    uint64_t file_size, index_offset, entry_count, raw_total; /* as the header says */
    uint32_t section_count;
    unsigned minor;

    uint64_t at;        /* offset of the section in hand, for messages */
    unsigned type;
    unsigned char *raw; /* its payload, unpacked */
    size_t raw_length, raw_capacity;
    uint64_t raw_sum;   /* of the sections so far */
    uint32_t sections;  /* read so far */
    uint64_t held;      /* bytes that the rows take in memory */

    struct bin_info info;
    bool has_info;
    uint64_t next_entry; /* number of the entry that the next chunk starts with */
    value *nodes;
    uint64_t *node_lengths;
    size_t node_count, node_capacity, length_capacity;
    size_t fill_node;    /* the container that the next item belongs to */
    uint64_t fill_done;  /* items it has */
    uint64_t *scratch;   /* numbers of a column */
    size_t scratch_capacity;
    struct bin_work work;

    struct bin_index_row *index; /* random: the index's rows */
    size_t index_count, index_capacity;
    struct state before, after;  /* partial: the checkpoints around the last entry wanted */
    struct state *into;          /* the one that is being read */
    bool has_before, has_after;
    uint64_t loaded_first;       /* number of the first entry loaded */
};

/* The section in hand makes no sense. */
int bin_damaged(struct bin_reader *reader, const char *what);

/* Account for memory that rows are about to take. */
int bin_hold(struct bin_reader *reader, uint64_t bytes);

/* A section of a type that we know and that is no chunk. */
int bin_read_part(struct bin_reader *reader, struct bin_cursor *cursor);

/* A checkpoint's state. */
int bin_read_state(struct bin_reader *reader, struct bin_cursor *cursor, struct state *state);

/* Index rows, appended to reader->index. */
int bin_read_index(struct bin_reader *reader, struct bin_cursor *cursor);

/* After the last section: whatever must agree between sections. */
int bin_finish_parts(struct bin_reader *reader);

/* Values that point into the columns must find their rows there. */
int bin_check_rows(struct bin_reader *reader);

#endif
