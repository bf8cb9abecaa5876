/* Python's repr() of rows and values.  Uses src/snapshot, src/base and names of native frames from src/analyze. */
#include "render/python_repr.h"

#include "analyze/frame_text.h"
#include "base/array.h"
#include "render/unprintable.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPR_DEPTH 100
#define REPR_DIGIT_BYTES 1785 /* 4,300 digits: where Python itself refuses */

struct repr {
    const struct snapshot *snapshot;
    struct output *output;
    uint64_t limit;         /* of output_offset() */
    value open[REPR_DEPTH]; /* containers that are being written */
    unsigned depth;
    bool too_long;
};

static void write_value(struct repr *repr, value content);
static void write_row(struct repr *repr, enum row_kind kind, uint64_t row);

/* One character of UTF-8, surrogates included; its length, 0 if these bytes are none. */
static size_t decode(const unsigned char *s, size_t length, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (!size || size > length)
        return 0;
    *c = size == 1 ? s[0] : s[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    return *c >= least[size] && *c <= 0x10ffff ? size : 0;
}

static bool is_printable(uint32_t c)
{
    if (c < 0x80)
        return c >= 0x20 && c != 0x7f;
    uint32_t at = 0x80;
    for (size_t i = 0; i < sizeof(unprintable_runs) / sizeof(unprintable_runs[0]); i += 2) {
        at += unprintable_runs[i];
        if (c < at)
            return true;
        at += unprintable_runs[i + 1];
        if (c < at)
            return false;
    }
    return true;
}

static void write_escaped(struct output *output, uint32_t c)
{
    if (c == '\n' || c == '\r' || c == '\t')
        output_printf(output, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (c < 0x100)
        output_printf(output, "\\x%02" PRIx32, c);
    else if (c < 0x10000)
        output_printf(output, "\\u%04" PRIx32, c);
    else
        output_printf(output, "\\U%08" PRIx32, c);
}

void repr_string(struct output *output, const char *bytes, size_t length)
{
    char quote = memchr(bytes, '\'', length) && !memchr(bytes, '"', length) ? '"' : '\'';
    size_t plain = 0; /* start of what can be written as it is */
    output_char(output, quote);
    for (size_t i = 0; i < length;) {
        uint32_t c = (unsigned char)bytes[i];
        size_t size = decode((const unsigned char *)bytes + i, length - i, &c);
        bool is_plain = size && c != '\\' && c != (uint32_t)quote && is_printable(c);
        if (!is_plain) {
            output_write(output, bytes + plain, i - plain);
            if (size == 1 && (c == '\\' || c == (uint32_t)quote))
                output_printf(output, "\\%c", (int)c);
            else
                write_escaped(output, c);
            plain = i + (size ? size : 1);
        }
        i += size ? size : 1;
    }
    output_write(output, bytes + plain, length - plain);
    output_char(output, quote);
}

void repr_float(struct output *output, double number)
{
    char digits[40];
    if (isnan(number) || isinf(number)) {
        output_text(output, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    int precision = 0;
    do
        snprintf(digits, sizeof(digits), "%.*e", precision, number);
    while (strtod(digits, NULL) != number && precision++ < 16);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent >= 16 || exponent < -4) {
        output_text(output, digits); /* C and Python agree here: at least two digits of exponent */
        return;
    }
    int decimals = precision - exponent;
    snprintf(digits, sizeof(digits), "%.*f", decimals > 1 ? decimals : 1, number);
    output_text(output, digits);
}

/* Two's complement, little-endian, of any length: by division, in place. */
static void write_long(struct output *output, const unsigned char *bytes, size_t length)
{
    if (length > REPR_DIGIT_BYTES) {
        output_printf(output, "<integer of %zu bytes>", length);
        return;
    }
    unsigned char work[REPR_DIGIT_BYTES];
    char digits[REPR_DIGIT_BYTES * 5 / 2 + 8];
    size_t count = sizeof(digits);
    bool is_negative = length && bytes[length - 1] & 0x80, more = true;
    unsigned carry = 1;
    for (size_t i = 0; i < length; i++) {
        carry += (unsigned char)~bytes[i];
        work[i] = is_negative ? (unsigned char)carry : bytes[i];
        carry >>= 8;
    }
    while (more && count) {
        unsigned rest = 0;
        more = false;
        for (size_t i = length; i-- > 0;) {
            unsigned part = rest << 8 | work[i];
            work[i] = (unsigned char)(part / 10);
            rest = part % 10;
            more = more || work[i];
        }
        digits[--count] = (char)('0' + rest);
    }
    output_printf(output, "%s%.*s", is_negative ? "-" : "", (int)(sizeof(digits) - count), digits + count);
}

static void write_bytes(struct output *output, const unsigned char *bytes, size_t length)
{
    char quote = length && memchr(bytes, '\'', length) && !memchr(bytes, '"', length) ? '"' : '\'';
    output_printf(output, "b%c", quote);
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\\' || bytes[i] == (unsigned char)quote)
            output_printf(output, "\\%c", bytes[i]);
        else if (bytes[i] >= 0x20 && bytes[i] < 0x7f)
            output_char(output, (char)bytes[i]);
        else
            write_escaped(output, bytes[i]);
    }
    output_char(output, quote);
}

static bool is_over(struct repr *repr)
{
    if (output_offset(repr->output) > repr->limit)
        repr->too_long = true;
    return repr->too_long;
}

static bool enter(struct repr *repr, value content, const char *if_open)
{
    bool is_open = repr->depth == REPR_DEPTH;
    for (unsigned i = 0; i < repr->depth; i++)
        is_open = is_open || repr->open[i] == content;
    if (is_open) {
        output_text(repr->output, if_open);
        return false;
    }
    repr->open[repr->depth++] = content;
    return true;
}

static void write_container(struct repr *repr, value content)
{
    static const char *const marks[][4] = {
        /* before, after, when empty, when it holds itself */
        [VALUE_LIST] = {"[", "]", "[]", "[...]"},
        [VALUE_TUPLE] = {"(", ")", "()", "(...)"},
        [VALUE_DICT] = {"{", "}", "{}", "{...}"},
        [VALUE_SET] = {"{", "}", "set()", "set(...)"},
        [VALUE_FROZENSET] = {"frozenset({", "})", "frozenset()", "frozenset(...)"},
    };
    enum value_kind kind = value_kind(content);
    size_t count = values_count(repr->snapshot->values, content);
    const char *const *mark = marks[kind];
    if (!count) {
        output_text(repr->output, mark[2]);
        return;
    }
    if (!enter(repr, content, mark[3]))
        return;
    output_text(repr->output, mark[0]);
    for (size_t i = 0; i < count && !is_over(repr); i++) {
        if (i)
            output_text(repr->output, kind == VALUE_DICT && i % 2 ? ": " : ", ");
        write_value(repr, values_items(repr->snapshot->values, content)[i]);
    }
    output_text(repr->output, kind == VALUE_TUPLE && count == 1 ? ",)" : mark[1]);
    repr->depth--;
}

static void write_value(struct repr *repr, value content)
{
    const struct snapshot *snapshot = repr->snapshot;
    enum value_kind kind = value_kind(content);
    size_t length;
    int64_t number;
    switch (kind) {
    case VALUE_NONE:
        output_text(repr->output, "None");
        break;
    case VALUE_FALSE:
    case VALUE_TRUE:
        output_text(repr->output, kind == VALUE_TRUE ? "True" : "False");
        break;
    case VALUE_INT:
        values_get_int(snapshot->values, content, &number);
        output_printf(repr->output, "%" PRId64, number);
        break;
    case VALUE_LONG: {
        const unsigned char *bytes = values_long_bytes(snapshot->values, content, &length);
        write_long(repr->output, bytes, length);
        break;
    }
    case VALUE_FLOAT:
        repr_float(repr->output, values_get_float(snapshot->values, content));
        break;
    case VALUE_STRING: {
        const char *text = snapshot_object_text(snapshot, (uint32_t)value_payload(content), &length);
        repr_string(repr->output, text, length);
        break;
    }
    case VALUE_BYTES:
    case VALUE_BYTEARRAY: {
        const unsigned char *bytes = values_get_bytes(snapshot->values, content, &length);
        output_text(repr->output, kind == VALUE_BYTEARRAY ? "bytearray(" : "");
        write_bytes(repr->output, bytes, length);
        output_text(repr->output, kind == VALUE_BYTEARRAY ? ")" : "");
        break;
    }
    case VALUE_ROW:
        write_row(repr, (enum row_kind)value_row_kind(content), value_row_number(content));
        break;
    case VALUE_MARK:
        break;
    default:
        write_container(repr, content);
    }
}

static void write_object(struct repr *repr, uint32_t object)
{
    size_t length;
    const char *text = snapshot_object_text(repr->snapshot, object, &length);
    repr_string(repr->output, text, length);
}

static void write_key(struct repr *repr, bool *is_first, uint32_t key)
{
    size_t length;
    const char *name;
    output_text(repr->output, *is_first ? "" : ", ");
    *is_first = false;
    if (key < FIELD_COUNT) {
        name = field_name((enum field)key);
        length = strlen(name);
    } else {
        name = snapshot_content_text(repr->snapshot, key - FIELD_COUNT, &length);
    }
    repr_string(repr->output, name, length);
    output_text(repr->output, ": ");
}

static void write_context(struct repr *repr, uint32_t context)
{
    const struct snapshot *snapshot = repr->snapshot;
    const char *before = "[";
    for (uint32_t stack = snapshot_context_stack(snapshot, context); stack != STACK_EMPTY && !is_over(repr);
         stack = snapshot->stacks[stack].parent) {
        output_text(repr->output, before);
        write_row(repr, ROW_FRAME, snapshot->stacks[stack].frame);
        before = ", ";
    }
    output_text(repr->output, *before == '[' ? "[]" : "]");
}

static void write_frame_field(struct repr *repr, uint64_t row, uint32_t field)
{
    const struct frame *frame = &repr->snapshot->frames[row];
    if (field == FIELD_NAME && frame->name == STRING_NONE && frame->flags & FRAME_NATIVE) {
        struct text text = {0};
        frame_native_name(repr->snapshot, frame, &text);
        repr_string(repr->output, text_string(&text), text.length);
        text_free(&text);
    } else if (field == FIELD_NAME)
        write_object(repr, frame->name);
    else if (field == FIELD_FILENAME)
        write_object(repr, frame->filename);
    else if (field == FIELD_LINE)
        output_printf(repr->output, "%" PRId64, frame->line);
    else
        output_text(repr->output, "None");
}

static void write_pool(struct repr *repr, uint64_t row)
{
    const uint32_t *column = repr->snapshot->entries.pool;
    struct pool pool = {{0, 0}};
    if (column && column[row] != NONE32)
        pool = repr->snapshot->pools[column[row]];
    output_printf(repr->output, "(%" PRId64 ", %" PRId64 ")", pool.id[0], pool.id[1]);
}

/* A string column: what an entry of our own lacks is PyTorch's default. */
static void write_column(struct repr *repr, const uint32_t *column, uint64_t row, const char *otherwise)
{
    if (column && column[row] != STRING_NONE)
        write_object(repr, column[row]);
    else
        repr_string(repr->output, otherwise, strlen(otherwise));
}

static void write_entry_field(struct repr *repr, uint64_t row, uint32_t field)
{
    const struct entries *entries = &repr->snapshot->entries;
    const char *action;
    switch (field) {
    case FIELD_ACTION:
        action = action_name((enum action)entries->action[row]);
        repr_string(repr->output, action, strlen(action));
        break;
    case FIELD_ADDR:
    case FIELD_DEVICE_FREE:
        output_printf(repr->output, "%" PRIu64, entries->address[row]);
        break;
    case FIELD_SIZE:
        output_printf(repr->output, "%" PRIu64, entries->size[row]);
        break;
    case FIELD_STREAM:
        output_printf(repr->output, "%" PRId64, repr->snapshot->streams[entries->stream[row]]);
        break;
    case FIELD_TIME_US:
        output_printf(repr->output, "%" PRId64, entries->time[row]);
        break;
    case FIELD_COMPILE_CONTEXT:
        write_column(repr, entries->compile_context, row, "N/A");
        break;
    case FIELD_USER_METADATA:
        write_column(repr, entries->user_metadata, row, "");
        break;
    case FIELD_FRAMES:
        write_context(repr, entries->context[row]);
        break;
    case FIELD_POOL_ID:
        write_pool(repr, row);
        break;
    default:
        output_text(repr->output, "None");
    }
}

static void write_field(struct repr *repr, enum row_kind kind, uint64_t row, uint32_t field)
{
    if (kind == ROW_ENTRY)
        write_entry_field(repr, row, field);
    else
        write_frame_field(repr, row, field);
}

/* A row without a shape: the keys that PyTorch 2.11 writes. */
static void write_own_row(struct repr *repr, enum row_kind kind, uint64_t row)
{
    static const uint32_t of_frame[] = {FIELD_NAME, FIELD_FILENAME, FIELD_LINE};
    static const uint32_t of_entry[] = {FIELD_ACTION,        FIELD_ADDR,    FIELD_SIZE,
                                        FIELD_STREAM,        FIELD_TIME_US, FIELD_COMPILE_CONTEXT,
                                        FIELD_USER_METADATA, FIELD_FRAMES};
    const struct entries *entries = &repr->snapshot->entries;
    const uint32_t *keys = kind == ROW_FRAME ? of_frame : of_entry;
    size_t count = kind == ROW_FRAME ? 3 : entries->context[row] == CONTEXT_NONE ? 7 : 8;
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        uint32_t key = keys[i];
        if (key == FIELD_ADDR && entries->action[row] == ACTION_OOM)
            key = FIELD_DEVICE_FREE;
        write_key(repr, &is_first, key);
        write_field(repr, kind, row, key);
    }
}

static void write_shaped_row(struct repr *repr, enum row_kind kind, uint64_t row, const struct shape *shape)
{
    bool is_first = true;
    for (uint32_t slot = 0; slot < shape->count && !is_over(repr); slot++) {
        value odd;
        write_key(repr, &is_first, shape->keys[slot]);
        if (repr->snapshot->odd_count && snapshot_get_odd(repr->snapshot, kind, row, (uint16_t)slot, &odd))
            write_value(repr, odd);
        else
            write_field(repr, kind, row, shape->keys[slot]);
    }
}

static void write_row(struct repr *repr, enum row_kind kind, uint64_t row)
{
    const struct snapshot *snapshot = repr->snapshot;
    if (kind == ROW_CONTEXT) {
        write_context(repr, (uint32_t)row);
        return;
    }
    if ((kind == ROW_ENTRY && row >= snapshot->entries.count) || (kind == ROW_FRAME && row >= snapshot->frame_count) ||
        (kind != ROW_ENTRY && kind != ROW_FRAME)) {
        output_text(repr->output, "{...}"); /* an entry that refers to a segment: no file does */
        return;
    }
    if (!enter(repr, value_row(kind, row), "{...}"))
        return;
    uint16_t shape = kind == ROW_ENTRY ? snapshot->entries.shape[row] : snapshot->frames[row].shape;
    output_char(repr->output, '{');
    if (shape == SHAPE_OURS)
        write_own_row(repr, kind, row);
    else
        write_shaped_row(repr, kind, row, &snapshot->shapes[shape]);
    output_char(repr->output, '}');
    repr->depth--;
}

int repr_value(const struct snapshot *snapshot, value content, struct output *output, struct error *err)
{
    struct repr repr = {.snapshot = snapshot, .output = output, .limit = output_offset(output) + REPR_LIMIT};
    write_value(&repr, content);
    if (repr.too_long)
        return error_set(err, STATUS_INPUT, "a value expands to over %" PRIu64 " bytes of text", (uint64_t)REPR_LIMIT);
    return 0;
}

int repr_entry(const struct snapshot *snapshot, size_t entry, struct output *output, struct error *err)
{
    return repr_value(snapshot, value_row(ROW_ENTRY, entry), output, err);
}
