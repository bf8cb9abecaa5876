/*
 * The file as a whole: top level, traces by device, the writer's tables.  Uses base and snapshot.
 */
#include "format/torch_write.h"

#include "format/torch_writer.h"

#include <stdlib.h>

static struct torch_shared torch_shared_of(const struct snapshot *snapshot, const char *text)
{
    uint32_t content = strings_find(snapshot->strings, text, __builtin_strlen(text));
    uint32_t object = content == STRING_NONE ? NONE32 : table_get(&snapshot->shared_strings, content, NONE32);
    return (struct torch_shared){text, object, 0};
}

static void torch_words_of(struct torch_writer *writer)
{
    static const char *const texts[TORCH_TEXT_COUNT] = {"small", "large", "START", "END", "N/A", "",
                                                        "trace_alloc_max_entries", "trace_alloc_overflowed"};
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        writer->fields[i] = torch_shared_of(writer->snapshot, field_name((enum field)i));
    for (unsigned i = 0; i < ACTION_COUNT; i++)
        writer->actions[i] = torch_shared_of(writer->snapshot, action_name((enum action)i));
    for (unsigned i = 0; i < BLOCK_STATE_OTHER; i++)
        writer->states[i] = torch_shared_of(writer->snapshot, block_state_name((enum block_state)i));
    for (unsigned i = 0; i < TORCH_TEXT_COUNT; i++)
        writer->texts[i] = torch_shared_of(writer->snapshot, texts[i]);
}

static int torch_writer_open(struct torch_writer *writer, struct output *output)
{
    const struct snapshot *snapshot = writer->snapshot;
    writer->pickle = malloc(sizeof(*writer->pickle));
    writer->strings = calloc(snapshot->string_object_count + 1, sizeof(*writer->strings));
    writer->contexts = calloc(snapshot->context_count + 1, sizeof(*writer->contexts));
    writer->frames = calloc(snapshot->frame_count + 1, sizeof(*writer->frames));
    writer->odd_entries = calloc(snapshot->entries.count / 8 + 1, 1);
    if (!writer->pickle || !writer->strings || !writer->contexts || !writer->frames || !writer->odd_entries)
        return error_no_memory(writer->err);
    for (size_t i = 0; i < snapshot->odd_count; i++) {
        const struct odd *odd = &snapshot->odds[i];
        writer->has_odd[odd->row_kind] = true;
        if (odd->row_kind == ROW_ENTRY && odd->row < snapshot->entries.count)
            writer->odd_entries[odd->row / 8] |= (uint8_t)(1u << (odd->row % 8));
    }
    writer->memo_rows = snapshot->has_raw || writer->has_odd[ROW_SEGMENT];
    torch_words_of(writer);
    pickle_begin(writer->pickle, output);
    return 0;
}

static void torch_writer_close(struct torch_writer *writer)
{
    free(writer->pickle);
    free(writer->strings);
    free(writer->contexts);
    free(writer->frames);
    free(writer->odd_entries);
    table_free(&writer->objects);
    table_free(&writer->contents);
}

/* ---- traces ---- */

struct torch_trace {
    uint64_t count;       /* as written */
    size_t first, end;    /* rows between which its entries lie */
};

static uint32_t torch_row_trace(const struct torch_writer *writer, size_t row)
{
    const struct entries *entries = &writer->snapshot->entries;
    return torch_trace_of(writer, entries->process ? entries->process[row] : 0, entries->device[row]);
}

static uint32_t torch_trace_count(const struct torch_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    uint32_t count = snapshot->trace_count;
    if (snapshot->process_count > 1)
        return snapshot->device_count > 1 ? (uint32_t)snapshot->device_count : 1;
    for (size_t i = 0; i < snapshot->device_count && !snapshot->top_shape; i++)
        if (snapshot->devices[i].ordinal >= count)
            count = snapshot->devices[i].ordinal + 1u;
    for (size_t i = 0; i < snapshot->entries.count; i++)
        if (snapshot->entries.device[i] >= count)
            count = snapshot->entries.device[i] + 1u;
    return count;
}

static void torch_write_trace(struct torch_writer *writer, uint32_t number, const struct torch_trace *trace)
{
    uint64_t position = 0;
    pickle_op(writer->pickle, ']');
    for (size_t row = trace->first; row < trace->end && !writer->status; row++) {
        enum action actions[3];
        if (torch_row_trace(writer, row) != number)
            continue;
        unsigned count = torch_our_actions(writer, row, actions);
        for (unsigned i = 0; i < count; i++) {
            pickle_item(writer->pickle, position++, trace->count, PICKLE_APPENDS);
            if (writer->snapshot->entries.shape[row] != SHAPE_OURS) {
                torch_write_row(writer, ROW_ENTRY, row);
            } else {
                pickle_op(writer->pickle, '}');
                torch_write_our_entry(writer, row, actions[i]);
            }
        }
        if (output_failed(writer->pickle->output))
            torch_write_fail(writer, STATUS_OUTPUT, "the output cannot be written");
    }
    pickle_items_end(writer->pickle, trace->count, PICKLE_APPENDS);
}

static void torch_write_traces(struct torch_writer *writer)
{
    uint32_t count = torch_trace_count(writer);
    struct torch_trace *traces = calloc(count ? count : 1, sizeof(*traces));
    if (!traces) {
        torch_write_fail(writer, STATUS_NO_MEMORY, "out of memory");
        return;
    }
    for (size_t row = 0; row < writer->snapshot->entries.count; row++) {
        enum action actions[3];
        uint32_t number = torch_row_trace(writer, row);
        if (number >= count)
            continue;
        struct torch_trace *trace = &traces[number];
        if (!trace->end)
            trace->first = row;
        trace->end = row + 1;
        trace->count += torch_our_actions(writer, row, actions);
    }
    pickle_op(writer->pickle, ']');
    for (uint32_t i = 0; i < count && !writer->status; i++) {
        pickle_item(writer->pickle, i, count, PICKLE_APPENDS);
        torch_write_trace(writer, i, &traces[i]);
    }
    pickle_items_end(writer->pickle, count, PICKLE_APPENDS);
    free(traces);
}

