/* SVG text.  Uses src/base. */
#include "render/svg.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

struct character {
    uint32_t code;
    size_t bytes;
    size_t columns;
    bool is_plain; /* else shown as \xNN, byte by byte */
};

static bool is_xml(uint32_t c)
{
    bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    bool is_surrogate = c >= 0xd800 && c < 0xe000;
    bool is_direction = c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    return !is_control && !is_surrogate && !is_direction && (c & 0xfffe) != 0xfffe && c <= 0x10ffff;
}

/* Wide ones, and those whose glyph may come from another font; dashes, quotes and the ellipsis are as letters are. */
static bool is_wide(uint32_t c)
{
    return c >= 0x1100 && (c < 0x2010 || c > 0x2027);
}

static struct character next_character(const char *bytes, size_t length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)bytes;
    struct character bad = {.bytes = 1, .columns = 4, .code = s[0]};
    size_t size = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (!size || size > length)
        return bad;
    uint32_t code = size == 1 ? s[0] : s[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return bad;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < least[size] || !is_xml(code))
        return bad;
    return (struct character){.code = code, .bytes = size, .columns = is_wide(code) ? 2 : 1, .is_plain = true};
}

static void write_character(struct output *output, const char *bytes, const struct character *c)
{
    if (!c->is_plain) {
        output_printf(output, "\\x%02" PRIx32, c->code & 0xff);
        return;
    }
    switch (c->code) {
    case '&':
        output_text(output, "&amp;");
        break;
    case '<':
        output_text(output, "&lt;");
        break;
    case '>':
        output_text(output, "&gt;");
        break;
    case '"':
        output_text(output, "&quot;");
        break;
    case '\'':
        output_text(output, "&#39;");
        break;
    default:
        output_write(output, bytes, c->bytes);
    }
}

size_t svg_columns(const char *bytes, size_t length)
{
    size_t columns = 0;
    for (size_t at = 0; at < length;) {
        struct character c = next_character(bytes + at, length - at);
        columns += c.columns;
        at += c.bytes;
    }
    return columns;
}

void svg_text(struct output *output, const char *bytes, size_t length, size_t columns)
{
    bool is_cut = columns != SIZE_MAX && length > columns / 2 && svg_columns(bytes, length) > columns;
    size_t left = is_cut && columns ? columns - 1 : columns;
    for (size_t at = 0; at < length;) {
        struct character c = next_character(bytes + at, length - at);
        if (c.columns > left)
            break;
        left -= c.columns;
        write_character(output, bytes + at, &c);
        at += c.bytes;
    }
    if (is_cut && columns)
        output_text(output, "\xe2\x80\xa6");
}

void svg_hundredths(struct output *output, uint64_t hundredths)
{
    output_printf(output, "%" PRIu64, hundredths / 100);
    if (hundredths % 100)
        output_printf(output, hundredths % 10 ? ".%02u" : ".%u",
                      (unsigned)(hundredths % 10 ? hundredths % 100 : hundredths % 100 / 10));
}

void svg_grouped(struct output *output, uint64_t number)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            output_char(output, ',');
        output_char(output, digits[i]);
    }
}

void svg_percent(struct output *output, uint64_t part, uint64_t whole)
{
    unsigned tenths = whole ? (unsigned)(((unsigned __int128)part * 2000 + whole) / ((unsigned __int128)whole * 2)) : 0;
    output_printf(output, "%u.%u%%", tenths / 10, tenths % 10);
}
