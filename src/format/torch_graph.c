/*
 * Objects that several places name.  While a file is read: what was packed into columns is made an object again where a
 * second place names it, and what that costs is limited.  When it has ended: objects that were packed while other words
 * still named them get one name, the row; and the graph of what is left is checked (plain data only, not too deep).
 * Uses base and snapshot.
 */
#include "base/array.h"
#include "base/size.h"
#include "format/torch_pack.h"

#include <stdlib.h>

#define COPY_SLACK (UINT64_C(256) << 20)
enum { COPY_TIMES = 64 };

/* ---- what naming an object again may cost ---- */

static int torch_check_expansion(struct torch_reader *reader, struct error *err)
{
    char text[SIZE_TEXT];
    uint64_t offset = pickle_offset(reader->pickle), limit = input_limit(reader->pickle->input);
    if (offset > limit || reader->expanded > limit - offset)
        return error_at(err, STATUS_NO_MEMORY, offset,
                        "entries and blocks that its lists name again and again expand it to more than the limit of %s; "
                        "allow more with --max-input SIZE", size_format(limit, text));
    if (reader->expanded / COPY_TIMES > offset + COPY_SLACK / COPY_TIMES)
        return error_at(err, STATUS_NO_MEMORY, offset,
                        "its lists name the same entries and blocks so often that they expand to more than %d times the "
                        "bytes so far (%s): no snapshot does that", COPY_TIMES, size_format(reader->expanded, text));
    return 0;
}

int torch_count_row(struct torch_reader *reader, enum row_kind kind, struct error *err)
{
    static const uint64_t bytes[ROW_KIND_COUNT] = {[ROW_ENTRY] = TORCH_ENTRY_BYTES, [ROW_SEGMENT] = sizeof(struct segment),
                                                   [ROW_BLOCK] = sizeof(struct block),
                                                   [ROW_ANNOTATION] = sizeof(struct annotation)};
    if (kind == ROW_ENTRY && reader->options.skip_traces)
        return 0; /* not kept */
    reader->copied += bytes[kind];
    reader->expanded += bytes[kind];
    return torch_check_expansion(reader, err);
}

int torch_count_words(struct torch_reader *reader, uint64_t words, struct error *err)
{
    reader->expanded += words * sizeof(value);
    return torch_check_expansion(reader, err);
}

/* ---- one more entry like that one ---- */

int torch_copy_entry(struct torch_reader *reader, uint64_t row, uint16_t device, struct error *err)
{
    struct snapshot *snapshot = reader->snapshot;
    if (reader->options.skip_traces || row >= snapshot->entries.count)
        return TORCH_INEXACT;
    struct entry entry = snapshot_entry(snapshot, (size_t)row);
    uint64_t copy = snapshot->entries.count;
    entry.device = device;
    if (torch_entries_room(reader, err) || snapshot_add_entry(snapshot, &entry))
        return error_no_memory(err);
    for (uint32_t slot = 0; snapshot->odd_count && slot < snapshot->shapes[entry.shape].count; slot++) {
        value odd;
        if (snapshot_get_odd(snapshot, ROW_ENTRY, row, (uint16_t)slot, &odd) &&
            torch_set_odd(reader, ROW_ENTRY, copy, (uint16_t)slot, odd, true))
            return error_no_memory(err);
    }
    int status = torch_count_row(reader, ROW_ENTRY, err);
    return status ? status : TORCH_INEXACT;
}

/* ---- rows as dicts and lists again ---- */

static value torch_content_word(struct torch_reader *reader, uint32_t content)
{
    uint32_t object = table_get(&reader->snapshot->shared_strings, content, NONE32);
    if (object == NONE32)
        object = snapshot_string_object(reader->snapshot, content);
    return object == NONE32 ? value_make(VALUE_MARK, 0) : value_make(VALUE_STRING, object);
}

static value torch_our_word(struct torch_reader *reader, unsigned word)
{
    return torch_content_word(reader, reader->first_word + word);
}

static value torch_object_word(uint32_t object)
{
    return object == STRING_NONE ? value_make(VALUE_NONE, 0) : value_make(VALUE_STRING, object);
}

static value torch_context_word(uint32_t context)
{
    return context == CONTEXT_NONE ? value_make(VALUE_NONE, 0) : value_row(ROW_CONTEXT, context);
}

