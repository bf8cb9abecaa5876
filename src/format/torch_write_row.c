/*
 * Rows that came from a file, key by key as their shapes say.  Uses base and snapshot.
 */
#include "format/torch_writer.h"

enum { DEPTH_MOST = 2000 };

static void torch_write_context(struct torch_writer *writer, uint32_t context)
{
    const struct snapshot *snapshot = writer->snapshot;
    if (context >= snapshot->context_count) {
        torch_write_fail(writer, STATUS_OUTPUT, "a stack is missing");
        return;
    }
    if (writer->contexts[context]) {
        pickle_write_get(writer->pickle, writer->contexts[context] - 1);
        return;
    }
    pickle_op(writer->pickle, ']');
    writer->contexts[context] = pickle_memoize(writer->pickle) + 1;
    uint32_t node = snapshot->contexts[context];
    uint32_t count = snapshot->stacks[node].depth;
    for (uint32_t i = 0; i < count && !writer->status; i++) {
        pickle_item(writer->pickle, i, count, PICKLE_APPENDS);
        torch_write_row(writer, ROW_FRAME, snapshot->stacks[node].frame);
        node = snapshot->stacks[node].parent;
    }
    pickle_items_end(writer->pickle, count, PICKLE_APPENDS);
}

static void torch_write_entry_field(struct torch_writer *writer, uint64_t row, uint32_t field)
{
    const struct entries *entries = &writer->snapshot->entries;
    switch (field) {
    case FIELD_ACTION:
        torch_write_shared(writer, &writer->actions[entries->action[row]]);
        break;
    case FIELD_ADDR:
    case FIELD_DEVICE_FREE:
        pickle_write_unsigned(writer->pickle, entries->address[row]);
        break;
    case FIELD_SIZE:
        pickle_write_unsigned(writer->pickle, entries->size[row]);
        break;
    case FIELD_STREAM:
        pickle_write_int(writer->pickle, writer->snapshot->streams[entries->stream[row]]);
        break;
    case FIELD_TIME_US:
        pickle_write_int(writer->pickle, entries->time[row]);
        break;
    case FIELD_COMPILE_CONTEXT:
        torch_write_object(writer, entries->compile_context ? entries->compile_context[row] : STRING_NONE);
        break;
    case FIELD_USER_METADATA:
        torch_write_object(writer, entries->user_metadata ? entries->user_metadata[row] : STRING_NONE);
        break;
    case FIELD_FRAMES:
        torch_write_context(writer, entries->context[row]);
        break;
    case FIELD_POOL_ID:
        torch_write_pool(writer, entries->pool ? entries->pool[row] : NONE32);
        break;
    default:
        pickle_op(writer->pickle, 'N');
        break;
    }
}

void torch_write_blocks(struct torch_writer *writer, const struct segment *segment)
{
    pickle_op(writer->pickle, ']');
    for (uint32_t i = 0; i < segment->block_count && !writer->status; i++) {
        pickle_item(writer->pickle, i, segment->block_count, PICKLE_APPENDS);
        torch_write_row(writer, ROW_BLOCK, segment->first_block + i);
    }
    pickle_items_end(writer->pickle, segment->block_count, PICKLE_APPENDS);
}

static void torch_write_segment_field(struct torch_writer *writer, uint64_t row, uint32_t field)
{
    const struct segment *segment = &writer->snapshot->end.segments[row];
    switch (field) {
    case FIELD_DEVICE:
        pickle_write_unsigned(writer->pickle, torch_trace_of(writer, segment->process, segment->device));
        break;
    case FIELD_ADDRESS:
        pickle_write_unsigned(writer->pickle, segment->address);
        break;
    case FIELD_TOTAL_SIZE:
        pickle_write_unsigned(writer->pickle, segment->total_size);
        break;
    case FIELD_ALLOCATED_SIZE:
        pickle_write_unsigned(writer->pickle, segment->allocated_size);
        break;
    case FIELD_ACTIVE_SIZE:
        pickle_write_unsigned(writer->pickle, segment->active_size);
        break;
    case FIELD_REQUESTED_SIZE:
        pickle_write_unsigned(writer->pickle, segment->requested_size);
        break;
    case FIELD_STREAM:
        pickle_write_int(writer->pickle, segment->stream);
        break;
    case FIELD_SEGMENT_TYPE:
        torch_write_shared(writer, &writer->texts[segment->is_large ? TORCH_TEXT_LARGE : TORCH_TEXT_SMALL]);
        break;
    case FIELD_SEGMENT_POOL_ID:
        torch_write_pool(writer, segment->pool);
        break;
    case FIELD_IS_EXPANDABLE:
        pickle_write_bool(writer->pickle, segment->is_expandable);
        break;
    case FIELD_FRAMES:
        torch_write_context(writer, segment->context);
        break;
    case FIELD_BLOCKS:
        torch_write_blocks(writer, segment);
        break;
    default:
        pickle_op(writer->pickle, 'N');
        break;
    }
}

static void torch_write_block_field(struct torch_writer *writer, uint64_t row, uint32_t field)
{
    const struct block *block = &writer->snapshot->end.blocks[row];
    switch (field) {
    case FIELD_ADDRESS:
        pickle_write_unsigned(writer->pickle, block->address);
        break;
    case FIELD_SIZE:
        pickle_write_unsigned(writer->pickle, block->size);
        break;
    case FIELD_REQUESTED_SIZE:
        pickle_write_unsigned(writer->pickle, block->requested);
        break;
    case FIELD_STATE:
        if (block->state < BLOCK_STATE_OTHER)
            torch_write_shared(writer, &writer->states[block->state]);
        else
            pickle_op(writer->pickle, 'N');
        break;
    case FIELD_FRAMES:
        torch_write_context(writer, block->context);
        break;
    default:
        pickle_op(writer->pickle, 'N');
        break;
    }
}

