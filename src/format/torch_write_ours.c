/*
 * Rows that did not come from a pickle, in the layout and key order of PyTorch 2.11.  Uses base and snapshot.
 */
#include "format/torch_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A dict of known keys, written one after the other between begin and end. */
struct torch_pairs {
    struct torch_writer *writer;
    uint32_t at, count;
};

static void torch_key(struct torch_pairs *pairs, enum field field)
{
    pickle_item(pairs->writer->pickle, pairs->at++, pairs->count, PICKLE_SETITEMS);
    torch_write_shared(pairs->writer, &pairs->writer->fields[field]);
}

static void torch_pairs_end(struct torch_pairs *pairs)
{
    pickle_items_end(pairs->writer->pickle, pairs->count, PICKLE_SETITEMS);
}

void torch_write_pool(struct torch_writer *writer, uint32_t pool)
{
    bool known = pool < writer->snapshot->pool_count;
    for (int i = 0; i < 2; i++)
        pickle_write_int(writer->pickle, known ? writer->snapshot->pools[pool].id[i] : 0);
    pickle_op(writer->pickle, 0x86);
}

/* The one list that stands for "no frames". */
static void torch_write_empty_frames(struct torch_writer *writer)
{
    if (writer->empty_frames) {
        pickle_write_get(writer->pickle, writer->empty_frames - 1);
        return;
    }
    pickle_op(writer->pickle, ']');
    writer->empty_frames = pickle_memoize(writer->pickle) + 1;
}

static void torch_write_frames(struct torch_writer *writer, uint32_t context)
{
    if (context == CONTEXT_NONE)
        torch_write_empty_frames(writer);
    else
        torch_write_row(writer, ROW_CONTEXT, context);
}

uint32_t torch_trace_of(const struct torch_writer *writer, uint16_t process, uint16_t ordinal)
{
    const struct snapshot *snapshot = writer->snapshot;
    if (snapshot->process_count < 2)
        return ordinal;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == process && snapshot->devices[i].ordinal == ordinal)
            return (uint32_t)i;
    return 0;
}

/* ---- entries ---- */

/* What one entry is in PyTorch's words.  Where nothing caches, a segment is its block, too; a free that failed brings
 * back what it had taken. */
unsigned torch_our_actions(const struct torch_writer *writer, uint64_t row, enum action actions[3])
{
    const struct entries *entries = &writer->snapshot->entries;
    enum action action = (enum action)entries->action[row];
    const struct process *process = &writer->snapshot->processes[entries->process ? entries->process[row] : 0];
    actions[0] = action;
    if (entries->shape[row] != SHAPE_OURS)
        return 1;
    if (action == ACTION_OTHER || (action == ACTION_OOM && (entries->flags[row] & ENTRY_OUTSIDE)))
        return 0;
    if (entries->flags[row] & ENTRY_FAILED)
        actions[0] = action = action == ACTION_SEGMENT_FREE ? ACTION_SEGMENT_ALLOC
                              : action == ACTION_SEGMENT_UNMAP ? ACTION_SEGMENT_MAP
                              : action == ACTION_FREE_COMPLETED ? ACTION_ALLOC : action;
    if (!process->implied_blocks)
        return 1;
    if (action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP) {
        actions[1] = ACTION_ALLOC;
        return 2;
    }
    if (action == ACTION_SEGMENT_FREE || action == ACTION_SEGMENT_UNMAP) {
        actions[0] = ACTION_FREE_REQUESTED;
        actions[1] = ACTION_FREE_COMPLETED;
        actions[2] = action;
        return 3;
    }
    return 1;
}