static value torch_entry_value(struct torch_reader *reader, uint64_t row, uint32_t field)
{
    struct entry entry = snapshot_entry(reader->snapshot, (size_t)row);
    switch (field) {
    case FIELD_ACTION:
        return torch_our_word(reader, TORCH_WORD_ACTIONS + (unsigned)entry.action);
    case FIELD_ADDR:
    case FIELD_DEVICE_FREE:
        return values_unsigned(reader->values, entry.address);
    case FIELD_SIZE:
        return values_unsigned(reader->values, entry.size);
    case FIELD_STREAM:
        return values_int(reader->values, entry.stream);
    case FIELD_TIME_US:
        return values_int(reader->values, entry.time);
    case FIELD_COMPILE_CONTEXT:
        return torch_object_word(entry.compile_context);
    case FIELD_USER_METADATA:
        return torch_object_word(entry.user_metadata);
    case FIELD_FRAMES:
        return torch_context_word(entry.context);
    case FIELD_POOL_ID:
        return torch_resolve(reader, value_row(PICKLE_ROW_ENTRY_POOL, row));
    default:
        return value_make(VALUE_NONE, 0);
    }
}

static value torch_segment_value(struct torch_reader *reader, uint64_t row, uint32_t field)
{
    const struct segment *segment = &reader->snapshot->end.segments[row];
    switch (field) {
    case FIELD_DEVICE:
        return values_unsigned(reader->values, segment->device);
    case FIELD_ADDRESS:
        return values_unsigned(reader->values, segment->address);
    case FIELD_TOTAL_SIZE:
        return values_unsigned(reader->values, segment->total_size);
    case FIELD_ALLOCATED_SIZE:
        return values_unsigned(reader->values, segment->allocated_size);
    case FIELD_ACTIVE_SIZE:
        return values_unsigned(reader->values, segment->active_size);
    case FIELD_REQUESTED_SIZE:
        return values_unsigned(reader->values, segment->requested_size);
    case FIELD_STREAM:
        return values_int(reader->values, segment->stream);
    case FIELD_SEGMENT_TYPE:
        return torch_our_word(reader, segment->is_large ? TORCH_WORD_LARGE : TORCH_WORD_SMALL);
    case FIELD_SEGMENT_POOL_ID:
        return torch_resolve(reader, value_row(PICKLE_ROW_SEGMENT_POOL, row));
    case FIELD_IS_EXPANDABLE:
        return value_make(segment->is_expandable ? VALUE_TRUE : VALUE_FALSE, 0);
    case FIELD_FRAMES:
        return torch_context_word(segment->context);
    case FIELD_BLOCKS:
        return torch_resolve(reader, value_row(PICKLE_ROW_SEGMENT_BLOCKS, row));
    default:
        return value_make(VALUE_NONE, 0);
    }
}

static value torch_block_value(struct torch_reader *reader, uint64_t row, uint32_t field)
{
    const struct block *block = &reader->snapshot->end.blocks[row];
    switch (field) {
    case FIELD_ADDRESS:
        return values_unsigned(reader->values, block->address);
    case FIELD_SIZE:
        return values_unsigned(reader->values, block->size);
    case FIELD_REQUESTED_SIZE:
        return values_unsigned(reader->values, block->requested);
    case FIELD_STATE:
        return torch_our_word(reader, TORCH_WORD_STATES + block->state);
    case FIELD_FRAMES:
        return torch_context_word(block->context);
    default:
        return value_make(VALUE_NONE, 0);
    }
}

static value torch_small_value(struct torch_reader *reader, enum row_kind kind, uint64_t row, uint32_t field)
{
    const struct frame *frame = kind == ROW_FRAME ? &reader->snapshot->frames[row] : NULL;
    const struct annotation *annotation = kind == ROW_ANNOTATION ? &reader->snapshot->annotations[row] : NULL;
    switch (field) {
    case FIELD_NAME:
        return torch_object_word(frame ? frame->name : annotation->name);
    case FIELD_FILENAME:
        return torch_object_word(frame ? frame->filename : STRING_NONE);
    case FIELD_LINE:
        return values_int(reader->values, frame ? frame->line : 0);
    case FIELD_STAGE:
        return torch_our_word(reader, annotation && annotation->stage == 1 ? TORCH_WORD_END : TORCH_WORD_START);
    case FIELD_DEVICE:
        return values_unsigned(reader->values, annotation ? annotation->device : 0);
    case FIELD_TIME_US:
        return values_int(reader->values, annotation ? annotation->time : 0);
    default:
        return value_make(VALUE_NONE, 0);
    }
}

