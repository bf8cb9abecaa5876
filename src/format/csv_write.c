/* The trace, the segments, the blocks or the stacks as CSV.  Uses src/base, src/snapshot. */
#include "format/csv_write.h"

#include "base/text.h"
#include "format/row_view.h"

#include <inttypes.h>
#include <string.h>

struct csv {
    struct output *output;
    const struct snapshot *snapshot;
    struct text text;
    bool first; /* no cell in this row yet */
};

static void csv_next(struct csv *csv)
{
    if (!csv->first)
        output_char(csv->output, ',');
    csv->first = false;
}

static void csv_end(struct csv *csv)
{
    output_text(csv->output, "\r\n");
    csv->first = true;
}

/* A cell of text: quoted where it has to be, and made harmless where a spreadsheet would run it. */
static void csv_text(struct csv *csv, const char *bytes, size_t length)
{
    csv_next(csv);
    bool runs = length && strchr("=+-@\t\r\n|%", bytes[0]) && bytes[0];
    bool quote = runs;
    for (size_t i = 0; !quote && i < length; i++)
        quote = bytes[i] == ',' || bytes[i] == '"' || bytes[i] == '\n' || bytes[i] == '\r';
    if (!quote) {
        output_write(csv->output, bytes, length);
        return;
    }
    output_char(csv->output, '"');
    if (runs)
        output_char(csv->output, '\'');
    for (size_t start = 0, i = 0; i <= length; i++)
        if (i == length || bytes[i] == '"') {
            output_write(csv->output, bytes + start, i - start);
            if (i < length)
                output_text(csv->output, "\"\"");
            start = i + 1;
        }
    output_char(csv->output, '"');
}

static void csv_word(struct csv *csv, const char *word)
{
    csv_text(csv, word, strlen(word));
}

static void csv_signed(struct csv *csv, int64_t number)
{
    csv_next(csv);
    output_printf(csv->output, "%" PRId64, number);
}

static void csv_unsigned(struct csv *csv, uint64_t number)
{
    csv_next(csv);
    output_printf(csv->output, "%" PRIu64, number);
}

/* Spreadsheets and doubles lose the last digits of addresses: they are text. */
static void csv_address(struct csv *csv, uint64_t address)
{
    csv_next(csv);
    output_printf(csv->output, "0x%" PRIx64, address);
}

static void csv_object(struct csv *csv, uint32_t object)
{
    size_t length;
    const char *text = snapshot_object_text(csv->snapshot, object, &length);
    csv_text(csv, text, length);
}

static void csv_pool(struct csv *csv, uint32_t pool)
{
    csv_next(csv);
    if (pool != NONE32)
        output_printf(csv->output, "%" PRId64 ":%" PRId64, csv->snapshot->pools[pool].id[0],
                      csv->snapshot->pools[pool].id[1]);
}

static void csv_frame(struct csv *csv, uint32_t number)
{
    const struct frame *frame = &csv->snapshot->frames[number];
    struct text *text = &csv->text;
    size_t length;
    const char *bytes = snapshot_object_text(csv->snapshot, frame->name, &length);
    if (text->length)
        text_char(text, ';');
    if (frame->name == STRING_NONE) {
        uint32_t path = frame->module == NONE32 ? STRING_NONE : csv->snapshot->modules[frame->module].path;
        bytes = snapshot_content_text(csv->snapshot, path, &length);
        text_append(text, bytes, length);
        text_printf(text, "+0x%" PRIx64, frame->offset);
        return;
    }
    text_append(text, bytes, length);
    bytes = snapshot_object_text(csv->snapshot, frame->filename, &length);
    if (!length)
        return;
    text_char(text, '@');
    text_append(text, bytes, length);
    text_printf(text, ":%" PRId64, frame->line);
}

/* The number of the stack and its frames, innermost first. */
static void csv_stack(struct csv *csv, uint32_t context)
{
    text_clear(&csv->text);
    if (context == CONTEXT_NONE) {
        csv_next(csv);
        csv_next(csv);
        return;
    }
    uint32_t stack = snapshot_context_stack(csv->snapshot, context);
    csv_unsigned(csv, stack);
    for (; stack != STACK_EMPTY; stack = csv->snapshot->stacks[stack].parent)
        csv_frame(csv, csv->snapshot->stacks[stack].frame);
    csv_text(csv, text_string(&csv->text), csv->text.length);
}

/* The column's number if the source said it, else an empty cell. */
static bool csv_says(struct csv *csv, size_t entry, enum field field)
{
    value odd;
    return row_view(csv->snapshot, ROW_ENTRY, entry, csv->snapshot->entries.shape[entry], field, &odd) == ROW_COLUMN;
}