void torch_write_our_entry(struct torch_writer *writer, uint64_t row, enum action action)
{
    const struct entries *entries = &writer->snapshot->entries;
    bool has_frames = entries->context[row] != CONTEXT_NONE;
    struct torch_pairs pairs = {.writer = writer, .count = has_frames ? 8 : 7};
    uint32_t compile_context = entries->compile_context ? entries->compile_context[row] : STRING_NONE;
    uint32_t metadata = entries->user_metadata ? entries->user_metadata[row] : STRING_NONE;
    torch_key(&pairs, FIELD_ACTION);
    torch_write_shared(writer, &writer->actions[action]);
    torch_key(&pairs, action == ACTION_OOM ? FIELD_DEVICE_FREE : FIELD_ADDR);
    pickle_write_unsigned(writer->pickle, entries->address[row]);
    torch_key(&pairs, FIELD_SIZE);
    pickle_write_unsigned(writer->pickle, entries->size[row]);
    torch_key(&pairs, FIELD_STREAM);
    pickle_write_int(writer->pickle, writer->snapshot->streams[entries->stream[row]]);
    torch_key(&pairs, FIELD_TIME_US);
    pickle_write_int(writer->pickle, entries->time[row]);
    torch_key(&pairs, FIELD_COMPILE_CONTEXT);
    if (compile_context == STRING_NONE)
        torch_write_shared(writer, &writer->texts[TORCH_TEXT_NOT_AVAILABLE]);
    else
        torch_write_object(writer, compile_context);
    torch_key(&pairs, FIELD_USER_METADATA);
    if (metadata == STRING_NONE)
        torch_write_shared(writer, &writer->texts[TORCH_TEXT_EMPTY]);
    else
        torch_write_object(writer, metadata);
    if (has_frames) {
        torch_key(&pairs, FIELD_FRAMES);
        torch_write_frames(writer, entries->context[row]);
    }
    torch_pairs_end(&pairs);
}

/* ---- segments and blocks ---- */

static void torch_write_our_segment(struct torch_writer *writer, const struct segment *segment)
{
    struct torch_pairs pairs = {.writer = writer, .count = 12};
    bool has_frames = segment->context != CONTEXT_NONE;
    torch_key(&pairs, FIELD_DEVICE);
    pickle_write_unsigned(writer->pickle, torch_trace_of(writer, segment->process, segment->device));
    torch_key(&pairs, FIELD_ADDRESS);
    pickle_write_unsigned(writer->pickle, segment->address);
    torch_key(&pairs, FIELD_TOTAL_SIZE);
    pickle_write_unsigned(writer->pickle, segment->total_size);
    torch_key(&pairs, FIELD_ALLOCATED_SIZE);
    pickle_write_unsigned(writer->pickle, segment->allocated_size);
    torch_key(&pairs, FIELD_ACTIVE_SIZE);
    pickle_write_unsigned(writer->pickle, segment->active_size);
    torch_key(&pairs, FIELD_REQUESTED_SIZE);
    pickle_write_unsigned(writer->pickle, segment->requested_size);
    torch_key(&pairs, FIELD_STREAM);
    pickle_write_int(writer->pickle, segment->stream);
    torch_key(&pairs, FIELD_SEGMENT_TYPE);
    torch_write_shared(writer, &writer->texts[segment->is_large ? TORCH_TEXT_LARGE : TORCH_TEXT_SMALL]);
    torch_key(&pairs, FIELD_SEGMENT_POOL_ID);
    torch_write_pool(writer, segment->pool);
    torch_key(&pairs, FIELD_IS_EXPANDABLE);
    pickle_write_bool(writer->pickle, segment->is_expandable);
    if (!has_frames) {
        torch_key(&pairs, FIELD_FRAMES);
        torch_write_empty_frames(writer);
    }
    torch_key(&pairs, FIELD_BLOCKS);
    torch_write_blocks(writer, segment);
    if (has_frames) {
        torch_key(&pairs, FIELD_FRAMES);
        torch_write_frames(writer, segment->context);
    }
    torch_pairs_end(&pairs);
}

