/* Tables of structs as columns: the fields of every struct, writing, reading.  Uses src/base, src/snapshot's types. */
#include "format/bin_table.h"

#include "format/bin_layout.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(number, type, member, kind) {number, offsetof(type, member), sizeof(((type *)0)->member), kind, 1}
#define ARRAY(number, type, member, kind, repeat) \
    {number, offsetof(type, member), sizeof(((type *)0)->member) / (repeat), kind, repeat}
#define SCHEMA(name, type) \
    const struct bin_schema bin_schema_##name = {#name, sizeof(type), name##_fields, \
                                                 sizeof(name##_fields) / sizeof(name##_fields[0])}

static const struct bin_field info_fields[] = {
    FIELD(1, struct bin_info, source, BIN_UNSIGNED),
    FIELD(2, struct bin_info, entries, BIN_UNSIGNED),
    FIELD(3, struct bin_info, optional, BIN_UNSIGNED),
    FIELD(4, struct bin_info, trace_count, BIN_UNSIGNED),
    FIELD(5, struct bin_info, moment, BIN_UNSIGNED),
    FIELD(6, struct bin_info, exact, BIN_TRUTH),
    FIELD(7, struct bin_info, is_bare_list, BIN_TRUTH),
    FIELD(8, struct bin_info, top_shape, BIN_UNSIGNED),
    FIELD(9, struct bin_info, settings_shape, BIN_UNSIGNED),
    FIELD(10, struct bin_info, has_raw, BIN_TRUTH),
    FIELD(11, struct bin_info, raw_kind, BIN_UNSIGNED),
    FIELD(12, struct bin_info, raw_payload, BIN_UNSIGNED),
};
SCHEMA(info, struct bin_info);

static const struct bin_field number32_fields[] = {{1, 0, 4, BIN_UNSIGNED, 1}};
SCHEMA(number32, uint32_t);

static const struct bin_field number64_fields[] = {{1, 0, 8, BIN_SIGNED, 1}};
SCHEMA(number64, int64_t);

static const struct bin_field word_fields[] = {
    FIELD(1, struct bin_word, kind, BIN_UNSIGNED),
    FIELD(2, struct bin_word, payload, BIN_UNSIGNED),
};
SCHEMA(word, struct bin_word);

static const struct bin_field module_fields[] = {
    FIELD(1, struct module, path, BIN_NONEABLE),
    FIELD(2, struct module, load_address, BIN_UNSIGNED),
    FIELD(3, struct module, size, BIN_UNSIGNED),
    FIELD(4, struct module, build_id_length, BIN_UNSIGNED),
    ARRAY(5, struct module, build_id, BIN_OCTETS, 4),
};
SCHEMA(module, struct module);

static const struct bin_field frame_fields[] = {
    FIELD(1, struct frame, name, BIN_NONEABLE),
    FIELD(2, struct frame, filename, BIN_NONEABLE),
    FIELD(3, struct frame, line, BIN_SIGNED),
    FIELD(4, struct frame, module, BIN_NONEABLE),
    FIELD(5, struct frame, offset, BIN_UNSIGNED),
    FIELD(6, struct frame, flags, BIN_UNSIGNED),
    FIELD(7, struct frame, shape, BIN_UNSIGNED),
};
SCHEMA(frame, struct frame);

static const struct bin_field stack_fields[] = {
    FIELD(1, struct stack_node, parent, BIN_UNSIGNED),
    FIELD(2, struct stack_node, frame, BIN_UNSIGNED),
};
SCHEMA(stack, struct stack_node);

static const struct bin_field pool_fields[] = {ARRAY(1, struct pool, id, BIN_SIGNED, 2)};
SCHEMA(pool, struct pool);

static const struct bin_field shape_fields[] = {
    FIELD(1, struct shape, row_kind, BIN_UNSIGNED),
    FIELD(2, struct shape, count, BIN_UNSIGNED),
};
SCHEMA(shape, struct shape);

static const struct bin_field process_fields[] = {
    FIELD(1, struct process, pid, BIN_SIGNED),
    FIELD(2, struct process, parent, BIN_SIGNED),
    FIELD(3, struct process, program, BIN_NONEABLE),
    FIELD(4, struct process, host, BIN_NONEABLE),
    FIELD(5, struct process, arguments, BIN_NONEABLE),
    FIELD(6, struct process, boot_id, BIN_NONEABLE),
    FIELD(7, struct process, driver, BIN_NONEABLE),
    FIELD(8, struct process, rank, BIN_SIGNED),
    FIELD(9, struct process, start_time, BIN_SIGNED),
    FIELD(10, struct process, end_time, BIN_SIGNED),
    FIELD(11, struct process, exit_status, BIN_SIGNED),
    FIELD(12, struct process, implied_blocks, BIN_TRUTH),
    FIELD(13, struct process, incomplete, BIN_TRUTH),
    FIELD(14, struct process, lost_stacks, BIN_UNSIGNED),
    FIELD(15, struct process, lost_state, BIN_UNSIGNED),
    FIELD(16, struct process, clock_realtime, BIN_SIGNED),
    FIELD(17, struct process, clock_monotonic, BIN_SIGNED),
    FIELD(18, struct process, unrecorded, BIN_UNSIGNED),
};
SCHEMA(process, struct process);

static const struct bin_field device_fields[] = {
    FIELD(1, struct device, process, BIN_UNSIGNED),
    FIELD(2, struct device, ordinal, BIN_UNSIGNED),
    FIELD(3, struct device, name, BIN_NONEABLE),
    FIELD(4, struct device, has_uuid, BIN_TRUTH),
    ARRAY(5, struct device, uuid, BIN_OCTETS, 2),
    FIELD(7, struct device, total, BIN_UNSIGNED),
    FIELD(8, struct device, free_at_end, BIN_UNSIGNED),
    FIELD(9, struct device, max_entries, BIN_UNSIGNED),
    FIELD(10, struct device, lost_entries, BIN_UNSIGNED),
    FIELD(11, struct device, has_stats, BIN_TRUTH),
    FIELD(12, struct device, stats_exact, BIN_TRUTH),
    FIELD(13, struct device, has_sample, BIN_TRUTH),
    FIELD(14, struct device, known_bytes, BIN_UNSIGNED),
    FIELD(15, struct device, pool_bytes, BIN_UNSIGNED),
};
SCHEMA(device, struct device);

/* The numbers of struct memory_stats in its order: kind, pool class, field; then oversize ..., then the single ones. */
_Static_assert(sizeof(struct memory_stats) == MEMORY_STATS_KEYS * sizeof(int64_t), "all are 64-bit numbers");
static const struct bin_field statistics_fields[] = {
    FIELD(1, struct bin_statistics, device, BIN_UNSIGNED),
    ARRAY(16, struct bin_statistics, stats, BIN_SIGNED, MEMORY_STATS_KEYS),
};
SCHEMA(statistics, struct bin_statistics);

static const struct bin_field node_fields[] = {
    FIELD(1, struct bin_node, kind, BIN_UNSIGNED),
    FIELD(2, struct bin_node, length, BIN_UNSIGNED),
};
SCHEMA(node, struct bin_node);

static const struct bin_field odd_fields[] = {
    FIELD(1, struct bin_odd, row, BIN_UNSIGNED),
    FIELD(2, struct bin_odd, slot, BIN_UNSIGNED),
    FIELD(3, struct bin_odd, row_kind, BIN_UNSIGNED),
    FIELD(4, struct bin_odd, content.kind, BIN_UNSIGNED),
    FIELD(5, struct bin_odd, content.payload, BIN_UNSIGNED),
};
SCHEMA(odd, struct bin_odd);

static const struct bin_field setting_fields[] = {
    FIELD(1, struct bin_setting, key, BIN_NONEABLE),
    FIELD(2, struct bin_setting, content.kind, BIN_UNSIGNED),
    FIELD(3, struct bin_setting, content.payload, BIN_UNSIGNED),
};
SCHEMA(setting, struct bin_setting);

static const struct bin_field annotation_fields[] = {
    FIELD(1, struct annotation, name, BIN_NONEABLE),
    FIELD(2, struct annotation, time, BIN_SIGNED),
    FIELD(3, struct annotation, device, BIN_UNSIGNED),
    FIELD(4, struct annotation, process, BIN_UNSIGNED),
    FIELD(5, struct annotation, shape, BIN_UNSIGNED),
    FIELD(6, struct annotation, stage, BIN_UNSIGNED),
    FIELD(7, struct annotation, thread, BIN_UNSIGNED),
    FIELD(8, struct annotation, later, BIN_UNSIGNED),
};
SCHEMA(annotation, struct annotation);

static const struct bin_field segment_fields[] = {
    FIELD(1, struct segment, address, BIN_UNSIGNED),
    FIELD(2, struct segment, total_size, BIN_UNSIGNED),
    FIELD(3, struct segment, allocated_size, BIN_UNSIGNED),
    FIELD(4, struct segment, active_size, BIN_UNSIGNED),
    FIELD(5, struct segment, requested_size, BIN_UNSIGNED),
    FIELD(6, struct segment, stream, BIN_SIGNED),
    FIELD(7, struct segment, context, BIN_NONEABLE),
    FIELD(8, struct segment, pool, BIN_NONEABLE),
    FIELD(9, struct segment, block_count, BIN_UNSIGNED),
    FIELD(10, struct segment, process, BIN_UNSIGNED),
    FIELD(11, struct segment, device, BIN_UNSIGNED),
    FIELD(12, struct segment, shape, BIN_UNSIGNED),
    FIELD(13, struct segment, is_large, BIN_TRUTH),
    FIELD(14, struct segment, is_expandable, BIN_TRUTH),
    FIELD(15, struct segment, kind, BIN_UNSIGNED),
    FIELD(16, struct segment, is_outside, BIN_TRUTH),
};
SCHEMA(segment, struct segment);

static const struct bin_field block_fields[] = {
    FIELD(1, struct block, address, BIN_UNSIGNED),
    FIELD(2, struct block, size, BIN_UNSIGNED),
    FIELD(3, struct block, requested, BIN_UNSIGNED),
    FIELD(4, struct block, context, BIN_NONEABLE),
    FIELD(5, struct block, shape, BIN_UNSIGNED),
    FIELD(6, struct block, state, BIN_UNSIGNED),
    FIELD(7, struct block, flags, BIN_UNSIGNED),
};
SCHEMA(block, struct block);

static const struct bin_field checkpoint_fields[] = {
    FIELD(1, struct bin_checkpoint, moment, BIN_UNSIGNED),
    FIELD(2, struct bin_checkpoint, exact, BIN_TRUTH),
    FIELD(3, struct bin_checkpoint, segments, BIN_UNSIGNED),
    FIELD(4, struct bin_checkpoint, blocks, BIN_UNSIGNED),
};
SCHEMA(checkpoint, struct bin_checkpoint);

static const struct bin_field index_fields[] = {
    FIELD(1, struct bin_index_row, type, BIN_UNSIGNED),
    FIELD(2, struct bin_index_row, offset, BIN_UNSIGNED),
    FIELD(3, struct bin_index_row, length, BIN_UNSIGNED),
    FIELD(4, struct bin_index_row, moment, BIN_UNSIGNED),
    FIELD(5, struct bin_index_row, count, BIN_UNSIGNED),
};
SCHEMA(index, struct bin_index_row);

static uint64_t bin_load(const unsigned char *at, const struct bin_field *field)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    if (field->kind == BIN_OCTETS) {
        eight = 0;
        for (unsigned i = 0; i < 8; i++)
            eight |= (uint64_t)at[i] << (8 * i);
        return eight;
    }
    bool is_signed = field->kind == BIN_SIGNED;
    switch (field->size) {
    case 1:
        memcpy(&one, at, 1);
        eight = one;
        break;
    case 2:
        memcpy(&two, at, 2);
        eight = is_signed ? (uint64_t)(int64_t)(int16_t)two : two;
        break;
    case 4:
        memcpy(&four, at, 4);
        eight = is_signed ? (uint64_t)(int64_t)(int32_t)four : four;
        break;
    default:
        memcpy(&eight, at, 8);
    }
    if (field->kind == BIN_NONEABLE)
        return (uint32_t)(eight + 1);
    return is_signed ? bin_zigzag(eight) : eight;
}

