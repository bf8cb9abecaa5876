/* The timeline as SVG: page, charts, axes, events.  Uses src/analyze, src/base and render/svg. */
#include "render/svg_timeline.h"

#include "base/size.h"
#include "render/svg.h"
#include "render/svg_timeline_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_COLUMNS 200u  /* of a range or mark, in a tooltip */
#define LIMIT_ROOM 4u      /* the device's memory is drawn if it is at most so many times what was used */
#define TICK_PIXELS 100u   /* between labels of the horizontal axis, at least */
#define BURSTY 8u          /* one in so many columns is busy at least, or --x entries is pointed at */
#define TICKS 6u           /* of the vertical axis, at most */

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* "process 4711, rank 3, device 0: NVIDIA H200", as far as it tells charts apart. */
static void name_of(const struct timeline *timeline, const struct timeline_chart *chart, char *text, size_t room)
{
    const struct snapshot *snapshot = timeline->snapshot;
    size_t used = 0;
    if (snapshot->process_count > 1 && chart->process < snapshot->process_count) {
        const struct process *process = &snapshot->processes[chart->process];
        used += (size_t)snprintf(text, room, process->rank >= 0 ? "rank %" PRId64 ", " : "process %" PRId64 ", ",
                                 process->rank >= 0 ? process->rank : process->pid);
    }
    used += (size_t)snprintf(text + used, room - used, "device %u", chart->device);
    const char *name = chart->about ? snapshot_content_text(snapshot, chart->about->name, NULL) : "";
    if (*name && used < room)
        snprintf(text + used, room - used, " (%.60s)", name);
}

static void heading_of(const struct timeline *timeline, const struct timeline_chart *chart, char *text, size_t room)
{
    char name[160], size[4][SIZE_TEXT];
    name_of(timeline, chart, name, sizeof(name));
    int used = snprintf(text, room, "%s: at most %s allocated, at @#%" PRIu64, name, size_format(chart->peak_allocated, size[0]),
                        timeline->snapshot->first_entry + chart->peak_moment);
    if (chart->has_reserved)
        used += snprintf(text + used, room - (size_t)used, "; %s reserved", size_format(chart->peak_reserved, size[1]));
    if (chart->has_outside)
        used += snprintf(text + used, room - (size_t)used, "; %s with what others took", size_format(chart->peak_used, size[2]));
    if (chart->about && chart->about->total)
        snprintf(text + used, room - (size_t)used, "; the device has %s", size_format(chart->about->total, size[3]));
}

static void subtitle_of(const struct timeline *timeline, bool is_part, char *text, size_t room)
{
    uint64_t span = (uint64_t)(timeline->time_high - timeline->time_low), count = timeline->last - timeline->first;
    uint64_t base = timeline->snapshot->first_entry;
    char time[48] = "", range[80] = "";
    if (timeline->is_time)
        snprintf(time, sizeof(time), " in %" PRIu64 ".%03u %s", span >= 1000000 ? span / 1000000 : span / 1000,
                 (unsigned)(span >= 1000000 ? span % 1000000 / 1000 : span % 1000), span >= 1000000 ? "s" : "ms");
    if (count != timeline->snapshot->entries.count)
        snprintf(range, sizeof(range), " (#%" PRIu64 " to #%" PRIu64 ")", base + timeline->first, base + timeline->last - 1);
    snprintf(text, room, "%" PRIu64 " entr%s%s%s; each column of pixels shows the most that was allocated in it%s", count,
             count == 1 ? "y" : "ies", range, time, is_part ? ", of what is selected" : "");
}

static void caption_of(const struct timeline *timeline, char *text, size_t room)
{
    time_t seconds = (time_t)(timeline->first_time / 1000000);
    struct tm date;
    char day[40];
    if (!timeline->is_time) {
        snprintf(text, room, "events: the number of the entry, as in @#N");
    } else if (timeline->first_time >= 0 && gmtime_r(&seconds, &date) &&
               strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &date)) {
        snprintf(text, room, "time since the first entry, at %s.%06u UTC", day, (unsigned)(timeline->first_time % 1000000));
    } else {
        snprintf(text, room, "time since the first entry");
    }
}

