/* The sections of snapshot.bin that are plain tables, from columns back to rows.  Uses src/base, src/snapshot. */
#include "format/bin_graph.h"
#include "format/bin_reader.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* The next table as zeroed rows of the schema's struct; the caller frees them. */
static int get_table(struct bin_reader *reader, struct bin_cursor *cursor, const struct bin_schema *schema, void **rows,
                     size_t *count)
{
    uint64_t number;
    *rows = NULL;
    if (!bin_get_table(cursor, &number) || (schema->row_size > 256 && number > BIN_WIDE_ROWS))
        return bin_damaged(reader, "a table that makes no sense");
    int status = bin_hold(reader, number * schema->row_size);
    if (status)
        return status;
    *count = (size_t)number;
    if (array_reserve(&reader->scratch, &reader->scratch_capacity, *count + 1, sizeof(*reader->scratch)) ||
        !(*rows = calloc(*count + 1, schema->row_size)))
        return error_no_memory(reader->err);
    if (!bin_get_rows(cursor, schema, *rows, *count, reader->scratch)) {
        free(*rows);
        *rows = NULL;
        return bin_damaged(reader, "a column that makes no sense");
    }
    return STATUS_OK;
}

/* A table that is one column of bytes. */
static int get_bytes(struct bin_reader *reader, struct bin_cursor *cursor, const unsigned char **bytes, size_t *length)
{
    uint64_t rows;
    struct bin_column column;
    *length = 0;
    *bytes = (const unsigned char *)"";
    bool good = bin_get_table(cursor, &rows);
    while (good && (good = bin_get_column(cursor, &column)) && column.number != 0)
        if (column.number == 1 && (good = column.encoding == BIN_BYTES && column.count == column.length)) {
            *bytes = column.bytes;
            *length = (size_t)column.length;
        }
    return good ? STATUS_OK : bin_damaged(reader, "bytes that are not there");
}

/* Append a table's rows to an array of the snapshot. */
static int append_rows(struct bin_reader *reader, struct bin_cursor *cursor, const struct bin_schema *schema, void *data,
                       size_t *count, size_t *capacity, uint64_t most)
{
    void *rows;
    size_t added;
    int status = get_table(reader, cursor, schema, &rows, &added);
    if (status)
        return status;
    if (*count + added > most)
        status = bin_damaged(reader, "too many rows");
    else if (array_reserve(data, capacity, *count + added, schema->row_size))
        status = error_no_memory(reader->err);
    if (!status && added) {
        unsigned char *start;
        memcpy(&start, data, sizeof(start));
        memcpy(start + *count * schema->row_size, rows, added * schema->row_size);
        *count += added;
    }
    free(rows);
    return status;
}

static int read_info(struct bin_reader *reader, struct bin_cursor *cursor)
{
    struct snapshot *snapshot = reader->snapshot;
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_info, &rows, &count);
    if (status)
        return status;
    if (count == 1)
        reader->info = *(struct bin_info *)rows;
    free(rows);
    const struct bin_info *info = &reader->info;
    if (count != 1 || reader->has_info || info->source > SOURCE_RMM || info->entries != reader->entry_count ||
        info->trace_count > BIN_TRACES)
        return bin_damaged(reader, "facts that contradict each other");
    reader->has_info = true;
    snapshot->source = (enum snapshot_source)info->source;
    snapshot->is_bare_list = info->is_bare_list;
    snapshot->has_raw = info->has_raw;
    snapshot->trace_count = info->trace_count;
    snapshot->top_shape = info->top_shape;
    snapshot->settings_shape = info->settings_shape;
    snapshot->end.moment = info->moment;
    snapshot->end.exact = info->exact;
    snapshot->process_count = 0; /* the file has them */
    struct entries *entries = &snapshot->entries;
    if (((info->optional & BIN_HAS_COMPILE_CONTEXT) && entries_need_compile_context(entries)) ||
        ((info->optional & BIN_HAS_USER_METADATA) && entries_need_user_metadata(entries)) ||
        ((info->optional & BIN_HAS_PROCESS) && entries_need_process(entries)) ||
        ((info->optional & BIN_HAS_POOL) && entries_need_pool(entries)) ||
        ((info->optional & BIN_HAS_THREAD) && entries_need_thread(entries)) ||
        ((info->optional & BIN_HAS_CALL) && entries_need_call(entries)) ||
        ((info->optional & BIN_HAS_KIND) && entries_need_kind(entries)))
        return error_no_memory(reader->err);
    return STATUS_OK;
}