/* False if the number does not fit the field. */
static bool bin_store(unsigned char *at, const struct bin_field *field, uint64_t number)
{
    if (field->kind == BIN_OCTETS) {
        for (unsigned i = 0; i < 8; i++)
            at[i] = (unsigned char)(number >> (8 * i));
        return true;
    }
    if (field->kind == BIN_TRUTH && number > 1)
        return false;
    if (field->size < 8 && number >> (8 * field->size))
        return false; /* zigzag keeps the width */
    if (field->kind == BIN_SIGNED)
        number = bin_unzigzag(number);
    if (field->kind == BIN_NONEABLE)
        number--;
    uint8_t one = (uint8_t)number;
    uint16_t two = (uint16_t)number;
    uint32_t four = (uint32_t)number;
    switch (field->size) {
    case 1:
        memcpy(at, &one, 1);
        break;
    case 2:
        memcpy(at, &two, 2);
        break;
    case 4:
        memcpy(at, &four, 4);
        break;
    default:
        memcpy(at, &number, 8);
    }
    return true;
}

void bin_put_rows(struct bin_sink *sink, const struct bin_schema *schema, const void *rows, size_t count)
{
    uint64_t *values = malloc((count ? count : 1) * sizeof(*values));
    if (!values)
        sink->bytes.failed = true;
    bin_put_table(sink, count);
    for (size_t f = 0; values && f < schema->field_count; f++) {
        const struct bin_field *field = &schema->fields[f];
        for (unsigned r = 0; r < field->repeat; r++) {
            const unsigned char *at = (const unsigned char *)rows + field->offset + (size_t)r * field->size;
            uint64_t any = 0;
            for (size_t i = 0; i < count; i++)
                any |= values[i] = bin_load(at + i * schema->row_size, field);
            if (any) /* what is 0 in every row is left out */
                bin_put_column(sink, field->column + r, values, count);
        }
    }
    bin_put_table_end(sink);
    free(values);
}