/* --- axes --------------------------------------------------------------------------------------------------------- */

/* Steps are powers of two, so that labels are round in binary units. */
static uint64_t size_step(uint64_t top)
{
    uint64_t step = 1;
    while (top / step > TICKS && step <= UINT64_MAX / 2)
        step *= 2;
    return step;
}

/* "1.5 GiB": no zeros that say nothing. */
static void tick_text(uint64_t bytes, char text[SIZE_TEXT])
{
    size_format(bytes, text);
    char *point = strchr(text, '.'), *end = point ? strchr(point, ' ') : NULL, *kept = end;
    if (!end)
        return;
    while (kept[-1] == '0')
        kept--;
    if (kept[-1] == '.')
        kept--;
    memmove(kept, end, strlen(end) + 1);
}

static void write_sizes(struct timeline_drawing *d, const struct timeline_place *place)
{
    uint64_t step = size_step(place->top);
    unsigned last = UINT32_MAX;
    output_text(d->output, "<g class=\"ys\">\n");
    for (uint64_t bytes = 0;; bytes += step) {
        unsigned y = place->plot * 100 + timeline_level(d, place, bytes) * (100 / TIMELINE_FINE);
        char text[SIZE_TEXT];
        tick_text(bytes, text);
        output_printf(d->output, "<path d=\"M%u ", TIMELINE_LEFT);
        svg_hundredths(d->output, y);
        output_printf(d->output, "h%u\"/>", TIMELINE_PLOT);
        if (last == UINT32_MAX || last - y >= 1400) {
            output_printf(d->output, "<text x=\"%u\" y=\"", TIMELINE_LEFT - 8);
            svg_hundredths(d->output, y + 400);
            output_printf(d->output, "\">%s</text>", text);
            last = y;
        }
        output_char(d->output, '\n');
        if (bytes > place->top - step || bytes + step > place->top)
            break;
    }
    output_text(d->output, "</g>\n");
}

struct axis {
    uint64_t low, high, step; /* microseconds or numbers of entries */
    uint64_t unit;            /* 0: numbers */
    const char *name;
    int digits;
};

static struct axis axis_of(const struct timeline *timeline)
{
    struct axis axis = {.step = 1, .name = ""};
    uint64_t least;
    if (timeline->is_time) {
        axis.low = (uint64_t)timeline->time_low;
        axis.high = (uint64_t)timeline->time_high;
        axis.unit = axis.high - axis.low >= 2000000 ? 1000000 : axis.high - axis.low >= 2000 ? 1000 : 1;
        axis.name = axis.unit == 1000000 ? " s" : axis.unit == 1000 ? " ms" : " \xc2\xb5s";
    } else {
        axis.low = timeline->snapshot->first_entry + timeline->first;
        axis.high = timeline->snapshot->first_entry + timeline->last + 1;
    }
    least = (axis.high - axis.low) / (TIMELINE_PLOT / TICK_PIXELS) + 1;
    for (unsigned i = 0; axis.step < least && axis.step <= UINT64_MAX / 10; i++)
        axis.step = i % 3 == 1 ? axis.step / 2 * 5 : axis.step * 2; /* 1 2 5 10 20 50 */
    for (uint64_t part = axis.unit; part > 1 && axis.step % part; part /= 10)
        axis.digits++;
    return axis;
}

static void write_tick(struct timeline_drawing *d, const struct axis *axis, uint64_t at)
{
    if (!axis->unit) {
        svg_grouped(d->output, at);
        return;
    }
    output_printf(d->output, "%" PRIu64, at / axis->unit);
    uint64_t part = at % axis->unit;
    for (int i = 0, scale = (int)axis->unit; i < axis->digits; i++) {
        scale /= 10;
        output_printf(d->output, i ? "%u" : ".%u", (unsigned)(part / (unsigned)scale % 10));
    }
    output_text(d->output, axis->name);
}

