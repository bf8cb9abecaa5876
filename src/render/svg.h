/*
 * SVG text: the one place where markup is escaped, and the width of text before anything has drawn it.
 *
 * Text is set in a monospace font, so that a label's width is known without scripts: SVG_COLUMN pixels a column at
 * SVG_FONT pixels, wide characters two columns.  Control characters, bytes that are no UTF-8 and what XML forbids show
 * as \xNN.  Numbers are written by integer arithmetic, so that the bytes depend on neither locale nor rounding.
 */
#ifndef RENDER_SVG_H
#define RENDER_SVG_H

#include "base/output.h"

#include <stddef.h>
#include <stdint.h>

#define SVG_FONT 12
#define SVG_COLUMN_TENTHS 73 /* pixels of a column, in tenths: no common monospace font is wider */

/* For element content and attribute values alike; cut with an ellipsis to `columns` (SIZE_MAX: never). */
void svg_text(struct output *output, const char *bytes, size_t length, size_t columns);

/* Columns that svg_text() would take, without a cut. */
size_t svg_columns(const char *bytes, size_t length);

/* Hundredths of a pixel as "12.3". */
void svg_hundredths(struct output *output, uint64_t hundredths);

/* 1610612736 as 1,610,612,736 */
void svg_grouped(struct output *output, uint64_t number);

/* "12.3%": tenths of a percent, rounded, by integers. */
void svg_percent(struct output *output, uint64_t part, uint64_t whole);

#endif
