/* JSON text and plain data.  Uses src/base, src/snapshot. */
#include "format/json_value.h"

#include <math.h>
#include <string.h>

#define JSON_DEPTH 200

static void json_separate(struct json *json)
{
    if (json->comma)
        output_char(json->output, ',');
    json->comma = true;
}

void json_open(struct json *json, char bracket)
{
    json_separate(json);
    output_char(json->output, bracket);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    output_char(json->output, bracket);
    json->comma = true;
}

void json_bytes(struct json *json, const char *bytes, size_t length)
{
    json_separate(json);
    text_clear(&json->text);
    text_add_json(&json->text, bytes, length);
    output_write(json->output, text_string(&json->text), json->text.length);
}

void json_key_bytes(struct json *json, const char *key, size_t length)
{
    json_bytes(json, key, length);
    output_char(json->output, ':');
    json->comma = false;
}

void json_key(struct json *json, const char *key)
{
    json_key_bytes(json, key, strlen(key));
}

void json_signed(struct json *json, int64_t number)
{
    json_separate(json);
    output_printf(json->output, "%lld", (long long)number);
}

void json_unsigned(struct json *json, uint64_t number)
{
    json_separate(json);
    output_printf(json->output, "%llu", (unsigned long long)number);
}

void json_bool(struct json *json, bool truth)
{
    json_separate(json);
    output_text(json->output, truth ? "true" : "false");
}

void json_null(struct json *json)
{
    json_separate(json);
    output_text(json->output, "null");
}

void json_content(struct json *json, uint32_t content)
{
    size_t length;
    const char *text = snapshot_content_text(json->snapshot, content, &length);
    if (content == STRING_NONE)
        json_null(json);
    else
        json_bytes(json, text, length);
}

void json_object(struct json *json, uint32_t object)
{
    if (object >= json->snapshot->string_object_count)
        json_null(json);
    else
        json_content(json, json->snapshot->string_objects[object]);
}

/* Decimal of little-endian two's complement bytes, by repeated division; long ones as hexadecimal text. */
static void json_long(struct json *json, value v)
{
    size_t length;
    const unsigned char *bytes = values_long_bytes(json->snapshot->values, v, &length);
    bool negative = length && bytes[length - 1] & 0x80;
    unsigned char rest[64];
    char digits[160];
    size_t count = 0;
    if (length > sizeof(rest)) {
        json_separate(json);
        output_text(json->output, "\"0x");
        for (size_t i = length; i-- > 0;)
            output_printf(json->output, "%02x", bytes[i]);
        output_char(json->output, '"');
        return;
    }
    unsigned carry = negative;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = negative ? (unsigned char)~bytes[i] + carry : bytes[i];
        carry = negative ? byte >> 8 : 0;
        rest[i] = (unsigned char)byte;
    }
    bool zero;
    do {
        unsigned remainder = 0;
        zero = true;
        for (size_t i = length; i-- > 0;) {
            remainder = remainder << 8 | rest[i];
            rest[i] = (unsigned char)(remainder / 10);
            remainder %= 10;
            zero = zero && !rest[i];
        }
        digits[count++] = (char)('0' + remainder);
    } while (!zero);
    json_separate(json);
    if (negative)
        output_char(json->output, '-');
    while (count)
        output_char(json->output, digits[--count]);
}

static void json_float(struct json *json, double number)
{
    json_separate(json);
    if (isnan(number))
        output_text(json->output, "\"NaN\"");
    else if (isinf(number))
        output_text(json->output, number < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        output_printf(json->output, "%.17g", number);
}

static void json_blob(struct json *json, value v)
{
    size_t length;
    const unsigned char *bytes = values_get_bytes(json->snapshot->values, v, &length);
    json_open(json, '{');
    json_key(json, "bytes");
    output_char(json->output, '"');
    for (size_t i = 0; i < length; i++)
        output_printf(json->output, "%02x", bytes[i]);
    output_char(json->output, '"');
    json_close(json, '}');
}

static void json_row(struct json *json, value v)
{
    static const char *const names[ROW_KIND_COUNT] = {"top", "entry", "segment", "block", "frame", "annotation", "context",
                                                "settings"};
    unsigned kind = value_row_kind(v);
    json_open(json, '{');
    if (kind == ROW_CONTEXT) {
        json_key(json, "stack");
        json_unsigned(json, snapshot_context_stack(json->snapshot, (uint32_t)value_row_number(v)));
    } else {
        json_key(json, "row");
        json_bytes(json, kind < ROW_KIND_COUNT ? names[kind] : "", kind < ROW_KIND_COUNT ? strlen(names[kind]) : 0);
        json_key(json, "number");
        json_unsigned(json, value_row_number(v));
    }
    json_close(json, '}');
}

static void json_any(struct json *json, value v, unsigned depth);

static void json_items(struct json *json, value v, unsigned depth)
{
    size_t count = values_count(json->snapshot->values, v);
    json_open(json, '[');
    for (size_t i = 0; i < count && !json->too_shared; i++)
        json_any(json, values_items(json->snapshot->values, v)[i], depth + 1);
    json_close(json, ']');
}

static void json_dict(struct json *json, value v, unsigned depth)
{
    const struct snapshot *snapshot = json->snapshot;
    const value *items = values_items(snapshot->values, v);
    size_t count = values_count(snapshot->values, v);
    bool plain = true;
    for (size_t i = 0; i + 1 < count; i += 2)
        plain = plain && value_kind(items[i]) == VALUE_STRING;
    json_open(json, '{');
    if (!plain) {
        json_key(json, "pairs");
        json_open(json, '[');
    }
    for (size_t i = 0; i + 1 < count && !json->too_shared; i += 2) {
        if (plain) {
            size_t length;
            const char *key = snapshot_object_text(snapshot, (uint32_t)value_payload(items[i]), &length);
            json_key_bytes(json, key, length);
            json_any(json, items[i + 1], depth + 1);
        } else {
            json_open(json, '[');
            json_any(json, items[i], depth + 1);
            json_any(json, items[i + 1], depth + 1);
            json_close(json, ']');
        }
    }
    if (!plain)
        json_close(json, ']');
    json_close(json, '}');
}

static void json_any(struct json *json, value v, unsigned depth)
{
    int64_t number;
    if (!json->budget || depth > JSON_DEPTH)
        json->too_shared = true;
    if (json->too_shared)
        return;
    json->budget--;
    switch (value_kind(v)) {
    case VALUE_FALSE:
    case VALUE_TRUE:
        json_bool(json, value_kind(v) == VALUE_TRUE);
        break;
    case VALUE_INT:
        values_get_int(json->snapshot->values, v, &number);
        json_signed(json, number);
        break;
    case VALUE_LONG:
        json_long(json, v);
        break;
    case VALUE_FLOAT:
        json_float(json, values_get_float(json->snapshot->values, v));
        break;
    case VALUE_STRING:
        json_object(json, (uint32_t)value_payload(v));
        break;
    case VALUE_BYTES:
    case VALUE_BYTEARRAY:
        json_blob(json, v);
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_SET:
    case VALUE_FROZENSET:
        json_items(json, v, depth);
        break;
    case VALUE_DICT:
        json_dict(json, v, depth);
        break;
    case VALUE_ROW:
        json_row(json, v);
        break;
    default:
        json_null(json);
    }
}

void json_value(struct json *json, value v)
{
    json_any(json, v, 0);
}
