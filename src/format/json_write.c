/* A snapshot as JSON.  Uses src/base, src/snapshot. */
#include "format/json_write.h"

#include "format/json_value.h"
#include "format/row_view.h"

#include <stdlib.h>
#include <string.h>

#define JSON_BUDGET 4000000u

/* Key and value of a field unless the source lacks it; an odd value goes out in the column's place. */
static bool json_field(struct json *json, enum row_kind kind, uint64_t row, uint16_t shape, enum field field)
{
    value odd = 0;
    enum row_says says = row_view(json->snapshot, kind, row, shape, field, &odd);
    if (says == ROW_ABSENT)
        return false;
    json_key(json, field_name(field));
    if (says == ROW_ODD)
        json_value(json, odd);
    return says == ROW_COLUMN;
}

/* The keys that we do not know. */
static void json_unknown(struct json *json, enum row_kind kind, uint64_t row, uint16_t shape)
{
    const struct snapshot *snapshot = json->snapshot;
    const struct shape *keys = &snapshot->shapes[shape];
    for (uint32_t slot = 0; slot < keys->count && slot <= UINT16_MAX; slot++) {
        value odd;
        size_t length;
        if (keys->keys[slot] < FIELD_COUNT || !snapshot_get_odd(snapshot, kind, row, (uint16_t)slot, &odd))
            continue;
        const char *key = snapshot_content_text(snapshot, keys->keys[slot] - FIELD_COUNT, &length);
        json_key_bytes(json, key, length);
        json_value(json, odd);
    }
}

static void json_pool(struct json *json, uint32_t pool)
{
    if (pool == NONE32) {
        json_null(json);
        return;
    }
    json_open(json, '[');
    json_signed(json, json->snapshot->pools[pool].id[0]);
    json_signed(json, json->snapshot->pools[pool].id[1]);
    json_close(json, ']');
}

/* `frames` is a number of `stacks`, null where no stack was taken. */
static void json_frames(struct json *json, enum row_kind kind, uint64_t row, uint16_t shape, uint32_t context)
{
    if (!json_field(json, kind, row, shape, FIELD_FRAMES))
        return;
    if (context == CONTEXT_NONE)
        json_null(json);
    else
        json_unsigned(json, snapshot_context_stack(json->snapshot, context));
}

static void json_flag_words(struct json *json, unsigned flags, const char *const *words, unsigned count)
{
    if (!flags)
        return;
    json_key(json, "flags");
    json_open(json, '[');
    for (unsigned i = 0; i < count; i++)
        if (flags >> i & 1)
            json_bytes(json, words[i], strlen(words[i]));
    json_close(json, ']');
}

