/*
 * The file as a whole: which lists of the pickle are traces, segments and annotations, and what is left at its end.
 * Uses base, snapshot and the pickle machine.
 */
#include "format/torch_read.h"

#include "base/array.h"
#include "format/torch_pack.h"

#include <stdlib.h>
#include <string.h>

enum { BIG_FILE = 32 * 1024 * 1024, ENTRY_BYTES = 76 };

static int torch_field_of(const struct torch_reader *reader, value v)
{
    int word = torch_word_of(reader, v);
    return word >= 0 && word < TORCH_WORD_ACTIONS ? word - TORCH_WORD_FIELDS : -1;
}

/* ---- streams ---- */

/* The place of a list on the stack, seen from the top dict: what will the dicts in it be?  -1: nothing of ours. */
static int torch_list_kind(const struct torch_reader *reader, size_t position, size_t *device)
{
    const struct pickle *pickle = reader->pickle;
    const value *stack = pickle->stack;
    *device = 0;
    if (position == 0)
        return ROW_SEGMENT; /* a bare list of segments */
    if (value_kind(stack[0]) != VALUE_DICT)
        return -1;
    size_t key = value_kind(stack[1]) == VALUE_MARK ? 2 : 1;
    while (key + 2 < position && value_kind(stack[key + 2]) == VALUE_STRING)
        key += 2; /* pairs of the batch that are complete */
    if (key + 1 > position)
        return -1;
    int field = torch_field_of(reader, stack[key]);
    if (key + 1 == position)
        return field == FIELD_SEGMENTS ? ROW_SEGMENT : field == FIELD_EXTERNAL_ANNOTATIONS ? ROW_ANNOTATION : -1;
    if (field != FIELD_DEVICE_TRACES || value_kind(stack[key + 1]) != VALUE_LIST)
        return -1;
    *device = values_count(reader->values, stack[key + 1]);
    if (key + 2 == position)
        return ROW_ENTRY;
    for (size_t i = key + 3; i < position; i++)
        if (value_kind(stack[i]) == VALUE_MARK || value_kind(stack[i]) == VALUE_DICT)
            return -1; /* inside of something else */
    *device += position - (key + 3);
    return value_kind(stack[key + 2]) == VALUE_MARK ? ROW_ENTRY : -1;
}

/* Room ahead for a big trace: addresses only, no memory until it is filled, and columns that never move. */
static void torch_expect(struct torch_reader *reader)
{
    struct pickle *pickle = reader->pickle;
    struct snapshot *snapshot = reader->snapshot;
    uint64_t offset = pickle_offset(pickle), size = input_is_seekable(pickle->input) ? input_size(pickle->input) : 0;
    if (size < BIG_FILE || size <= offset || size > SIZE_MAX / 4 || reader->options.skip_traces)
        return;
    size_t entries = (size_t)(size - offset) / ENTRY_BYTES;
    bool none = entries_need_compile_context(&snapshot->entries) || entries_need_user_metadata(&snapshot->entries) ||
                entries_reserve(&snapshot->entries, snapshot->entries.count + entries) ||
                array_reserve(&pickle->memo, &pickle->memo_capacity, pickle->memo_size + 3 * entries,
                              sizeof(*pickle->memo)) ||
                array_reserve(&snapshot->string_objects, &snapshot->string_object_capacity,
                              snapshot->string_object_count + entries, sizeof(*snapshot->string_objects));
    (void)none; /* then they grow as they fill */
}

static int torch_new_stream(struct torch_reader *reader, value list, int kind, size_t device, struct error *err)
{
    struct value_notes *notes = values_notes(reader->values, list);
    if (device >= TORCH_DEVICES)
        return error_set(err, STATUS_UNSUPPORTED, "traces of more than %d devices", TORCH_DEVICES);
    if (array_reserve(&reader->streams, &reader->stream_capacity, reader->stream_count + 1, sizeof(*reader->streams)))
        return error_no_memory(err);
    reader->streams[reader->stream_count++] =
        (struct torch_stream){.list = list, .kind = (uint8_t)kind, .device = (uint16_t)device};
    notes->row = (uint32_t)reader->stream_count;
    notes->flags |= PICKLE_STREAM;
    if (kind == ROW_ENTRY)
        torch_expect(reader);
    return 0;
}