static void torch_write_our_block(struct torch_writer *writer, const struct block *block)
{
    struct torch_pairs pairs = {.writer = writer, .count = 5};
    torch_key(&pairs, FIELD_ADDRESS);
    pickle_write_unsigned(writer->pickle, block->address);
    torch_key(&pairs, FIELD_SIZE);
    pickle_write_unsigned(writer->pickle, block->size);
    torch_key(&pairs, FIELD_REQUESTED_SIZE);
    pickle_write_unsigned(writer->pickle, block->requested);
    torch_key(&pairs, FIELD_STATE);
    torch_write_shared(writer, &writer->states[block->state < BLOCK_STATE_OTHER ? block->state : BLOCK_INACTIVE]);
    torch_key(&pairs, FIELD_FRAMES);
    torch_write_frames(writer, block->context);
    torch_pairs_end(&pairs);
}

/* ---- frames ---- */

/* A program counter that was never looked up is named by its module, as debuggers do. */
static void torch_write_raw_frame(struct torch_writer *writer, const struct frame *frame, bool is_name)
{
    const struct snapshot *snapshot = writer->snapshot;
    const char *path = frame->module < snapshot->module_count
                           ? snapshot_content_text(snapshot, snapshot->modules[frame->module].path, NULL) : "";
    const char *slash = strrchr(path, '/');
    char text[512];
    int length = is_name ? snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, slash ? slash + 1 : path, frame->offset)
                         : snprintf(text, sizeof(text), "%s", *path ? path : "??");
    if (length >= (int)sizeof(text))
        length = (int)sizeof(text) - 1;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--; /* not in the middle of a character */
    pickle_write_string(writer->pickle, text, (size_t)length);
}

static void torch_write_our_frame(struct torch_writer *writer, const struct frame *frame)
{
    struct torch_pairs pairs = {.writer = writer, .count = 3};
    torch_key(&pairs, FIELD_NAME);
    if (frame->name == STRING_NONE)
        torch_write_raw_frame(writer, frame, true);
    else
        torch_write_object(writer, frame->name);
    torch_key(&pairs, FIELD_FILENAME);
    if (frame->filename == STRING_NONE)
        torch_write_raw_frame(writer, frame, false);
    else
        torch_write_object(writer, frame->filename);
    torch_key(&pairs, FIELD_LINE);
    pickle_write_int(writer->pickle, frame->line);
    torch_pairs_end(&pairs);
}

static void torch_write_our_annotation(struct torch_writer *writer, const struct annotation *annotation)
{
    struct torch_pairs pairs = {.writer = writer, .count = 4};
    torch_key(&pairs, FIELD_STAGE);
    torch_write_shared(writer, &writer->texts[annotation->stage == 1 ? TORCH_TEXT_END : TORCH_TEXT_START]);
    torch_key(&pairs, FIELD_NAME);
    if (annotation->name == STRING_NONE)
        torch_write_shared(writer, &writer->texts[TORCH_TEXT_EMPTY]);
    else
        torch_write_object(writer, annotation->name);
    torch_key(&pairs, FIELD_DEVICE);
    pickle_write_unsigned(writer->pickle, torch_trace_of(writer, annotation->process, annotation->device));
    torch_key(&pairs, FIELD_TIME_US);
    pickle_write_int(writer->pickle, annotation->time);
    torch_pairs_end(&pairs);
}

void torch_write_our_row(struct torch_writer *writer, enum row_kind kind, uint64_t row)
{
    const struct snapshot *snapshot = writer->snapshot;
    switch (kind) {
    case ROW_ENTRY:
        torch_write_our_entry(writer, row, (enum action)snapshot->entries.action[row]);
        break;
    case ROW_SEGMENT:
        torch_write_our_segment(writer, &snapshot->end.segments[row]);
        break;
    case ROW_BLOCK:
        torch_write_our_block(writer, &snapshot->end.blocks[row]);
        break;
    case ROW_FRAME:
        torch_write_our_frame(writer, &snapshot->frames[row]);
        break;
    default:
        torch_write_our_annotation(writer, &snapshot->annotations[row]);
        break;
    }
}