static void write_times(struct timeline_drawing *d, const struct timeline_place *place)
{
    struct axis axis = axis_of(d->timeline);
    uint64_t span = axis.high - axis.low, first = (axis.low + axis.step - 1) / axis.step * axis.step;
    output_text(d->output, "<g class=\"xs\">\n");
    for (uint64_t at = first; span && at <= axis.high; at += axis.step) {
        uint64_t x = TIMELINE_LEFT * 100 + (uint64_t)((unsigned __int128)(at - axis.low) * TIMELINE_PLOT * 100 / span);
        bool is_last = x > (SVG_PAGE_WIDTH - SVG_PAGE_MARGIN - 30) * 100;
        output_text(d->output, "<path d=\"M");
        svg_hundredths(d->output, x);
        output_printf(d->output, " %uv5\"/><text x=\"", place->axis);
        svg_hundredths(d->output, is_last ? (SVG_PAGE_WIDTH - SVG_PAGE_MARGIN) * 100 : x);
        output_printf(d->output, "\" y=\"%u\"%s>", place->axis + 17, is_last ? " class=\"e\"" : "");
        write_tick(d, &axis, at);
        output_text(d->output, "</text>\n");
        if (at > UINT64_MAX - axis.step)
            break;
    }
    output_text(d->output, "</g>\n");
}

/* --- ranges and events -------------------------------------------------------------------------------------------- */

static const char *annotation_text(const struct timeline *timeline, uint64_t annotation, size_t *length)
{
    return snapshot_object_text(timeline->snapshot, timeline->snapshot->annotations[annotation].name, length);
}

static void write_range(struct timeline_drawing *d, const struct timeline_place *place, const struct timeline_range *range)
{
    size_t length, columns;
    const char *name = annotation_text(d->timeline, range->annotation, &length);
    unsigned x = timeline_tenths(d->timeline, range->from), width = timeline_tenths(d->timeline, range->to + 1) - x;
    uint64_t base = d->timeline->snapshot->first_entry;
    output_printf(d->output, "<g class=\"n%u\" data-r=\"%u,%u\"><title>", range->lane % 2, range->from, range->to + 1);
    svg_text(d->output, name, length, NAME_COLUMNS);
    output_printf(d->output, "\nrange from @#%" PRIu64, base + range->first);
    output_printf(d->output, range->is_open ? ", not ended" : " to @#%" PRIu64, base + range->last);
    output_text(d->output, "</title><rect x=\"");
    svg_hundredths(d->output, TIMELINE_LEFT * 100 + x * 10);
    output_printf(d->output, "\" y=\"%u\" width=\"", place->lanes + range->lane * TIMELINE_LANE);
    svg_hundredths(d->output, width * 10 > 120 ? width * 10 - 60 : width * 10);
    output_printf(d->output, "\" height=\"%u\"/>", TIMELINE_LANE - 3);
    columns = width < 100 ? 0 : (width - 100) / SVG_COLUMN_TENTHS;
    if (columns >= 3) {
        output_text(d->output, "<text x=\"");
        svg_hundredths(d->output, TIMELINE_LEFT * 100 + x * 10 + 400);
        output_printf(d->output, "\" y=\"%u\">", place->lanes + range->lane * TIMELINE_LANE + 12);
        svg_text(d->output, name, length, columns);
        output_text(d->output, "</text>");
    }
    output_text(d->output, "</g>\n");
}

static const struct {
    const char *class, *shape; /* the shape is 10 wide, round about 0, from 0 to 11 */
} marks[] = {
    [TIMELINE_OOM] = {"oom", "M-6 0h12l-6 11z"},
    [TIMELINE_SNAPSHOT] = {"shot", "M0 0l5 5.5l-5 5.5l-5 -5.5z"},
    [TIMELINE_MARK] = {"mark", "M-.5 11v-11h7l-2.5 3l2.5 3h-6v5z"},
};

