/* Shared by the timeline's files: its geometry, in pixels, its fixed parts, and the bands. */
#ifndef RENDER_SVG_TIMELINE_PARTS_H
#define RENDER_SVG_TIMELINE_PARTS_H

#include "analyze/frame_text.h"
#include "render/svg_page.h"
#include "render/svg_timeline.h"

#define TIMELINE_LEFT 88u   /* room for the labels of the vertical axis */
#define TIMELINE_PLOT SVG_TIMELINE_COLUMNS
#define TIMELINE_HEAD 22u   /* a chart's title */
#define TIMELINE_LANE 18u
#define TIMELINE_STRIP 18u  /* events */
#define TIMELINE_AXIS 26u   /* labels of the horizontal axis */
#define TIMELINE_GAP 14u
#define TIMELINE_CAPTION 20u
#define TIMELINE_FINE 10u   /* units a pixel in paths */

_Static_assert(TIMELINE_LEFT + TIMELINE_PLOT + SVG_PAGE_MARGIN == SVG_PAGE_WIDTH, "the plot fills the page");

extern const char timeline_style[], timeline_script[];

struct timeline_drawing {
    struct timeline *timeline;
    const struct svg_timeline_options *options;
    struct frame_texts *texts;
    struct output *output;
    unsigned plot; /* height of a plot */
    uint64_t budget; /* bytes for the bands of a chart */
    bool failed;
};

/* Where a chart's parts lie, from its top. */
struct timeline_place {
    unsigned lanes, strip, plot, axis, bottom;
    uint64_t top; /* bytes at the upper end of the plot */
};

/* The bands of a chart, what was there before and the rest, and their labels after the plot. */
void timeline_draw_bands(struct timeline_drawing *d, struct timeline_chart *chart, const struct timeline_place *place);
void timeline_draw_labels(struct timeline_drawing *d, const struct timeline_chart *chart, const struct timeline_place *place);

/* Bytes as units of the plot, from its top down. */
static inline unsigned timeline_level(const struct timeline_drawing *d, const struct timeline_place *place, uint64_t bytes)
{
    unsigned high = d->plot * TIMELINE_FINE;
    if (bytes >= place->top)
        return 0;
    return high - (unsigned)(((unsigned __int128)bytes * 2 * high + place->top) / ((unsigned __int128)place->top * 2));
}

/* The pixel at which a column begins, in tenths. */
static inline unsigned timeline_tenths(const struct timeline *timeline, uint64_t column)
{
    return (unsigned)(column * TIMELINE_PLOT * 10 / timeline->columns);
}

/* The innermost frames of a stack, at most `most`, without the frameworks' own unless those are all; how many. */
size_t timeline_frames(const struct timeline_drawing *d, uint32_t context, uint32_t *labels, size_t most);

/* "#12 (0.345678 s)" */
void timeline_write_entry(struct timeline_drawing *d, uint64_t entry);
void timeline_write_stack(struct timeline_drawing *d, uint32_t context);

#endif
