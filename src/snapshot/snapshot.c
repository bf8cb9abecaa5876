/* The snapshot in memory: making, filling, freeing.  Uses src/base. */
#include "snapshot/snapshot.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void entries_free(struct entries *entries); /* entries.c */

/* Append to one of the snapshot's arrays: gives the new index, or NONE32. */
#define SNAPSHOT_APPEND(array, count, capacity, item) \
    (((count) >= NONE32 - 1 || array_reserve(&(array), &(capacity), (count) + 1, sizeof(*(array)))) \
         ? NONE32 \
         : ((array)[(count)] = (item), (uint32_t)(count)++))

static bool snapshot_fill_roots(struct snapshot *snapshot)
{
    struct stack_node root = {.parent = NONE32, .frame = NONE32, .depth = 0};
    struct process process = {
        .program = STRING_NONE, .host = STRING_NONE, .arguments = STRING_NONE, .boot_id = STRING_NONE,
        .driver = STRING_NONE,  .rank = -1,          .exit_status = -1,
    };
    struct shape ours = {0};
    return SNAPSHOT_APPEND(snapshot->stacks, snapshot->stack_count, snapshot->stack_capacity, root) == 0 &&
           snapshot_add_process(snapshot, &process) == 0 &&
           SNAPSHOT_APPEND(snapshot->shapes, snapshot->shape_count, snapshot->shape_capacity, ours) == 0 &&
           SNAPSHOT_APPEND(snapshot->calls, snapshot->call_count, snapshot->call_capacity, 0u) == 0;
}

struct snapshot *snapshot_new(enum snapshot_source source)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (!snapshot)
        return NULL;
    snapshot->source = source;
    snapshot->end.exact = true;
    snapshot->strings = strings_new();
    snapshot->values = values_new();
    if (!snapshot->strings || !snapshot->values || !snapshot_fill_roots(snapshot)) {
        snapshot_free(snapshot);
        return NULL;
    }
    return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    strings_free(snapshot->strings);
    free(snapshot->string_objects);
    free(snapshot->frames);
    free(snapshot->stacks);
    table_free(&snapshot->stack_index);
    free(snapshot->contexts);
    entries_free(&snapshot->entries);
    free(snapshot->streams);
    table_free(&snapshot->stream_index);
    free(snapshot->pools);
    free(snapshot->calls);
    state_free(&snapshot->end);
    free(snapshot->modules);
    free(snapshot->processes);
    free(snapshot->devices);
    free(snapshot->annotations);
    free(snapshot->settings);
    for (size_t i = 0; i < snapshot->shape_count; i++)
        free(snapshot->shapes[i].keys);
    free(snapshot->shapes);
    values_free(snapshot->values);
    free(snapshot->odds);
    table_free(&snapshot->odd_index);
    table_free(&snapshot->pool_index);
    table_free(&snapshot->shape_index);
    table_free(&snapshot->shared_strings);
    free(snapshot);
}

uint32_t snapshot_string(struct snapshot *snapshot, const char *bytes, size_t length)
{
    return strings_intern(snapshot->strings, bytes, length);
}

uint32_t snapshot_string_object(struct snapshot *snapshot, uint32_t content)
{
    if (content == STRING_NONE)
        return NONE32;
    return SNAPSHOT_APPEND(snapshot->string_objects, snapshot->string_object_count, snapshot->string_object_capacity,
                           content);
}

uint32_t snapshot_shared_string(struct snapshot *snapshot, const char *bytes, size_t length)
{
    uint32_t content = snapshot_string(snapshot, bytes, length);
    if (content == STRING_NONE)
        return NONE32;
    uint32_t object = table_get(&snapshot->shared_strings, content, NONE32);
    if (object != NONE32)
        return object;
    object = snapshot_string_object(snapshot, content);
    if (object != NONE32 && table_set(&snapshot->shared_strings, content, object))
        return NONE32;
    return object;
}

uint32_t snapshot_add_frame(struct snapshot *snapshot, const struct frame *frame)
{
    return SNAPSHOT_APPEND(snapshot->frames, snapshot->frame_count, snapshot->frame_capacity, *frame);
}

uint32_t snapshot_push_frame(struct snapshot *snapshot, uint32_t stack, uint32_t frame)
{
    uint64_t key = (uint64_t)stack << 32 | frame;
    uint32_t node = table_get(&snapshot->stack_index, key, NONE32);
    if (node != NONE32)
        return node;
    struct stack_node added = {.parent = stack, .frame = frame, .depth = snapshot->stacks[stack].depth + 1};
    node = SNAPSHOT_APPEND(snapshot->stacks, snapshot->stack_count, snapshot->stack_capacity, added);
    if (node != NONE32 && table_set(&snapshot->stack_index, key, node))
        return NONE32;
    return node;
}

uint32_t snapshot_add_context(struct snapshot *snapshot, uint32_t stack)
{
    return SNAPSHOT_APPEND(snapshot->contexts, snapshot->context_count, snapshot->context_capacity, stack);
}

