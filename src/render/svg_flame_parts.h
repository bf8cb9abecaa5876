/* The fixed parts of a flame graph: style and script, with markup around them. */
#ifndef RENDER_SVG_FLAME_PARTS_H
#define RENDER_SVG_FLAME_PARTS_H

/* The geometry that picture and script share, in pixels. */
#define FLAME_WIDTH 1200
#define FLAME_MARGIN 12
#define FLAME_ROW 20
#define FLAME_LEGEND 62 /* top of the legend */
#define FLAME_TOP 92    /* top of the boxes */
#define FLAME_FOOTER 28 /* below them */

extern const char flame_style[];
extern const char flame_script[];

#endif
