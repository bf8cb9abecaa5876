/* The sections of snapshot.bin that are plain tables.  Uses src/base, src/snapshot. */
#include "format/bin_write_parts.h"

#include <stdlib.h>
#include <string.h>

#define BIN_STRING_BYTES (1u << 20) /* of one section; a longer string has one of its own */

static size_t at_most(size_t left, size_t limit)
{
    return left < limit ? left : limit;
}

/* Rows as sections of at most BIN_ROWS each; none if there are none. */
static int write_rows(struct bin_writer *writer, enum bin_section type, const struct bin_schema *schema,
                      const void *rows, size_t count)
{
    for (size_t first = 0; !writer->status && first < count; first += BIN_ROWS) {
        bin_put_rows(&writer->sink, schema, (const char *)rows + first * schema->row_size,
                     at_most(count - first, BIN_ROWS));
        bin_end_section(writer, type, 0, 0);
    }
    return writer->status;
}

static void put_bytes_table(struct bin_writer *writer, const struct text *bytes)
{
    bin_put_table(&writer->sink, 0);
    bin_put_bytes_column(&writer->sink, 1, bytes->bytes ? bytes->bytes : "", bytes->length);
    bin_put_table_end(&writer->sink);
    if (text_failed(bytes))
        writer->status = STATUS_NO_MEMORY;
}

static int write_info(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    const struct entries *entries = &snapshot->entries;
    struct bin_word raw = {0};
    if (snapshot->has_raw)
        raw = bin_graph_word(&writer->graph, snapshot->raw);
    struct bin_info info = {
        .source = (uint8_t)snapshot->source,
        .is_bare_list = snapshot->is_bare_list,
        .has_raw = snapshot->has_raw,
        .exact = snapshot->end.exact,
        .raw_kind = raw.kind,
        .raw_payload = raw.payload,
        .trace_count = snapshot->trace_count,
        .top_shape = snapshot->top_shape,
        .settings_shape = snapshot->settings_shape,
        .moment = snapshot->end.moment,
        .entries = entries->count,
        .optional = (entries->compile_context ? BIN_HAS_COMPILE_CONTEXT : 0) |
                    (entries->user_metadata ? BIN_HAS_USER_METADATA : 0) | (entries->process ? BIN_HAS_PROCESS : 0) |
                    (entries->pool ? BIN_HAS_POOL : 0) | (entries->thread ? BIN_HAS_THREAD : 0) |
                    (entries->call ? BIN_HAS_CALL : 0) | (entries->kind ? BIN_HAS_KIND : 0),
    };
    return write_rows(writer, BIN_INFO, &bin_schema_info, &info, 1);
}

static int write_strings(struct bin_writer *writer)
{
    const struct strings *strings = writer->snapshot->strings;
    uint32_t count = strings_count(strings), next = 1; /* 0 is the empty one, always there */
    struct text bytes = {0};
    uint32_t *lengths = malloc(BIN_ROWS * sizeof(*lengths));
    if (!lengths)
        return writer->status = STATUS_NO_MEMORY;
    while (!writer->status && next < count) {
        size_t rows = 0;
        text_clear(&bytes);
        while (next < count && rows < BIN_ROWS) {
            size_t length = strings_length(strings, next);
            if (rows && bytes.length + length > BIN_STRING_BYTES)
                break;
            if (length > UINT32_MAX)
                writer->status = STATUS_NO_MEMORY;
            text_append(&bytes, strings_text(strings, next++), length);
            lengths[rows++] = (uint32_t)length;
        }
        bin_put_rows(&writer->sink, &bin_schema_number32, lengths, rows);
        put_bytes_table(writer, &bytes);
        if (!writer->status)
            bin_end_section(writer, BIN_STRINGS, 0, 0);
    }
    text_free(&bytes);
    free(lengths);
    return writer->status;
}