/* What stands beside the mark: of a failure what was asked for, of a mark its name. */
static size_t event_label(const struct timeline_drawing *d, const struct timeline_event *event, char *text, size_t room)
{
    char size[SIZE_TEXT];
    size_t length;
    if (event->kind == TIMELINE_MARK) {
        const char *name = annotation_text(d->timeline, event->entry, &length);
        length = length < room ? length : room - 1;
        memcpy(text, name, length);
        return length;
    }
    if (event->kind != TIMELINE_OOM)
        return 0;
    return (size_t)snprintf(text, room, "out of memory: %s", size_format(d->timeline->snapshot->entries.size[event->entry], size));
}

static void write_event_title(struct timeline_drawing *d, const struct timeline_event *event)
{
    const struct snapshot *snapshot = d->timeline->snapshot;
    const struct entries *entries = &snapshot->entries;
    char size[2][SIZE_TEXT];
    size_t length;
    output_text(d->output, "<title>");
    if (event->kind == TIMELINE_MARK) {
        const char *name = annotation_text(d->timeline, event->entry, &length);
        output_text(d->output, "mark: ");
        svg_text(d->output, name, length, NAME_COLUMNS);
    } else {
        if (event->kind == TIMELINE_OOM)
            output_printf(d->output, "out of memory: %s asked for, %s free on the device, at ",
                          size_format(entries->size[event->entry], size[0]),
                          size_format(entries->address[event->entry], size[1]));
        else
            output_text(d->output, "a snapshot was taken at ");
        timeline_write_entry(d, event->entry);
    }
    if (event->count > 1)
        output_printf(d->output, "\nand %u more in this column", event->count - 1);
    if (event->kind == TIMELINE_OOM)
        timeline_write_stack(d, entries->context[event->entry]);
    output_text(d->output, "</title>");
}

/* One mark; its label, if that ends before the next mark begins. */
static void write_event(struct timeline_drawing *d, const struct timeline_chart *chart, const struct timeline_place *place,
                        size_t number)
{
    const struct timeline_event *event = &chart->events[number];
    unsigned x = TIMELINE_LEFT * 10 + timeline_tenths(d->timeline, event->column);
    unsigned next = number + 1 < chart->event_count
                        ? TIMELINE_LEFT * 10 + timeline_tenths(d->timeline, chart->events[number + 1].column)
                        : (SVG_PAGE_WIDTH - SVG_PAGE_MARGIN) * 10;
    char text[128];
    size_t length = event_label(d, event, text, sizeof(text)), columns = svg_columns(text, length);
    output_printf(d->output, "<g class=\"%s\" data-c=\"%u\" data-t=\"", marks[event->kind].class, event->column);
    svg_text(d->output, text, length, SIZE_MAX);
    output_text(d->output, "\" transform=\"translate(");
    svg_hundredths(d->output, x * 10);
    output_printf(d->output, ",%u)\">", place->strip + 2);
    write_event_title(d, event);
    output_printf(d->output, "<path d=\"%s\"/>", marks[event->kind].shape);
    if (event->kind != TIMELINE_SNAPSHOT)
        output_printf(d->output, "<path class=\"v\" d=\"M0 11V%u\"/>", place->axis - place->strip - 2);
    if (columns && x + 100 + columns * SVG_COLUMN_TENTHS + 80 <= next) {
        output_text(d->output, "<text x=\"10\" y=\"10\">");
        svg_text(d->output, text, length, SIZE_MAX);
        output_text(d->output, "</text>");
    }
    output_text(d->output, "</g>\n");
}

/* --- a chart ------------------------------------------------------------------------------------------------------ */

static bool shows_limit(const struct timeline_chart *chart)
{
    uint64_t used = chart->peak_used > chart->peak_allocated ? chart->peak_used : chart->peak_allocated;
    return chart->about && chart->about->total && chart->about->total / LIMIT_ROOM <= used;
}

