/*
 * Stacks out of a ring file: native frames, Python's, and both in one.  May use src/base, the ring's layout and the
 * snapshot.
 */
#include "format/ring_builder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- native frames -------------------------------------------------------------------------------------------------- */

/* Where a thread's stack naturally begins: the program's entry, the loader, the C library.  Elsewhere the unwinder
 * stopped for want of information, or the depth was reached. */
static bool is_stack_end(const struct build *build, const struct ring_node *node)
{
    if (node->module >= build->reader->module_count)
        return false;
    const struct ring_module *module = &build->reader->modules[node->module];
    return (module->flags & RING_MODULE_STACK_END) || ((module->flags & RING_MODULE_PROGRAM) &&
           node->offset >= module->entry && node->offset - module->entry < 64);
}

static uint32_t build_frame(struct build *build, const struct ring_node *node)
{
    bool cut = node->parent == RING_STACK_EMPTY && !is_stack_end(build, node);
    struct frame frame = {.name = STRING_NONE, .filename = STRING_NONE, .module = NONE32, .offset = node->offset,
                          .flags = (uint8_t)(FRAME_NATIVE | (cut ? FRAME_TRUNCATED : 0))};
    if (node->module < build->reader->module_count)
        frame.module = node->module;
    bool is_small = node->offset < UINT64_C(1) << 40 && (frame.module == NONE32 || frame.module < 1u << 22);
    uint64_t key = node->offset << 24 | (frame.module & 0x7fffff) << 1 | cut;
    uint32_t *known = is_small ? table_at(&build->frames, key, NONE32) : NULL;
    if (known && *known != NONE32)
        return *known;
    uint32_t number = snapshot_add_frame(build->snapshot, &frame);
    if (known)
        *known = number;
    return number;
}

/* The snapshot's stack for a node: up to the first one that is made already, then down again. */
static int build_stack(struct build *build, uint32_t node, uint32_t *stack)
{
    const struct ring_reader *reader = build->reader;
    size_t depth = 0;
    for (; node >= RING_STACK_FIRST; node = reader->nodes[node - RING_STACK_FIRST].parent) {
        if (node - RING_STACK_FIRST >= reader->node_count ||
            (depth && node >= build->path[depth - 1])) /* parents come first: no circles */
            return error_set(reader->err, STATUS_INPUT, "has a stack (number %" PRIu32 ") that is not linked", node);
        if (build->stacks[node - RING_STACK_FIRST] != NONE32)
            break;
        build->path[depth++] = node;
    }
    uint32_t at = node >= RING_STACK_FIRST ? build->stacks[node - RING_STACK_FIRST] : STACK_EMPTY;
    while (depth-- > 0) {
        uint32_t number = build->path[depth] - RING_STACK_FIRST;
        uint32_t frame = build_frame(build, &reader->nodes[number]);
        at = frame == NONE32 ? NONE32 : snapshot_push_frame(build->snapshot, at, frame);
        if (at == NONE32)
            return error_no_memory(build->reader->err);
        build->stacks[number] = at;
    }
    *stack = at;
    return STATUS_OK;
}

/* --- native frames and Python's ------------------------------------------------------------------------------------ */

/* Is this frame the interpreter's loop?  Its return address lies in the loop or just behind it. */
static bool is_loop(const struct build *build, const struct ring_node *node)
{
    const struct ring_header *header = &build->reader->header;
    return header->python_size && node->module == header->python_module && node->offset > header->python_offset &&
           node->offset - header->python_offset <= header->python_size;
}

/* The nodes of a native stack into `path`. */
static int native_path(struct build *build, uint32_t node, size_t *depth)
{
    const struct ring_reader *reader = build->reader;
    for (*depth = 0; node >= RING_STACK_FIRST; node = reader->nodes[node - RING_STACK_FIRST].parent) {
        if (node - RING_STACK_FIRST >= reader->node_count || (*depth && node >= build->path[*depth - 1]))
            return error_set(reader->err, STATUS_INPUT, "has a stack (number %" PRIu32 ") that is not linked", node);
        if (*depth >= RING_DEPTH_MAX)
            return error_set(reader->err, STATUS_INPUT, "has a stack (number %" PRIu32 ") that is too deep", node);
        build->path[(*depth)++] = node;
    }
    return STATUS_OK;
}