uint32_t snapshot_stream(struct snapshot *snapshot, int64_t stream)
{
    uint32_t index = table_get(&snapshot->stream_index, (uint64_t)stream, NONE32);
    if (index != NONE32)
        return index;
    index = SNAPSHOT_APPEND(snapshot->streams, snapshot->stream_count, snapshot->stream_capacity, stream);
    if (index != NONE32 && table_set(&snapshot->stream_index, (uint64_t)stream, index))
        return NONE32;
    return index;
}

uint32_t snapshot_pool(struct snapshot *snapshot, int64_t first, int64_t second)
{
    uint64_t key = hash_mix((uint64_t)first) ^ hash_mix((uint64_t)second + 1);
    for (;; key = hash_mix(key + 1)) {
        uint32_t index = table_get(&snapshot->pool_index, key, NONE32);
        if (index == NONE32)
            break;
        if (snapshot->pools[index].id[0] == first && snapshot->pools[index].id[1] == second)
            return index;
    }
    struct pool pool = {{first, second}};
    uint32_t index = SNAPSHOT_APPEND(snapshot->pools, snapshot->pool_count, snapshot->pool_capacity, pool);
    if (index != NONE32 && table_set(&snapshot->pool_index, key, index))
        return NONE32;
    return index;
}

uint32_t snapshot_call(struct snapshot *snapshot, const char *name)
{
    uint32_t content = strings_intern_text(snapshot->strings, name);
    if (content == STRING_NONE)
        return NONE32;
    for (size_t i = 0; i < snapshot->call_count; i++)
        if (snapshot->calls[i] == content)
            return (uint32_t)i;
    if (snapshot->call_count > UINT16_MAX)
        return NONE32;
    return SNAPSHOT_APPEND(snapshot->calls, snapshot->call_count, snapshot->call_capacity, content);
}

uint32_t snapshot_add_module(struct snapshot *snapshot, const struct module *module)
{
    return SNAPSHOT_APPEND(snapshot->modules, snapshot->module_count, snapshot->module_capacity, *module);
}

uint32_t snapshot_add_process(struct snapshot *snapshot, const struct process *process)
{
    if (snapshot->process_count > UINT16_MAX)
        return NONE32;
    return SNAPSHOT_APPEND(snapshot->processes, snapshot->process_count, snapshot->process_capacity, *process);
}

uint32_t snapshot_device(struct snapshot *snapshot, uint16_t process, uint16_t ordinal)
{
    for (size_t i = snapshot->device_count; i-- > 0;)
        if (snapshot->devices[i].process == process && snapshot->devices[i].ordinal == ordinal)
            return (uint32_t)i;
    struct device device = {.process = process, .ordinal = ordinal, .name = STRING_NONE};
    memory_stats_init(&device.stats);
    return SNAPSHOT_APPEND(snapshot->devices, snapshot->device_count, snapshot->device_capacity, device);
}

uint32_t snapshot_add_annotation(struct snapshot *snapshot, const struct annotation *annotation)
{
    return SNAPSHOT_APPEND(snapshot->annotations, snapshot->annotation_count, snapshot->annotation_capacity,
                           *annotation);
}

uint32_t snapshot_add_setting(struct snapshot *snapshot, uint32_t key, value content)
{
    struct setting setting = {key, content};
    return SNAPSHOT_APPEND(snapshot->settings, snapshot->setting_count, snapshot->setting_capacity, setting);
}

static bool shape_equals(const struct shape *shape, enum row_kind kind, const uint32_t *keys, uint32_t count)
{
    return shape->row_kind == kind && shape->count == count &&
           (!count || memcmp(shape->keys, keys, count * sizeof(*keys)) == 0);
}

uint32_t snapshot_shape(struct snapshot *snapshot, enum row_kind kind, const uint32_t *keys, uint32_t count)
{
    uint64_t hash = hash_bytes(keys, count * sizeof(*keys)) ^ hash_mix((uint64_t)kind + 1);
    for (;; hash = hash_mix(hash + 1)) {
        uint32_t index = table_get(&snapshot->shape_index, hash, NONE32);
        if (index == NONE32)
            break;
        if (shape_equals(&snapshot->shapes[index], kind, keys, count))
            return index;
    }
    if (snapshot->shape_count > UINT16_MAX)
        return NONE32;
    struct shape added = {.row_kind = (uint8_t)kind, .count = count, .keys = calloc(count ? count : 1, sizeof(*keys))};
    if (!added.keys)
        return NONE32;
    if (count)
        memcpy(added.keys, keys, count * sizeof(*keys));
    uint32_t index = SNAPSHOT_APPEND(snapshot->shapes, snapshot->shape_count, snapshot->shape_capacity, added);
    if (index == NONE32)
        free(added.keys);
    else if (table_set(&snapshot->shape_index, hash, index))
        return NONE32;
    return index;
}

