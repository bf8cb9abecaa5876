/*
 * What opcodes carry: strings, bytes, integers, and the lines of protocol 0.  Long things are read in pieces no larger
 * than what came before, so that a length that lies costs nothing.  Uses base and snapshot.
 */
#include "base/array.h"
#include "format/pickle_machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 * 1024, SCRATCH_KEPT = 1024 * 1024, DIGITS_MOST = 4300 };

/* ---- strings ---- */

/* As Python's: surrogates may stand in it. */
bool pickle_is_utf8(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + length;
    while (at < end) {
        unsigned char lead = *at++;
        if (lead < 0x80)
            continue;
        unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - at) < more)
            return false;
        if ((lead == 0xe0 && at[0] < 0xa0) || (lead == 0xf0 && at[0] < 0x90) || (lead == 0xf4 && at[0] > 0x8f))
            return false;
        for (; more > 0; more--)
            if ((*at++ & 0xc0) != 0x80)
                return false;
    }
    return true;
}

uint32_t pickle_content_slow(struct pickle *pickle, const char *bytes, size_t length)
{
    struct strings *strings = pickle->snapshot->strings;
    uint32_t content = strings_find(strings, bytes, length);
    if (content == STRING_NONE) {
        if (length >= UINT32_MAX || !pickle_is_utf8(bytes, length))
            return NONE32;
        content = strings_intern(strings, bytes, length);
        if (content == STRING_NONE)
            return NONE32;
        pickle->string_bytes += length + 1;
    }
    if (length > 0 && length <= 32) {
        unsigned hash = (unsigned char)bytes[0] * 31u + (unsigned char)bytes[length - 1] * 131u +
                        (unsigned char)bytes[length / 2] * 17u + (unsigned)length * 7u;
        pickle->strings[hash % PICKLE_STRING_CACHE] =
            (struct pickle_cached){strings_text(strings, content), (uint32_t)length, content};
    }
    return content;
}

int pickle_push_text(struct pickle *pickle, const char *bytes, size_t length, struct error *err)
{
    uint32_t content = pickle_content(pickle, bytes, length);
    if (content == NONE32 && !pickle_is_utf8(bytes, length))
        return pickle_fail(pickle, err, "damaged pickle: a string that is not UTF-8");
    uint32_t object = content == NONE32 ? NONE32 : snapshot_string_object(pickle->snapshot, content);
    if (object == NONE32 || pickle_push(pickle, value_make(VALUE_STRING, object)))
        return error_no_memory(err);
    return 0;
}

static void pickle_add_code_point(struct text *text, uint32_t code)
{
    if (code < 0x80) {
        text_char(text, (char)code);
        return;
    }
    char bytes[4];
    unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char leads[4] = {0, 0xc0, 0xe0, 0xf0};
    bytes[0] = (char)(leads[more] | code >> (6 * more));
    for (unsigned i = 1; i <= more; i++)
        bytes[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3f));
    text_append(text, bytes, more + 1);
}

/* Python 2's byte strings: text where they are text, else byte for byte. */
static int pickle_push_byte_string(struct pickle *pickle, const char *bytes, size_t length, struct error *err)
{
    if (pickle_is_utf8(bytes, length))
        return pickle_push_text(pickle, bytes, length, err);
    struct text text = {0};
    for (size_t i = 0; i < length; i++)
        pickle_add_code_point(&text, (unsigned char)bytes[i]);
    int status = text_failed(&text) ? error_no_memory(err)
                                    : pickle_push_text(pickle, text_string(&text), text.length, err);
    text_free(&text);
    return status;
}

/* ---- long things ---- */

/* length bytes, in the window or in scratch. */
static int pickle_take(struct pickle *pickle, uint64_t length, const char **bytes, struct error *err)
{
    if (length > (size_t)(pickle->end - pickle->at) && length <= PIECE) {
        int status = pickle_refill(pickle, (size_t)length, err);
        if (status)
            return status;
        if (length > (size_t)(pickle->end - pickle->at))
            return error_at(err, STATUS_INPUT, pickle->op_offset, "cut short: the pickle ends in the middle of a value");
    }
    if (length <= (size_t)(pickle->end - pickle->at)) {
        *bytes = (const char *)pickle->at;
        pickle->at += length;
        return 0;
    }
    if (length > INT64_MAX)
        return pickle_fail(pickle, err, "damaged pickle: a value of %" PRIu64 " bytes", length);
    struct text *scratch = &pickle->scratch;
    text_clear(scratch);
    for (uint64_t have = 0; have < length;) {
        uint64_t piece = have > PIECE ? have : PIECE;
        if (piece > length - have)
            piece = length - have;
        if (array_reserve(&scratch->bytes, &scratch->capacity, (size_t)(have + piece) + 1, 1))
            return error_no_memory(err);
        int status = pickle_read_exactly(pickle, scratch->bytes + have, (size_t)piece, err);
        if (status)
            return status;
        have += piece;
    }
    *bytes = scratch->bytes;
    return 0;
}

