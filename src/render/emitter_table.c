/* Tables as text: rows straight out in lines; held and fitted to the terminal when aligned.  May use src/base. */
#include "render/emitter_internal.h"

#include <stdlib.h>
#include <string.h>

#define MIN_FITTED 16 /* a cut column keeps at least this many columns */

void emitter_table_begin(struct emitter *e)
{
    e->cell_count = 0;
    text_clear(&e->arena);
    if (e->aligned)
        return;
    output_char(e->output, '#');
    for (size_t i = 0; i < e->column_count; i++) {
        output_text(e->output, i ? "\t" : "");
        output_text(e->output, e->columns[i].key);
    }
    output_char(e->output, '\n');
    e->wrote_text = true;
}

/* Rows that lack fields at their end are filled with "-". */
static void finish_row(struct emitter *e)
{
    if (!e->row_count)
        return;
    while (e->column < e->column_count && !e->failed) {
        e->column++;
        text_clear(&e->value);
        text_char(&e->value, '-');
        emitter_table_cell(e, CELL_PLAIN);
    }
    if (!e->aligned)
        output_char(e->output, '\n');
}

void emitter_table_row(struct emitter *e)
{
    finish_row(e);
}

void emitter_table_cell(struct emitter *e, enum cell_style style)
{
    if (!e->aligned) {
        if (e->column > 1)
            output_char(e->output, '\t');
        output_write(e->output, text_string(&e->value), e->value.length);
        return;
    }
    if (array_reserve(&e->cells, &e->cell_capacity, e->cell_count + 1, sizeof(*e->cells))) {
        e->failed = true;
        return;
    }
    struct cell *cell = &e->cells[e->cell_count++];
    cell->text = e->arena.length;
    cell->length = e->value.length;
    cell->style = (uint8_t)style;
    text_append(&e->arena, text_string(&e->value), e->value.length);
    if (text_failed(&e->arena))
        e->failed = true;
}

static const char *cell_text(const struct emitter *e, const struct cell *cell)
{
    return e->arena.bytes ? e->arena.bytes + cell->text : "";
}

static void column_heading(const struct emitter *e, size_t column, struct text *heading)
{
    text_clear(heading);
    text_add(heading, e->columns[column].heading ? e->columns[column].heading : e->columns[column].key);
    if (!e->columns[column].heading && !text_failed(heading))
        for (char *c = heading->bytes; *c; c++)
            if (*c == '_')
                *c = ' ';
}

static void measure(struct emitter *e, size_t *widths)
{
    for (size_t i = 0; i < e->column_count; i++) {
        column_heading(e, i, &e->scratch);
        widths[i] = emitter_width(text_string(&e->scratch), e->scratch.length);
    }
    for (size_t i = 0; i < e->cell_count; i++) {
        size_t width = emitter_width(cell_text(e, &e->cells[i]), e->cells[i].length);
        if (width > widths[i % e->column_count])
            widths[i % e->column_count] = width;
    }
    size_t total = emitter_indent(e), fitted = e->column_count;
    for (size_t i = 0; i < e->column_count; i++) {
        if (e->columns[i].kind == EMITTER_LIST)
            continue;
        total += widths[i] + (total > emitter_indent(e) ? 2 : 0);
        if (e->columns[i].kind == EMITTER_STRING)
            fitted = i;
    }
    if (e->width && total > e->width && fitted < e->column_count) {
        size_t excess = total - e->width;
        size_t least = widths[fitted] < MIN_FITTED ? widths[fitted] : MIN_FITTED;
        widths[fitted] = widths[fitted] > excess + least ? widths[fitted] - excess : least;
    }
}

/* One line of a cell, padded or cut ("...") to width; no blanks at the end of a line. */
static void print_part(struct emitter *e, const char *bytes, size_t length, size_t width, bool right, bool last,
                       uint8_t style)
{
    size_t taken = emitter_width(bytes, length);
    bool cut = taken > width;
    if (cut) {
        size_t keep = width > 3 ? width - 3 : 0, at = 0, shown = 0;
        while (at < length && (shown < keep || ((unsigned char)bytes[at] & 0xc0) == 0x80)) {
            at++;
            shown += at < length ? ((unsigned char)bytes[at] & 0xc0) != 0x80 : 1;
        }
        length = at;
        taken = keep + 3;
    }
    size_t padding = width > taken ? width - taken : 0;
    if (right)
        output_printf(e->output, "%*s", (int)padding, "");
    if (style != CELL_PLAIN)
        emitter_paint(e, style == CELL_GROWN ? PAINT_RED : PAINT_GREEN);
    output_write(e->output, bytes, length);
    if (cut)
        output_text(e->output, "...");
    if (style != CELL_PLAIN)
        emitter_paint(e, PAINT_PLAIN);
    if (!right && !last)
        output_printf(e->output, "%*s", (int)padding, "");
}