/* Fields whose column a file lacks mean "none" where 0 on disk is "none". */
static void bin_fill_none(const struct bin_schema *schema, unsigned char *rows, size_t count)
{
    for (size_t f = 0; f < schema->field_count; f++)
        if (schema->fields[f].kind == BIN_NONEABLE)
            for (size_t i = 0; i < count; i++)
                memset(rows + i * schema->row_size + schema->fields[f].offset, 0xff, 4);
}

static const struct bin_field *bin_find_field(const struct bin_schema *schema, uint64_t column, size_t *offset)
{
    for (size_t f = 0; f < schema->field_count; f++) {
        const struct bin_field *field = &schema->fields[f];
        if (column >= field->column && column - field->column < field->repeat) {
            *offset = field->offset + (size_t)(column - field->column) * field->size;
            return field;
        }
    }
    return NULL;
}

bool bin_get_rows(struct bin_cursor *cursor, const struct bin_schema *schema, void *rows, size_t count,
                  uint64_t *scratch)
{
    bin_fill_none(schema, rows, count);
    for (;;) {
        struct bin_column column;
        size_t offset;
        if (!bin_get_column(cursor, &column))
            return false;
        if (column.number == 0)
            return true;
        const struct bin_field *field = bin_find_field(schema, column.number, &offset);
        if (!field)
            continue;
        if (column.count != count || !bin_decode_column(&column, scratch))
            return false;
        unsigned char *at = (unsigned char *)rows + offset;
        for (size_t i = 0; i < count; i++)
            if (!bin_store(at + i * schema->row_size, field, scratch[i]))
                return false;
    }
}