/* Do not keep a giant's room for the rest of the file. */
static void pickle_trim(struct pickle *pickle)
{
    if (pickle->scratch.capacity > SCRATCH_KEPT)
        text_free(&pickle->scratch);
}

int pickle_string(struct pickle *pickle, uint64_t length, bool is_text, struct error *err)
{
    const char *bytes;
    int status = pickle_take(pickle, length, &bytes, err);
    if (!status)
        status = is_text ? pickle_push_text(pickle, bytes, (size_t)length, err)
                         : pickle_push_byte_string(pickle, bytes, (size_t)length, err);
    pickle_trim(pickle);
    return status;
}

int pickle_bytes(struct pickle *pickle, enum value_kind kind, uint64_t length, struct error *err)
{
    const char *bytes;
    int status = pickle_take(pickle, length, &bytes, err);
    if (!status)
        status = pickle_push_made(pickle, values_bytes(pickle->values, kind, bytes, (size_t)length), err);
    pickle_trim(pickle);
    return status;
}

int pickle_long(struct pickle *pickle, uint64_t length, struct error *err)
{
    const char *bytes;
    int status = pickle_take(pickle, length, &bytes, err);
    if (!status)
        status = pickle_push_made(
            pickle, values_long(pickle->values, (const unsigned char *)bytes, (size_t)length), err);
    pickle_trim(pickle);
    return status;
}

/* ---- lines ---- */

int pickle_line(struct pickle *pickle, struct error *err)
{
    text_clear(&pickle->scratch);
    for (;;) {
        size_t left = (size_t)(pickle->end - pickle->at);
        const unsigned char *newline = left ? memchr(pickle->at, '\n', left) : NULL;
        size_t take = newline ? (size_t)(newline - pickle->at) : left;
        text_append(&pickle->scratch, (const char *)pickle->at, take);
        pickle->at += take + (newline != NULL);
        if (text_failed(&pickle->scratch))
            return error_no_memory(err);
        if (newline)
            return 0;
        if (pickle->at_end)
            return error_at(err, STATUS_INPUT, pickle->op_offset, "cut short: the pickle ends in the middle of a line");
        int status = pickle_refill(pickle, PIECE, err);
        if (status)
            return status;
    }
}

/* Decimal digits of any number of places that Python would accept. */
static int pickle_decimal(struct pickle *pickle, const char *digits, size_t length, struct error *err)
{
    unsigned char bytes[DIGITS_MOST / 2 + 8];
    size_t used = 1;
    bool negative = length > 0 && digits[0] == '-';
    size_t first = length > 0 && (digits[0] == '-' || digits[0] == '+');
    if (first == length || length > DIGITS_MOST)
        return pickle_fail(pickle, err, "damaged pickle: a line that is no integer");
    bytes[0] = 0;
    for (size_t i = first; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return pickle_fail(pickle, err, "damaged pickle: a line that is no integer");
        unsigned carry = (unsigned)(digits[i] - '0');
        for (size_t k = 0; k < used; k++) {
            carry += bytes[k] * 10u;
            bytes[k] = (unsigned char)carry;
            carry >>= 8;
        }
        if (carry > 0)
            bytes[used++] = (unsigned char)carry;
    }
    bytes[used++] = 0; /* room for the sign */
    unsigned carry = 1;
    for (size_t k = 0; negative && k < used; k++) {
        carry += (unsigned char)~bytes[k];
        bytes[k] = (unsigned char)carry;
        carry >>= 8;
    }
    return pickle_push_made(pickle, values_long(pickle->values, bytes, used), err);
}

