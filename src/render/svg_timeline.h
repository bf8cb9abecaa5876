/*
 * The timeline as a picture: for each device the largest allocations as bands over time, the rest merged, what the
 * allocator had reserved as a line over them, the device's memory as a dashed one, and what happened when.
 *
 * One self-contained SVG.  Printed, it has axes, labels that fit their bands and tooltips; in a browser the script in
 * it fits the window, tells what is under the pointer, zooms (click a band, or drag), and searches (Ctrl-F or /).
 * Colours go by the hash of the stack (of the size, where there is none) and are told apart by the colour-blind, too.
 * Equal timelines give equal bytes.
 *
 * A column is a pixel of the printed picture.  Bands are left out, least first, until those of all charts fit into
 * SVG_TIMELINE_BYTES; the rest takes them up.  Cost: O(columns * bands).
 */
#ifndef RENDER_SVG_TIMELINE_H
#define RENDER_SVG_TIMELINE_H

#include "analyze/timeline.h"
#include "base/error.h"
#include "base/output.h"

#define SVG_TIMELINE_COLUMNS 1100u
#define SVG_TIMELINE_BANDS 1000u /* of a chart, unless --detail says otherwise */
#define SVG_TIMELINE_BYTES (UINT64_C(3500000))

struct svg_timeline_options {
    const char *title;
    bool is_part;    /* not all allocations are shown */
    bool all_frames; /* in tooltips: those of the frameworks, too */
    /* The colour of a band, 0 to SVG_TIMELINE_COLOURS - 1; NULL: by the hash of its stack. */
    unsigned (*colour)(void *context, const struct timeline_band *band);
    void *context;
};

#define SVG_TIMELINE_COLOURS 24u

/* Bands may be left out of the timeline meanwhile. */
int svg_timeline(struct timeline *timeline, const struct svg_timeline_options *options, struct output *output,
                 struct error *err);

#endif