/* Rows fit 52 bits (value.h), kinds 4, slots the rest of a mixed key; equal keys are told apart by a probe. */
static uint64_t odd_key(enum row_kind kind, uint64_t row, uint16_t slot, uint64_t probe)
{
    return hash_mix(row << 4 | (uint64_t)kind) ^ hash_mix(((uint64_t)slot + 1) << 32 | probe);
}

static uint32_t odd_find(const struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t slot,
                         uint64_t *free_key)
{
    for (uint64_t probe = 0;; probe++) {
        *free_key = odd_key(kind, row, slot, probe);
        uint32_t index = table_get(&snapshot->odd_index, *free_key, NONE32);
        if (index == NONE32)
            return NONE32;
        const struct odd *odd = &snapshot->odds[index];
        if (odd->row == row && odd->slot == slot && odd->row_kind == kind)
            return index;
    }
}

int snapshot_set_odd(struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t slot, value content)
{
    uint64_t key;
    uint32_t index = odd_find(snapshot, kind, row, slot, &key);
    if (index != NONE32) {
        snapshot->odds[index].content = content;
        return STATUS_OK;
    }
    struct odd odd = {.row = row, .slot = slot, .row_kind = (uint8_t)kind, .content = content};
    index = SNAPSHOT_APPEND(snapshot->odds, snapshot->odd_count, snapshot->odd_capacity, odd);
    if (index == NONE32 || table_set(&snapshot->odd_index, key, index))
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

bool snapshot_get_odd(const struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t slot, value *content)
{
    uint64_t key;
    uint32_t index = odd_find(snapshot, kind, row, slot, &key);
    if (index == NONE32)
        return false;
    *content = snapshot->odds[index].content;
    return true;
}

const char *snapshot_content_text(const struct snapshot *snapshot, uint32_t content, size_t *length)
{
    if (length)
        *length = strings_length(snapshot->strings, content);
    return strings_text(snapshot->strings, content);
}

const char *snapshot_object_text(const struct snapshot *snapshot, uint32_t object, size_t *length)
{
    uint32_t content = object < snapshot->string_object_count ? snapshot->string_objects[object] : STRING_NONE;
    return snapshot_content_text(snapshot, content, length);
}

bool snapshot_dict_get(const struct snapshot *snapshot, value dict, const char *key, value *content)
{
    if (value_kind(dict) != VALUE_DICT)
        return false;
    uint32_t wanted = strings_find(snapshot->strings, key, strlen(key));
    const value *items = values_items(snapshot->values, dict);
    bool found = false;
    for (size_t i = 0; wanted != STRING_NONE && i + 1 < values_count(snapshot->values, dict); i += 2) {
        uint64_t object = value_payload(items[i]);
        if (value_kind(items[i]) == VALUE_STRING && object < snapshot->string_object_count &&
            snapshot->string_objects[object] == wanted) {
            *content = items[i + 1]; /* the last of equal keys wins, as in Python */
            found = true;
        }
    }
    return found;
}

bool snapshot_get_setting(const struct snapshot *snapshot, const char *key, value *content)
{
    uint32_t wanted = strings_find(snapshot->strings, key, strlen(key));
    bool found = false;
    for (size_t i = 0; wanted != STRING_NONE && i < snapshot->setting_count; i++)
        if (snapshot->settings[i].key == wanted) {
            *content = snapshot->settings[i].content;
            found = true;
        }
    return found;
}

/* A number for a frame's content; equal text and line give equal numbers. */
static uint64_t frame_content_hash(const struct snapshot *snapshot, const struct frame *frame)
{
    uint32_t name = frame->name < snapshot->string_object_count ? snapshot->string_objects[frame->name] : STRING_NONE;
    uint32_t file =
        frame->filename < snapshot->string_object_count ? snapshot->string_objects[frame->filename] : STRING_NONE;
    uint64_t native = name == STRING_NONE ? hash_mix(frame->offset ^ (uint64_t)frame->module << 48) : 0;
    return hash_mix(hash_mix((uint64_t)name << 32 | file) ^ (uint64_t)frame->line) ^ native;
}

uint32_t *snapshot_stack_contents(const struct snapshot *snapshot)
{
    uint32_t *ids = malloc(snapshot->stack_count * sizeof(*ids));
    struct table frames = {0}, nodes = {0};
    bool failed = !ids;
    if (ids)
        ids[0] = 0;
    /* 64-bit hashes of (name, file, line) stand for the content: a collision among a few million frames is out of reach
     * of chance, and costs a stranger who makes one only his own picture. */
    for (size_t i = 1; !failed && i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        uint64_t hash = frame_content_hash(snapshot, &snapshot->frames[node->frame]);
        uint32_t *frame = table_at(&frames, hash, node->frame);
        uint32_t *id = frame ? table_at(&nodes, (uint64_t)ids[node->parent] << 32 | *frame, (uint32_t)i) : NULL;
        failed = !id;
        if (id)
            ids[i] = *id;
    }
    table_free(&frames);
    table_free(&nodes);
    if (failed) {
        free(ids);
        return NULL;
    }
    return ids;
}