static int pickle_integer_line(struct pickle *pickle, unsigned char opcode, struct error *err)
{
    const char *line = text_string(&pickle->scratch);
    size_t length = pickle->scratch.length;
    if (opcode == 'I' && length == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1'))
        return pickle_push_made(pickle, value_make(line[1] == '1' ? VALUE_TRUE : VALUE_FALSE, 0), err);
    if (opcode == 'L' && length > 0 && line[length - 1] == 'L')
        length--;
    return pickle_decimal(pickle, line, length, err);
}

static int pickle_float_line(struct pickle *pickle, struct error *err)
{
    const char *line = text_string(&pickle->scratch);
    char *end;
    double number = strtod(line, &end);
    if (end == line || end != line + pickle->scratch.length)
        return pickle_fail(pickle, err, "damaged pickle: a line that is no number");
    return pickle_push_made(pickle, values_float(pickle->values, number), err);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* count hex digits; false if there are fewer. */
static bool hex_number(const char *at, const char *end, unsigned count, uint32_t *number)
{
    *number = 0;
    if ((size_t)(end - at) < count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return false;
        *number = *number << 4 | (uint32_t)digit;
    }
    return true;
}

/* One escape of a Python string literal, after its backslash. */
static bool unescape(const char **at, const char *end, struct text *text)
{
    static const char plain[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
    char c = *(*at)++;
    const char *found = c ? strchr(plain, c) : NULL;
    uint32_t number = 0;
    if (found) {
        text_char(text, meant[found - plain]);
    } else if (c == 'x') {
        if (!hex_number(*at, end, 2, &number))
            return false;
        *at += 2;
        text_char(text, (char)number);
    } else if (c >= '0' && c <= '7') {
        number = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && *at < end && **at >= '0' && **at <= '7'; i++)
            number = number * 8 + (uint32_t)(*(*at)++ - '0');
        text_char(text, (char)number);
    } else {
        text_char(text, '\\');
        text_char(text, c);
    }
    return true;
}

static int pickle_quoted_line(struct pickle *pickle, struct text *text, struct error *err)
{
    const char *at = text_string(&pickle->scratch), *end = at + pickle->scratch.length;
    if (end - at < 2 || (*at != '\'' && *at != '"') || end[-1] != *at)
        return pickle_fail(pickle, err, "damaged pickle: a line that is no string");
    at++;
    end--;
    while (at < end) {
        char c = *at++;
        if (c != '\\')
            text_char(text, c);
        else if (at == end || !unescape(&at, end, text))
            return pickle_fail(pickle, err, "damaged pickle: a line that is no string");
    }
    return text_failed(text) ? error_no_memory(err) : pickle_push_byte_string(pickle, text_string(text), text->length, err);
}

static int pickle_unicode_line(struct pickle *pickle, struct text *text, struct error *err)
{
    const char *at = text_string(&pickle->scratch), *end = at + pickle->scratch.length;
    while (at < end) {
        char c = *at++;
        if (c != '\\' || at == end) {
            pickle_add_code_point(text, (unsigned char)c);
            continue;
        }
        c = *at++;
        uint32_t code;
        unsigned digits = c == 'u' ? 4 : 8;
        if (c != 'u' && c != 'U') {
            text_char(text, '\\');
            pickle_add_code_point(text, (unsigned char)c);
            continue;
        }
        if (!hex_number(at, end, digits, &code) || code > 0x10ffff)
            return pickle_fail(pickle, err, "damaged pickle: a line that is no text");
        at += digits;
        pickle_add_code_point(text, code);
    }
    return text_failed(text) ? error_no_memory(err) : pickle_push_text(pickle, text_string(text), text->length, err);
}

static int pickle_global_lines(struct pickle *pickle, struct text *module, struct error *err)
{
    text_append(module, text_string(&pickle->scratch), pickle->scratch.length);
    int status = pickle_line(pickle, err);
    if (!status && text_failed(module))
        status = error_no_memory(err);
    return status ? status : pickle_global(pickle, text_string(module), text_string(&pickle->scratch), err);
}

int pickle_text_opcode(struct pickle *pickle, unsigned char opcode, struct error *err)
{
    struct text text = {0};
    int status = pickle_line(pickle, err);
    if (status)
        return status;
    switch (opcode) {
    case 'I': case 'L':
        status = pickle_integer_line(pickle, opcode, err);
        break;
    case 'F':
        status = pickle_float_line(pickle, err);
        break;
    case 'S':
        status = pickle_quoted_line(pickle, &text, err);
        break;
    case 'V':
        status = pickle_unicode_line(pickle, &text, err);
        break;
    default:
        status = pickle_global_lines(pickle, &text, err);
        break;
    }
    text_free(&text);
    pickle_trim(pickle);
    return status;
}