static int read_strings(struct bin_reader *reader, struct bin_cursor *cursor)
{
    void *rows;
    const unsigned char *bytes = NULL;
    size_t count, length = 0, at = 0;
    int status = get_table(reader, cursor, &bin_schema_number32, &rows, &count);
    if (!status)
        status = get_bytes(reader, cursor, &bytes, &length);
    if (!status)
        status = bin_hold(reader, length + count * 32); /* the interner's own tables, too */
    for (size_t i = 0; !status && i < count; i++) {
        uint32_t size = ((uint32_t *)rows)[i], expected = strings_count(reader->snapshot->strings);
        if (size > length - at)
            status = bin_damaged(reader, "a length beyond the end");
        else if (expected == STRING_NONE - 1)
            status = bin_damaged(reader, "too many strings");
        else if (strings_intern(reader->snapshot->strings, (const char *)bytes + at, size) != expected)
            status = strings_count(reader->snapshot->strings) == expected ? bin_damaged(reader, "a string twice")
                                                                          : error_no_memory(reader->err);
        at += size;
    }
    if (!status && at != length)
        status = bin_damaged(reader, "bytes of no string");
    free(rows);
    return status;
}

static int read_stacks(struct bin_reader *reader, struct bin_cursor *cursor)
{
    struct snapshot *snapshot = reader->snapshot;
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_stack, &rows, &count);
    for (size_t i = 0; !status && i < count; i++) {
        const struct stack_node *row = &((struct stack_node *)rows)[i];
        size_t expected = snapshot->stack_count;
        if (row->parent >= expected)
            status = bin_damaged(reader, "a stack without its caller");
        else if (snapshot_push_frame(snapshot, row->parent, row->frame) != expected)
            status = snapshot->stack_count == expected ? bin_damaged(reader, "a stack twice")
                                                       : error_no_memory(reader->err);
    }
    free(rows);
    return status;
}

static int read_streams(struct bin_reader *reader, struct bin_cursor *cursor)
{
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_number64, &rows, &count);
    for (size_t i = 0; !status && i < count; i++) {
        size_t expected = reader->snapshot->stream_count;
        if (snapshot_stream(reader->snapshot, ((int64_t *)rows)[i]) != expected)
            status = bin_damaged(reader, "a stream twice");
    }
    free(rows);
    return status;
}

static int read_pools(struct bin_reader *reader, struct bin_cursor *cursor)
{
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_pool, &rows, &count);
    for (size_t i = 0; !status && i < count; i++) {
        size_t expected = reader->snapshot->pool_count;
        const struct pool *pool = &((struct pool *)rows)[i];
        if (snapshot_pool(reader->snapshot, pool->id[0], pool->id[1]) != expected)
            status = bin_damaged(reader, "a pool twice");
    }
    free(rows);
    return status;
}

/* Shapes, then the tables with their keys. */
static int read_shapes(struct bin_reader *reader, struct bin_cursor *cursor)
{
    void *rows;
    size_t count, key_count = 0, key_capacity = 0, at = 0;
    uint32_t *keys = NULL;
    int status = get_table(reader, cursor, &bin_schema_shape, &rows, &count);
    uint64_t total = 0;
    for (size_t i = 0; !status && i < count; i++)
        total += ((struct shape *)rows)[i].count;
    while (!status && key_count < total && cursor->at < cursor->end)
        status = append_rows(reader, cursor, &bin_schema_number32, &keys, &key_count, &key_capacity, total);
    if (!status && key_count != total)
        status = bin_damaged(reader, "shapes without their keys");
    for (size_t i = 0; !status && i < key_count; i++) {
        if (keys[i] >= BIN_OTHER_KEYS)
            keys[i] += FIELD_COUNT - BIN_OTHER_KEYS;
        else if (keys[i] >= FIELD_COUNT)
            status = bin_damaged(reader, "a key that has no name");
    }
    for (size_t i = 0; !status && i < count; i++) {
        const struct shape *shape = &((struct shape *)rows)[i];
        size_t expected = reader->snapshot->shape_count;
        if (shape->row_kind >= ROW_KIND_COUNT ||
            snapshot_shape(reader->snapshot, (enum row_kind)shape->row_kind, keys ? keys + at : (uint32_t[]){0},
                           shape->count) != expected)
            status = bin_damaged(reader, "a shape that cannot be");
        at += shape->count;
    }
    free(keys);
    free(rows);
    return status;
}

