/*
 * Python's three kinds of line tables.  Uses nothing.
 *
 *   up to 3.9   pairs: bytes of code, signed lines; the lines count from behind those bytes
 *   3.10        pairs: bytes of code, signed lines; the lines hold for those bytes, -128 is "no line"
 *   from 3.11   entries that begin with a byte 1KKKKLLL: kind of entry, code units less one; what follows depends on the
 *               kind, with the highest bit clear
 */
#include "base/python_lines.h"

#include <stdbool.h>

#define VERSION(major, minor) ((uint32_t)(major) << 24 | (uint32_t)(minor) << 16)
#define CODE_UNIT 2 /* bytes */

static int64_t line_of_pairs(const unsigned char *table, size_t size, int64_t line, int64_t instruction)
{
    int64_t address = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        address += table[i];
        if (address > instruction)
            break;
        line += (int8_t)table[i + 1];
    }
    return line;
}

static int64_t line_of_ranges(const unsigned char *table, size_t size, int64_t line, int64_t instruction)
{
    int64_t end = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t change = (int8_t)table[i + 1];
        bool none = change == -128;
        end += table[i];
        line += none ? 0 : change;
        if (instruction < end)
            return none ? PYTHON_LINE_NONE : line;
    }
    return PYTHON_LINE_NONE;
}

enum location_kind { LOCATION_ONE_LINE = 10, LOCATION_NO_COLUMNS = 13, LOCATION_LONG = 14, LOCATION_NONE = 15 };

/* Six bits a byte, lowest first, 0x40: more follow; the lowest bit is the sign. */
static int64_t signed_number(const unsigned char *at, const unsigned char *end)
{
    uint64_t number = 0;
    for (unsigned shift = 0; at < end && !(*at & 0x80) && shift < 36; at++, shift += 6) {
        number |= (uint64_t)(*at & 0x3f) << shift;
        if (!(*at & 0x40))
            break;
    }
    return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

static int64_t line_of_locations(const unsigned char *table, size_t size, int64_t line, int64_t instruction)
{
    const unsigned char *at = table, *end = table + size;
    int64_t address = 0;
    while (at < end && *at & 0x80) {
        int kind = *at >> 3 & 15;
        address += ((*at & 7) + 1) * CODE_UNIT;
        at++;
        if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG)
            line += signed_number(at, end);
        else if (kind >= LOCATION_ONE_LINE && kind < LOCATION_NO_COLUMNS)
            line += kind - LOCATION_ONE_LINE;
        if (instruction < address)
            return kind == LOCATION_NONE ? PYTHON_LINE_NONE : line;
        while (at < end && !(*at & 0x80))
            at++;
    }
    return PYTHON_LINE_NONE;
}

int64_t python_line(uint32_t version, const unsigned char *table, size_t size, int32_t first_line, int32_t instruction)
{
    if (instruction < 0)
        return first_line;
    if (version < VERSION(3, 10))
        return line_of_pairs(table, size, first_line, instruction);
    if (version < VERSION(3, 11))
        return line_of_ranges(table, size, first_line, instruction);
    return line_of_locations(table, size, first_line, instruction);
}
