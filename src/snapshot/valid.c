/* Does a snapshot hold together?  Every index in range, blocks inside their segments and in order.  Uses src/base. */
#include "snapshot/snapshot.h"

#include <inttypes.h>

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) \
            return error_set(err, STATUS_INPUT, __VA_ARGS__), false; \
    } while (0)

static bool object_ok(const struct snapshot *snapshot, uint32_t object)
{
    return object == STRING_NONE || object < snapshot->string_object_count;
}

static bool content_ok(const struct snapshot *snapshot, uint32_t content)
{
    return content == STRING_NONE || content < strings_count(snapshot->strings);
}

static bool context_ok(const struct snapshot *snapshot, uint32_t context)
{
    return context == CONTEXT_NONE || context < snapshot->context_count;
}

static bool shape_ok(const struct snapshot *snapshot, uint16_t shape, enum row_kind kind)
{
    return shape == SHAPE_OURS || (shape < snapshot->shape_count && snapshot->shapes[shape].row_kind == kind);
}

static bool stacks_are_valid(const struct snapshot *snapshot, struct error *err)
{
    for (size_t i = 0; i < snapshot->string_object_count; i++)
        CHECK(snapshot->string_objects[i] < strings_count(snapshot->strings), "string object %zu has no string", i);
    for (size_t i = 0; i < snapshot->frame_count; i++) {
        const struct frame *frame = &snapshot->frames[i];
        CHECK(object_ok(snapshot, frame->name) && object_ok(snapshot, frame->filename), "frame %zu names no string", i);
        CHECK(frame->module == NONE32 || frame->module < snapshot->module_count, "frame %zu names no module", i);
        CHECK(shape_ok(snapshot, frame->shape, ROW_FRAME), "frame %zu has no such shape", i);
    }
    CHECK(snapshot->stack_count && snapshot->stacks[0].parent == NONE32 && snapshot->stacks[0].depth == 0,
          "the stack tree has no root");
    for (size_t i = 1; i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        CHECK(node->parent < i && node->frame < snapshot->frame_count &&
                  node->depth == snapshot->stacks[node->parent].depth + 1,
              "stack %zu is not linked to an earlier one", i);
    }
    for (size_t i = 0; i < snapshot->context_count; i++)
        CHECK(snapshot->contexts[i] < snapshot->stack_count, "context %zu has no stack", i);
    return true;
}

static bool entry_is_valid(const struct snapshot *snapshot, size_t i, struct error *err)
{
    const struct entries *entries = &snapshot->entries;
    CHECK(entries->action[i] < ACTION_COUNT, "entry %zu has no such action", i);
    CHECK(entries->stream[i] < snapshot->stream_count, "entry %zu has no such stream", i);
    CHECK(context_ok(snapshot, entries->context[i]), "entry %zu has no such context", i);
    CHECK(shape_ok(snapshot, entries->shape[i], ROW_ENTRY), "entry %zu has no such shape", i);
    CHECK(!entries->compile_context || object_ok(snapshot, entries->compile_context[i]),
          "entry %zu has no such compile context", i);
    CHECK(!entries->user_metadata || object_ok(snapshot, entries->user_metadata[i]), "entry %zu has no such metadata", i);
    CHECK(!entries->process || entries->process[i] < snapshot->process_count, "entry %zu has no such process", i);
    CHECK(!entries->pool || entries->pool[i] == NONE32 || entries->pool[i] < snapshot->pool_count,
          "entry %zu has no such pool", i);
    CHECK(!entries->call || entries->call[i] < snapshot->call_count, "entry %zu has no such call", i);
    CHECK(!entries->kind || entries->kind[i] < MEMORY_KIND_COUNT, "entry %zu has no such kind", i);
    return true;
}

/* Blocks follow one another without overlap inside the segment's range. */
static bool blocks_are_valid(const struct snapshot *snapshot, const struct state *state, size_t s, struct error *err)
{
    const struct segment *segment = &state->segments[s];
    uint64_t end, at = segment->address;
    CHECK(!__builtin_add_overflow(segment->address, segment->total_size, &end), "segment %zu ends beyond memory", s);
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const struct block *block = &state->blocks[segment->first_block + i];
        CHECK(block->segment == s && block->state <= BLOCK_STATE_OTHER && context_ok(snapshot, block->context) &&
                  shape_ok(snapshot, block->shape, ROW_BLOCK),
              "block %" PRIu32 " of segment %zu is not consistent", i, s);
        CHECK(block->address >= at && block->address <= end && block->size <= end - block->address,
              "block %" PRIu32 " of segment %zu overlaps or leaves it", i, s);
        at = block->address + block->size;
    }
    return true;
}