/* From rows in sequence to words in the list. */
static int torch_make_generic(struct torch_reader *reader, struct torch_stream *stream, struct error *err)
{
    if (stream->generic)
        return 0;
    stream->generic = true;
    for (uint64_t i = 0; i < stream->count && !(stream->kind == ROW_ENTRY && reader->options.skip_traces); i++) {
        value word = value_row(stream->kind, stream->first + i);
        if (values_append(reader->values, stream->list, &word, 1))
            return error_no_memory(err);
    }
    return 0;
}

static int torch_take_item(struct torch_reader *reader, size_t number, value item, struct error *err)
{
    struct torch_stream *stream = &reader->streams[number];
    uint64_t row = 0;
    int status = TORCH_INEXACT;
    if (pickle_is_dict(item)) {
        status = torch_pack_row(reader, (enum row_kind)stream->kind, item, stream->device, &row, err);
        if (status < 0)
            return status;
    }
    if (status == 0 && !stream->generic && stream->count == 0)
        stream->first = row;
    bool in_sequence = status == 0 && (row == stream->first + stream->count ||
                                       (stream->kind == ROW_ENTRY && reader->options.skip_traces));
    if (in_sequence && !stream->generic) {
        stream->count++;
        return 0;
    }
    int made = torch_make_generic(reader, stream, err);
    if (made)
        return made;
    if (status == 0)
        item = value_row(stream->kind, row);
    return pickle_append_items(reader->pickle, stream->list, &item, 1, err);
}

/* ---- hooks ---- */

static int torch_append(void *context, struct pickle *pickle, size_t position, value *items, size_t count, bool *taken,
                        struct error *err)
{
    struct torch_reader *reader = context;
    value list = pickle->stack[position];
    struct value_notes *notes = values_notes(reader->values, list);
    reader->pickle = pickle;
    if (!(notes->flags & PICKLE_STREAM)) {
        size_t device;
        int kind = values_count(reader->values, list) == 0 && !(notes->flags & PICKLE_PACKED)
                       ? torch_list_kind(reader, position, &device) : -1;
        int status = kind < 0 ? 0 : torch_new_stream(reader, list, kind, device, err);
        if (kind < 0 || status)
            return status;
    }
    *taken = true;
    for (size_t i = 0; i < count; i++) {
        int status = torch_take_item(reader, notes->row - 1, items[i], err);
        if (status)
            return status;
    }
    return 0;
}

static int torch_dict_starts(void *context, struct pickle *pickle, size_t position, struct error *err)
{
    struct torch_reader *reader = context;
    const struct value_notes *notes = values_notes(reader->values, pickle->stack[position]);
    struct torch_stream *stream = &reader->streams[notes->row - 1];
    reader->pickle = pickle;
    uint64_t next = stream->first + stream->count;
    if (reader->options.no_fast_path || stream->kind != ROW_ENTRY || stream->generic || stream->count == 0 ||
        (next != reader->snapshot->entries.count && !reader->options.skip_traces))
        return 0;
    return torch_fast_entries(reader, stream, err);
}

/* Lists of frames become contexts as soon as they stand in their dict, before anything else can name them. */
static int torch_set_items(void *context, struct pickle *pickle, value dict, value *pairs, size_t words, struct error *err)
{
    struct torch_reader *reader = context;
    (void)dict;
    reader->pickle = pickle;
    for (size_t i = 0; i + 1 < words; i += 2) {
        if (value_kind(pairs[i + 1]) != VALUE_LIST || torch_field_of(reader, pairs[i]) != FIELD_FRAMES ||
            !torch_is_exact(reader, pairs[i + 1]))
            continue;
        value row = pairs[i + 1];
        int status = torch_context(reader, pairs[i + 1], &row, err);
        if (status < 0)
            return status;
        pairs[i + 1] = row;
    }
    return 0;
}

