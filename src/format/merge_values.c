/* What a source says beyond its columns: odd values of rows, and settings.  Uses src/base, src/snapshot. */
#include "base/array.h"
#include "format/bin_graph.h"
#include "format/merge_internal.h"

#include <stdlib.h>
#include <string.h>

#define EQUAL_DEPTH 16     /* beyond that, and so many values, settings are taken as different */
#define EQUAL_VALUES 10000
#define SETTINGS_MOST (1u << 24) /* of all processes: a file may give each of many a copy of each of many */

/* --- values into another store ------------------------------------------------------------------------------------ */

struct values_move {
    const struct merge_source *source;
    struct bin_graph graph;
    value *nodes; /* of the result, by number of the node */
};

static value move_row(const struct merge_source *source, value v)
{
    uint64_t row = value_row_number(v);
    unsigned kind = value_row_kind(v);
    switch (kind) {
    case ROW_FRAME: return value_row(kind, row + source->first_frame);
    case ROW_CONTEXT: return value_row(kind, row + source->first_context);
    case ROW_SEGMENT: return value_row(kind, row + source->first_segment);
    case ROW_BLOCK: return value_row(kind, row + source->first_block);
    case ROW_ANNOTATION: return value_row(kind, row + source->first_annotation);
    default: return value_make(VALUE_NONE, 0); /* entries move, files go */
    }
}

static value move_value(const struct values_move *move, value v)
{
    switch (value_kind(v)) {
    case VALUE_STRING: return value_make(VALUE_STRING, move->source->first_object + value_payload(v));
    case VALUE_ROW: return move_row(move->source, v);
    case VALUE_MARK: return value_make(VALUE_NONE, 0);
    default:
        return bin_graph_is_node(value_kind(v)) ? move->nodes[table_get(&move->graph.numbers, v, 0)] : v;
    }
}

static value make_node(const struct values_move *move, value v)
{
    struct values *values = move->source->merge->to->values;
    const struct values *from = move->source->from->values;
    size_t length;
    const unsigned char *bytes;
    switch (value_kind(v)) {
    case VALUE_LONG:
        bytes = values_long_bytes(from, v, &length);
        return values_long(values, bytes, length);
    case VALUE_BYTES:
    case VALUE_BYTEARRAY:
        bytes = values_get_bytes(from, v, &length);
        return values_bytes(values, value_kind(v), bytes, length);
    case VALUE_FLOAT: return values_float(values, values_get_float(from, v));
    default: return values_container(values, value_kind(v));
    }
}

/* Containers first, so that circles close, then what is in them. */
static int move_nodes(struct values_move *move)
{
    const struct merge_source *source = move->source;
    struct values *values = source->merge->to->values;
    struct snapshot view = *source->from;
    view.has_raw = false;
    if (bin_graph_build(&move->graph, &view))
        return STATUS_NO_MEMORY;
    move->nodes = malloc((move->graph.count + 1) * sizeof(*move->nodes));
    if (!move->nodes)
        return STATUS_NO_MEMORY;
    for (size_t n = 0; n < move->graph.count; n++)
        move->nodes[n] = make_node(move, move->graph.nodes[n]);
    for (size_t n = 0; n < move->graph.count && !values_failed(values); n++) {
        if (!bin_graph_is_container(value_kind(move->graph.nodes[n])))
            continue;
        size_t count = values_count(view.values, move->graph.nodes[n]);
        const value *items = values_items(view.values, move->graph.nodes[n]);
        for (size_t i = 0; i < count; i++) {
            value moved = move_value(move, items[i]);
            if (values_append(values, move->nodes[n], &moved, 1))
                return STATUS_NO_MEMORY;
        }
    }
    return values_failed(values) ? STATUS_NO_MEMORY : STATUS_OK;
}

