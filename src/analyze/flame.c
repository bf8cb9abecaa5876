/* The lines of PyTorch's flame graph views.  Uses src/snapshot and src/base. */
#include "analyze/flame.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* Rows of the end state are the rows of the file; those of another moment are not. */
static bool rows_are_files(const struct snapshot *snapshot, const struct state *state)
{
    return state == &snapshot->end ||
           (state->moment == snapshot->entries.count && state->block_count == snapshot->end.block_count);
}

static int shape_slot(const struct snapshot *snapshot, uint16_t number, enum field field)
{
    const struct shape *shape = &snapshot->shapes[number];
    for (uint32_t i = 0; i < shape->count; i++)
        if (shape->keys[i] == (uint32_t)field)
            return (int)i;
    return -1;
}

static bool block_odd(const struct snapshot *snapshot, const struct state *state, size_t block, enum field field,
                      value *content)
{
    uint16_t shape = state->blocks[block].shape;
    if (shape == SHAPE_OURS || !snapshot->odd_count || !rows_are_files(snapshot, state))
        return false;
    int slot = shape_slot(snapshot, shape, field);
    return slot >= 0 && snapshot_get_odd(snapshot, ROW_BLOCK, block, (uint16_t)slot, content);
}

/* The list under `history`, if the block is an old one. */
static bool block_history(const struct snapshot *snapshot, const struct state *state, size_t block, value *history)
{
    if (!block_odd(snapshot, state, block, FIELD_HISTORY, history))
        return false;
    enum value_kind kind = value_kind(*history);
    return kind == VALUE_LIST || kind == VALUE_TUPLE;
}

static uint64_t history_size(const struct snapshot *snapshot, value item)
{
    value content;
    uint64_t size = 0;
    if (value_kind(item) == VALUE_DICT && snapshot_dict_get(snapshot, item, "real_size", &content))
        values_get_unsigned(snapshot->values, content, &size);
    return size;
}

uint64_t flame_block_requested(const struct snapshot *snapshot, const struct state *state, size_t number)
{
    const struct block *block = &state->blocks[number];
    value history;
    if (block->shape == SHAPE_OURS)
        return block->flags & BLOCK_REQUESTED_UNKNOWN ? block->size : block->requested;
    if (shape_slot(snapshot, block->shape, FIELD_FRAMES) < 0 && block_history(snapshot, state, number, &history)) {
        if (values_count(snapshot->values, history))
            return history_size(snapshot, values_items(snapshot->values, history)[0]);
        return block->size;
    }
    bool has_request = shape_slot(snapshot, block->shape, FIELD_REQUESTED_SIZE) >= 0;
    return has_request && !(block->flags & BLOCK_REQUESTED_UNKNOWN) ? block->requested : block->size;
}

static const char *state_word(const struct snapshot *snapshot, const struct state *state, size_t block)
{
    value content;
    if (state->blocks[block].state == BLOCK_STATE_OTHER && block_odd(snapshot, state, block, FIELD_STATE, &content) &&
        value_kind(content) == VALUE_STRING)
        return snapshot_object_text(snapshot, (uint32_t)value_payload(content), NULL);
    return block_state_name(state->blocks[block].state);
}

static void set_stack(const struct snapshot *snapshot, uint32_t context, struct flame_line *line)
{
    line->stack = snapshot_context_stack(snapshot, context);
    line->leaf = line->stack == STACK_EMPTY ? FLAME_NO_FRAMES : FLAME_STACK;
}

/* One item of a history: its frames may be a context of the columns or plain data. */
static void set_history_frames(const struct snapshot *snapshot, value item, struct flame_line *line)
{
    value frames;
    line->stack = NONE32;
    line->leaf = FLAME_NO_CONTEXT;
    if (value_kind(item) != VALUE_DICT || !snapshot_dict_get(snapshot, item, "frames", &frames))
        return;
    line->leaf = FLAME_NO_FRAMES;
    if (value_kind(frames) == VALUE_ROW && value_row_kind(frames) == ROW_CONTEXT)
        set_stack(snapshot, (uint32_t)value_row_number(frames), line);
    else if (value_kind(frames) == VALUE_LIST && values_count(snapshot->values, frames)) {
        line->leaf = FLAME_STACK;
        line->frames = frames;
    }
}

static void set_bytes(struct flame_line *line, __int128 bytes)
{
    line->is_negative = bytes < 0;
    line->bytes = (uint64_t)(bytes < 0 ? -bytes : bytes);
}

static int history_lines(const struct snapshot *snapshot, value history, struct flame_line *line, __int128 *counted,
                         flame_visit *visit, void *context)
{
    int status = 0;
    size_t count = values_count(snapshot->values, history);
    for (size_t i = 0; i < count && !status; i++) {
        value item = values_items(snapshot->values, history)[i];
        uint64_t size = history_size(snapshot, item);
        *counted += size;
        set_history_frames(snapshot, item, line);
        set_bytes(line, size);
        status = visit(context, line);
    }
    return status;
}

int flame_segment_lines(const struct snapshot *snapshot, const struct state *state, size_t number, flame_visit *visit,
                        void *context)
{
    const struct segment *segment = &state->segments[number];
    for (uint32_t i = 0; i < segment->block_count; i++) {
        size_t at = segment->first_block + (size_t)i;
        const struct block *block = &state->blocks[at];
        struct flame_line line = {
            .segment = segment, .block = at, .state = state_word(snapshot, state, at), .stack = NONE32};
        __int128 counted = 0;
        value history;
        int status;
        if (block_history(snapshot, state, at, &history)) {
            status = history_lines(snapshot, history, &line, &counted, visit, context);
        } else {
            counted = flame_block_requested(snapshot, state, at);
            set_stack(snapshot, block->context, &line);
            set_bytes(&line, counted);
            status = visit(context, &line);
        }
        if (!status && counted != block->size) {
            line.leaf = FLAME_GAPS;
            set_bytes(&line, (__int128)block->size - counted);
            status = visit(context, &line);
        }
        if (status)
            return status;
    }
    return 0;
}

static size_t labels_of_stack(struct frame_texts *texts, const struct snapshot *snapshot, uint32_t stack,
                              uint32_t **labels, size_t *capacity)
{
    size_t depth = stack_frames(snapshot, stack, labels, capacity), count = 0;
    if (depth == SIZE_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i < depth; i++) {
        uint32_t label = frame_label(texts, (*labels)[i]);
        if (label != FRAME_LEFT_OUT)
            (*labels)[count++] = label;
    }
    return count;
}

size_t flame_line_labels(struct frame_texts *texts, const struct flame_line *line, uint32_t **labels, size_t *capacity)
{
    const struct snapshot *snapshot = frame_texts_snapshot(texts);
    if (line->leaf != FLAME_STACK)
        return 0;
    if (line->stack != NONE32)
        return labels_of_stack(texts, snapshot, line->stack, labels, capacity);
    size_t length = values_count(snapshot->values, line->frames), count = 0;
    if (array_reserve(labels, capacity, length + 1, sizeof(**labels)))
        return SIZE_MAX;
    for (size_t i = length; i > 0; i--) {
        uint32_t label = frame_label_of_value(texts, values_items(snapshot->values, line->frames)[i - 1]);
        if (label != FRAME_LEFT_OUT)
            (*labels)[count++] = label;
    }
    return count;
}
