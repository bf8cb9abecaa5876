/* The fixed parts of a flame graph: style and script, with markup around the style. */
#ifndef RENDER_SVG_FLAME_PARTS_H
#define RENDER_SVG_FLAME_PARTS_H

#define FLAME_ROW 20 /* pixels, of picture and script */

extern const char flame_style[];
extern const char flame_script[];

#endif
