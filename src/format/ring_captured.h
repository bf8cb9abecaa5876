/*
 * Stacks that a process captured of itself (record/stacks.h), as the snapshot's: the numbers of its tables become contexts.
 *
 * The source's pieces are borrowed until ring_captured_end().  Not thread safe.
 */
#ifndef FORMAT_RING_CAPTURED_H
#define FORMAT_RING_CAPTURED_H

#include "base/error.h"
#include "record/ring.h"
#include "snapshot/snapshot.h"

struct ring_captured_source {
    const struct ring_header *header;
    struct ring_node *nodes;
    struct ring_module *modules;
    char *strings;
    struct ring_python_node *python_nodes;
    struct ring_code *codes;
    uint64_t node_count, module_count, string_count, python_node_count, code_count;
};

struct ring_captured;

/* The snapshot, which has no modules yet, gets them.  A failure leaves *result NULL. */
int ring_captured_begin(const struct ring_captured_source *source, struct snapshot *snapshot,
                        struct ring_captured **result, struct error *err);

/* A new context with these frames; neither: an empty stack. */
int ring_captured_context(struct ring_captured *captured, uint32_t native, uint32_t python, uint32_t *context);

void ring_captured_end(struct ring_captured *captured); /* NULL is fine */

#endif
