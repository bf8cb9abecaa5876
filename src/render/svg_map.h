/*
 * The map of memory as SVG: every segment to one scale, with its blocks and holes, in rows.
 *
 * Each group (device, pool, stream) has a heading with its sums and its segments side by side; a segment longer than a
 * row goes on in the rows below it.  A row is a power of two of bytes, chosen so that small blocks can be found next to
 * large segments in a picture of few screens; an axis and the subtitle say it.  Within a block the part that nobody
 * asked for is hatched.  Where more than SVG_MAP_MOST cells would be drawn, runs of small neighbours are drawn as one,
 * filled up to their living share; the footer says so, and every sum stays exact.
 *
 * In a browser a click zooms into a segment, then into a block.  Equal maps give equal bytes.  Cost: O(cells) for each
 * scale that is tried; the output about 300 bytes a cell.
 */
#ifndef RENDER_SVG_MAP_H
#define RENDER_SVG_MAP_H

#include "analyze/map.h"
#include "base/error.h"
#include "base/output.h"
#include "render/svg_page.h"

#define SVG_MAP_MOST 12000u

struct svg_map_options {
    const char *title;  /* what it is of */
    const char *remark; /* goes to the end of the numbers: "" for none */
};

/* The legend of a map's shades, for the map and for flame graphs with the same colours; legend and names have MAP_SHADES
 * places.  Returns how many. */
struct svg_shade_names {
    char classes[MAP_SHADES][8], texts[MAP_SHADES][224];
};
size_t svg_shade_legend(const struct map *map, struct svg_legend *legend, struct svg_shade_names *names);
char svg_shade_letter(enum map_color color);

int svg_map(struct map *map, const struct svg_map_options *options, struct output *output, struct error *err);

#endif