static uint64_t torch_held(void *context)
{
    const struct torch_reader *reader = context;
    const struct snapshot *snapshot = reader->snapshot;
    uint64_t entry = TORCH_ENTRY_BYTES + (snapshot->entries.pool ? 4 : 0);
    return snapshot->entries.count * entry + snapshot->end.segment_count * sizeof(struct segment) +
           snapshot->end.block_count * sizeof(struct block) +
           snapshot->annotation_count * sizeof(struct annotation) + snapshot->setting_count * sizeof(struct setting) +
           snapshot->shape_count * 128 + snapshot->pool_count * 40 + snapshot->stream_count * 32 +
           snapshot->shared_strings.capacity * 13 + reader->promoted.capacity * 13 -
           reader->copied; /* they have a limit of their own, and the machine counts their odd values */
}

/* ---- the end ---- */

/* Dicts in a list that was filled in an unusual way, or stands in several places: into the columns all the same; the
 * file's graph is kept anyway. */
static int torch_late_list(struct torch_reader *reader, value list, enum row_kind kind, uint16_t device, struct error *err)
{
    value opened = list;
    int status = torch_unpack(reader, &opened, err);
    reader->weird = true;
    if (!status)
        status = torch_count_words(reader, values_count(reader->values, opened), err);
    for (size_t i = 0; i < values_count(reader->values, opened) && status >= 0; i++) {
        value item = values_items(reader->values, opened)[i];
        uint64_t row;
        if (!pickle_is_dict(item))
            continue;
        status = torch_pack_row(reader, kind, item, device, &row, err);
        if (status == 0)
            values_items_mutable(reader->values, opened)[i] = value_row(kind, row);
    }
    if (opened != list)
        values_release(reader->values, opened);
    return status < 0 ? status : 0;
}

/* A list where one of ours belongs. */
static int torch_finish_list(struct torch_reader *reader, value list, enum row_kind kind, uint16_t device,
                             struct error *err)
{
    const struct value_notes *notes = values_notes(reader->values, list);
    if (value_kind(list) != VALUE_LIST || (notes->flags & PICKLE_PACKED))
        return torch_late_list(reader, list, kind, device, err);
    if (notes->flags & PICKLE_FETCHED)
        reader->weird = true;
    if (!(notes->flags & PICKLE_STREAM))
        return values_count(reader->values, list) ? torch_late_list(reader, list, kind, device, err) : 0;
    struct torch_stream *stream = &reader->streams[notes->row - 1];
    if (stream->kind != kind || stream->placed)
        return torch_late_list(reader, list, kind, device, err);
    if (stream->generic || stream->device != device)
        reader->weird = true;
    stream->placed = true;
    return 0;
}

static int torch_finish_trace(struct torch_reader *reader, value trace, size_t device, struct error *err)
{
    int status = 0;
    if (torch_is_list(trace) || value_kind(trace) == VALUE_TUPLE)
        status = torch_finish_list(reader, trace, ROW_ENTRY, (uint16_t)device, err);
    else
        reader->weird = true;
    if (!status && snapshot_device(reader->snapshot, 0, (uint16_t)device) == NONE32)
        return error_no_memory(err);
    return status;
}

static int torch_finish_traces(struct torch_reader *reader, value outer, struct error *err)
{
    const struct value_notes *notes = values_notes(reader->values, outer);
    value opened = outer;
    if (value_kind(outer) != VALUE_LIST || (notes->flags & (PICKLE_FETCHED | PICKLE_STREAM | PICKLE_PACKED)))
        reader->weird = true;
    int status = torch_unpack(reader, &opened, err);
    size_t count = values_count(reader->values, opened);
    if (!status && count > TORCH_DEVICES)
        status = error_set(err, STATUS_UNSUPPORTED, "traces of more than %d devices", TORCH_DEVICES);
    for (size_t i = 0; i < count && !status; i++)
        status = torch_finish_trace(reader, values_items(reader->values, opened)[i], i, err);
    reader->snapshot->trace_count = (uint32_t)count;
    if (opened != outer)
        values_release(reader->values, opened);
    return status;
}