/* ---- top level ---- */

static void torch_write_rows(struct torch_writer *writer, enum row_kind kind, uint64_t count)
{
    pickle_op(writer->pickle, ']');
    for (uint64_t i = 0; i < count && !writer->status; i++) {
        pickle_item(writer->pickle, i, count, PICKLE_APPENDS);
        torch_write_row(writer, kind, i);
    }
    pickle_items_end(writer->pickle, count, PICKLE_APPENDS);
}

static void torch_write_settings(struct torch_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    pickle_op(writer->pickle, '}');
    for (size_t i = 0; i < snapshot->setting_count && !writer->status; i++) {
        pickle_item(writer->pickle, i, snapshot->setting_count, PICKLE_SETITEMS);
        torch_write_content(writer, snapshot->settings[i].key);
        torch_write_value(writer, snapshot->settings[i].content);
    }
    pickle_items_end(writer->pickle, snapshot->setting_count, PICKLE_SETITEMS);
}

static void torch_write_top_field(struct torch_writer *writer, uint32_t field)
{
    const struct snapshot *snapshot = writer->snapshot;
    switch (field) {
    case FIELD_SEGMENTS:
        torch_write_rows(writer, ROW_SEGMENT, snapshot->end.segment_count);
        break;
    case FIELD_DEVICE_TRACES:
        torch_write_traces(writer);
        break;
    case FIELD_ALLOCATOR_SETTINGS:
        if (snapshot->top_shape)
            torch_write_settings(writer);
        else
            torch_write_our_settings(writer);
        break;
    case FIELD_EXTERNAL_ANNOTATIONS:
        torch_write_rows(writer, ROW_ANNOTATION, snapshot->annotation_count);
        break;
    default:
        pickle_op(writer->pickle, 'N');
        break;
    }
}

/* Keys of PyTorch's newer files that tell of an overflowed ring; only where one did. */
static void torch_write_ring_facts(struct torch_writer *writer)
{
    uint32_t count = torch_trace_count(writer);
    for (int which = 0; which < 2; which++) {
        pickle_item(writer->pickle, 4u + (unsigned)which, 6, PICKLE_SETITEMS);
        torch_write_shared(writer, &writer->texts[which ? TORCH_TEXT_OVERFLOWED : TORCH_TEXT_MAX_ENTRIES]);
        pickle_op(writer->pickle, ']');
        for (uint32_t i = 0; i < count; i++) {
            uint64_t most = 0, lost = 0;
            for (size_t k = 0; k < writer->snapshot->device_count; k++) {
                const struct device *device = &writer->snapshot->devices[k];
                if (torch_trace_of(writer, device->process, device->ordinal) == i) {
                    most = device->max_entries;
                    lost = device->lost_entries;
                }
            }
            pickle_item(writer->pickle, i, count, PICKLE_APPENDS);
            if (which)
                pickle_write_bool(writer->pickle, lost > 0);
            else
                pickle_write_unsigned(writer->pickle, most);
        }
        pickle_items_end(writer->pickle, count, PICKLE_APPENDS);
    }
}

static void torch_write_our_top(struct torch_writer *writer)
{
    static const enum field fields[] = {FIELD_SEGMENTS, FIELD_DEVICE_TRACES, FIELD_ALLOCATOR_SETTINGS,
                                        FIELD_EXTERNAL_ANNOTATIONS};
    bool lost = false;
    for (size_t i = 0; i < writer->snapshot->device_count; i++)
        lost |= writer->snapshot->devices[i].lost_entries > 0;
    unsigned count = lost ? 6 : 4;
    pickle_op(writer->pickle, '}');
    for (unsigned i = 0; i < 4; i++) {
        pickle_item(writer->pickle, i, count, PICKLE_SETITEMS);
        torch_write_shared(writer, &writer->fields[fields[i]]);
        torch_write_top_field(writer, fields[i]);
    }
    if (lost)
        torch_write_ring_facts(writer);
    pickle_items_end(writer->pickle, count, PICKLE_SETITEMS);
}

static void torch_write_top(struct torch_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    const struct shape *shape = &snapshot->shapes[snapshot->top_shape];
    pickle_op(writer->pickle, '}');
    for (uint32_t i = 0; i < shape->count && !writer->status; i++) {
        value odd;
        pickle_item(writer->pickle, i, shape->count, PICKLE_SETITEMS);
        torch_write_key(writer, shape->keys[i]);
        if (snapshot_get_odd(snapshot, ROW_TOP, 0, (uint16_t)i, &odd))
            torch_write_value(writer, odd);
        else
            torch_write_top_field(writer, shape->keys[i]);
    }
    pickle_items_end(writer->pickle, shape->count, PICKLE_SETITEMS);
}

int torch_write(const struct snapshot *snapshot, struct output *output, struct error *err)
{
    struct torch_writer writer = {.snapshot = snapshot, .err = err};
    writer.status = torch_writer_open(&writer, output);
    if (!writer.status) {
        if (snapshot->has_raw)
            torch_write_value(&writer, snapshot->raw);
        else if (snapshot->is_bare_list)
            torch_write_rows(&writer, ROW_SEGMENT, snapshot->end.segment_count);
        else if (snapshot->top_shape)
            torch_write_top(&writer);
        else
            torch_write_our_top(&writer);
        pickle_end(writer.pickle);
    }
    torch_writer_close(&writer);
    return writer.status;
}
