/* Lines of RMM logs taken apart.  Uses src/base/error. */
#include "format/rmm_row.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define MICROSECONDS INT64_C(1000000) /* a second */
#define SECONDS_MOST INT64_C(100000000000)
#define SHOWN 40 /* characters of a bad field that an error repeats */

struct field {
    const char *text;
    size_t length;
};

static const char *const column_names[RMM_COLUMNS] = {"Thread", "Time", "Action", "Pointer", "Size", "Stream"};

/* --- fields ----------------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without blanks around and without quotes. */
static struct field trim(const char *text, size_t length)
{
    while (length && is_blank(*text))
        text++, length--;
    while (length && is_blank(text[length - 1]))
        length--;
    if (length >= 2 && text[0] == '"' && text[length - 1] == '"')
        return (struct field){text + 1, length - 2};
    return (struct field){text, length};
}

/* The next field of a line; false behind the last one.  *line is NULL then. */
static bool next_field(const char **line, size_t *length, struct field *field)
{
    if (!*line)
        return false;
    const char *comma = memchr(*line, ',', *length);
    size_t own = comma ? (size_t)(comma - *line) : *length;
    *field = trim(*line, own);
    *line = comma ? comma + 1 : NULL;
    *length -= own + (comma != NULL);
    return true;
}

static bool field_is(const struct field *field, const char *text)
{
    return field->length == strlen(text) && memcmp(field->text, text, field->length) == 0;
}

bool rmm_read_header(const char *line, size_t length, struct rmm_header *header)
{
    struct field field;
    header->count = 0;
    for (int column = 0; column < RMM_COLUMNS; column++)
        header->places[column] = -1;
    for (; next_field(&line, &length, &field); header->count++) {
        for (int column = 0; column < RMM_COLUMNS; column++) {
            if (!field_is(&field, column_names[column]))
                continue;
            if (header->places[column] >= 0)
                return false;
            header->places[column] = header->count;
        }
    }
    return header->places[RMM_ACTION] >= 0 && header->places[RMM_POINTER] >= 0 && header->places[RMM_SIZE] >= 0;
}

/* --- numbers ---------------------------------------------------------------------------------------------------- */

static int digit_of(char c, unsigned base)
{
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : INT_MAX;
    return digit < (int)base ? digit : -1;
}

/* All of the field; false: no number, or one that 64 bits do not hold. */
static bool read_number(struct field field, unsigned base, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < field.length; i++) {
        int digit = digit_of(field.text[i], base);
        if (digit < 0 || __builtin_mul_overflow(*number, base, number) ||
            __builtin_add_overflow(*number, (uint64_t)digit, number))
            return false;
    }
    return field.length > 0;
}

static bool has_hex_prefix(const struct field *field)
{
    return field->length > 2 && field->text[0] == '0' && (field->text[1] == 'x' || field->text[1] == 'X');
}

static bool read_hex(struct field field, uint64_t *number)
{
    *number = 0;
    if (field_is(&field, "(nil)"))
        return true;
    if (has_hex_prefix(&field))
        field = (struct field){field.text + 2, field.length - 2};
    return read_number(field, 16, number);
}

static bool read_thread(struct field field, uint64_t *number)
{
    return has_hex_prefix(&field) ? read_hex(field, number)
                                  : read_number(field, 10, number) || read_number(field, 16, number);
}

/* --- time ------------------------------------------------------------------------------------------------------- */

/* Digits up to one of `stops` or the end, a number of at most `most`, and field begins behind them; false: none. */
static bool take_number(struct field *field, const char *stops, int64_t most, int64_t *number)
{
    size_t length = 0;
    *number = 0;
    while (length < field->length && !memchr(stops, field->text[length], strlen(stops))) {
        int digit = digit_of(field->text[length++], 10);
        if (digit < 0)
            return false;
        *number = *number * 10 + digit;
        if (*number > most)
            return false;
    }
    *field = (struct field){field->text + length, field->length - length};
    return length > 0;
}

