/* Numbering the values of a snapshot.  Uses src/base, src/snapshot. */
#include "format/bin_graph.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

bool bin_graph_is_container(enum value_kind kind)
{
    return kind == VALUE_LIST || kind == VALUE_TUPLE || kind == VALUE_DICT || kind == VALUE_SET ||
           kind == VALUE_FROZENSET;
}

bool bin_graph_is_node(enum value_kind kind)
{
    return bin_graph_is_container(kind) || kind == VALUE_LONG || kind == VALUE_FLOAT || kind == VALUE_BYTES ||
           kind == VALUE_BYTEARRAY;
}

static int graph_add(struct bin_graph *graph, value v)
{
    if (!bin_graph_is_node(value_kind(v)))
        return STATUS_OK;
    uint32_t *number = table_at(&graph->numbers, v, NONE32);
    if (!number)
        return STATUS_NO_MEMORY;
    if (*number != NONE32)
        return STATUS_OK;
    if (graph->count >= NONE32 - 1 ||
        array_reserve(&graph->nodes, &graph->capacity, graph->count + 1, sizeof(*graph->nodes)))
        return STATUS_NO_MEMORY;
    *number = (uint32_t)graph->count;
    graph->nodes[graph->count++] = v;
    return STATUS_OK;
}

int bin_graph_build(struct bin_graph *graph, const struct snapshot *snapshot)
{
    int status = snapshot->has_raw ? graph_add(graph, snapshot->raw) : STATUS_OK;
    for (size_t i = 0; !status && i < snapshot->setting_count; i++)
        status = graph_add(graph, snapshot->settings[i].content);
    for (size_t i = 0; !status && i < snapshot->odd_count; i++)
        status = graph_add(graph, snapshot->odds[i].content);
    for (size_t n = 0; !status && n < graph->count; n++) { /* the list grows while it is walked */
        value node = graph->nodes[n];
        if (!bin_graph_is_container(value_kind(node)))
            continue;
        size_t count = values_count(snapshot->values, node);
        const value *items = values_items(snapshot->values, node);
        for (size_t i = 0; !status && i < count; i++)
            status = graph_add(graph, items[i]);
    }
    return status;
}

void bin_graph_free(struct bin_graph *graph)
{
    free(graph->nodes);
    table_free(&graph->numbers);
    memset(graph, 0, sizeof(*graph));
}

struct bin_word bin_graph_word(const struct bin_graph *graph, value v)
{
    enum value_kind kind = value_kind(v);
    struct bin_word word = {(uint8_t)kind, value_payload(v)};
    if (bin_graph_is_node(kind))
        word.payload = table_get(&graph->numbers, v, 0);
    else if (kind == VALUE_INT) /* 60 bits, signed: sign-extended, then zigzag */
        word.payload = word.payload >> (VALUE_PAYLOAD_BITS - 1) ? ((VALUE_PAYLOAD_MASK - word.payload) << 1) + 1
                                                                 : word.payload << 1;
    return word;
}

const unsigned char *bin_graph_bytes(const struct snapshot *snapshot, value node, unsigned char buffer[8],
                                     size_t *length)
{
    switch (value_kind(node)) {
    case VALUE_LONG:
        return values_long_bytes(snapshot->values, node, length);
    case VALUE_BYTES:
    case VALUE_BYTEARRAY:
        return values_get_bytes(snapshot->values, node, length);
    case VALUE_FLOAT: {
        double number = values_get_float(snapshot->values, node);
        uint64_t bits;
        memcpy(&bits, &number, sizeof(bits));
        for (unsigned i = 0; i < 8; i++)
            buffer[i] = (unsigned char)(bits >> (8 * i));
        *length = 8;
        return buffer;
    }
    default:
        *length = 0;
        return NULL;
    }
}