static value torch_field_value(struct torch_reader *reader, enum row_kind kind, uint64_t row, uint32_t field)
{
    switch (kind) {
    case ROW_ENTRY:
        return torch_entry_value(reader, row, field);
    case ROW_SEGMENT:
        return torch_segment_value(reader, row, field);
    case ROW_BLOCK:
        return torch_block_value(reader, row, field);
    default:
        return torch_small_value(reader, kind, row, field);
    }
}

/* The shape of a row; the one without keys where there is no such row (entries are not kept). */
static uint16_t torch_shape_of(const struct snapshot *snapshot, enum row_kind kind, uint64_t row)
{
    switch (kind) {
    case ROW_ENTRY:
        return row < snapshot->entries.count ? snapshot->entries.shape[row] : SHAPE_OURS;
    case ROW_SEGMENT:
        return row < snapshot->end.segment_count ? snapshot->end.segments[row].shape : SHAPE_OURS;
    case ROW_BLOCK:
        return row < snapshot->end.block_count ? snapshot->end.blocks[row].shape : SHAPE_OURS;
    case ROW_FRAME:
        return row < snapshot->frame_count ? snapshot->frames[row].shape : SHAPE_OURS;
    default:
        return row < snapshot->annotation_count ? snapshot->annotations[row].shape : SHAPE_OURS;
    }
}

static int torch_unpack_dict(struct torch_reader *reader, enum row_kind kind, uint64_t row, value made)
{
    struct snapshot *snapshot = reader->snapshot;
    uint16_t shape = torch_shape_of(snapshot, kind, row);
    int status = 0;
    for (uint32_t slot = 0; slot < snapshot->shapes[shape].count && !status; slot++) {
        uint32_t key = snapshot->shapes[shape].keys[slot];
        value pair[2] = {key < FIELD_COUNT ? torch_our_word(reader, TORCH_WORD_FIELDS + key)
                                           : torch_content_word(reader, key - FIELD_COUNT)};
        if (!snapshot_get_odd(snapshot, kind, row, (uint16_t)slot, &pair[1]))
            pair[1] = torch_field_value(reader, kind, row, key);
        if (value_kind(pair[0]) == VALUE_MARK || value_kind(pair[1]) == VALUE_MARK)
            return STATUS_NO_MEMORY;
        status = values_append(reader->values, made, pair, 2);
    }
    return status;
}

static int torch_unpack_context(struct torch_reader *reader, uint64_t context, value made)
{
    const struct snapshot *snapshot = reader->snapshot;
    int status = 0;
    for (uint32_t node = snapshot_context_stack(snapshot, (uint32_t)context); node != STACK_EMPTY && !status;
         node = snapshot->stacks[node].parent) {
        value frame = value_row(ROW_FRAME, snapshot->stacks[node].frame);
        status = values_append(reader->values, made, &frame, 1);
    }
    return status;
}

/* The list of blocks is an object by its own from now on; this is a copy of it. */
static int torch_unpack_blocks(struct torch_reader *reader, value blocks, value made)
{
    value list = torch_resolve(reader, blocks);
    size_t count = values_count(reader->values, list);
    if (list == value_make(VALUE_MARK, 0))
        return STATUS_NO_MEMORY;
    return count ? values_append(reader->values, made, values_items(reader->values, list), count) : 0;
}

static int torch_unpack_stream(struct torch_reader *reader, const struct torch_stream *stream, value made)
{
    int status = 0;
    for (uint64_t i = 0; i < stream->count && !status && !(stream->kind == ROW_ENTRY && reader->options.skip_traces); i++) {
        value row = value_row(stream->kind, stream->first + i);
        status = values_append(reader->values, made, &row, 1);
    }
    return status;
}

bool torch_is_list(value word)
{
    return value_kind(word) == VALUE_LIST ||
           (value_kind(word) == VALUE_ROW &&
            (value_row_kind(word) == ROW_CONTEXT || value_row_kind(word) == PICKLE_ROW_SEGMENT_BLOCKS));
}

/* The container's items while it has none of its own: in columns, as a row or rows in sequence. */
static value torch_place(const struct torch_reader *reader, value word, const struct torch_stream **stream)
{
    const struct value_notes *notes = values_notes(reader->values, word);
    *stream = NULL;
    if (!notes)
        return word;
    if (notes->flags & PICKLE_PACKED)
        return value_row(value_kind(word) == VALUE_LIST ? ROW_CONTEXT : ROW_FRAME, notes->row - 1);
    if ((notes->flags & PICKLE_STREAM) && !reader->streams[notes->row - 1].generic)
        *stream = &reader->streams[notes->row - 1];
    return word;
}

