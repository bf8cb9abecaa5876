/*
 * The one way from findings to bytes: a report describes itself once, as typed fields, and the emitter writes it as
 *
 *   JSON      stable keys; sizes, counts, addresses and times are integers written as text, never through doubles
 *   aligned   for a terminal: tables fitted to its width, headings, colours
 *   lines     for a pipe: one record a line; a table's fields are separated by tabs under a line that starts with '#',
 *             other fields are "path.to.key value"
 *
 * A document is an object: fields, objects, lists (of objects or plain fields) and tables (lists of flat objects).
 * Fields have a key; the label that a terminal shows is the key with blanks, unless emitter_label() came before.  In a
 * table row fields come in the order of the columns and key may be NULL.
 *
 * Text never carries control characters, invalid UTF-8 or markup of the terminal from outside.
 * Failure (memory, writing) is sticky; emitter_finish() tells.  The output stays the caller's.  Not thread safe.
 * Cost: rows of an aligned table are held until its end; nothing else is.
 *
 *     struct emitter *e = emitter_new(output, &options);
 *     emitter_string(e, "program", name, strlen(name));
 *     emitter_begin_table(e, "stacks", NULL, columns, 3);
 *     for (...) { emitter_row(e); emitter_size(e, NULL, bytes); emitter_delta(e, NULL, d); emitter_text(e, NULL, s); }
 *     emitter_end(e);
 *     return emitter_finish(e, err);          // frees it
 */
#ifndef RENDER_EMITTER_H
#define RENDER_EMITTER_H

#include "base/error.h"
#include "base/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum emitter_color { EMITTER_COLOR_AUTO, EMITTER_COLOR_ALWAYS, EMITTER_COLOR_NEVER };
enum emitter_layout { EMITTER_LAYOUT_AUTO, EMITTER_LAYOUT_ALIGNED, EMITTER_LAYOUT_LINES };

struct emitter_options {
    bool json;
    bool exact_bytes;           /* --bytes: 1610612736, not 1.50 GiB */
    enum emitter_color color;   /* auto: on a terminal without NO_COLOR */
    enum emitter_layout layout; /* auto: aligned on a terminal */
    unsigned width;             /* of the terminal; 0: ask it */
};

/* auto|always|never; NULL is auto. */
int emitter_color_parse(const char *text, enum emitter_color *color, struct error *err);

enum emitter_kind {
    EMITTER_STRING, /* left aligned; the last such column is cut to fit a terminal */
    EMITTER_NUMBER, /* right aligned: sizes, deltas, counts, percentages, addresses, times, booleans */
    EMITTER_LIST,   /* strings: a JSON list; joined by ';' in lines; on a terminal each on a line below the row */
};

struct emitter_column {
    const char *key;     /* JSON key and, in lines, the column's name */
    const char *heading; /* for a terminal; NULL: from the key */
    enum emitter_kind kind;
};

struct emitter;

struct emitter *emitter_new(struct output *output, const struct emitter_options *options); /* NULL: no memory */
int emitter_finish(struct emitter *emitter, struct error *err); /* closes what is open, frees; STATUS_NO_MEMORY or 0 */

bool emitter_is_json(const struct emitter *emitter);
bool emitter_is_aligned(const struct emitter *emitter);

/* Groups.  key NULL inside a list.  heading: what a terminal shows above (NULL: the key; "": nothing). */
void emitter_begin_object(struct emitter *emitter, const char *key, const char *heading);
void emitter_begin_list(struct emitter *emitter, const char *key, const char *heading);
void emitter_begin_table(struct emitter *emitter, const char *key, const char *heading,
                         const struct emitter_column *columns, size_t count); /* columns must live until the end */
void emitter_row(struct emitter *emitter);
void emitter_end(struct emitter *emitter); /* of the innermost group */

/* Fields. */
void emitter_string(struct emitter *emitter, const char *key, const char *bytes, size_t length);
void emitter_text(struct emitter *emitter, const char *key, const char *string); /* NULL: absent */
void emitter_size(struct emitter *emitter, const char *key, uint64_t bytes);
void emitter_delta(struct emitter *emitter, const char *key, int64_t bytes); /* signed, with + or - */
void emitter_count(struct emitter *emitter, const char *key, uint64_t count);
void emitter_integer(struct emitter *emitter, const char *key, int64_t number);
void emitter_count_delta(struct emitter *emitter, const char *key, int64_t count); /* with + or - in text */
void emitter_percent(struct emitter *emitter, const char *key, double percent); /* one decimal */
void emitter_real(struct emitter *emitter, const char *key, double number);
void emitter_address(struct emitter *emitter, const char *key, uint64_t address); /* 0x... in text, integer in JSON */
void emitter_time(struct emitter *emitter, const char *key, int64_t microseconds); /* UTC in text, integer in JSON */
void emitter_duration(struct emitter *emitter, const char *key, int64_t microseconds); /* "12.500 s"; integer in JSON */
void emitter_bool(struct emitter *emitter, const char *key, bool is_true); /* yes/no in text */
void emitter_absent(struct emitter *emitter, const char *key); /* "-" in text, null in JSON */

/* A list of strings as one field (a stack): begin, items, end. */
void emitter_begin_strings(struct emitter *emitter, const char *key);
void emitter_item(struct emitter *emitter, const char *bytes, size_t length);
void emitter_end_strings(struct emitter *emitter);

/* The next field's label on a terminal. */
void emitter_label(struct emitter *emitter, const char *label);

/* The next number is a lower bound: text shows ">=" before it, JSON has a second field KEY_is_lower_bound: true. */
void emitter_lower_bound(struct emitter *emitter);

/* Sizes exact / fields as in lines, from here on (for reports whose text is fixed: `stats`). */
void emitter_set_exact(struct emitter *emitter, bool exact);
void emitter_set_lines(struct emitter *emitter, bool lines);

/* A line of prose for people: in text only (JSON readers have fields).  Lines start with '#' in a pipe. */
void emitter_note(struct emitter *emitter, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text of a fixed layout (a summary table, a drawing), as it is: in text only. */
void emitter_verbatim(struct emitter *emitter, const char *bytes, size_t length);

#endif