static struct timeline_place place_of(const struct timeline_drawing *d, const struct timeline_chart *chart)
{
    struct timeline_place place = {.lanes = TIMELINE_HEAD};
    place.top = chart->peak_used > chart->peak_allocated ? chart->peak_used : chart->peak_allocated;
    if (shows_limit(chart) && chart->about->total > place.top)
        place.top = chart->about->total;
    if (place.top < UINT64_MAX / 64) /* the highest line does not lie on the edge */
        place.top += place.top / 32;
    if (!place.top)
        place.top = 1;
    place.strip = place.lanes + chart->lanes * TIMELINE_LANE;
    place.plot = place.strip + (chart->event_count ? TIMELINE_STRIP : 4);
    place.axis = place.plot + d->plot;
    place.bottom = place.axis + TIMELINE_AXIS;
    return place;
}

static void write_line(struct timeline_drawing *d, const struct timeline_place *place, const char *class, const uint64_t *bytes)
{
    unsigned level = timeline_level(d, place, bytes[0]);
    uint32_t begun = 0;
    output_printf(d->output, "<path class=\"%s\" d=\"M0 %u", class, level);
    for (uint32_t c = 0; c < d->timeline->columns; c++) {
        unsigned now = timeline_level(d, place, bytes[c]);
        if (now == level)
            continue;
        if (c > begun)
            output_printf(d->output, "h%u", c - begun);
        output_printf(d->output, "v%d", (int)now - (int)level);
        level = now;
        begun = c;
    }
    output_printf(d->output, "h%u\"/>\n", d->timeline->columns - begun);
}

/* What others took, between the line of what is reserved and that of both. */
static void write_outside(struct timeline_drawing *d, const struct timeline_chart *chart, const struct timeline_place *place)
{
    output_text(d->output, "<path class=\"outside\" d=\"");
    for (uint32_t c = 0; c < d->timeline->columns;) {
        unsigned low = timeline_level(d, place, chart->reserved[c]), high = timeline_level(d, place, chart->used[c]);
        uint32_t begun = c++;
        while (c < d->timeline->columns && timeline_level(d, place, chart->reserved[c]) == low &&
               timeline_level(d, place, chart->used[c]) == high)
            c++;
        if (low > high)
            output_printf(d->output, "M%u %uh%uV%uh-%uZ", begun, high, c - begun, low, c - begun);
    }
    output_text(d->output, "\"><title>outside of the allocator: libraries, contexts, others' pools</title></path>\n");
}

/* Bytes by column, for the script: "columns:allocated,reserved,used;..." */
static void write_values(struct timeline_drawing *d, const struct timeline_chart *chart)
{
    for (uint32_t c = 0; c < d->timeline->columns;) {
        uint32_t begun = c++;
        while (c < d->timeline->columns && chart->allocated[c] == chart->allocated[begun] &&
               chart->reserved[c] == chart->reserved[begun] && chart->used[c] == chart->used[begun])
            c++;
        output_printf(d->output, "%u:%" PRIu64 ",%" PRIu64 ",%" PRIu64 ";", c - begun, chart->allocated[begun],
                      chart->reserved[begun], chart->used[begun]);
    }
}

static void write_plot(struct timeline_drawing *d, struct timeline_chart *chart, const struct timeline_place *place)
{
    unsigned high = d->plot * TIMELINE_FINE;
    output_printf(d->output, "<svg class=\"plot\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" "
                  "preserveAspectRatio=\"none\">\n", TIMELINE_LEFT, place->plot, TIMELINE_PLOT, d->plot, d->timeline->columns, high);
    timeline_draw_bands(d, chart, place);
    if (chart->has_outside)
        write_outside(d, chart, place);
    if (chart->has_reserved)
        write_line(d, place, "reserved", chart->reserved);
    if (shows_limit(chart))
        output_printf(d->output, "<path class=\"limit\" d=\"M0 %uH%u\"/>\n", timeline_level(d, place, chart->about->total),
                      d->timeline->columns);
    output_text(d->output, "</svg>\n");
}