static int torch_finish_settings(struct torch_reader *reader, const struct torch_dict *top, uint32_t slot,
                                 struct error *err)
{
    value dict = top->items[2 * slot + 1];
    struct torch_dict settings = {0};
    if (value_kind(dict) != VALUE_DICT)
        return torch_odd(reader, top, slot, err);
    int status = torch_open_dict(reader, dict, ROW_SETTINGS, &settings, err);
    if (status < 0)
        return status;
    if (status || !torch_is_exact(reader, dict)) {
        status = torch_odd(reader, top, slot, err);
        if (status)
            return status;
    }
    for (uint32_t i = 0; i < settings.count; i++) {
        uint32_t key = reader->snapshot->string_objects[value_payload(settings.items[2 * i])];
        if (snapshot_add_setting(reader->snapshot, key, settings.items[2 * i + 1]) == NONE32)
            return error_no_memory(err);
    }
    reader->snapshot->settings_shape = settings.shape;
    return 0;
}

static int torch_finish_key(struct torch_reader *reader, const struct torch_dict *top, uint32_t slot, struct error *err)
{
    value word = top->items[2 * slot + 1];
    bool is_list = torch_is_list(word) || value_kind(word) == VALUE_TUPLE;
    switch (top->keys[slot]) {
    case FIELD_SEGMENTS:
        return is_list ? torch_finish_list(reader, word, ROW_SEGMENT, 0, err) : torch_odd(reader, top, slot, err);
    case FIELD_EXTERNAL_ANNOTATIONS:
        return is_list ? torch_finish_list(reader, word, ROW_ANNOTATION, 0, err) : torch_odd(reader, top, slot, err);
    case FIELD_DEVICE_TRACES:
        return is_list ? torch_finish_traces(reader, word, err) : torch_odd(reader, top, slot, err);
    case FIELD_ALLOCATOR_SETTINGS:
        return torch_finish_settings(reader, top, slot, err);
    default:
        return torch_odd(reader, top, slot, err);
    }
}

/* Newer files say how long the rings were and whether they overflowed: for all devices, or a list with one a device. */
static void torch_ring_facts(struct torch_reader *reader, const struct torch_dict *top, uint32_t slot)
{
    struct snapshot *snapshot = reader->snapshot;
    value word = top->items[2 * slot + 1];
    uint32_t name = top->keys[slot] - FIELD_COUNT - reader->first_word;
    if (top->keys[slot] < FIELD_COUNT || (name != TORCH_WORD_MAX_ENTRIES && name != TORCH_WORD_OVERFLOWED))
        return;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        struct device *device = &snapshot->devices[i];
        value one = word;
        if (value_kind(word) == VALUE_LIST || value_kind(word) == VALUE_TUPLE)
            one = device->ordinal < values_count(reader->values, word)
                      ? values_items(reader->values, word)[device->ordinal] : value_make(VALUE_NONE, 0);
        uint64_t number;
        if (name == TORCH_WORD_MAX_ENTRIES && values_get_unsigned(reader->values, one, &number))
            device->max_entries = number;
        if (name == TORCH_WORD_OVERFLOWED && value_kind(one) == VALUE_TRUE)
            snapshot->processes[0].incomplete = true;
    }
}

/* A top dict with keys that no shape can have: look at those we know; the object graph keeps all of it. */
static int torch_open_strange(struct torch_reader *reader, struct torch_dict *top, struct error *err)
{
    size_t count = values_count(reader->values, top->word) / 2;
    if (count > UINT16_MAX || array_reserve(&reader->keys, &reader->key_capacity, count, sizeof(*reader->keys)))
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        int field = torch_field_of(reader, top->items[2 * i]);
        reader->keys[i] = field >= 0 ? (uint32_t)field : FIELD_COUNT;
    }
    top->keys = reader->strange_keys = reader->keys;
    top->count = (uint32_t)count;
    reader->keys = NULL; /* other dicts are opened meanwhile */
    reader->key_capacity = 0;
    return 0;
}

static int torch_finish_dict(struct torch_reader *reader, value word, struct error *err)
{
    struct torch_dict top = {0};
    bool is_snapshot = false;
    int status = torch_open_dict(reader, word, ROW_TOP, &top, err);
    if (status || !torch_is_exact(reader, word))
        reader->weird = true;
    if (status > 0)
        status = torch_open_strange(reader, &top, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < top.count; i++)
        is_snapshot |= top.keys[i] == FIELD_SEGMENTS || top.keys[i] == FIELD_DEVICE_TRACES;
    if (!is_snapshot)
        return error_set(err, STATUS_INPUT, "a pickle, but no snapshot of PyTorch: it has neither 'segments' nor 'device_traces'");
    reader->snapshot->top_shape = top.shape;
    for (uint32_t i = 0; i < top.count; i++) {
        status = torch_finish_key(reader, &top, i, err);
        if (status)
            return status;
    }
    for (uint32_t i = 0; i < top.count; i++)
        torch_ring_facts(reader, &top, i);
    return 0;
}

