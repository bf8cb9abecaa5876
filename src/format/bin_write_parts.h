/*
 * The writer of snapshot.bin as its parts share it: bin_write.c puts sections together, bin_write_parts.c fills those
 * that are not entries.
 */
#ifndef FORMAT_BIN_WRITE_PARTS_H
#define FORMAT_BIN_WRITE_PARTS_H

#include "base/text.h"
#include "format/bin_graph.h"
#include "format/bin_layout.h"
#include "format/bin_table.h"

struct bin_writer {
    const struct snapshot *snapshot;
    struct bin_sink sink;  /* the section being filled */
    struct text body;      /* the sections so far */
    struct bin_graph graph;
    struct bin_index_row *index;
    size_t index_count, index_capacity;
    uint64_t raw_total;
    int status; /* sticky */
};

/* Close the section that the sink holds.  moment and count go to the index. */
int bin_end_section(struct bin_writer *writer, enum bin_section type, uint64_t moment, uint64_t count);

/* All sections but entries, checkpoints and index. */
int bin_write_facts(struct bin_writer *writer);

/* A checkpoint. */
int bin_write_state(struct bin_writer *writer, const struct state *state);

#endif