static int read_devices(struct bin_reader *reader, struct bin_cursor *cursor)
{
    struct snapshot *snapshot = reader->snapshot;
    size_t before = snapshot->device_count;
    int status = append_rows(reader, cursor, &bin_schema_device, &snapshot->devices, &snapshot->device_count,
                             &snapshot->device_capacity, NONE32);
    for (size_t i = before; !status && i < snapshot->device_count; i++)
        memory_stats_init(&snapshot->devices[i].stats);
    return status;
}

static int read_statistics(struct bin_reader *reader, struct bin_cursor *cursor)
{
    struct snapshot *snapshot = reader->snapshot;
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_statistics, &rows, &count);
    for (size_t i = 0; !status && i < count; i++) {
        const struct bin_statistics *row = &((struct bin_statistics *)rows)[i];
        if (row->device >= snapshot->device_count)
            status = bin_damaged(reader, "statistics of no device");
        else
            snapshot->devices[row->device].stats = row->stats;
    }
    free(rows);
    return status;
}

static value make_node(struct values *values, const struct bin_node *row, const unsigned char *bytes)
{
    switch (row->kind) {
    case VALUE_LONG:
        return values_long(values, bytes, (size_t)row->length);
    case VALUE_FLOAT: {
        uint64_t bits = 0;
        double number;
        for (unsigned i = 0; i < 8; i++)
            bits |= (uint64_t)bytes[i] << (8 * i);
        memcpy(&number, &bits, sizeof(number));
        return values_float(values, number);
    }
    case VALUE_BYTES:
    case VALUE_BYTEARRAY:
        return values_bytes(values, (enum value_kind)row->kind, bytes, (size_t)row->length);
    default:
        return values_container(values, (enum value_kind)row->kind);
    }
}

static int add_node(struct bin_reader *reader, const struct bin_node *row, const unsigned char *bytes)
{
    if (array_reserve(&reader->nodes, &reader->node_capacity, reader->node_count + 1, sizeof(*reader->nodes)) ||
        array_reserve(&reader->node_lengths, &reader->length_capacity, reader->node_count + 1,
                      sizeof(*reader->node_lengths)))
        return error_no_memory(reader->err);
    bool container = bin_graph_is_container((enum value_kind)row->kind);
    value node = make_node(reader->snapshot->values, row, bytes);
    if (value_kind(node) == VALUE_MARK)
        return error_no_memory(reader->err);
    reader->nodes[reader->node_count] = node;
    reader->node_lengths[reader->node_count++] = container ? row->length : 0;
    return STATUS_OK;
}

static int read_nodes(struct bin_reader *reader, struct bin_cursor *cursor)
{
    void *rows;
    const unsigned char *bytes = NULL;
    size_t count, length = 0, at = 0;
    int status = get_table(reader, cursor, &bin_schema_node, &rows, &count);
    if (!status)
        status = get_bytes(reader, cursor, &bytes, &length);
    if (!status)
        status = bin_hold(reader, length + count * 64);
    for (size_t i = 0; !status && i < count; i++) {
        const struct bin_node *row = &((struct bin_node *)rows)[i];
        bool container = bin_graph_is_container((enum value_kind)row->kind);
        if (!bin_graph_is_node((enum value_kind)row->kind) || (!container && row->length > length - at) ||
            (row->kind == VALUE_FLOAT && row->length != 8) || (row->kind == VALUE_DICT && row->length % 2))
            status = bin_damaged(reader, "a value that cannot be");
        else
            status = add_node(reader, row, bytes + at);
        at += container || status ? 0 : (size_t)row->length;
    }
    if (!status && at != length)
        status = bin_damaged(reader, "bytes of no value");
    free(rows);
    return status;
}