static int add_odd(const struct values_move *move, const struct odd *odd)
{
    const struct merge_source *source = move->source;
    uint64_t row = odd->row;
    switch (odd->row_kind) {
    case ROW_ENTRY: row += source->first_entry - source->from->first_entry; break;
    case ROW_SEGMENT: row += source->first_segment; break;
    case ROW_BLOCK: row += source->first_block; break;
    case ROW_FRAME: row += source->first_frame; break;
    case ROW_ANNOTATION: row += source->first_annotation; break;
    case ROW_CONTEXT: row += source->first_context; break;
    default: return STATUS_OK; /* of the file */
    }
    return snapshot_set_odd(source->merge->to, (enum row_kind)odd->row_kind, row, odd->slot,
                            move_value(move, odd->content));
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static int collect(struct merge *merge, uint32_t key, value content, size_t process)
{
    if (merge->setting_count >= SETTINGS_MOST ||
        array_reserve(&merge->settings, &merge->setting_capacity, merge->setting_count + 1, sizeof(*merge->settings)))
        return STATUS_NO_MEMORY;
    uint32_t number = (uint32_t)merge->setting_count, *last = table_at(&merge->last_settings, key, NONE32);
    if (!last)
        return STATUS_NO_MEMORY;
    if (*last != NONE32)
        merge->settings[*last].next = number;
    *last = number;
    merge->settings[merge->setting_count++] = (struct merge_setting){key, content, (uint16_t)process, false, NONE32};
    return STATUS_OK;
}

/* The items of a dict that is of one process already. */
static int collect_own(struct merge *merge, value dict, size_t process)
{
    const struct snapshot *to = merge->to;
    size_t count = values_count(to->values, dict);
    int status = STATUS_OK;
    for (size_t i = 0; i + 1 < count && !status; i += 2) {
        const value *items = values_items(to->values, dict);
        uint64_t object = value_payload(items[i]);
        if (value_kind(items[i]) == VALUE_STRING && object < to->string_object_count)
            status = collect(merge, to->string_objects[object], items[i + 1], process);
    }
    return status;
}

static int add_setting(const struct values_move *move, const struct setting *setting)
{
    const struct merge_source *source = move->source;
    struct merge *merge = source->merge;
    const char *key = snapshot_content_text(source->from, setting->key, NULL);
    size_t own = snapshot_setting_process(source->from, key);
    value content = move_value(move, setting->content);
    if (own != SIZE_MAX && value_kind(content) == VALUE_DICT)
        return collect_own(merge, content, source->first_process + own);
    int status = STATUS_OK;
    for (size_t i = 0; i < source->from->process_count && !status; i++)
        status = collect(merge, merge_string(source, setting->key), content, source->first_process + i);
    return status;
}

int merge_add_values(struct merge_source *source)
{
    struct values_move move = {.source = source};
    int status = move_nodes(&move);
    for (size_t i = 0; i < source->from->odd_count && !status; i++)
        status = add_odd(&move, &source->from->odds[i]);
    for (size_t i = 0; i < source->from->setting_count && !status; i++)
        status = add_setting(&move, &source->from->settings[i]);
    free(move.nodes);
    bin_graph_free(&move.graph);
    return status;
}

static bool equal_bytes(const unsigned char *a, size_t a_length, const unsigned char *b, size_t b_length)
{
    return a_length == b_length && (!a_length || memcmp(a, b, a_length) == 0);
}

/* What a value other than a container is made of. */
static const unsigned char *bytes_of(const struct snapshot *snapshot, value v, unsigned char buffer[8], size_t *length)
{
    if (value_kind(v) == VALUE_STRING)
        return (const unsigned char *)snapshot_object_text(snapshot, (uint32_t)value_payload(v), length);
    return bin_graph_bytes(snapshot, v, buffer, length);
}

static bool are_equal(const struct snapshot *snapshot, value a, value b, int depth, size_t *budget)
{
    const struct values *values = snapshot->values;
    if (a == b)
        return true;
    if (value_kind(a) != value_kind(b) || depth > EQUAL_DEPTH || !*budget || !--*budget)
        return false;
    if (!value_is_container(a)) {
        unsigned char a_buffer[8], b_buffer[8];
        size_t a_length, b_length;
        const unsigned char *a_bytes = bytes_of(snapshot, a, a_buffer, &a_length);
        const unsigned char *b_bytes = bytes_of(snapshot, b, b_buffer, &b_length);
        return a_bytes && b_bytes && equal_bytes(a_bytes, a_length, b_bytes, b_length);
    }
    if (values_count(values, a) != values_count(values, b))
        return false;
    for (size_t i = 0; i < values_count(values, a); i++)
        if (!are_equal(snapshot, values_items(values, a)[i], values_items(values, b)[i], depth + 1, budget))
            return false;
    return true;
}

/* Do all processes have the setting, once, and alike?  From the first one of its key, which is that of process 0. */
static bool is_common(const struct merge *merge, uint32_t first)
{
    const struct merge_setting *settings = merge->settings;
    size_t found = 0, budget = EQUAL_VALUES;
    for (uint32_t i = first; i != NONE32; i = settings[i].next)
        if (settings[i].process != found++ ||
            !are_equal(merge->to, settings[i].content, settings[first].content, 0, &budget))
            return false;
    return found == merge->to->process_count;
}

static int settle_common(struct merge *merge, uint32_t first)
{
    struct merge_setting *setting = &merge->settings[first];
    if (setting->is_settled || setting->process != 0 || !is_common(merge, first))
        return STATUS_OK;
    for (uint32_t i = first; i != NONE32; i = merge->settings[i].next)
        merge->settings[i].is_settled = true;
    return snapshot_add_setting(merge->to, setting->key, setting->content) == NONE32 ? STATUS_NO_MEMORY : STATUS_OK;
}

/* The others, in a dict of their process. */
static int settle_own(struct merge *merge, value *dicts)
{
    struct snapshot *to = merge->to;
    for (size_t i = 0; i < merge->setting_count; i++) {
        const struct merge_setting *setting = &merge->settings[i];
        if (setting->is_settled)
            continue;
        value *dict = &dicts[setting->process];
        if (value_kind(*dict) == VALUE_NONE)
            *dict = values_container(to->values, VALUE_DICT);
        uint32_t object = snapshot_string_object(to, setting->key);
        value pair[2] = {value_make(VALUE_STRING, object), setting->content};
        if (values_failed(to->values) || object == NONE32 || values_append(to->values, *dict, pair, 2))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static int add_dict(struct snapshot *to, size_t process, value dict)
{
    char name[SNAPSHOT_PROCESS_KEY];
    if (value_kind(dict) == VALUE_NONE)
        return STATUS_OK;
    snapshot_process_key(process, name);
    uint32_t key = snapshot_string(to, name, strlen(name));
    return key == STRING_NONE || snapshot_add_setting(to, key, dict) == NONE32 ? STATUS_NO_MEMORY : STATUS_OK;
}

int merge_settle_settings(struct merge *merge)
{
    size_t count = merge->to->process_count;
    value *dicts = calloc(count + 1, sizeof(*dicts)); /* zero is None */
    int status = dicts ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < merge->setting_count && !status; i++)
        status = settle_common(merge, i);
    if (!status)
        status = settle_own(merge, dicts);
    for (size_t i = 0; i < count && !status; i++)
        status = add_dict(merge->to, i, dicts[i]);
    free(dicts);
    return status;
}
