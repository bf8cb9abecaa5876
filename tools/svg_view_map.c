/* cudamem svg --map: every segment with its blocks and holes. */
#include "analyze/map.h"
#include "render/svg_map.h"
#include "tools/svg_views.h"

enum map_color svg_view_color(const struct command_line *line)
{
    return options_is(line, "color", "age")     ? MAP_BY_AGE
           : options_is(line, "color", "size")  ? MAP_BY_SIZE
           : options_is(line, "color", "stack") ? MAP_BY_STACK
                                                : MAP_BY_STATE;
}

/* How old a block is, only the whole trace tells. */
unsigned svg_view_color_flags(const struct command_line *line, unsigned flags)
{
    return svg_view_color(line) == MAP_BY_AGE ? flags & ~(unsigned)LOAD_STATE_ONLY : flags;
}

static int draw_map(const struct command_line *line, const struct load *load, struct output *output, struct error *err)
{
    struct map map;
    char title[SVG_VIEW_TITLE];
    int status = map_build(load->snapshot, load->state, &load->selection, svg_view_color(line), &map, err);
    if (status)
        return status;
    svg_view_title(line, load, "map of memory", title, sizeof(title));
    struct svg_map_options options = {title, svg_view_remark(load)};
    status = svg_map(&map, &options, output, err);
    map_free(&map);
    return status;
}

const struct svg_view svg_view_map = {.name = "map", .options = "color", .load_flags = LOAD_STATE | LOAD_STATE_ONLY,
                                      .more_flags = svg_view_color_flags, .draw = draw_map};