static int get_word(struct bin_reader *reader, struct bin_word word, value *result)
{
    enum value_kind kind = (enum value_kind)word.kind;
    bool good = kind < VALUE_MARK && word.payload <= VALUE_PAYLOAD_MASK;
    if (good && bin_graph_is_node(kind)) {
        good = word.payload < reader->node_count;
        *result = good ? reader->nodes[word.payload] : 0;
        /* an integer that is short after all has become a plain one */
        good = good && (value_kind(*result) == kind || kind == VALUE_LONG);
    } else if (good && kind == VALUE_INT) {
        *result = value_make(kind, bin_unzigzag(word.payload));
    } else if (good) {
        *result = value_make(kind, word.payload);
        good = kind != VALUE_STRING || word.payload < reader->snapshot->string_object_count;
        good = good && (kind > VALUE_TRUE || word.payload == 0);
    }
    return good ? STATUS_OK : bin_damaged(reader, "a value that is not there");
}

/* Items go to the containers in the order of both. */
static int read_items(struct bin_reader *reader, struct bin_cursor *cursor)
{
    struct values *values = reader->snapshot->values;
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_word, &rows, &count);
    for (size_t i = 0; !status && i < count; i++) {
        value item = 0;
        while (reader->fill_node < reader->node_count &&
               reader->fill_done == reader->node_lengths[reader->fill_node]) {
            reader->fill_node++;
            reader->fill_done = 0;
        }
        if (reader->fill_node == reader->node_count)
            status = bin_damaged(reader, "items of no list");
        else if (!(status = get_word(reader, ((struct bin_word *)rows)[i], &item)) &&
                 values_append(values, reader->nodes[reader->fill_node], &item, 1))
            status = error_no_memory(reader->err);
        reader->fill_done++;
    }
    free(rows);
    return status;
}

static int read_odds(struct bin_reader *reader, struct bin_cursor *cursor)
{
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_odd, &rows, &count);
    for (size_t i = 0; !status && i < count; i++) {
        const struct bin_odd *row = &((struct bin_odd *)rows)[i];
        size_t expected = reader->snapshot->odd_count;
        value content;
        if (row->row_kind >= ROW_KIND_COUNT || row->row >> 52)
            status = bin_damaged(reader, "an odd value of no row");
        else if (!(status = get_word(reader, row->content, &content))) {
            if (snapshot_set_odd(reader->snapshot, (enum row_kind)row->row_kind, row->row, row->slot, content))
                status = error_no_memory(reader->err);
            else if (reader->snapshot->odd_count == expected)
                status = bin_damaged(reader, "an odd value twice");
        }
    }
    free(rows);
    return status;
}

static int read_settings(struct bin_reader *reader, struct bin_cursor *cursor)
{
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_setting, &rows, &count);
    for (size_t i = 0; !status && i < count; i++) {
        const struct bin_setting *row = &((struct bin_setting *)rows)[i];
        value content;
        status = get_word(reader, row->content, &content);
        if (!status && snapshot_add_setting(reader->snapshot, row->key, content) == NONE32)
            status = error_no_memory(reader->err);
    }
    free(rows);
    return status;
}

/* Several tables of the same kind, until there are as many rows as announced. */
static int read_many(struct bin_reader *reader, struct bin_cursor *cursor, const struct bin_schema *schema, void *data,
                     size_t *count, size_t *capacity, uint64_t wanted)
{
    int status = STATUS_OK;
    while (!status && *count < wanted) {
        size_t before = *count;
        status = append_rows(reader, cursor, schema, data, count, capacity, wanted);
        if (!status && *count == before)
            status = bin_damaged(reader, "rows that are not there");
    }
    return status;
}