static bool has_columns(const struct emitter *e)
{
    for (size_t i = 0; i < e->column_count; i++)
        if (e->columns[i].kind != EMITTER_LIST)
            return true;
    return false;
}

/* Lists stand under their row, so the last column of a line is the last one that is no list. */
static size_t last_column(const struct emitter *e)
{
    size_t last = 0;
    for (size_t i = 0; i < e->column_count; i++)
        if (e->columns[i].kind != EMITTER_LIST)
            last = i;
    return last;
}

static void print_headings(struct emitter *e, const size_t *widths)
{
    size_t last = last_column(e);
    if (!has_columns(e))
        return;
    output_printf(e->output, "%*s", (int)emitter_indent(e), "");
    emitter_paint(e, PAINT_BOLD);
    for (size_t i = 0, printed = 0; i < e->column_count; i++) {
        if (e->columns[i].kind == EMITTER_LIST)
            continue;
        column_heading(e, i, &e->scratch);
        output_text(e->output, printed++ ? "  " : "");
        print_part(e, text_string(&e->scratch), e->scratch.length, widths[i], e->columns[i].kind == EMITTER_NUMBER,
                   i == last, CELL_PLAIN);
    }
    emitter_paint(e, PAINT_PLAIN);
    output_char(e->output, '\n');
}

/* The items of a list, each on a line of its own, cut to the terminal at their left: the end of a path tells more. */
static void print_list(struct emitter *e, const struct cell *cell)
{
    unsigned indent = emitter_indent(e) + 4;
    size_t room = e->width > indent + MIN_FITTED ? e->width - indent : e->width ? MIN_FITTED : SIZE_MAX;
    const char *at = cell_text(e, cell), *end = at + cell->length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        size_t width = emitter_width(at, (size_t)(stop - at));
        output_printf(e->output, "%*s", (int)indent, "");
        if (width > room) {
            output_text(e->output, "...");
            for (size_t skip = width - room + 3; skip || ((unsigned char)*at & 0xc0) == 0x80; at++)
                skip -= ((unsigned char)*at & 0xc0) != 0x80;
        }
        output_write(e->output, at, (size_t)(stop - at));
        output_char(e->output, '\n');
        at = stop + 1;
    }
}

static void print_row(struct emitter *e, const struct cell *cells, const size_t *widths)
{
    size_t last = last_column(e), printed = 0;
    if (has_columns(e))
        output_printf(e->output, "%*s", (int)emitter_indent(e), "");
    for (size_t i = 0; i < e->column_count; i++) {
        if (e->columns[i].kind == EMITTER_LIST)
            continue;
        output_text(e->output, printed++ ? "  " : "");
        print_part(e, cell_text(e, &cells[i]), cells[i].length, widths[i], e->columns[i].kind == EMITTER_NUMBER, i == last,
                   cells[i].style);
    }
    if (printed)
        output_char(e->output, '\n');
    for (size_t i = 0; i < e->column_count; i++)
        if (e->columns[i].kind == EMITTER_LIST)
            print_list(e, &cells[i]);
}

void emitter_table_end(struct emitter *e)
{
    finish_row(e);
    e->column = e->column_count;
    if (e->aligned && !e->failed && e->column_count) {
        size_t *widths = calloc(e->column_count, sizeof(*widths));
        if (!widths) {
            e->failed = true;
        } else {
            measure(e, widths);
            print_headings(e, widths);
            for (size_t row = 0; row < e->row_count; row++)
                print_row(e, &e->cells[row * e->column_count], widths);
            e->wrote_text = true;
        }
        free(widths);
    }
    e->cell_count = 0;
    e->row_count = 0;
    text_clear(&e->arena);
}