/* Shapes and, in tables after theirs, the keys of all of them. */
static int write_shapes(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    uint32_t *keys = malloc(BIN_ROWS * sizeof(*keys));
    if (!keys)
        return writer->status = STATUS_NO_MEMORY;
    for (size_t first = 1; !writer->status && first < snapshot->shape_count; first += BIN_ROWS) {
        size_t rows = at_most(snapshot->shape_count - first, BIN_ROWS), filled = 0;
        bin_put_rows(&writer->sink, &bin_schema_shape, snapshot->shapes + first, rows);
        for (size_t i = first; i < first + rows; i++)
            for (uint32_t k = 0; k < snapshot->shapes[i].count; k++) {
                uint32_t key = snapshot->shapes[i].keys[k];
                keys[filled++] = key < FIELD_COUNT ? key : key - FIELD_COUNT + BIN_OTHER_KEYS;
                if (filled == BIN_ROWS) {
                    bin_put_rows(&writer->sink, &bin_schema_number32, keys, filled);
                    filled = 0;
                }
            }
        if (filled)
            bin_put_rows(&writer->sink, &bin_schema_number32, keys, filled);
        bin_end_section(writer, BIN_SHAPES, 0, 0);
    }
    free(keys);
    return writer->status;
}

static int write_statistics(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    struct bin_statistics *rows = malloc(BIN_WIDE_ROWS * sizeof(*rows));
    size_t filled = 0;
    if (!rows)
        return writer->status = STATUS_NO_MEMORY;
    for (size_t i = 0; !writer->status && i < snapshot->device_count; i++) {
        const struct device *device = &snapshot->devices[i];
        struct memory_stats none;
        memory_stats_init(&none);
        if (device->has_stats || memcmp(&none, &device->stats, sizeof(none)) != 0)
            rows[filled++] = (struct bin_statistics){(uint32_t)i, device->stats};
        if (filled == BIN_WIDE_ROWS) {
            write_rows(writer, BIN_STATISTICS, &bin_schema_statistics, rows, filled);
            filled = 0;
        }
    }
    write_rows(writer, BIN_STATISTICS, &bin_schema_statistics, rows, filled);
    free(rows);
    return writer->status;
}

/* The nodes: kind and length each, then the bytes of those that are made of bytes. */
static int write_nodes(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    const struct bin_graph *graph = &writer->graph;
    struct bin_node *rows = malloc(BIN_ROWS * sizeof(*rows));
    struct text bytes = {0};
    size_t next = 0;
    if (!rows)
        return writer->status = STATUS_NO_MEMORY;
    while (!writer->status && next < graph->count) {
        size_t filled = 0;
        text_clear(&bytes);
        for (; next < graph->count && filled < BIN_ROWS && bytes.length < BIN_STRING_BYTES; next++) {
            value node = graph->nodes[next];
            unsigned char buffer[8];
            size_t length;
            const unsigned char *content = bin_graph_bytes(snapshot, node, buffer, &length);
            if (content)
                text_append(&bytes, (const char *)content, length);
            else
                length = bin_graph_is_container(value_kind(node)) ? values_count(snapshot->values, node) : 0;
            rows[filled++] = (struct bin_node){(uint8_t)value_kind(node), length};
        }
        bin_put_rows(&writer->sink, &bin_schema_node, rows, filled);
        put_bytes_table(writer, &bytes);
        if (!writer->status)
            bin_end_section(writer, BIN_VALUES, 0, 0);
    }
    text_free(&bytes);
    free(rows);
    return writer->status;
}

static int write_items(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    struct bin_word *rows = malloc(BIN_ROWS * sizeof(*rows));
    size_t filled = 0;
    if (!rows)
        return writer->status = STATUS_NO_MEMORY;
    memset(rows, 0, BIN_ROWS * sizeof(*rows));
    for (size_t n = 0; !writer->status && n < writer->graph.count; n++) {
        value node = writer->graph.nodes[n];
        if (!bin_graph_is_container(value_kind(node)))
            continue;
        const value *items = values_items(snapshot->values, node);
        for (size_t i = 0; i < values_count(snapshot->values, node); i++) {
            rows[filled++] = bin_graph_word(&writer->graph, items[i]);
            if (filled == BIN_ROWS) {
                write_rows(writer, BIN_VALUE_ITEMS, &bin_schema_word, rows, filled);
                filled = 0;
            }
        }
    }
    write_rows(writer, BIN_VALUE_ITEMS, &bin_schema_word, rows, filled);
    free(rows);
    return writer->status;
}

