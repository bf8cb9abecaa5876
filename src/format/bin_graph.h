/*
 * What a snapshot carries beyond its columns (unknown keys, settings, the whole of an unusual file) as numbered nodes:
 * everything that lives in the store of values, numbered in the order in which it is met from the file's own value, the
 * settings, then the odd values.  Identity is kept: one node an object, cycles included.
 */
#ifndef FORMAT_BIN_GRAPH_H
#define FORMAT_BIN_GRAPH_H

#include "format/bin_table.h"

struct bin_graph {
    value *nodes;
    size_t count, capacity;
    struct table numbers; /* value -> node; keyed by the value itself */
};

int bin_graph_build(struct bin_graph *graph, const struct snapshot *snapshot);
void bin_graph_free(struct bin_graph *graph);

/* A value as it goes to disk. */
struct bin_word bin_graph_word(const struct bin_graph *graph, value v);

/* Bytes that a node is made of (integers, floats, bytes); NULL for containers.  buffer is for floats. */
const unsigned char *bin_graph_bytes(const struct snapshot *snapshot, value node, unsigned char buffer[8],
                                     size_t *length);

/* Kinds that live in the store, and those that hold others. */
bool bin_graph_is_node(enum value_kind kind);
bool bin_graph_is_container(enum value_kind kind);

#endif
