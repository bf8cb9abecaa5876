/*
 * Python's frames out of a ring file: code objects and instructions become functions, files and lines.  May use src/base,
 * the ring's layout and the snapshot.
 */
#include "format/ring_builder.h"

#include "base/python_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_text(const struct ring_reader *reader, uint64_t offset, uint32_t length)
{
    return offset <= reader->string_count && length <= reader->string_count - offset;
}

static uint32_t text_of(struct build *build, uint64_t offset, uint32_t length)
{
    return snapshot_shared_string(build->snapshot, build->reader->strings + offset, length);
}

#define LINE_BYTES (UINT64_C(4) << 30) /* of line tables in all, each of them once a place in its code: seconds */

static int add_frame(struct build *build, const struct ring_python_node *node, uint32_t *frame)
{
    const struct ring_reader *reader = build->reader;
    const struct ring_code *code = &reader->codes[node->code];
    if (!is_text(reader, code->name, code->name_length) || !is_text(reader, code->file, code->file_length) ||
        !is_text(reader, code->lines, code->lines_length))
        return error_set(reader->err, STATUS_INPUT, "has a Python function (number %" PRIu32 ") that makes no sense",
                         node->code);
    build->line_bytes += code->lines_length;
    if (build->line_bytes > LINE_BYTES)
        return error_set(reader->err, STATUS_INPUT, "has Python functions with too many lines");
    const unsigned char *lines = (const unsigned char *)reader->strings + code->lines;
    struct frame made = {.name = text_of(build, code->name, code->name_length),
                         .filename = text_of(build, code->file, code->file_length), .module = NONE32,
                         .flags = FRAME_PYTHON,
                         .line = python_line(reader->header.python_version, lines, code->lines_length,
                                             code->first_line, node->instruction)};
    if (made.name == STRING_NONE || made.filename == STRING_NONE)
        return error_no_memory(reader->err);
    *frame = snapshot_add_frame(build->snapshot, &made);
    return *frame == NONE32 ? error_no_memory(reader->err) : STATUS_OK;
}

int ring_python_frame(struct build *build, uint32_t number, uint32_t *frame)
{
    const struct ring_reader *reader = build->reader;
    const struct ring_python_node *node = &reader->python_nodes[number - RING_STACK_FIRST];
    if (node->code >= reader->code_count)
        return error_set(reader->err, STATUS_INPUT, "has a Python frame (number %" PRIu32 ") of no function", number);
    uint64_t key = (uint64_t)node->code << 32 | (uint32_t)node->instruction;
    *frame = table_get(&build->python_frames, key, NONE32);
    if (*frame != NONE32)
        return STATUS_OK;
    int status = add_frame(build, node, frame);
    if (!status && table_set(&build->python_frames, key, *frame))
        status = error_no_memory(reader->err);
    return status;
}

int ring_python_path(struct build *build, uint32_t node, size_t *depth)
{
    const struct ring_reader *reader = build->reader;
    for (*depth = 0; node >= RING_STACK_FIRST; node = reader->python_nodes[node - RING_STACK_FIRST].parent) {
        if (node - RING_STACK_FIRST >= reader->python_node_count ||
            (*depth && node >= build->python_path[*depth - 1])) /* parents come first: no circles */
            return error_set(reader->err, STATUS_INPUT, "has a Python stack (number %" PRIu32 ") that is not linked",
                             node);
        if (*depth >= RING_DEPTH_MAX)
            return error_set(reader->err, STATUS_INPUT, "has a Python stack (number %" PRIu32 ") that is too deep", node);
        build->python_path[(*depth)++] = node;
    }
    return STATUS_OK;
}

static const char *state_words(uint32_t state)
{
    switch (state) {
    case RING_PYTHON_RECORDED:
        return "recorded";
    case RING_PYTHON_UNKNOWN_VERSION:
        return "none, not a version that is known";
    case RING_PYTHON_FREE_THREADED:
        return "none, a free-threaded build";
    case RING_PYTHON_DEBUG_BUILD:
        return "none, a debug build";
    case RING_PYTHON_UNREADABLE:
        return "none, not laid out as expected";
    default:
        return NULL; /* no Python, or its frames were not asked for */
    }
}

int ring_python_setting(struct build *build)
{
    const struct ring_header *header = &build->reader->header;
    const char *words = state_words(header->python_state);
    char content[96];
    if (!words)
        return STATUS_OK;
    int length = header->python_version ? snprintf(content, sizeof(content), "%s (Python %" PRIu32 ".%" PRIu32 ")", words,
                                                   header->python_version >> 24, header->python_version >> 16 & 0xff)
                                        : snprintf(content, sizeof(content), "%s", words);
    uint32_t key = snapshot_string(build->snapshot, "python_frames", strlen("python_frames"));
    uint32_t object = snapshot_shared_string(build->snapshot, content, (size_t)length);
    return key == STRING_NONE || object == STRING_NONE ||
           snapshot_add_setting(build->snapshot, key, value_make(VALUE_STRING, object)) == NONE32
               ? error_no_memory(build->reader->err) : STATUS_OK;
}
