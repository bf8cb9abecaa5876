/* Shared by the emitter's sources; not for others. */
#ifndef RENDER_EMITTER_INTERNAL_H
#define RENDER_EMITTER_INTERNAL_H

#include "base/array.h"
#include "base/text.h"
#include "render/emitter.h"

#define MAX_DEPTH 24
#define PAINT_BOLD "\033[1m"
#define PAINT_RED "\033[31m"
#define PAINT_GREEN "\033[32m"
#define PAINT_PLAIN "\033[0m"

enum level_kind { LEVEL_OBJECT, LEVEL_LIST, LEVEL_TABLE };

enum cell_style { CELL_PLAIN, CELL_GROWN, CELL_SHRUNK };

struct level {
    enum level_kind kind;
    const char *key;
    size_t number;  /* in the list that holds it */
    size_t members; /* of a list, so far */
    bool has_heading, has_members, row_open, row_has_fields;
};

/* A field of an aligned group, as ranges of the arena. */
struct held_field {
    size_t label, label_length, label_width;
    size_t value, value_length;
};

struct cell {
    size_t text, length; /* in the arena */
    uint8_t style;
};

struct emitter {
    struct output *output;
    bool json, aligned, color, exact, plain_fields, failed, wrote_text, is_lower_bound;
    unsigned width, depth, overflow;
    const char *label;
    struct level levels[MAX_DEPTH];
    struct text scratch, arena, value;
    struct held_field *held;
    size_t held_count, held_capacity;
    const struct emitter_column *columns;
    size_t column_count, column, row_count;
    struct cell *cells;
    size_t cell_count, cell_capacity;
    size_t item_count;       /* of the list of strings being written */
    const char *strings_key; /* and its key */
};

static inline bool emitter_fields_aligned(const struct emitter *e)
{
    return e->aligned && !e->plain_fields;
}

void emitter_flush_fields(struct emitter *e);
unsigned emitter_indent(const struct emitter *e);
void emitter_paint(struct emitter *e, const char *escape);
void emitter_json_key(struct emitter *e, const char *key);
const char *emitter_next_key(struct emitter *e, const char *key);
void emitter_put(struct emitter *e, const char *key, enum cell_style style);
size_t emitter_width(const char *bytes, size_t length); /* columns that printable text takes */

void emitter_table_begin(struct emitter *e);
void emitter_table_row(struct emitter *e);
void emitter_table_cell(struct emitter *e, enum cell_style style);
void emitter_table_end(struct emitter *e);

#endif
