/* Each kind of value as text and as JSON.  May use src/base and the emitter. */
#include "base/size.h"
#include "render/emitter_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Code points that take a column: all but the combining ones of the commonest blocks. */
size_t emitter_width(const char *bytes, size_t length)
{
    size_t width = 0;
    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return width;
}

/* Write a field whose JSON form is `json` and whose text form is `shown`; both are safe as they stand. */
static void put_number(struct emitter *e, const char *key, const char *json, const char *shown, enum cell_style style)
{
    bool is_bound = e->is_lower_bound;
    e->is_lower_bound = false;
    key = emitter_next_key(e, key);
    if (!e->json) {
        text_clear(&e->value);
        if (is_bound)
            text_add(&e->value, ">=");
        text_add(&e->value, shown);
        emitter_put(e, key, style);
        return;
    }
    emitter_json_key(e, key);
    output_text(e->output, json);
    if (is_bound && e->levels[e->depth - 1].kind != LEVEL_LIST) {
        char bound_key[160];
        snprintf(bound_key, sizeof(bound_key), "%s_is_lower_bound", key ? key : "");
        emitter_json_key(e, bound_key);
        output_text(e->output, "true");
    }
    e->label = NULL;
}

void emitter_string(struct emitter *e, const char *key, const char *bytes, size_t length)
{
    if (!bytes) {
        emitter_absent(e, key);
        return;
    }
    key = emitter_next_key(e, key);
    if (e->json) {
        emitter_json_key(e, key);
        text_clear(&e->value);
        text_add_json(&e->value, bytes, length);
        output_write(e->output, text_string(&e->value), e->value.length);
        e->label = NULL;
        return;
    }
    text_clear(&e->value);
    text_add_printable(&e->value, bytes, length);
    emitter_put(e, key, CELL_PLAIN);
}

void emitter_text(struct emitter *e, const char *key, const char *string)
{
    emitter_string(e, key, string, string ? strlen(string) : 0);
}

void emitter_absent(struct emitter *e, const char *key)
{
    e->is_lower_bound = false;
    put_number(e, key, "null", "-", CELL_PLAIN);
}

void emitter_size(struct emitter *e, const char *key, uint64_t bytes)
{
    char json[24], shown[SIZE_TEXT];
    snprintf(json, sizeof(json), "%" PRIu64, bytes);
    put_number(e, key, json, e->exact ? json : size_format(bytes, shown), CELL_PLAIN);
}

static enum cell_style delta_style(int64_t delta)
{
    return delta > 0 ? CELL_GROWN : delta < 0 ? CELL_SHRUNK : CELL_PLAIN;
}

void emitter_delta(struct emitter *e, const char *key, int64_t bytes)
{
    char json[24], exact[24], shown[SIZE_TEXT];
    snprintf(json, sizeof(json), "%" PRId64, bytes);
    snprintf(exact, sizeof(exact), "%+" PRId64, bytes);
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    size_format_delta(bytes < 0 ? size : 0, bytes < 0 ? 0 : size, shown);
    put_number(e, key, json, e->exact ? exact : shown, delta_style(bytes));
}

void emitter_count(struct emitter *e, const char *key, uint64_t count)
{
    char json[24];
    snprintf(json, sizeof(json), "%" PRIu64, count);
    put_number(e, key, json, json, CELL_PLAIN);
}

void emitter_integer(struct emitter *e, const char *key, int64_t number)
{
    char json[24];
    snprintf(json, sizeof(json), "%" PRId64, number);
    put_number(e, key, json, json, CELL_PLAIN);
}

void emitter_count_delta(struct emitter *e, const char *key, int64_t count)
{
    char json[24], shown[24];
    snprintf(json, sizeof(json), "%" PRId64, count);
    snprintf(shown, sizeof(shown), "%+" PRId64, count);
    put_number(e, key, json, shown, delta_style(count));
}

/* Locale-proof: the C library writes a comma for some. */
static void point_decimal(char *text)
{
    for (; *text; text++)
        if (*text == ',')
            *text = '.';
}