static void csv_action(struct csv *csv, size_t i)
{
    const struct snapshot *s = csv->snapshot;
    value odd;
    bool other = s->entries.action[i] == ACTION_OTHER &&
                 row_view(s, ROW_ENTRY, i, s->entries.shape[i], FIELD_ACTION, &odd) == ROW_ODD &&
                 value_kind(odd) == VALUE_STRING;
    if (other)
        csv_object(csv, (uint32_t)value_payload(odd));
    else
        csv_word(csv, action_name((enum action)s->entries.action[i]));
}

static void csv_entry(struct csv *csv, size_t i)
{
    const struct snapshot *s = csv->snapshot;
    const struct entries *entries = &s->entries;
    bool oom = entries->action[i] == ACTION_OOM;
    csv_unsigned(csv, s->first_entry + i + 1);
    csv_unsigned(csv, entries->process ? entries->process[i] : 0);
    csv_unsigned(csv, entries->device[i]);
    csv_action(csv, i);
    if (!(entries->flags[i] & ENTRY_NO_TIME) && csv_says(csv, i, FIELD_TIME_US))
        csv_signed(csv, entries->time[i]);
    else
        csv_next(csv);
    if (oom)
        csv_next(csv);
    else
        csv_address(csv, entries->address[i]);
    csv_unsigned(csv, entries->size[i]);
    if (oom)
        csv_unsigned(csv, entries->address[i]);
    else
        csv_next(csv);
    if (entries->flags[i] & ENTRY_STREAM_UNKNOWN)
        csv_next(csv);
    else
        csv_signed(csv, s->streams[entries->stream[i]]);
    csv_pool(csv, entries->pool ? entries->pool[i] : NONE32);
    csv_object(csv, entries->compile_context ? entries->compile_context[i] : STRING_NONE);
    csv_object(csv, entries->user_metadata ? entries->user_metadata[i] : STRING_NONE);
    csv_stack(csv, entries->context[i]);
    csv_end(csv);
}

static void csv_entries(struct csv *csv)
{
    output_text(csv->output, "entry,process,device,action,time_us,address,size,device_free,stream,pool,compile_context,"
                             "user_metadata,stack,frames\r\n");
    for (size_t i = 0; i < csv->snapshot->entries.count && !output_failed(csv->output); i++)
        csv_entry(csv, i);
}

static void csv_segments(struct csv *csv)
{
    const struct state *state = &csv->snapshot->end;
    output_text(csv->output, "segment,process,device,address,total_size,allocated_size,active_size,requested_size,stream,"
                             "type,pool,is_expandable,stack,frames\r\n");
    for (size_t i = 0; i < state->segment_count && !output_failed(csv->output); i++) {
        const struct segment *segment = &state->segments[i];
        csv_unsigned(csv, i);
        csv_unsigned(csv, segment->process);
        csv_unsigned(csv, segment->device);
        csv_address(csv, segment->address);
        csv_unsigned(csv, segment->total_size);
        csv_unsigned(csv, segment->allocated_size);
        csv_unsigned(csv, segment->active_size);
        csv_unsigned(csv, segment->requested_size);
        csv_signed(csv, segment->stream);
        csv_word(csv, segment->is_large ? "large" : "small");
        csv_pool(csv, segment->pool);
        csv_word(csv, segment->is_expandable ? "true" : "false");
        csv_stack(csv, segment->context);
        csv_end(csv);
    }
}

static void csv_blocks(struct csv *csv)
{
    const struct state *state = &csv->snapshot->end;
    output_text(csv->output, "block,segment,address,size,requested_size,state,stack,frames\r\n");
    for (size_t i = 0; i < state->block_count && !output_failed(csv->output); i++) {
        const struct block *block = &state->blocks[i];
        csv_unsigned(csv, i);
        csv_unsigned(csv, block->segment);
        csv_address(csv, block->address);
        csv_unsigned(csv, block->size);
        if (block->flags & BLOCK_REQUESTED_UNKNOWN)
            csv_next(csv);
        else
            csv_unsigned(csv, block->requested);
        csv_word(csv, block_state_name((enum block_state)block->state));
        csv_stack(csv, block->context);
        csv_end(csv);
    }
}

int csv_write(const struct snapshot *snapshot, const char *view, struct output *output, struct error *err)
{
    struct csv csv = {.output = output, .snapshot = snapshot, .first = true};
    if (!view || strcmp(view, "entries") == 0)
        csv_entries(&csv);
    else if (strcmp(view, "segments") == 0)
        csv_segments(&csv);
    else if (strcmp(view, "blocks") == 0)
        csv_blocks(&csv);
    else
        return error_set(err, STATUS_USAGE, "csv has the views entries, segments and blocks, not '%s'", view);
    bool failed = text_failed(&csv.text);
    text_free(&csv.text);
    return failed ? error_no_memory(err) : STATUS_OK;
}
