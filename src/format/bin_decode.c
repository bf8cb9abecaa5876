/* Columns of numbers: decoding, checked at every step.  Uses src/base. */
#include "format/bin_column.h"
#include "format/bin_layout.h"

#include <stdlib.h>
#include <string.h>

bool bin_get_varint(struct bin_cursor *cursor, uint64_t *number)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (cursor->at == cursor->end)
            return false;
        unsigned char byte = *cursor->at++;
        if (shift == 63 && byte > 1)
            return false;
        result |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *number = result;
            return true;
        }
    }
    return false;
}

bool bin_get_table(struct bin_cursor *cursor, uint64_t *rows)
{
    return bin_get_varint(cursor, rows) && *rows <= BIN_ROWS;
}

bool bin_get_column(struct bin_cursor *cursor, struct bin_column *column)
{
    if (!bin_get_varint(cursor, &column->number))
        return false;
    if (column->number == 0)
        return true;
    if (cursor->at == cursor->end)
        return false;
    column->encoding = *cursor->at++;
    if (!bin_get_varint(cursor, &column->count) || !bin_get_varint(cursor, &column->length) ||
        column->length > (uint64_t)(cursor->end - cursor->at))
        return false;
    column->bytes = cursor->at;
    cursor->at += column->length;
    return true;
}

static bool bin_decode_constant(struct bin_cursor *cursor, uint64_t *values, size_t count)
{
    uint64_t constant;
    if (!bin_get_varint(cursor, &constant))
        return false;
    for (size_t i = 0; i < count; i++)
        values[i] = constant;
    return true;
}

static bool bin_decode_planes(struct bin_cursor *cursor, uint64_t *values, size_t count, unsigned width)
{
    if (width < 1 || width > 8 || (uint64_t)(cursor->end - cursor->at) / width < count)
        return false;
    const unsigned char *bytes = cursor->at;
    for (size_t i = 0; i < count; i++)
        values[i] = bytes[i];
    for (unsigned plane = 1; plane < width; plane++) {
        bytes += count;
        for (size_t i = 0; i < count; i++)
            values[i] |= (uint64_t)bytes[i] << (8 * plane);
    }
    cursor->at += count * width;
    return true;
}

static bool bin_decode_varints(struct bin_cursor *cursor, uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cursor->at < cursor->end && *cursor->at < 128)
            values[i] = *cursor->at++;
        else if (!bin_get_varint(cursor, &values[i]))
            return false;
    }
    return true;
}

static bool bin_decode_dictionary(struct bin_cursor *cursor, uint64_t *values, size_t count)
{
    uint64_t words;
    if (!bin_get_varint(cursor, &words) || words < 1 || words > 65536 || words > (uint64_t)(cursor->end - cursor->at))
        return false;
    struct bin_cursor list = *cursor;
    for (uint64_t i = 0, skipped; i < words; i++)
        if (!bin_get_varint(cursor, &skipped))
            return false;
    if (!bin_decode_planes(cursor, values, count, words <= 256 ? 1 : 2))
        return false;
    uint64_t *dictionary = malloc(words * sizeof(*dictionary));
    bool good = dictionary != NULL;
    for (uint64_t i = 0; good && i < words; i++)
        bin_get_varint(&list, &dictionary[i]);
    for (size_t i = 0; good && i < count; i++) {
        good = values[i] < words;
        if (good)
            values[i] = dictionary[values[i]];
    }
    free(dictionary);
    return good;
}

static bool bin_decode_runs(struct bin_cursor *cursor, uint64_t *values, size_t count)
{
    uint64_t runs;
    if (!bin_get_varint(cursor, &runs) || runs > count || runs > (uint64_t)(cursor->end - cursor->at))
        return false;
    struct bin_cursor list = *cursor;
    for (uint64_t i = 0, skipped; i < runs; i++)
        if (!bin_get_varint(cursor, &skipped))
            return false;
    size_t at = 0;
    for (uint64_t i = 0; i < runs; i++) {
        uint64_t number, length;
        if (!bin_get_varint(&list, &number) || !bin_get_varint(cursor, &length) || length >= count - at)
            return false;
        for (uint64_t j = 0; j <= length; j++)
            values[at++] = number;
    }
    return at == count;
}

bool bin_decode_column(const struct bin_column *column, uint64_t *values)
{
    struct bin_cursor cursor = {column->bytes, column->bytes + column->length};
    size_t count = (size_t)column->count;
    bool good;
    if (!count)
        return column->length == 0;
    switch (column->encoding & ~(unsigned)BIN_DELTA) {
    case BIN_CONSTANT:
        good = bin_decode_constant(&cursor, values, count);
        break;
    case BIN_PLANES:
        good = cursor.at < cursor.end;
        good = good && bin_decode_planes(&cursor, values, count, *cursor.at++);
        break;
    case BIN_VARINT:
        good = bin_decode_varints(&cursor, values, count);
        break;
    case BIN_DICTIONARY:
        good = bin_decode_dictionary(&cursor, values, count);
        break;
    case BIN_RUNS:
        good = bin_decode_runs(&cursor, values, count);
        break;
    default:
        return false;
    }
    if (good && column->encoding & BIN_DELTA) {
        uint64_t before = 0;
        for (size_t i = 0; i < count; i++)
            values[i] = before += bin_unzigzag(values[i]);
    }
    return good && cursor.at == cursor.end;
}