/* ".998533" or ":998533", in microseconds; what is finer goes. */
static bool take_fraction(struct field field, int64_t *microseconds)
{
    int64_t unit = MICROSECONDS;
    *microseconds = 0;
    if (!field.length)
        return true;
    for (size_t i = 1; i < field.length; i++) {
        int digit = digit_of(field.text[i], 10);
        if (digit < 0)
            return false;
        unit /= 10;
        *microseconds += digit * unit;
    }
    return field.length > 1;
}

static bool skip_colon(struct field *field)
{
    if (!field->length || field->text[0] != ':')
        return false;
    field->text++;
    field->length--;
    return true;
}

static bool read_time(struct field field, struct rmm_row *row)
{
    int64_t hours = 0, minutes = 0, seconds = 0, fraction;
    row->has_date = !field.length || !memchr(field.text, ':', field.length);
    if (row->has_date) {
        if (!take_number(&field, ".", SECONDS_MOST, &seconds))
            return false;
    } else if (!take_number(&field, ":.", 23, &hours) || !skip_colon(&field) ||
               !take_number(&field, ":.", 59, &minutes) || !skip_colon(&field) ||
               !take_number(&field, ":.", 60, &seconds)) {
        return false;
    }
    if (!take_fraction(field, &fraction))
        return false;
    row->time = ((hours * 60 + minutes) * 60 + seconds) * MICROSECONDS + fraction;
    return true;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static bool read_action(struct field field, struct rmm_row *row)
{
    static const char *const names[] = {[RMM_ALLOCATE] = "allocate", [RMM_FREE] = "free",
                                        [RMM_FAILURE] = "allocate failure"};
    for (int action = RMM_ALLOCATE; action <= RMM_FAILURE; action++) {
        if (!field_is(&field, names[action]))
            continue;
        row->action = (enum rmm_action)action;
        return true;
    }
    return false;
}

static bool read_field(enum rmm_column column, struct field field, struct rmm_row *row)
{
    switch (column) {
    case RMM_THREAD: return read_thread(field, &row->thread);
    case RMM_TIME: return read_time(field, row);
    case RMM_ACTION: return read_action(field, row);
    case RMM_POINTER: return read_hex(field, &row->pointer);
    case RMM_SIZE: return read_number(field, 10, &row->size);
    case RMM_STREAM: return read_hex(field, &row->stream) && row->stream <= INT64_MAX;
    default: return false;
    }
}

static int bad_field(enum rmm_column column, struct field field, uint64_t number, struct error *err)
{
    static const char *const wanted[RMM_COLUMNS] = {
        [RMM_THREAD] = "no thread's number",
        [RMM_TIME] = "no time of day (HH:MM:SS.microseconds)",
        [RMM_ACTION] = "nothing that RMM does (allocate, free, allocate failure)",
        [RMM_POINTER] = "no address of 64 bits (hexadecimal)",
        [RMM_SIZE] = "no number of bytes of 64 bits (decimal)",
        [RMM_STREAM] = "no stream (hexadecimal)",
    };
    int shown = field.length > SHOWN ? SHOWN : (int)field.length;
    return error_set(err, STATUS_INPUT, "line %" PRIu64 ": %s '%.*s%s' is %s", number, column_names[column], shown,
                     field.text, field.length > SHOWN ? "..." : "", wanted[column]);
}

static int count_fields(const char *line, size_t length)
{
    struct field field;
    int count = 0;
    while (next_field(&line, &length, &field))
        count++;
    return count;
}

bool rmm_is_cut(const struct rmm_header *header, const char *line, size_t length)
{
    return count_fields(line, length) < header->count;
}

int rmm_read_row(const struct rmm_header *header, const char *line, size_t length, uint64_t number, struct rmm_row *row,
                 struct error *err)
{
    struct field field;
    int count = count_fields(line, length);
    if (count != header->count)
        return error_set(err, STATUS_INPUT, "line %" PRIu64 ": %d %s where the header names %d", number, count,
                         count == 1 ? "column" : "columns", header->count);
    *row = (struct rmm_row){.action = RMM_ALLOCATE};
    for (int place = 0; next_field(&line, &length, &field); place++)
        for (int column = 0; column < RMM_COLUMNS; column++)
            if (header->places[column] == place && !read_field((enum rmm_column)column, field, row))
                return bad_field((enum rmm_column)column, field, number, err);
    return STATUS_OK;
}
