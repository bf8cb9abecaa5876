/* cudamem svg --timeline: what was alive over time. */
#include "analyze/timeline.h"
#include "render/svg_timeline.h"
#include "tools/svg_views.h"

#include <string.h>

#define MOST_BANDS 20000u

static enum timeline_axis axis_of(const struct command_line *line)
{
    if (options_is(line, "x", "time"))
        return TIMELINE_TIME;
    return options_is(line, "x", "entries") ? TIMELINE_ENTRIES : TIMELINE_AUTO;
}

/* Are some allocations left out? */
static bool is_part(const struct selection *selection)
{
    return selection->has_stream || selection->has_pool || selection->has_size || selection->has_stack ||
           selection->has_not_stack || selection->has_annotation;
}

static int draw(const struct command_line *line, const struct load *load, struct output *output, struct error *err)
{
    uint64_t bands = options_number(line, "detail", SVG_TIMELINE_BANDS);
    struct timeline_options options = {.axis = axis_of(line), .columns = SVG_TIMELINE_COLUMNS, .moment = load->moment};
    struct timeline timeline;
    char title[400];
    if (bands > MOST_BANDS)
        return error_set(err, STATUS_USAGE, "--detail: at most %u bands", MOST_BANDS);
    options.bands = (uint32_t)bands;
    int status = timeline_build(load->snapshot, &load->selection, &options, &timeline, err);
    if (status)
        return status;
    const char *frames = options_text(line, "frames");
    svg_view_title(line, load, "memory over time", title, sizeof(title));
    struct svg_timeline_options picture = {.title = title, .is_part = is_part(&load->selection),
                                           .all_frames = frames && strcmp(frames, "all") == 0};
    status = svg_timeline(&timeline, &picture, output, err);
    timeline_free(&timeline);
    return status;
}

const struct svg_view svg_view_timeline = {
    .name = "timeline", .options = "x|detail|entries|time", .load_flags = 0, .draw = draw};