/* ---- settings ---- */

enum setting_default { DEFAULT_TEXT, DEFAULT_UNLIMITED, DEFAULT_FLOAT, DEFAULT_FALSE, DEFAULT_ONE, DEFAULT_DIVISIONS };

static const struct {
    const char *key;
    enum setting_default content;
} settings_of_2_11[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", DEFAULT_TEXT},
    {"max_split_size", DEFAULT_UNLIMITED},
    {"garbage_collection_threshold", DEFAULT_FLOAT},
    {"expandable_segments", DEFAULT_FALSE},
    {"pinned_num_register_threads", DEFAULT_ONE},
    {"release_lock_on_cudamalloc", DEFAULT_FALSE},
    {"pinned_use_cuda_host_register", DEFAULT_FALSE},
    {"graph_capture_record_stream_reuse", DEFAULT_FALSE},
    {"roundup_power2_divisions", DEFAULT_DIVISIONS},
};
enum { SETTINGS_2_11 = sizeof(settings_of_2_11) / sizeof(settings_of_2_11[0]) };

static void torch_write_plain(struct torch_writer *writer, const char *text)
{
    pickle_write_string(writer->pickle, text, strlen(text));
    pickle_memoize(writer->pickle);
}

static void torch_write_default(struct torch_writer *writer, enum setting_default content)
{
    switch (content) {
    case DEFAULT_TEXT:
        torch_write_shared(writer, &writer->texts[TORCH_TEXT_EMPTY]);
        break;
    case DEFAULT_UNLIMITED:
        pickle_write_int(writer->pickle, -1);
        break;
    case DEFAULT_FLOAT:
        pickle_write_float(writer->pickle, 0);
        break;
    case DEFAULT_FALSE:
        pickle_write_bool(writer->pickle, false);
        break;
    case DEFAULT_ONE:
        pickle_write_int(writer->pickle, 1);
        break;
    case DEFAULT_DIVISIONS:
        pickle_op(writer->pickle, '}');
        pickle_op(writer->pickle, '(');
        for (unsigned i = 0; i < 16; i++) {
            char text[8];
            snprintf(text, sizeof(text), "%u", 1u << i);
            torch_write_plain(writer, text);
            pickle_write_int(writer->pickle, 0);
        }
        pickle_op(writer->pickle, PICKLE_SETITEMS);
        break;
    }
}

static bool torch_is_known_setting(const struct torch_writer *writer, const struct setting *setting)
{
    const char *key = snapshot_content_text(writer->snapshot, setting->key, NULL);
    for (size_t i = 0; i < SETTINGS_2_11; i++)
        if (strcmp(settings_of_2_11[i].key, key) == 0)
            return true;
    return false;
}

void torch_write_our_settings(struct torch_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    uint64_t count = SETTINGS_2_11, at = 0;
    for (size_t i = 0; i < snapshot->setting_count; i++)
        count += !torch_is_known_setting(writer, &snapshot->settings[i]);
    pickle_op(writer->pickle, '}');
    for (size_t i = 0; i < SETTINGS_2_11 && !writer->status; i++) {
        value content;
        pickle_item(writer->pickle, at++, count, PICKLE_SETITEMS);
        torch_write_plain(writer, settings_of_2_11[i].key);
        if (snapshot_get_setting(snapshot, settings_of_2_11[i].key, &content))
            torch_write_value(writer, content);
        else
            torch_write_default(writer, settings_of_2_11[i].content);
    }
    for (size_t i = 0; i < snapshot->setting_count && !writer->status; i++) {
        if (torch_is_known_setting(writer, &snapshot->settings[i]))
            continue;
        pickle_item(writer->pickle, at++, count, PICKLE_SETITEMS);
        torch_write_content(writer, snapshot->settings[i].key);
        torch_write_value(writer, snapshot->settings[i].content);
    }
    pickle_items_end(writer->pickle, count, PICKLE_SETITEMS);
}