static int add_native(struct build *build, size_t native, size_t *count)
{
    uint32_t frame = build_frame(build, &build->reader->nodes[build->path[native] - RING_STACK_FIRST]);
    build->mixed[(*count)++] = frame;
    return frame == NONE32 ? error_no_memory(build->reader->err) : STATUS_OK;
}

/* Python's frames from *python on: to the end, or up to one that C entered the interpreter for. */
static int add_python(struct build *build, size_t depth, bool one_run, size_t *python, size_t *count)
{
    const struct ring_python_node *nodes = build->reader->python_nodes;
    for (bool more = true; more && *python < depth; ++*python) {
        uint32_t node = build->python_path[*python];
        int status = ring_python_frame(build, node, &build->mixed[(*count)++]);
        if (status)
            return status;
        more = !one_run || !(nodes[node - RING_STACK_FIRST].flags & RING_PYTHON_ENTRY);
    }
    return STATUS_OK;
}

/* In place of a frame of the interpreter's loop stand the Python frames that it ran: nobody wants to read the loop.  Those
 * that are left, because the native stack was cut or its loop not recognised, were called by them and come last. */
static int mix_frames(struct build *build, size_t native_depth, size_t python_depth, size_t *count)
{
    const struct ring_reader *reader = build->reader;
    size_t python = 0;
    int status = STATUS_OK;
    *count = 0;
    for (size_t i = 0; i < native_depth && !status; i++) {
        bool loop = python < python_depth && is_loop(build, &reader->nodes[build->path[i] - RING_STACK_FIRST]);
        status = loop ? add_python(build, python_depth, true, &python, count) : add_native(build, i, count);
    }
    return status ? status : add_python(build, python_depth, false, &python, count);
}

static int build_mixed(struct build *build, uint32_t native, uint32_t python, uint32_t *stack)
{
    size_t native_depth, python_depth, count;
    uint64_t key = (uint64_t)native << 32 | python;
    *stack = table_get(&build->merged, key, NONE32);
    if (*stack != NONE32)
        return STATUS_OK;
    int status = native_path(build, native, &native_depth);
    if (!status)
        status = ring_python_path(build, python, &python_depth);
    if (!status)
        status = mix_frames(build, native_depth, python_depth, &count);
    if (status)
        return status;
    for (*stack = STACK_EMPTY; count > 0 && *stack != NONE32; count--)
        *stack = snapshot_push_frame(build->snapshot, *stack, build->mixed[count - 1]);
    if (*stack == NONE32 || table_set(&build->merged, key, *stack))
        return error_no_memory(build->reader->err);
    return STATUS_OK;
}

int ring_build_context(struct build *build, uint32_t native, uint32_t python, uint32_t *context)
{
    uint32_t stack = STACK_EMPTY;
    *context = CONTEXT_NONE;
    if (native == RING_STACK_NONE && python == RING_STACK_NONE)
        return STATUS_OK;
    int status = python >= RING_STACK_FIRST ? build_mixed(build, native, python, &stack)
                                            : build_stack(build, native, &stack);
    if (status)
        return status;
    *context = snapshot_add_context(build->snapshot, stack);
    return *context == CONTEXT_NONE ? error_no_memory(build->reader->err) : STATUS_OK;
}

/* --- room ------------------------------------------------------------------------------------------------------------- */

int ring_stacks_begin(struct build *build)
{
    const struct ring_reader *reader = build->reader;
    build->stacks = malloc((reader->node_count + 1) * sizeof(*build->stacks));
    build->path = malloc((reader->node_count + 1) * sizeof(*build->path));
    build->python_path = malloc((reader->python_node_count + 1) * sizeof(*build->python_path));
    build->mixed = malloc((reader->node_count + reader->python_node_count + 1) * sizeof(*build->mixed));
    if (!build->stacks || !build->path || !build->python_path || !build->mixed)
        return error_no_memory(reader->err);
    memset(build->stacks, 0xff, (reader->node_count + 1) * sizeof(*build->stacks));
    return STATUS_OK;
}

void ring_stacks_free(struct build *build)
{
    free(build->stacks);
    free(build->path);
    free(build->python_path);
    free(build->mixed);
    table_free(&build->frames);
    table_free(&build->python_frames);
    table_free(&build->merged);
}