static bool state_is_valid(const struct snapshot *snapshot, const struct state *state, struct error *err)
{
    size_t expected = 0;
    for (size_t i = 0; i < state->segment_count; i++) {
        const struct segment *segment = &state->segments[i];
        CHECK(segment->first_block == expected && segment->block_count <= state->block_count - expected,
              "the blocks of segment %zu are not where they belong", i);
        expected += segment->block_count;
        CHECK(segment->process < snapshot->process_count && context_ok(snapshot, segment->context) &&
                  (segment->pool == NONE32 || segment->pool < snapshot->pool_count) &&
                  shape_ok(snapshot, segment->shape, ROW_SEGMENT) && segment->kind < MEMORY_KIND_COUNT,
              "segment %zu is not consistent", i);
        if (!blocks_are_valid(snapshot, state, i, err))
            return false;
    }
    CHECK(expected == state->block_count, "blocks without a segment");
    return true;
}

static bool facts_are_valid(const struct snapshot *snapshot, struct error *err)
{
    for (size_t i = 0; i < snapshot->module_count; i++)
        CHECK(content_ok(snapshot, snapshot->modules[i].path) && snapshot->modules[i].build_id_length <= 32,
              "module %zu is not consistent", i);
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct process *process = &snapshot->processes[i];
        CHECK(content_ok(snapshot, process->program) && content_ok(snapshot, process->host) &&
                  content_ok(snapshot, process->arguments) && content_ok(snapshot, process->boot_id) &&
                  content_ok(snapshot, process->driver),
              "process %zu is not consistent", i);
    }
    for (size_t i = 0; i < snapshot->device_count; i++)
        CHECK(snapshot->devices[i].process < snapshot->process_count && content_ok(snapshot, snapshot->devices[i].name),
              "device %zu is not consistent", i);
    for (size_t i = 0; i < snapshot->annotation_count; i++)
        CHECK(object_ok(snapshot, snapshot->annotations[i].name) && snapshot->annotations[i].stage <= 3 &&
                  snapshot->annotations[i].process < snapshot->process_count &&
                  shape_ok(snapshot, snapshot->annotations[i].shape, ROW_ANNOTATION),
              "annotation %zu is not consistent", i);
    for (size_t i = 0; i < snapshot->setting_count; i++)
        CHECK(content_ok(snapshot, snapshot->settings[i].key), "setting %zu is not consistent", i);
    for (size_t i = 0; i < snapshot->call_count; i++)
        CHECK(content_ok(snapshot, snapshot->calls[i]), "call %zu is not consistent", i);
    return true;
}

static bool shapes_are_valid(const struct snapshot *snapshot, struct error *err)
{
    CHECK(snapshot->shape_count && snapshot->shapes[0].count == 0, "the first shape has keys");
    for (size_t i = 0; i < snapshot->shape_count; i++) {
        const struct shape *shape = &snapshot->shapes[i];
        CHECK(shape->row_kind < ROW_KIND_COUNT, "shape %zu is of no known kind", i);
        for (uint32_t k = 0; k < shape->count; k++)
            CHECK(shape->keys[k] < FIELD_COUNT || shape->keys[k] - FIELD_COUNT < strings_count(snapshot->strings),
                  "shape %zu has a key without a name", i);
    }
    CHECK(shape_ok(snapshot, snapshot->top_shape, ROW_TOP) && shape_ok(snapshot, snapshot->settings_shape, ROW_SETTINGS),
          "the file's own shape is missing");
    return true;
}

bool snapshot_is_valid(const struct snapshot *snapshot, struct error *err)
{
    CHECK(snapshot->process_count, "no process");
    if (!stacks_are_valid(snapshot, err) || !shapes_are_valid(snapshot, err) || !facts_are_valid(snapshot, err))
        return false;
    for (size_t i = 0; i < snapshot->entries.count; i++)
        if (!entry_is_valid(snapshot, i, err))
            return false;
    return state_is_valid(snapshot, &snapshot->end, err);
}
