/* What svg_map.c is made of: style, script and the texts of a map.  Shared by the map's files only. */
#ifndef RENDER_SVG_MAP_PARTS_H
#define RENDER_SVG_MAP_PARTS_H

#include "analyze/map.h"
#include "base/output.h"
#include "base/text.h"

/* The geometry that picture and script share, in pixels. */
#define MAP_AXIS 30  /* above the first group */
#define MAP_HEAD 24  /* a group's heading */
#define MAP_BAR 18
#define MAP_PITCH 19 /* from row to row of one segment */
#define MAP_SHELF 24 /* from segment to segment */
#define MAP_BELOW 8  /* a group */
#define MAP_GAP 3    /* between segments of a row */
#define MAP_LEAST 3  /* width of a segment */

extern const char map_style[];
extern const char map_script[];

/* "device 0, default pool, stream 0: 12 segments, 240.00 MiB reserved, ..." */
void map_heading(const struct map *map, const struct map_group *group, struct text *text);
void map_sums_text(const struct map_sums *sums, struct text *text); /* what stands behind the colon */

/* A cell's tooltip, escaped; `frames` of its stack at most. */
void map_tooltip(struct map *map, const struct map_group *group, const struct map_cell *cell, size_t frames,
                 struct output *output);

/* The class that fills a living or other kind, such as "a" or "z3". */
void map_class(const struct map *map, enum map_kind kind, unsigned shade, char class[8]);
const char *map_kind_text(enum map_kind kind);

#endif