static int write_odds(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    struct bin_odd *rows = calloc(BIN_ROWS, sizeof(*rows));
    size_t filled = 0;
    if (!rows)
        return writer->status = STATUS_NO_MEMORY;
    for (size_t i = 0; !writer->status && i < snapshot->odd_count; i++) {
        const struct odd *odd = &snapshot->odds[i];
        rows[filled++] =
            (struct bin_odd){odd->row, odd->slot, odd->row_kind, bin_graph_word(&writer->graph, odd->content)};
        if (filled == BIN_ROWS) {
            write_rows(writer, BIN_ODDS, &bin_schema_odd, rows, filled);
            filled = 0;
        }
    }
    write_rows(writer, BIN_ODDS, &bin_schema_odd, rows, filled);
    free(rows);
    return writer->status;
}

static int write_settings(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    size_t count = snapshot->setting_count;
    struct bin_setting *rows = calloc(count ? count : 1, sizeof(*rows));
    if (!rows)
        return writer->status = STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct bin_setting){snapshot->settings[i].key,
                                       bin_graph_word(&writer->graph, snapshot->settings[i].content)};
    write_rows(writer, BIN_SETTINGS, &bin_schema_setting, rows, count);
    free(rows);
    return writer->status;
}

/* A state's segments and blocks as tables of the sink's section. */
static void put_state_rows(struct bin_writer *writer, const struct bin_schema *schema, const void *rows, size_t count)
{
    for (size_t first = 0; first < count; first += BIN_ROWS)
        bin_put_rows(&writer->sink, schema, (const char *)rows + first * schema->row_size,
                     at_most(count - first, BIN_ROWS));
}

int bin_write_state(struct bin_writer *writer, const struct state *state)
{
    struct bin_checkpoint head = {state->moment, state->exact, state->segment_count, state->block_count};
    bin_put_rows(&writer->sink, &bin_schema_checkpoint, &head, 1);
    put_state_rows(writer, &bin_schema_segment, state->segments, state->segment_count);
    put_state_rows(writer, &bin_schema_block, state->blocks, state->block_count);
    return bin_end_section(writer, BIN_CHECKPOINT, state->moment, 0);
}

int bin_write_facts(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    write_info(writer);
    write_strings(writer);
    write_rows(writer, BIN_STRING_OBJECTS, &bin_schema_number32, snapshot->string_objects,
               snapshot->string_object_count);
    write_rows(writer, BIN_MODULES, &bin_schema_module, snapshot->modules, snapshot->module_count);
    write_rows(writer, BIN_FRAMES, &bin_schema_frame, snapshot->frames, snapshot->frame_count);
    write_rows(writer, BIN_STACKS, &bin_schema_stack, snapshot->stacks + 1, snapshot->stack_count - 1);
    write_rows(writer, BIN_CONTEXTS, &bin_schema_number32, snapshot->contexts, snapshot->context_count);
    write_rows(writer, BIN_STREAMS, &bin_schema_number64, snapshot->streams, snapshot->stream_count);
    write_rows(writer, BIN_POOLS, &bin_schema_pool, snapshot->pools, snapshot->pool_count);
    write_rows(writer, BIN_CALLS, &bin_schema_number32, snapshot->calls + 1, snapshot->call_count - 1);
    write_shapes(writer);
    write_rows(writer, BIN_PROCESSES, &bin_schema_process, snapshot->processes, snapshot->process_count);
    write_rows(writer, BIN_DEVICES, &bin_schema_device, snapshot->devices, snapshot->device_count);
    write_statistics(writer);
    write_nodes(writer);
    write_items(writer);
    write_odds(writer);
    write_settings(writer);
    write_rows(writer, BIN_ANNOTATIONS, &bin_schema_annotation, snapshot->annotations, snapshot->annotation_count);
    write_rows(writer, BIN_SEGMENTS, &bin_schema_segment, snapshot->end.segments, snapshot->end.segment_count);
    write_rows(writer, BIN_BLOCKS, &bin_schema_block, snapshot->end.blocks, snapshot->end.block_count);
    return writer->status;
}
