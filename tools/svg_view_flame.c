/* cudamem svg --segments and --memory: flame graphs. */
#include "analyze/flame.h"
#include "analyze/map.h"
#include "base/size.h"
#include "render/svg_flame.h"
#include "render/svg_map.h"
#include "tools/svg_views.h"

#include <stdio.h>

/* "190.00 MiB reserved in 9 segments: 74.00 MiB allocated, ..." of what is drawn. */
static void subtitle_of(const struct load *load, const struct flame_tree *tree, char *text, size_t room)
{
    uint64_t allocated = 0, pending = 0, inactive = 0;
    size_t segments = 0;
    char size[4][SIZE_TEXT], waits[SIZE_TEXT + 32] = "";
    const struct state *state = load->state;
    for (size_t i = 0; i < state->segment_count; i++)
        segments += selection_has_segment(&load->selection, &state->segments[i]);
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct flame_node *node = &tree->nodes[i];
        if (node->kind == FLAME_KIND_ALLOCATED)
            allocated += node->total;
        else if (node->kind == FLAME_KIND_PENDING)
            pending += node->total;
        else if (node->kind == FLAME_KIND_INACTIVE)
            inactive += node->total;
    }
    if (pending)
        snprintf(waits, sizeof(waits), ", %s waiting to be freed", size_format(pending, size[3]));
    snprintf(text, room, "%s %s in %zu segment%s: %s allocated%s, %s inactive%s",
             size_format(tree->nodes[0].total, size[0]),
             selection_is_everything(&load->selection) ? "reserved" : "selected", segments, segments == 1 ? "" : "s",
             size_format(allocated, size[1]), waits, size_format(inactive, size[2]), svg_view_remark(load));
}

/* The colours are those of the map: `map` tells each block's. */
static int draw_shaded(const struct command_line *line, const struct load *load, enum flame_view view,
                       const struct map *map, struct output *output, struct error *err)
{
    bool reversed = options_has(line, "reverse");
    struct flame_options how = {.view = view, .selection = &load->selection, .reversed = reversed, .shades = map->shade_of};
    struct svg_legend legend[MAP_SHADES];
    struct svg_shade_names names;
    struct flame_tree tree;
    char title[SVG_VIEW_TITLE], subtitle[400], what[80];
    int status = flame_tree_make(load->snapshot, load->state, &how, &tree, err);
    if (status)
        return status;
    snprintf(what, sizeof(what), "memory by %sstack%s", view == FLAME_SEGMENTS ? "segment and " : "",
             reversed ? ", innermost frames first" : "");
    svg_view_title(line, load, what, title, sizeof(title));
    subtitle_of(load, &tree, subtitle, sizeof(subtitle));
    struct svg_flame_options options = {.title = title, .subtitle = subtitle};
    if (options_is(line, "color", "state")) {
        options.color = SVG_FLAME_STATE;
    } else if (options_has(line, "color")) {
        options.color = SVG_FLAME_SHADE;
        options.shades = legend;
        options.shade_count = svg_shade_legend(map, legend, &names);
        options.shade_letter = svg_shade_letter(map->color);
    }
    status = svg_flame(&tree, &options, output, err);
    flame_tree_free(&tree);
    return status;
}

static int draw(const struct command_line *line, const struct load *load, enum flame_view view, struct output *output,
                struct error *err)
{
    struct map map = {0};
    enum map_color color = svg_view_color(line);
    int status = color == MAP_BY_STATE ? 0 : map_build(load->snapshot, load->state, &load->selection, color, &map, err);
    if (status)
        return status;
    status = draw_shaded(line, load, view, &map, output, err);
    map_free(&map);
    return status;
}

static int draw_segments(const struct command_line *line, const struct load *load, struct output *output,
                         struct error *err)
{
    return draw(line, load, FLAME_SEGMENTS, output, err);
}

static int draw_memory(const struct command_line *line, const struct load *load, struct output *output, struct error *err)
{
    return draw(line, load, FLAME_MEMORY, output, err);
}

const struct svg_view svg_view_segments = {.name = "segments", .options = "reverse|color",
                                           .load_flags = LOAD_STATE | LOAD_STATE_ONLY, .more_flags = svg_view_color_flags,
                                           .draw = draw_segments};
const struct svg_view svg_view_memory = {.name = "memory", .options = "reverse|color",
                                         .load_flags = LOAD_STATE | LOAD_STATE_ONLY, .more_flags = svg_view_color_flags,
                                         .draw = draw_memory};