static void torch_write_frame_field(struct torch_writer *writer, uint64_t row, uint32_t field)
{
    const struct frame *frame = &writer->snapshot->frames[row];
    if (field == FIELD_NAME)
        torch_write_object(writer, frame->name);
    else if (field == FIELD_FILENAME)
        torch_write_object(writer, frame->filename);
    else if (field == FIELD_LINE)
        pickle_write_int(writer->pickle, frame->line);
    else
        pickle_op(writer->pickle, 'N');
}

static void torch_write_annotation_field(struct torch_writer *writer, uint64_t row, uint32_t field)
{
    const struct annotation *annotation = &writer->snapshot->annotations[row];
    if (field == FIELD_STAGE)
        torch_write_shared(writer, &writer->texts[annotation->stage == 1 ? TORCH_TEXT_END : TORCH_TEXT_START]);
    else if (field == FIELD_NAME)
        torch_write_object(writer, annotation->name);
    else if (field == FIELD_DEVICE)
        pickle_write_unsigned(writer->pickle, torch_trace_of(writer, annotation->process, annotation->device));
    else if (field == FIELD_TIME_US)
        pickle_write_int(writer->pickle, annotation->time);
    else
        pickle_op(writer->pickle, 'N');
}

/* The shape of a row; false if there is no such row. */
static bool torch_row_shape(const struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t *shape)
{
    switch (kind) {
    case ROW_ENTRY:
        *shape = row < snapshot->entries.count ? snapshot->entries.shape[row] : 0;
        return row < snapshot->entries.count;
    case ROW_SEGMENT:
        *shape = row < snapshot->end.segment_count ? snapshot->end.segments[row].shape : 0;
        return row < snapshot->end.segment_count;
    case ROW_BLOCK:
        *shape = row < snapshot->end.block_count ? snapshot->end.blocks[row].shape : 0;
        return row < snapshot->end.block_count;
    case ROW_FRAME:
        *shape = row < snapshot->frame_count ? snapshot->frames[row].shape : 0;
        return row < snapshot->frame_count;
    case ROW_ANNOTATION:
        *shape = row < snapshot->annotation_count ? snapshot->annotations[row].shape : 0;
        return row < snapshot->annotation_count;
    default:
        return false;
    }
}

static bool torch_may_be_odd(const struct torch_writer *writer, enum row_kind kind, uint64_t row)
{
    return writer->has_odd[kind] && (kind != ROW_ENTRY || (writer->odd_entries[row / 8] >> (row % 8) & 1));
}

static void torch_write_slots(struct torch_writer *writer, enum row_kind kind, uint64_t row, const struct shape *shape)
{
    bool may_be_odd = torch_may_be_odd(writer, kind, row);
    for (uint32_t i = 0; i < shape->count && !writer->status; i++) {
        value odd;
        pickle_item(writer->pickle, i, shape->count, PICKLE_SETITEMS);
        if (may_be_odd && kind == ROW_ANNOTATION && i < ODD_KEY &&
            snapshot_get_odd(writer->snapshot, kind, row, (uint16_t)(i | ODD_KEY), &odd))
            torch_write_value(writer, odd);
        else
            torch_write_key(writer, shape->keys[i]);
        if (may_be_odd && snapshot_get_odd(writer->snapshot, kind, row, (uint16_t)i, &odd))
            torch_write_value(writer, odd);
        else if (kind == ROW_ENTRY)
            torch_write_entry_field(writer, row, shape->keys[i]);
        else if (kind == ROW_SEGMENT)
            torch_write_segment_field(writer, row, shape->keys[i]);
        else if (kind == ROW_BLOCK)
            torch_write_block_field(writer, row, shape->keys[i]);
        else if (kind == ROW_FRAME)
            torch_write_frame_field(writer, row, shape->keys[i]);
        else
            torch_write_annotation_field(writer, row, shape->keys[i]);
    }
    pickle_items_end(writer->pickle, shape->count, PICKLE_SETITEMS);
}

/* Frames are shared in every file, other rows only in those that keep their graph. */
static bool torch_row_written(struct torch_writer *writer, enum row_kind kind, uint64_t row)
{
    if (kind == ROW_FRAME && writer->frames[row]) {
        pickle_write_get(writer->pickle, writer->frames[row] - 1);
        return true;
    }
    if (kind != ROW_FRAME && writer->memo_rows && torch_written(writer, value_row(kind, row)))
        return true;
    pickle_op(writer->pickle, '}');
    if (kind == ROW_FRAME)
        writer->frames[row] = pickle_memoize(writer->pickle) + 1;
    else if (writer->memo_rows)
        torch_remember(writer, value_row(kind, row));
    return false;
}

void torch_write_row(struct torch_writer *writer, enum row_kind kind, uint64_t row)
{
    uint16_t shape;
    if (kind == ROW_CONTEXT) {
        torch_write_context(writer, row < NONE32 ? (uint32_t)row : NONE32);
        return;
    }
    if (!torch_row_shape(writer->snapshot, kind, row, &shape)) {
        torch_write_fail(writer, STATUS_OUTPUT, "a value points at a row that is not there");
        return;
    }
    if (writer->depth >= DEPTH_MOST) {
        torch_write_fail(writer, STATUS_OUTPUT, "nested too deeply for a pickle");
        return;
    }
    if (torch_row_written(writer, kind, row))
        return;
    writer->depth++;
    if (shape == SHAPE_OURS)
        torch_write_our_row(writer, kind, row);
    else
        torch_write_slots(writer, kind, row, &writer->snapshot->shapes[shape]);
    writer->depth--;
}
