/*
 * The views of cudamem svg: one tools/svg_view_NAME.c each, one entry in cmd_svg.c's list, one flag of the command.
 */
#ifndef TOOLS_SVG_VIEWS_H
#define TOOLS_SVG_VIEWS_H

#include "analyze/map.h"
#include "tools/command.h"
#include "tools/load.h"

struct svg_view {
    const char *name;    /* the option that chooses it, and part of the default file name */
    const char *options; /* those of its own, "a|b": others' are refused with it; "" for none */
    unsigned load_flags; /* LOAD_*: what it looks at */
    unsigned (*more_flags)(const struct command_line *line, unsigned flags); /* by options; NULL: load_flags as they are */
    /* Draw into `output`.  A status of base/error.h; err says what is wrong. */
    int (*draw)(const struct command_line *line, const struct load *load, struct output *output, struct error *err);
};

extern const struct svg_view svg_view_segments, svg_view_memory, svg_view_map, svg_view_timeline;

#define SVG_VIEW_TITLE 2048

/* --title, or "snapshot.bin@peak: WHAT". */
void svg_view_title(const struct command_line *line, const struct load *load, const char *what, char *text, size_t room);

/* --color, by state where it is not given, and the flags for it. */
enum map_color svg_view_color(const struct command_line *line);
unsigned svg_view_color_flags(const struct command_line *line, unsigned flags);

/* " (block sizes rebuilt by rounding)" where that is so, else "". */
const char *svg_view_remark(const struct load *load);

#endif