/* Which blocks belong to which segment is said by their order. */
static int link_blocks(struct bin_reader *reader, struct state *state)
{
    size_t next = 0;
    for (size_t s = 0; s < state->segment_count; s++) {
        struct segment *segment = &state->segments[s];
        if (segment->block_count > state->block_count - next)
            return bin_damaged(reader, "segments with more blocks than there are");
        segment->first_block = (uint32_t)next;
        for (uint32_t b = 0; b < segment->block_count; b++)
            state->blocks[next++].segment = (uint32_t)s;
    }
    return next == state->block_count ? STATUS_OK : bin_damaged(reader, "blocks of no segment");
}

int bin_read_state(struct bin_reader *reader, struct bin_cursor *cursor, struct state *state)
{
    void *rows;
    size_t count;
    int status = get_table(reader, cursor, &bin_schema_checkpoint, &rows, &count);
    if (status)
        return status;
    struct bin_checkpoint head = {0};
    if (count == 1)
        head = *(struct bin_checkpoint *)rows;
    free(rows);
    if (count != 1 || head.segments >= NONE32 || head.blocks >= NONE32)
        return bin_damaged(reader, "no state");
    state->moment = head.moment;
    state->exact = head.exact;
    status = read_many(reader, cursor, &bin_schema_segment, &state->segments, &state->segment_count,
                       &state->segment_capacity, head.segments);
    if (!status)
        status = read_many(reader, cursor, &bin_schema_block, &state->blocks, &state->block_count,
                           &state->block_capacity, head.blocks);
    return status ? status : link_blocks(reader, state);
}

int bin_read_index(struct bin_reader *reader, struct bin_cursor *cursor)
{
    int status = STATUS_OK;
    while (!status && cursor->at < cursor->end)
        status = append_rows(reader, cursor, &bin_schema_index, &reader->index, &reader->index_count,
                             &reader->index_capacity, UINT32_MAX);
    return status;
}

int bin_read_part(struct bin_reader *reader, struct bin_cursor *cursor)
{
    struct snapshot *s = reader->snapshot;
    if (!reader->has_info && reader->type != BIN_INFO && reader->type != BIN_INDEX && reader->type != BIN_CHECKPOINT)
        return bin_damaged(reader, "something before the section 'info'");
    switch (reader->type) {
    case BIN_INFO:
        return read_info(reader, cursor);
    case BIN_STRINGS:
        return read_strings(reader, cursor);
    case BIN_STRING_OBJECTS:
        return append_rows(reader, cursor, &bin_schema_number32, &s->string_objects, &s->string_object_count,
                           &s->string_object_capacity, NONE32 - 1);
    case BIN_MODULES:
        return append_rows(reader, cursor, &bin_schema_module, &s->modules, &s->module_count, &s->module_capacity,
                           NONE32 - 1);
    case BIN_FRAMES:
        return append_rows(reader, cursor, &bin_schema_frame, &s->frames, &s->frame_count, &s->frame_capacity,
                           NONE32 - 1);
    case BIN_STACKS:
        return read_stacks(reader, cursor);
    case BIN_CONTEXTS:
        return append_rows(reader, cursor, &bin_schema_number32, &s->contexts, &s->context_count, &s->context_capacity,
                           NONE32 - 1);
    case BIN_STREAMS:
        return read_streams(reader, cursor);
    case BIN_POOLS:
        return read_pools(reader, cursor);
    case BIN_CALLS:
        return append_rows(reader, cursor, &bin_schema_number32, &s->calls, &s->call_count, &s->call_capacity,
                           UINT16_MAX + 1);
    case BIN_SHAPES:
        return read_shapes(reader, cursor);
    case BIN_PROCESSES:
        return append_rows(reader, cursor, &bin_schema_process, &s->processes, &s->process_count, &s->process_capacity,
                           UINT16_MAX + 1);
    case BIN_DEVICES:
        return read_devices(reader, cursor);
    case BIN_STATISTICS:
        return read_statistics(reader, cursor);
    case BIN_VALUES:
        return read_nodes(reader, cursor);
    case BIN_VALUE_ITEMS:
        return read_items(reader, cursor);
    case BIN_ODDS:
        return read_odds(reader, cursor);
    case BIN_SETTINGS:
        return read_settings(reader, cursor);
    case BIN_ANNOTATIONS:
        return append_rows(reader, cursor, &bin_schema_annotation, &s->annotations, &s->annotation_count,
                           &s->annotation_capacity, NONE32 - 1);
    case BIN_SEGMENTS:
        return append_rows(reader, cursor, &bin_schema_segment, &s->end.segments, &s->end.segment_count,
                           &s->end.segment_capacity, NONE32 - 1);
    case BIN_BLOCKS:
        return append_rows(reader, cursor, &bin_schema_block, &s->end.blocks, &s->end.block_count,
                           &s->end.block_capacity, NONE32 - 1);
    case BIN_CHECKPOINT:
        return reader->into ? bin_read_state(reader, cursor, reader->into) : bin_damaged(reader, "nothing to expect");
    default:
        return bin_read_index(reader, cursor);
    }
}