static void json_frame_list(struct json *json)
{
    static const char *const words[] = {"native", "python", "inlined", "symbolized", "truncated"};
    const struct snapshot *s = json->snapshot;
    json_key(json, "frames");
    json_open(json, '[');
    for (size_t i = 0; i < s->frame_count && !output_failed(json->output); i++) {
        const struct frame *frame = &s->frames[i];
        json_open(json, '{');
        if (json_field(json, ROW_FRAME, i, frame->shape, FIELD_NAME))
            json_object(json, frame->name);
        if (json_field(json, ROW_FRAME, i, frame->shape, FIELD_FILENAME))
            json_object(json, frame->filename);
        if (json_field(json, ROW_FRAME, i, frame->shape, FIELD_LINE))
            json_signed(json, frame->line);
        if (frame->flags & FRAME_NATIVE) {
            json_key(json, "module");
            if (frame->module == NONE32)
                json_null(json);
            else
                json_unsigned(json, frame->module);
            json_key(json, "offset");
            json_unsigned(json, frame->offset);
        }
        json_flag_words(json, frame->flags, words, 5);
        json_unknown(json, ROW_FRAME, i, frame->shape);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* A tree: [frame, number of the caller's stack]; stack 0 is the empty one. */
static void json_stack_list(struct json *json)
{
    const struct snapshot *s = json->snapshot;
    json_key(json, "stacks");
    json_open(json, '[');
    json_null(json);
    for (size_t i = 1; i < s->stack_count && !output_failed(json->output); i++) {
        json_open(json, '[');
        json_unsigned(json, s->stacks[i].frame);
        json_unsigned(json, s->stacks[i].parent);
        json_close(json, ']');
    }
    json_close(json, ']');
}

static void json_word(struct json *json, const char *word)
{
    json_bytes(json, word, strlen(word));
}

static void json_block(struct json *json, size_t b)
{
    static const char *const words[] = {"requested_unknown", "before_recording"};
    const struct block *block = &json->snapshot->end.blocks[b];
    json_open(json, '{');
    if (json_field(json, ROW_BLOCK, b, block->shape, FIELD_ADDRESS))
        json_unsigned(json, block->address);
    if (json_field(json, ROW_BLOCK, b, block->shape, FIELD_SIZE))
        json_unsigned(json, block->size);
    if (json_field(json, ROW_BLOCK, b, block->shape, FIELD_REQUESTED_SIZE))
        json_unsigned(json, block->requested);
    if (json_field(json, ROW_BLOCK, b, block->shape, FIELD_STATE))
        json_word(json, block_state_name((enum block_state)block->state));
    json_frames(json, ROW_BLOCK, b, block->shape, block->context);
    json_flag_words(json, block->flags, words, 2);
    json_unknown(json, ROW_BLOCK, b, block->shape);
    json_close(json, '}');
}

static void json_segment_sizes(struct json *json, size_t i)
{
    const struct segment *segment = &json->snapshot->end.segments[i];
    const struct {
        enum field field;
        uint64_t number;
    } sizes[] = {{FIELD_ADDRESS, segment->address},
                 {FIELD_TOTAL_SIZE, segment->total_size},
                 {FIELD_ALLOCATED_SIZE, segment->allocated_size},
                 {FIELD_ACTIVE_SIZE, segment->active_size},
                 {FIELD_REQUESTED_SIZE, segment->requested_size}};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        if (json_field(json, ROW_SEGMENT, i, segment->shape, sizes[k].field))
            json_unsigned(json, sizes[k].number);
}

static void json_segment(struct json *json, size_t i)
{
    const struct segment *segment = &json->snapshot->end.segments[i];
    json_open(json, '{');
    if (json_field(json, ROW_SEGMENT, i, segment->shape, FIELD_DEVICE))
        json_unsigned(json, segment->device);
    json_segment_sizes(json, i);
    if (json_field(json, ROW_SEGMENT, i, segment->shape, FIELD_STREAM))
        json_signed(json, segment->stream);
    if (json_field(json, ROW_SEGMENT, i, segment->shape, FIELD_SEGMENT_TYPE))
        json_word(json, segment->is_large ? "large" : "small");
    if (json_field(json, ROW_SEGMENT, i, segment->shape, FIELD_SEGMENT_POOL_ID))
        json_pool(json, segment->pool);
    if (json_field(json, ROW_SEGMENT, i, segment->shape, FIELD_IS_EXPANDABLE))
        json_bool(json, segment->is_expandable);
    json_frames(json, ROW_SEGMENT, i, segment->shape, segment->context);
    if (json->snapshot->source == SOURCE_RECORDED) {
        json_key(json, "process");
        json_unsigned(json, segment->process);
        json_key(json, "kind");
        json_word(json, memory_kind_name((enum memory_kind)segment->kind));
        if (segment->is_outside) {
            json_key(json, "outside");
            json_bool(json, true);
        }
    }
    json_unknown(json, ROW_SEGMENT, i, segment->shape);
    json_key(json, "blocks");
    json_open(json, '[');
    for (uint32_t b = 0; b < segment->block_count; b++)
        json_block(json, segment->first_block + b);
    json_close(json, ']');
    json_close(json, '}');
}

static void json_segments(struct json *json)
{
    json_key(json, "segments");
    json_open(json, '[');
    for (size_t i = 0; i < json->snapshot->end.segment_count && !output_failed(json->output); i++)
        json_segment(json, i);
    json_close(json, ']');
}

static void json_entry_text(struct json *json, size_t i, uint16_t shape, enum field field, const uint32_t *objects)
{
    if (objects && (objects[i] != STRING_NONE || shape != SHAPE_OURS) && json_field(json, ROW_ENTRY, i, shape, field))
        json_object(json, objects[i]);
}

/* What only recorded entries know. */
static void json_entry_more(struct json *json, size_t i)
{
    static const char *const words[] = {"requested_unknown", "stream_unknown", "no_time", "failed", "bad", "outside"};
    const struct entries *entries = &json->snapshot->entries;
    if (entries->process) {
        json_key(json, "process");
        json_unsigned(json, entries->process[i]);
    }
    if (entries->thread) {
        json_key(json, "thread");
        json_unsigned(json, entries->thread[i]);
    }
    if (entries->call && entries->call[i]) {
        json_key(json, "call");
        json_content(json, json->snapshot->calls[entries->call[i]]);
    }
    if (entries->kind) {
        json_key(json, "kind");
        json_word(json, memory_kind_name((enum memory_kind)entries->kind[i]));
    }
    json_flag_words(json, entries->flags[i], words, 6);
}

static void json_entry(struct json *json, size_t i)
{
    const struct snapshot *s = json->snapshot;
    const struct entries *entries = &s->entries;
    uint16_t shape = entries->shape[i];
    bool oom = entries->action[i] == ACTION_OOM;
    json_open(json, '{');
    json_key(json, "entry");
    json_unsigned(json, s->first_entry + i + 1);
    if (json_field(json, ROW_ENTRY, i, shape, FIELD_ACTION))
        json_word(json, action_name((enum action)entries->action[i]));
    if ((shape != SHAPE_OURS || !oom) && json_field(json, ROW_ENTRY, i, shape, FIELD_ADDR))
        json_unsigned(json, entries->address[i]);
    if ((shape != SHAPE_OURS || oom) && json_field(json, ROW_ENTRY, i, shape, FIELD_DEVICE_FREE))
        json_unsigned(json, entries->address[i]);
    if (json_field(json, ROW_ENTRY, i, shape, FIELD_SIZE))
        json_unsigned(json, entries->size[i]);
    if (json_field(json, ROW_ENTRY, i, shape, FIELD_STREAM))
        json_signed(json, s->streams[entries->stream[i]]);
    if (!(entries->flags[i] & ENTRY_NO_TIME) && json_field(json, ROW_ENTRY, i, shape, FIELD_TIME_US))
        json_signed(json, entries->time[i]);
    json_frames(json, ROW_ENTRY, i, shape, entries->context[i]);
    if (entries->pool && json_field(json, ROW_ENTRY, i, shape, FIELD_POOL_ID))
        json_pool(json, entries->pool[i]);
    json_entry_text(json, i, shape, FIELD_COMPILE_CONTEXT, entries->compile_context);
    json_entry_text(json, i, shape, FIELD_USER_METADATA, entries->user_metadata);
    json_entry_more(json, i);
    json_unknown(json, ROW_ENTRY, i, shape);
    json_close(json, '}');
}

/* One list a device, each in the order of the file. */
static int json_traces(struct json *json)
{
    const struct entries *entries = &json->snapshot->entries;
    size_t lists = json->snapshot->trace_count;
    for (size_t i = 0; i < entries->count; i++)
        lists = entries->device[i] >= lists ? entries->device[i] + 1u : lists;
    size_t *start = calloc(lists + 2, sizeof(*start));
    uint32_t *order = malloc((entries->count ? entries->count : 1) * sizeof(*order));
    if (!start || !order) {
        free(start);
        free(order);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < entries->count; i++)
        start[entries->device[i] + 2]++;
    for (size_t list = 2; list < lists + 2; list++)
        start[list] += start[list - 1];
    for (size_t i = 0; i < entries->count; i++)
        order[start[entries->device[i] + 1]++] = (uint32_t)i;
    json_key(json, "device_traces");
    json_open(json, '[');
    for (size_t list = 0; list < lists && !output_failed(json->output); list++) {
        json_open(json, '[');
        for (size_t i = start[list]; i < start[list + 1] && !output_failed(json->output); i++)
            json_entry(json, order[i]);
        json_close(json, ']');
    }
    json_close(json, ']');
    free(start);
    free(order);
    return STATUS_OK;
}

static void json_settings(struct json *json)
{
    const struct snapshot *s = json->snapshot;
    json_key(json, "allocator_settings");
    json_open(json, '{');
    for (size_t i = 0; i < s->setting_count; i++) {
        size_t length;
        const char *key = snapshot_content_text(s, s->settings[i].key, &length);
        json_key_bytes(json, key, length);
        json_value(json, s->settings[i].content);
    }
    json_close(json, '}');
}

static void json_annotations(struct json *json)
{
    static const char *const stages[] = {"START", "END", "MARK", "OTHER"};
    const struct snapshot *s = json->snapshot;
    json_key(json, "external_annotations");
    json_open(json, '[');
    for (size_t i = 0; i < s->annotation_count; i++) {
        const struct annotation *note = &s->annotations[i];
        json_open(json, '{');
        if (json_field(json, ROW_ANNOTATION, i, note->shape, FIELD_STAGE))
            json_word(json, stages[note->stage]);
        if (json_field(json, ROW_ANNOTATION, i, note->shape, FIELD_NAME))
            json_object(json, note->name);
        if (json_field(json, ROW_ANNOTATION, i, note->shape, FIELD_DEVICE))
            json_unsigned(json, note->device);
        if (json_field(json, ROW_ANNOTATION, i, note->shape, FIELD_TIME_US))
            json_signed(json, note->time);
        json_unknown(json, ROW_ANNOTATION, i, note->shape);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_process(struct json *json, const struct process *process)
{
    json_open(json, '{');
    json_key(json, "pid");
    json_signed(json, process->pid);
    json_key(json, "parent");
    json_signed(json, process->parent);
    json_key(json, "program");
    json_content(json, process->program);
    json_key(json, "host");
    json_content(json, process->host);
    json_key(json, "arguments");
    json_content(json, process->arguments);
    json_key(json, "boot_id");
    json_content(json, process->boot_id);
    json_key(json, "driver");
    json_content(json, process->driver);
    json_key(json, "rank");
    json_signed(json, process->rank);
    json_key(json, "start_time_us");
    json_signed(json, process->start_time);
    json_key(json, "end_time_us");
    json_signed(json, process->end_time);
    json_key(json, "exit_status");
    json_signed(json, process->exit_status);
    json_key(json, "implied_blocks");
    json_bool(json, process->implied_blocks);
    json_key(json, "incomplete");
    json_bool(json, process->incomplete);
    json_key(json, "lost_stacks");
    json_unsigned(json, process->lost_stacks);
    json_key(json, "lost_state");
    json_unsigned(json, process->lost_state);
    json_key(json, "unrecorded");
    json_unsigned(json, process->unrecorded);
    json_key(json, "clock_realtime_us");
    json_signed(json, process->clock_realtime);
    json_key(json, "clock_monotonic_us");
    json_signed(json, process->clock_monotonic);
    json_close(json, '}');
}

static void json_statistics(struct json *json, const struct device *device)
{
    json_key(json, "stats_exact");
    json_bool(json, device->stats_exact);
    json_key(json, "stats");
    json_open(json, '{');
    for (size_t i = 0; i < MEMORY_STATS_KEYS; i++) {
        const struct memory_stats_key *key = &memory_stats_keys()[i];
        json_key(json, key->name);
        json_signed(json, memory_stats_value(&device->stats, key));
    }
    json_close(json, '}');
}

static void json_hex(struct json *json, const uint8_t *bytes, size_t length)
{
    char text[65] = "";
    for (size_t i = 0; i < length && i < 32; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    json_word(json, text);
}

static void json_device(struct json *json, const struct device *device)
{
    json_open(json, '{');
    json_key(json, "process");
    json_unsigned(json, device->process);
    json_key(json, "device");
    json_unsigned(json, device->ordinal);
    json_key(json, "name");
    json_content(json, device->name);
    if (device->has_uuid) {
        json_key(json, "uuid");
        json_hex(json, device->uuid, sizeof(device->uuid));
    }
    json_key(json, "total");
    json_unsigned(json, device->total);
    json_key(json, "free_at_end");
    json_unsigned(json, device->free_at_end);
    if (device->has_sample) {
        json_key(json, "known_when_free_was_seen");
        json_unsigned(json, device->known_bytes);
        json_key(json, "held_by_driver_pools");
        json_unsigned(json, device->pool_bytes);
    }
    json_key(json, "trace_alloc_max_entries");
    json_unsigned(json, device->max_entries);
    json_key(json, "lost_entries");
    json_unsigned(json, device->lost_entries);
    if (device->has_stats)
        json_statistics(json, device);
    json_close(json, '}');
}

/* Facts beyond PyTorch's keys. */
static void json_facts(struct json *json)
{
    static const char *const sources[] = {"recorded", "torch", "rmm"};
    const struct snapshot *s = json->snapshot;
    json_key(json, "cudamem");
    json_open(json, '{');
    json_key(json, "version");
    json_unsigned(json, 1);
    json_key(json, "source");
    json_word(json, sources[s->source]);
    json_key(json, "processes");
    json_open(json, '[');
    for (size_t i = 0; i < s->process_count; i++)
        json_process(json, &s->processes[i]);
    json_close(json, ']');
    json_key(json, "devices");
    json_open(json, '[');
    for (size_t i = 0; i < s->device_count; i++)
        json_device(json, &s->devices[i]);
    json_close(json, ']');
    json_key(json, "modules");
    json_open(json, '[');
    for (size_t i = 0; i < s->module_count; i++) {
        json_open(json, '{');
        json_key(json, "path");
        json_content(json, s->modules[i].path);
        json_key(json, "build_id");
        json_hex(json, s->modules[i].build_id, s->modules[i].build_id_length);
        json_key(json, "load_address");
        json_unsigned(json, s->modules[i].load_address);
        json_key(json, "size");
        json_unsigned(json, s->modules[i].size);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

int json_write(const struct snapshot *snapshot, struct output *output, struct error *err)
{
    struct json json = {.output = output, .snapshot = snapshot, .budget = JSON_BUDGET};
    json.budget += snapshot->odd_count + snapshot->setting_count;
    json_open(&json, '{');
    json_facts(&json);
    json_segments(&json);
    int status = json_traces(&json);
    json_settings(&json);
    json_annotations(&json);
    json_unknown(&json, ROW_TOP, 0, snapshot->top_shape);
    json_frame_list(&json);
    json_stack_list(&json);
    json_close(&json, '}');
    output_char(output, '\n');
    if (status || text_failed(&json.text))
        status = error_no_memory(err);
    else if (json.too_shared)
        status = error_set(err, STATUS_UNSUPPORTED,
                           "what the file has beyond PyTorch's keys refers to itself too often for JSON");
    text_free(&json.text);
    return status;
}