int torch_unpack(struct torch_reader *reader, value *word, struct error *err)
{
    const struct torch_stream *stream;
    value place = torch_place(reader, *word, &stream);
    bool is_dict = value_kind(place) == VALUE_ROW && pickle_is_dict(place);
    bool is_list = value_kind(place) == VALUE_ROW && torch_is_list(place);
    if (!stream && !is_dict && !is_list)
        return 0;
    value made = values_container(reader->values, is_dict ? VALUE_DICT : VALUE_LIST);
    if (!value_is_container(made))
        return error_no_memory(err);
    values_notes(reader->values, made)->flags |= PICKLE_FETCHED;
    *word = made;
    int status;
    if (stream)
        status = torch_unpack_stream(reader, stream, made);
    else if (is_dict)
        status = torch_unpack_dict(reader, (enum row_kind)value_row_kind(place), value_row_number(place), made);
    else if (value_row_kind(place) == ROW_CONTEXT)
        status = torch_unpack_context(reader, value_row_number(place), made);
    else
        status = torch_unpack_blocks(reader, place, made);
    return status ? error_no_memory(err) : 0;
}

/* ---- the end of the file ---- */

struct torch_visit {
    value container;
    size_t next;
};

struct torch_walk {
    struct torch_visit *path;
    size_t depth, capacity;
};

/* The word by which the object goes from now on. */
static int torch_settled(struct torch_reader *reader, value *word, struct error *err)
{
    if (value_kind(*word) == VALUE_MARK)
        return error_set(err, STATUS_INPUT, "refuses a class as a value: a snapshot holds plain data only");
    if (value_is_container(*word)) {
        const struct torch_stream *stream;
        if (!values_notes(reader->values, *word))
            return error_set(err, STATUS_INPUT, "damaged pickle: an object is used after its end");
        *word = torch_place(reader, *word, &stream);
    }
    *word = torch_resolve(reader, *word);
    return *word == value_make(VALUE_MARK, 0) ? error_no_memory(err) : 0;
}

static int torch_enter(struct torch_reader *reader, struct torch_walk *walk, value word, struct error *err)
{
    if (!value_is_container(word))
        return 0;
    struct value_notes *notes = values_notes(reader->values, word);
    if (notes->flags & PICKLE_SEEN)
        return 0;
    notes->flags |= PICKLE_SEEN;
    if (walk->depth > PICKLE_DEPTH)
        return error_set(err, STATUS_INPUT, "nested more than %d deep: no snapshot is", PICKLE_DEPTH);
    if (array_reserve(&walk->path, &walk->capacity, walk->depth + 1, sizeof(*walk->path)))
        return error_no_memory(err);
    walk->path[walk->depth++] = (struct torch_visit){word, 0};
    return 0;
}

static int torch_settle_word(struct torch_reader *reader, struct torch_walk *walk, value *root, struct error *err)
{
    int status = torch_settled(reader, root, err);
    if (!status)
        status = torch_enter(reader, walk, *root, err);
    while (walk->depth && !status) {
        struct torch_visit *visit = &walk->path[walk->depth - 1];
        if (visit->next >= values_count(reader->values, visit->container)) {
            walk->depth--;
            continue;
        }
        value *word = &values_items_mutable(reader->values, visit->container)[visit->next++];
        if (value_kind(*word) == VALUE_ROW || value_is_container(*word) || value_kind(*word) == VALUE_MARK) {
            value settled = *word;
            status = torch_settled(reader, &settled, err);
            if (status)
                break;
            values_items_mutable(reader->values, visit->container)[visit->next - 1] = settled;
            status = torch_enter(reader, walk, settled, err);
        }
    }
    return status;
}

int torch_settle(struct torch_reader *reader, struct error *err)
{
    struct snapshot *snapshot = reader->snapshot;
    struct torch_walk walk = {0};
    int status = 0;
    if (snapshot->has_raw)
        status = torch_settle_word(reader, &walk, &snapshot->raw, err);
    for (size_t i = 0; i < snapshot->setting_count && !status; i++)
        status = torch_settle_word(reader, &walk, &snapshot->settings[i].content, err);
    for (size_t i = 0; i < snapshot->odd_count && !status; i++) {
        value word = snapshot->odds[i].content; /* settling may add odd values, and so move them */
        status = torch_settle_word(reader, &walk, &word, err);
        snapshot->odds[i].content = word;
    }
    free(walk.path);
    return status;
}
