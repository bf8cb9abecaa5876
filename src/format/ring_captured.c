/* Stacks that a process captured of itself, by the builder of ring files.  Uses base, the ring's layout and the snapshot. */
#include "format/ring_captured.h"

#include "format/ring_builder.h"

#include <stdlib.h>

struct ring_captured {
    struct ring_reader reader;
    struct build build;
};

int ring_captured_begin(const struct ring_captured_source *source, struct snapshot *snapshot,
                        struct ring_captured **result, struct error *err)
{
    *result = NULL;
    struct ring_captured *captured = calloc(1, sizeof(*captured));
    if (!captured)
        return error_no_memory(err);
    captured->reader = (struct ring_reader){
        .err = err, .header = *source->header, .nodes = source->nodes, .modules = source->modules,
        .strings = source->strings, .python_nodes = source->python_nodes, .codes = source->codes,
        .node_count = source->node_count, .module_count = source->module_count, .string_count = source->string_count,
        .python_node_count = source->python_node_count, .code_count = source->code_count};
    captured->build.reader = &captured->reader;
    captured->build.snapshot = snapshot;
    int status = ring_build_modules(&captured->build);
    if (!status)
        status = ring_stacks_begin(&captured->build);
    if (status)
        ring_captured_end(captured);
    else
        *result = captured;
    return status;
}

int ring_captured_context(struct ring_captured *captured, uint32_t native, uint32_t python, uint32_t *context)
{
    bool is_empty = native == RING_STACK_NONE && python == RING_STACK_NONE;
    return ring_build_context(&captured->build, is_empty ? RING_STACK_EMPTY : native, python, context);
}

void ring_captured_end(struct ring_captured *captured)
{
    if (!captured)
        return;
    ring_stacks_free(&captured->build);
    free(captured);
}