void emitter_percent(struct emitter *e, const char *key, double percent)
{
    char json[64], shown[64];
    if (!isfinite(percent)) {
        emitter_absent(e, key);
        return;
    }
    snprintf(json, sizeof(json), "%.1f", percent);
    point_decimal(json);
    snprintf(shown, sizeof(shown), "%.60s%%", json);
    put_number(e, key, json, shown, CELL_PLAIN);
}

void emitter_real(struct emitter *e, const char *key, double number)
{
    char json[64];
    if (!isfinite(number)) {
        emitter_absent(e, key);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) { /* the shortest that reads back the same */
        snprintf(json, sizeof(json), "%.*g", digits, number);
        if (strtod(json, NULL) == number)
            break;
    }
    point_decimal(json);
    put_number(e, key, json, json, CELL_PLAIN);
}

void emitter_address(struct emitter *e, const char *key, uint64_t address)
{
    char json[24], shown[24];
    snprintf(json, sizeof(json), "%" PRIu64, address);
    snprintf(shown, sizeof(shown), "0x%" PRIx64, address);
    put_number(e, key, json, shown, CELL_PLAIN);
}

void emitter_time(struct emitter *e, const char *key, int64_t microseconds)
{
    char json[24], shown[96];
    int64_t seconds = microseconds / 1000000, rest = microseconds % 1000000;
    if (rest < 0) {
        rest += 1000000;
        seconds--;
    }
    snprintf(json, sizeof(json), "%" PRId64, microseconds);
    struct tm tm;
    time_t when = (time_t)seconds;
    if (gmtime_r(&when, &tm) && tm.tm_year > -1900 && tm.tm_year < 8100)
        snprintf(shown, sizeof(shown), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec, (int)rest);
    else
        snprintf(shown, sizeof(shown), "%s us", json);
    put_number(e, key, json, shown, CELL_PLAIN);
}

void emitter_duration(struct emitter *e, const char *key, int64_t microseconds)
{
    char json[24], shown[64];
    snprintf(json, sizeof(json), "%" PRId64, microseconds);
    uint64_t size = microseconds < 0 ? 0 - (uint64_t)microseconds : (uint64_t)microseconds;
    snprintf(shown, sizeof(shown), "%s%" PRIu64 ".%03u s", microseconds < 0 ? "-" : "", size / 1000000,
             (unsigned)(size % 1000000 / 1000));
    put_number(e, key, json, shown, CELL_PLAIN);
}

void emitter_bool(struct emitter *e, const char *key, bool is_true)
{
    put_number(e, key, is_true ? "true" : "false", is_true ? "yes" : "no", CELL_PLAIN);
}

/* --- a list of strings as one field: joined in e->value, by line breaks when aligned (the table and the held fields
 * know), by ';' in lines --- */

void emitter_begin_strings(struct emitter *e, const char *key)
{
    e->strings_key = emitter_next_key(e, key);
    e->item_count = 0;
    text_clear(&e->value);
    if (e->json) {
        emitter_json_key(e, e->strings_key);
        output_char(e->output, '[');
    }
}

void emitter_item(struct emitter *e, const char *bytes, size_t length)
{
    if (e->json) {
        text_clear(&e->value);
        text_add(&e->value, e->item_count++ ? ", " : "");
        text_add_json(&e->value, bytes, length);
        output_write(e->output, text_string(&e->value), e->value.length);
        return;
    }
    bool in_row = e->levels[e->depth - 1].kind == LEVEL_TABLE;
    if (e->item_count++)
        text_char(&e->value, (in_row ? e->aligned : emitter_fields_aligned(e)) ? '\n' : ';');
    text_add_printable(&e->value, bytes, length);
}

void emitter_end_strings(struct emitter *e)
{
    if (e->json) {
        output_char(e->output, ']');
        e->label = NULL;
        return;
    }
    if (!e->item_count)
        text_char(&e->value, '-');
    emitter_put(e, e->strings_key, CELL_PLAIN);
}