static unsigned write_chart(struct timeline_drawing *d, struct timeline_chart *chart, unsigned y)
{
    struct timeline_place place = place_of(d, chart);
    char heading[400];
    heading_of(d->timeline, chart, heading, sizeof(heading));
    output_printf(d->output, "<g class=\"chart\" transform=\"translate(0,%u)\" data-h=\"%u,%u,%u,%u,%u\" data-top=\"%" PRIu64
                  "\" data-v=\"", y, place.lanes, place.strip, place.plot, place.axis, place.bottom, place.top);
    write_values(d, chart);
    output_printf(d->output, "\">\n<text class=\"head\" x=\"%d\" y=\"14\" data-t=\"", SVG_PAGE_MARGIN);
    svg_text(d->output, heading, strlen(heading), SIZE_MAX);
    output_text(d->output, "\">");
    svg_text(d->output, heading, strlen(heading), SVG_PAGE_INNER * 10 / SVG_COLUMN_TENTHS);
    output_text(d->output, "</text>\n");
    write_sizes(d, &place);
    output_text(d->output, "<g class=\"lanes\">\n");
    for (size_t i = 0; i < chart->range_count; i++)
        write_range(d, &place, &chart->ranges[i]);
    output_text(d->output, "</g>\n");
    write_plot(d, chart, &place);
    timeline_draw_labels(d, chart, &place);
    output_text(d->output, "<g class=\"events\">\n");
    for (size_t i = 0; i < chart->event_count; i++)
        write_event(d, chart, &place, i);
    output_text(d->output, "</g>\n");
    write_times(d, &place);
    output_text(d->output, "</g>\n");
    return place.bottom + TIMELINE_GAP;
}

/* --- the page ----------------------------------------------------------------------------------------------------- */

enum legend_item { LEGEND_BAND, LEGEND_REST, LEGEND_BEFORE, LEGEND_RESERVED, LEGEND_OUTSIDE, LEGEND_LIMIT, LEGEND_RANGE,
                   LEGEND_OOM, LEGEND_SNAPSHOT, LEGEND_MARK, LEGEND_COUNT };

static bool has_any_rest(const struct timeline *timeline, const struct timeline_chart *chart)
{
    for (uint32_t c = 0; c < timeline->columns; c++)
        if (chart->rest[c])
            return true;
    return false;
}

static size_t legend_of(const struct timeline *timeline, bool has_colour, struct svg_legend *legend)
{
    static const struct svg_legend all[LEGEND_COUNT] = {
        [LEGEND_BAND] = {"kb", "one allocation, coloured by stack"},
        [LEGEND_REST] = {"kr", "smaller allocations together"},
        [LEGEND_BEFORE] = {"kf", "allocated before recording"},
        [LEGEND_RESERVED] = {"kl", "reserved"},
        [LEGEND_OUTSIDE] = {"ko", "outside of the allocator"},
        [LEGEND_LIMIT] = {"kd", "the device's memory"},
        [LEGEND_RANGE] = {"kn", "range"},
        [LEGEND_OOM] = {"km", "out of memory"},
        [LEGEND_SNAPSHOT] = {"ks", "snapshot"},
        [LEGEND_MARK] = {"kk", "mark"},
    };
    bool has[LEGEND_COUNT] = {false};
    size_t count = 0;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct timeline_chart *chart = &timeline->charts[i];
        has[LEGEND_BAND] |= chart->band_count > 0;
        has[LEGEND_REST] |= has_any_rest(timeline, chart);
        has[LEGEND_BEFORE] |= chart->has_before;
        has[LEGEND_RESERVED] |= chart->has_reserved;
        has[LEGEND_OUTSIDE] |= chart->has_outside;
        has[LEGEND_LIMIT] |= shows_limit(chart);
        has[LEGEND_RANGE] |= chart->range_count > 0;
        for (size_t e = 0; e < chart->event_count; e++)
            has[LEGEND_OOM + chart->events[e].kind] = true;
    }
    for (size_t i = 0; i < LEGEND_COUNT; i++)
        if (has[i])
            legend[count++] = all[i];
    if (count && has[LEGEND_BAND] && has_colour)
        legend[0].text = "one allocation";
    return count;
}

