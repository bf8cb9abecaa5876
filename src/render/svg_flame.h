/*
 * A flame graph: a tree of frames as boxes whose widths are bytes, callers above callees.
 *
 * One self-contained SVG.  Without scripts it is a picture whose labels fit their boxes and whose boxes have tooltips;
 * in a browser the script in it fits the window, shows details, zooms on a click and searches (Ctrl-F or /).  Colours
 * tell Python, native and unknown code and the states apart, also for the colour-blind, and follow the light or dark
 * scheme.  Equal trees give equal bytes.
 *
 * Of two trees as one (flame_tree_diff()) red boxes grew and blue ones shrank, the more the deeper the colour, and each
 * says its change.  Of trees of more than SVG_FLAME_FEW boxes those narrower than a fiftieth of a pixel, and all but the widest
 * SVG_FLAME_MOST, are left out; their bytes still count in every sum above them, and the picture says so.  Cost:
 * O(n log n) in nodes; the output about 400 bytes a box.
 */
#ifndef RENDER_SVG_FLAME_H
#define RENDER_SVG_FLAME_H

#include "analyze/flame.h"
#include "base/error.h"
#include "base/output.h"
#include "render/svg_page.h"

#define SVG_FLAME_FEW 2000u
#define SVG_FLAME_MOST 15000u

/* What the boxes of frames are coloured by.  A tree of flame_tree_diff() has colours of its own. */
enum svg_flame_color {
    SVG_FLAME_CODE,  /* Python, native or unknown, a tint a file */
    SVG_FLAME_STATE, /* of the blocks */
    SVG_FLAME_SHADE, /* the nodes' shades */
};

struct svg_flame_options {
    const char *title;    /* what it is of: "snapshot.bin@peak: memory by segment" */
    const char *subtitle; /* the numbers; may be NULL */
    enum svg_flame_color color;
    const struct svg_legend *shades; /* SVG_FLAME_SHADE: the legend of the nodes' shades, and their letter (svg_page.h) */
    size_t shade_count;
    char shade_letter;
};

int svg_flame(const struct flame_tree *tree, const struct svg_flame_options *options, struct output *output,
              struct error *err);

#endif