/* The machine's own containers that rows have replaced. */
static void torch_release_top(struct torch_reader *reader, value top)
{
    const value *items = values_items(reader->values, top);
    for (size_t i = 0; value_kind(top) == VALUE_DICT && i + 1 < values_count(reader->values, top); i += 2) {
        int field = torch_field_of(reader, items[i]);
        if (field == FIELD_DEVICE_TRACES && value_kind(items[i + 1]) == VALUE_LIST)
            for (size_t k = 0; k < values_count(reader->values, items[i + 1]); k++)
                values_release(reader->values, values_items(reader->values, items[i + 1])[k]);
        if ((field == FIELD_DEVICE_TRACES || field == FIELD_SEGMENTS || field == FIELD_EXTERNAL_ANNOTATIONS) &&
            value_kind(items[i + 1]) == VALUE_LIST)
            values_release(reader->values, items[i + 1]);
    }
    values_release(reader->values, top);
}

static int torch_finish(void *context, struct pickle *pickle, value top, struct error *err)
{
    struct torch_reader *reader = context;
    struct snapshot *snapshot = reader->snapshot;
    reader->pickle = pickle;
    int status;
    if (value_kind(top) == VALUE_LIST) {
        snapshot->is_bare_list = true;
        status = torch_finish_list(reader, top, ROW_SEGMENT, 0, err);
    } else if (value_kind(top) == VALUE_DICT) {
        status = torch_finish_dict(reader, top, err);
    } else {
        status = error_set(err, STATUS_INPUT, "a pickle, but no snapshot of PyTorch: neither a dict nor a list of segments");
    }
    if (status)
        return status;
    if (snapshot->is_bare_list && !snapshot->end.segment_count && values_count(reader->values, top))
        return error_set(err, STATUS_INPUT, "a pickle, but no snapshot of PyTorch: a list of something else");
    for (size_t i = 0; i < reader->stream_count; i++)
        if (!reader->streams[i].placed)
            reader->weird = true;
    if (pickle->row_fetched)
        reader->weird = true;
    if (reader->weird && !reader->options.skip_traces) {
        for (size_t i = 0; i < reader->stream_count && !status; i++)
            status = torch_make_generic(reader, &reader->streams[i], err);
        snapshot->has_raw = true;
        snapshot->raw = top;
    } else if (!reader->weird) {
        torch_release_top(reader, top);
    }
    snapshot->end.moment = snapshot->entries.count;
    return status ? status : torch_settle(reader, err);
}

static const struct pickle_hooks torch_hooks = {
    .set_items = torch_set_items,
    .append = torch_append,
    .dict_starts = torch_dict_starts,
    .finish = torch_finish,
    .held = torch_held,
};

int torch_read(struct input *input, const struct torch_read_options *options, struct snapshot **result,
               struct error *err)
{
    *result = NULL;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    struct torch_reader *reader = calloc(1, sizeof(*reader));
    value top;
    int status = !snapshot || !reader ? error_no_memory(err) : 0;
    if (!status) {
        reader->snapshot = snapshot;
        reader->values = snapshot->values;
        if (options)
            reader->options = *options;
        reader->last_stream_index = reader->last_pool_index = NONE32;
        memset(reader->slot_field, UINT8_MAX, sizeof(reader->slot_field));
        status = torch_words(reader, err);
    }
    if (!status)
        status = pickle_read(input, snapshot, &torch_hooks, reader, &top, err);
    if (!status && !snapshot_is_valid(snapshot, err))
        status = STATUS_INPUT;
    if (!status && snapshot_order_by_time(snapshot))
        status = error_no_memory(err);
    if (reader) {
        free(reader->streams);
        free(reader->keys);
        free(reader->strange_keys);
        free(reader->run_bytes);
        table_free(&reader->promoted);
        free(reader);
    }
    if (status) {
        snapshot_free(snapshot);
        return status;
    }
    *result = snapshot;
    return 0;
}
