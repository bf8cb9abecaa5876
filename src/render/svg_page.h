/*
 * The frame of a picture: header, style, title, legend, footer, and the script that all views share.
 *
 * Without scripts it is a page of SVG_PAGE_WIDTH pixels that can be printed.  In a browser the script adds a search field,
 * a button and a line that tells about what is under the pointer, and fits the window; a view's own script lies in the
 * same closure and finds there:
 *
 *   svg box legend title sub foot        elements; box is the group with the drawing
 *   field reset width M COL              the controls; the window's width, the margin, pixels a column
 *   id(name) columns(text) fit(text, columns) size(bytes) percent(part, whole) make(name)    helpers
 *   head()                               sets title, legend and controls; returns where the drawing begins
 *   finish(bottom)                       sets footer and height
 *   tell()                               shows status() in the line
 *
 * and must define these functions, which the shared script calls:
 *
 *   layout()         head(), the drawing, finish(); when the window changes, too
 *   status()         the text for the line
 *   search(word)     in lower case; '' ends the search
 *   nextHit()        go to the next that was found
 *   home() isHome()  undo every zoom; is there none?
 *   escape()         one step back, when no search is left to end
 *   press(key)       another key: true if it was one of the view's
 *   click(target) hover(target)          elements; hover(null) when the pointer leaves
 *
 * Style that is shared: classes a w i u fill the states of blocks (allocated, waiting, inactive, unknown), g what is
 * rounded up, hatched patterns #hi and #hg; b is the page, l lesser text.  Uses base/output and render/svg.
 */
#ifndef RENDER_SVG_PAGE_H
#define RENDER_SVG_PAGE_H

#include "base/output.h"

#include <stddef.h>

/* The geometry that pictures and scripts share, in pixels. */
#define SVG_PAGE_WIDTH 1200
#define SVG_PAGE_MARGIN 12
#define SVG_PAGE_INNER (SVG_PAGE_WIDTH - 2 * SVG_PAGE_MARGIN)
#define SVG_PAGE_LEGEND 62 /* top of the legend */
#define SVG_PAGE_TOP 92    /* top of the drawing below a legend of one row */
#define SVG_PAGE_FOOTER 28

struct svg_legend {
    const char *class; /* of a square of 14 pixels */
    const char *text;
};

/* Rules for classes of shades, to go into a page's style: y0..y5 (age) and z0..z5 (size) are one hue each from light to
 * dark, which reads without colour, too; k0..k8 (owners) are told apart by the colour-blind. */
extern const char svg_shade_style[];

struct svg_page {
    const char *title, *subtitle; /* any text; subtitle may be NULL */
    const char *body;             /* id of the drawing's group */
    const char *style;            /* rules of the view's own, and what else belongs before the title (<defs>) */
    const char *more_style;       /* likewise, may be NULL */
    const char *script;
    const struct svg_legend *legend;
    size_t legend_count;
    unsigned height; /* of the drawing, in pixels */
};

/* All up to the drawing's group, open: its origin is the left edge of the page, below the legend. */
void svg_page_begin(struct output *output, const struct svg_page *page);

/* The rest.  note: the footer, plain text, "" for none. */
void svg_page_end(struct output *output, const struct svg_page *page, const char *note);

#endif
