/*
 * The emitter: documents, fields and JSON; tables stand in emitter_table.c, the text of values in emitter_value.c.
 * May use src/base.  Prints nowhere but into its output.
 */
#include "render/emitter_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int emitter_color_parse(const char *text, enum emitter_color *color, struct error *err)
{
    if (!text || strcmp(text, "auto") == 0)
        *color = EMITTER_COLOR_AUTO;
    else if (strcmp(text, "always") == 0)
        *color = EMITTER_COLOR_ALWAYS;
    else if (strcmp(text, "never") == 0)
        *color = EMITTER_COLOR_NEVER;
    else
        return error_set(err, STATUS_USAGE, "'%s': write --color auto, always or never", text);
    return STATUS_OK;
}

static unsigned terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

static bool wants_color(const struct emitter_options *options, bool is_terminal)
{
    if (options->color != EMITTER_COLOR_AUTO)
        return options->color == EMITTER_COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return is_terminal && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

struct emitter *emitter_new(struct output *output, const struct emitter_options *options)
{
    static const struct emitter_options none;
    struct emitter *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    if (!options)
        options = &none;
    bool is_terminal = output_is_terminal(output);
    e->output = output;
    e->json = options->json;
    e->exact = options->exact_bytes;
    e->aligned = options->layout == EMITTER_LAYOUT_ALIGNED || (options->layout == EMITTER_LAYOUT_AUTO && is_terminal);
    e->color = !e->json && wants_color(options, is_terminal);
    e->width = options->width ? options->width : is_terminal ? terminal_width() : 0;
    e->levels[0].kind = LEVEL_OBJECT;
    e->depth = 1;
    if (e->json)
        output_char(output, '{');
    return e;
}

bool emitter_is_json(const struct emitter *emitter)
{
    return emitter->json;
}

bool emitter_is_aligned(const struct emitter *emitter)
{
    return emitter->aligned && !emitter->json;
}

/* Fields of an aligned group are held back so that their values line up. */
void emitter_flush_fields(struct emitter *e)
{
    size_t widest = 0;
    for (size_t i = 0; i < e->held_count; i++)
        if (e->held[i].label_width > widest)
            widest = e->held[i].label_width;
    unsigned indent = emitter_indent(e);
    for (size_t i = 0; i < e->held_count; i++) {
        const struct held_field *field = &e->held[i];
        output_printf(e->output, "%*s", (int)indent, "");
        output_write(e->output, e->arena.bytes + field->label, field->label_length);
        if (field->value_length)
            output_printf(e->output, "%*s", (int)(widest - field->label_width + 2), "");
        const char *value = e->arena.bytes + field->value, *end = value + field->value_length, *newline;
        while ((newline = memchr(value, '\n', (size_t)(end - value)))) { /* a list: one item a line */
            output_write(e->output, value, (size_t)(newline - value) + 1);
            output_printf(e->output, "%*s", (int)(indent + widest + 2), "");
            value = newline + 1;
        }
        output_write(e->output, value, (size_t)(end - value));
        output_char(e->output, '\n');
    }
    e->held_count = 0;
    text_clear(&e->arena);
}

unsigned emitter_indent(const struct emitter *e)
{
    unsigned indent = 0;
    for (unsigned i = 1; i < e->depth; i++)
        indent += e->levels[i].has_heading ? 2 : 0;
    return indent;
}

void emitter_paint(struct emitter *e, const char *escape)
{
    if (e->color)
        output_text(e->output, escape);
}

/* --- JSON ------------------------------------------------------------------------------------------------------- */

static bool inside_row(const struct emitter *e)
{
    return e->levels[e->depth - 1].kind == LEVEL_TABLE;
}

static void json_break(struct emitter *e, unsigned depth)
{
    output_char(e->output, '\n');
    output_printf(e->output, "%*s", (int)(2 * depth), "");
}

/* Comma, line break and "key": of the next member of the innermost group. */
void emitter_json_key(struct emitter *e, const char *key)
{
    struct level *level = &e->levels[e->depth - 1];
    if (level->kind == LEVEL_TABLE) {
        if (level->row_has_fields)
            output_text(e->output, ", ");
        level->row_has_fields = true;
    } else {
        if (level->has_members)
            output_char(e->output, ',');
        level->has_members = true;
        json_break(e, e->depth);
    }
    if (level->kind == LEVEL_LIST)
        return;
    text_clear(&e->scratch);
    text_add_json(&e->scratch, key ? key : "", key ? strlen(key) : 0);
    output_write(e->output, e->scratch.bytes, e->scratch.length);
    output_text(e->output, ": ");
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

/* "path.to." of a key in lines; items of a list are numbered. */
static void add_path(const struct emitter *e, struct text *text)
{
    for (unsigned i = 1; i < e->depth; i++) {
        const struct level *level = &e->levels[i];
        if (level->key)
            text_add_printable(text, level->key, strlen(level->key));
        else
            text_printf(text, "%zu", level->number);
        text_char(text, '.');
    }
}

static void print_heading(struct emitter *e, const char *heading)
{
    if (e->wrote_text && e->depth <= 2)
        output_char(e->output, '\n');
    output_printf(e->output, "%*s", (int)emitter_indent(e), "");
    emitter_paint(e, PAINT_BOLD);
    text_clear(&e->scratch);
    text_add_printable(&e->scratch, heading, strlen(heading));
    output_text(e->output, text_string(&e->scratch));
    emitter_paint(e, PAINT_PLAIN);
    output_char(e->output, '\n');
    e->wrote_text = true;
}

static struct level *push_level(struct emitter *e, enum level_kind kind, const char *key, const char *heading)
{
    if (e->depth == MAX_DEPTH) {
        e->failed = true;
        e->overflow++;
        return NULL;
    }
    if (e->json) {
        emitter_json_key(e, key);
        output_char(e->output, kind == LEVEL_OBJECT ? '{' : '[');
    } else {
        emitter_flush_fields(e);
        const char *shown = heading ? heading : key;
        if (emitter_fields_aligned(e) && shown && *shown)
            print_heading(e, shown);
    }
    struct level *parent = &e->levels[e->depth - 1], *level = &e->levels[e->depth++];
    memset(level, 0, sizeof(*level));
    level->kind = kind;
    level->key = parent->kind == LEVEL_LIST ? NULL : key;
    level->number = parent->kind == LEVEL_LIST ? parent->members++ : 0;
    const char *shown = heading ? heading : key;
    level->has_heading = shown && *shown;
    e->label = NULL;
    return level;
}

void emitter_begin_object(struct emitter *e, const char *key, const char *heading)
{
    push_level(e, LEVEL_OBJECT, key, heading);
}

void emitter_begin_list(struct emitter *e, const char *key, const char *heading)
{
    push_level(e, LEVEL_LIST, key, heading);
}

void emitter_begin_table(struct emitter *e, const char *key, const char *heading,
                         const struct emitter_column *columns, size_t count)
{
    if (!push_level(e, LEVEL_TABLE, key, heading))
        return;
    e->columns = columns;
    e->column_count = count;
    e->column = count;
    e->row_count = 0;
    if (!e->json)
        emitter_table_begin(e);
}

void emitter_row(struct emitter *e)
{
    struct level *level = &e->levels[e->depth - 1];
    if (level->kind != LEVEL_TABLE)
        return;
    if (e->json) {
        if (level->row_open)
            output_char(e->output, '}');
        if (level->has_members)
            output_char(e->output, ',');
        json_break(e, e->depth);
        output_char(e->output, '{');
        level->row_has_fields = false;
    } else {
        emitter_table_row(e);
    }
    level->has_members = level->row_open = true;
    e->column = 0;
    e->row_count++;
}

void emitter_end(struct emitter *e)
{
    if (e->overflow) {
        e->overflow--;
        return;
    }
    if (e->depth <= 1)
        return;
    struct level *level = &e->levels[e->depth - 1];
    if (e->json) {
        if (level->kind == LEVEL_TABLE && level->row_open)
            output_char(e->output, '}');
        if (level->has_members)
            json_break(e, e->depth - 1);
        output_char(e->output, level->kind == LEVEL_OBJECT ? '}' : ']');
    } else if (level->kind == LEVEL_TABLE) {
        emitter_table_end(e);
    } else {
        emitter_flush_fields(e);
    }
    e->depth--;
    e->label = NULL;
}

int emitter_finish(struct emitter *e, struct error *err)
{
    while (e->depth > 1)
        emitter_end(e);
    if (e->json) {
        if (e->levels[0].has_members)
            output_char(e->output, '\n');
        output_text(e->output, "}\n");
    } else {
        emitter_flush_fields(e);
    }
    bool failed = e->failed || text_failed(&e->scratch) || text_failed(&e->arena) || text_failed(&e->value);
    text_free(&e->scratch);
    text_free(&e->arena);
    text_free(&e->value);
    free(e->held);
    free(e->cells);
    free(e);
    return failed ? error_no_memory(err) : STATUS_OK;
}

/* --- fields ----------------------------------------------------------------------------------------------------- */

static void hold_field(struct emitter *e, const char *key)
{
    if (array_reserve(&e->held, &e->held_capacity, e->held_count + 1, sizeof(*e->held))) {
        e->failed = true;
        return;
    }
    struct held_field *field = &e->held[e->held_count];
    field->label = e->arena.length;
    const char *label = e->label ? e->label : key ? key : "-";
    text_add_printable(&e->arena, label, strlen(label));
    if (!text_failed(&e->arena) && !e->label)
        for (char *c = e->arena.bytes + field->label; *c; c++)
            if (*c == '_')
                *c = ' ';
    field->label_length = e->arena.length - field->label;
    text_char(&e->arena, ':');
    field->label_length++;
    field->label_width = emitter_width(e->arena.bytes ? e->arena.bytes + field->label : "", field->label_length);
    field->value = e->arena.length;
    text_append(&e->arena, text_string(&e->value), e->value.length);
    field->value_length = e->value.length;
    if (text_failed(&e->arena))
        e->failed = true;
    else
        e->held_count++;
}

/* e->value holds the text (printable already); json its JSON form, or NULL: the same text. */
void emitter_put(struct emitter *e, const char *key, enum cell_style style)
{
    if (e->failed || e->overflow)
        return;
    if (inside_row(e)) {
        emitter_table_cell(e, style);
    } else if (emitter_fields_aligned(e)) {
        hold_field(e, key);
        e->wrote_text = true;
    } else {
        struct level *level = &e->levels[e->depth - 1];
        text_clear(&e->scratch);
        add_path(e, &e->scratch);
        if (level->kind == LEVEL_LIST)
            text_printf(&e->scratch, "%zu", level->members++);
        else
            text_add_printable(&e->scratch, key ? key : "-", strlen(key ? key : "-"));
        text_char(&e->scratch, ' ');
        text_append(&e->scratch, text_string(&e->value), e->value.length);
        text_char(&e->scratch, '\n');
        output_write(e->output, text_string(&e->scratch), e->scratch.length);
        e->wrote_text = true;
    }
    e->label = NULL;
}

/* The key of the next field: the column's in a row. */
const char *emitter_next_key(struct emitter *e, const char *key)
{
    if (!inside_row(e))
        return key;
    if (e->column >= e->column_count) {
        e->failed = true; /* more fields than columns: a mistake of the caller's, refused rather than printed skewed */
        return NULL;
    }
    return e->columns[e->column++].key;
}

void emitter_label(struct emitter *e, const char *label)
{
    e->label = label;
}

void emitter_lower_bound(struct emitter *e)
{
    e->is_lower_bound = true;
}

void emitter_set_exact(struct emitter *e, bool exact)
{
    e->exact = exact;
}

void emitter_set_lines(struct emitter *e, bool lines)
{
    emitter_flush_fields(e);
    e->plain_fields = lines;
}

void emitter_note(struct emitter *e, const char *format, ...)
{
    if (e->json)
        return;
    va_list arguments;
    va_start(arguments, format);
    char *line = NULL;
    int length = vasprintf(&line, format, arguments);
    va_end(arguments);
    if (length < 0) {
        e->failed = true;
        return;
    }
    emitter_flush_fields(e);
    text_clear(&e->scratch);
    text_add_printable(&e->scratch, line, (size_t)length);
    free(line);
    output_text(e->output, e->aligned ? "" : "# ");
    output_text(e->output, text_string(&e->scratch));
    output_char(e->output, '\n');
    e->wrote_text = true;
}

void emitter_verbatim(struct emitter *e, const char *bytes, size_t length)
{
    if (e->json)
        return;
    emitter_flush_fields(e);
    output_write(e->output, bytes, length);
    e->wrote_text = true;
}