static unsigned plot_height(size_t charts)
{
    return charts == 1 ? 400 : charts == 2 ? 260 : charts <= 8 ? 180 : 110;
}

/* Does most that happened lie in little of the time? */
static bool is_bursty(const struct timeline *timeline)
{
    uint32_t busy = 0;
    for (uint32_t c = 1; c < timeline->columns; c++)
        for (size_t i = 0; i < timeline->count; i++)
            if (timeline->charts[i].moments[c] != timeline->charts[i].moments[c - 1]) {
                busy++;
                break;
            }
    return timeline->is_time && busy < timeline->columns / BURSTY && timeline->last - timeline->first > 2 * (uint64_t)busy;
}

static void note_of(const struct timeline *timeline, char *note, size_t room)
{
    size_t ranges = 0;
    for (size_t i = 0; i < timeline->count; i++)
        ranges += timeline->charts[i].ranges_left_out;
    int used = 0;
    *note = '\0';
    if (timeline->left_out)
        used = snprintf(note, room, "%zu more devices are not drawn; --device chooses. ", timeline->left_out);
    if (ranges)
        used += snprintf(note + used, room - (size_t)used, "%zu short or deeply nested ranges are not drawn. ", ranges);
    if (is_bursty(timeline))
        snprintf(note + used, room - (size_t)used, "Most of it happened in little of the time: --x entries spreads it.");
}

static unsigned page_height(const struct timeline_drawing *d)
{
    unsigned height = TIMELINE_CAPTION;
    for (size_t i = 0; i < d->timeline->count; i++)
        height += place_of(d, &d->timeline->charts[i]).bottom + TIMELINE_GAP;
    return height;
}

static void write_body(struct timeline_drawing *d)
{
    const struct timeline *timeline = d->timeline;
    struct axis axis = axis_of(timeline);
    char caption[120];
    unsigned y = 0;
    output_printf(d->output, "<g id=\"axis\" data-a=\"%s,%" PRIu64 ",%" PRIu64 ",%u,%u\">\n", timeline->is_time ? "time" : "entries",
                  axis.low, axis.high, timeline->columns, d->plot);
    for (size_t i = 0; i < timeline->count && !d->failed && !output_failed(d->output); i++)
        y += write_chart(d, &d->timeline->charts[i], y);
    caption_of(timeline, caption, sizeof(caption));
    output_printf(d->output, "</g>\n<text id=\"caption\" class=\"l\" x=\"%u\" y=\"%u\" data-t=\"%s\">%s</text>\n", TIMELINE_LEFT,
                  y - TIMELINE_GAP + 14, caption, caption);
}

int svg_timeline(struct timeline *timeline, const struct svg_timeline_options *options, struct output *output,
                 struct error *err)
{
    struct timeline_drawing d = {.timeline = timeline, .options = options, .output = output};
    struct svg_legend legend[LEGEND_COUNT];
    char subtitle[240], note[240];
    d.texts = frame_texts_new(timeline->snapshot);
    if (!d.texts)
        return error_no_memory(err);
    d.plot = plot_height(timeline->count);
    d.budget = SVG_TIMELINE_BYTES / (timeline->count ? timeline->count : 1);
    subtitle_of(timeline, options->is_part, subtitle, sizeof(subtitle));
    struct svg_page page = {.title = options->title, .subtitle = subtitle, .body = "timeline", .style = timeline_style,
                            .script = timeline_script, .legend = legend, .height = page_height(&d)};
    page.legend_count = legend_of(timeline, options->colour != NULL, legend);
    svg_page_begin(output, &page);
    write_body(&d);
    note_of(timeline, note, sizeof(note));
    svg_page_end(output, &page, note);
    bool failed = d.failed || frame_texts_failed(d.texts);
    frame_texts_free(d.texts);
    return failed ? error_no_memory(err) : STATUS_OK;
}