static uint64_t row_count(const struct snapshot *snapshot, unsigned kind)
{
    switch (kind) {
    case ROW_ENTRY:
        return snapshot->entries.count;
    case ROW_SEGMENT:
        return snapshot->end.segment_count;
    case ROW_BLOCK:
        return snapshot->end.block_count;
    case ROW_FRAME:
        return snapshot->frame_count;
    case ROW_ANNOTATION:
        return snapshot->annotation_count;
    case ROW_CONTEXT:
        return snapshot->context_count;
    default:
        return kind < ROW_KIND_COUNT ? 1 : 0;
    }
}

/* A value that points into the columns must find its row there. */
static bool row_exists(const struct snapshot *snapshot, value v)
{
    return value_kind(v) != VALUE_ROW || value_row_number(v) < row_count(snapshot, value_row_kind(v));
}

int bin_check_rows(struct bin_reader *reader)
{
    const struct snapshot *snapshot = reader->snapshot;
    bool good = true;
    for (size_t n = 0; good && n < reader->node_count; n++) {
        size_t count = reader->node_lengths[n] ? values_count(snapshot->values, reader->nodes[n]) : 0;
        const value *items = count ? values_items(snapshot->values, reader->nodes[n]) : NULL;
        for (size_t i = 0; good && i < count; i++)
            good = row_exists(snapshot, items[i]);
    }
    for (size_t i = 0; good && i < snapshot->odd_count; i++)
        good = row_exists(snapshot, snapshot->odds[i].content) &&
               snapshot->odds[i].row < row_count(snapshot, snapshot->odds[i].row_kind);
    for (size_t i = 0; good && i < snapshot->setting_count; i++)
        good = row_exists(snapshot, snapshot->settings[i].content);
    good = good && (!snapshot->has_raw || row_exists(snapshot, snapshot->raw));
    return good ? STATUS_OK : bin_damaged(reader, "a value that points at no row");
}

int bin_finish_parts(struct bin_reader *reader)
{
    struct snapshot *snapshot = reader->snapshot;
    int status = STATUS_OK;
    reader->type = BIN_INFO;
    if (!reader->has_info)
        return bin_damaged(reader, "nothing said of the whole file");
    if (!reader->partial && snapshot->entries.count != reader->entry_count)
        return bin_damaged(reader, "another number of entries than announced");
    while (reader->fill_node < reader->node_count && reader->fill_done == reader->node_lengths[reader->fill_node]) {
        reader->fill_node++;
        reader->fill_done = 0;
    }
    if (reader->fill_node != reader->node_count)
        return bin_damaged(reader, "lists without their items");
    if (snapshot->has_raw)
        status = get_word(reader, (struct bin_word){reader->info.raw_kind, reader->info.raw_payload}, &snapshot->raw);
    if (!status && reader->has_after) {
        snapshot->end = reader->after;
        reader->after = (struct state){0};
    } else if (!status) {
        status = link_blocks(reader, &snapshot->end);
    }
    return status;
}
