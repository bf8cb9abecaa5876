/* The bands of the timeline: paths, tooltips and labels.  Uses src/analyze, src/base and render/svg. */
#include "render/svg_timeline_parts.h"

#include "analyze/selection.h"
#include "base/size.h"
#include "base/table.h"
#include "render/svg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 8u        /* of a tooltip */
#define FRAME_COLUMNS 160u
#define HASHED 64u       /* frames that the colour looks at */
#define LABEL_HEIGHT 15u /* pixels that a label needs */
#define LABEL_LEAST 6u   /* columns */
#define SEPARATED 3u     /* bands of so many pixels, in both directions, have edges */

/* --- stacks ------------------------------------------------------------------------------------------------------- */

size_t timeline_frames(const struct timeline_drawing *d, uint32_t context, uint32_t *labels, size_t most)
{
    const struct snapshot *snapshot = d->timeline->snapshot;
    for (int pass = d->options->all_frames ? 1 : 0; pass < 2; pass++) {
        size_t count = 0;
        for (uint32_t node = snapshot_context_stack(snapshot, context); node != STACK_EMPTY && count < most;
             node = snapshot->stacks[node].parent) {
            uint32_t frame = snapshot->stacks[node].frame, label = frame_label(d->texts, frame);
            if (label != FRAME_LEFT_OUT && (pass || !selection_is_plumbing(snapshot, frame)))
                labels[count++] = label;
        }
        if (count)
            return count;
    }
    return 0;
}

void timeline_write_stack(struct timeline_drawing *d, uint32_t context)
{
    uint32_t labels[FRAMES];
    size_t count = timeline_frames(d, context, labels, FRAMES);
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *text = frame_label_text(d->texts, labels[i], &length);
        output_char(d->output, '\n');
        svg_text(d->output, text, length, FRAME_COLUMNS);
    }
    if (!count)
        output_text(d->output, context == CONTEXT_NONE ? "\nno stack was recorded" : "\nno frames of the program");
}

void timeline_write_entry(struct timeline_drawing *d, uint64_t entry)
{
    const struct timeline *timeline = d->timeline;
    const struct entries *entries = &timeline->snapshot->entries;
    output_printf(d->output, "#%" PRIu64, timeline->snapshot->first_entry + entry);
    if (entries->flags[entry] & ENTRY_NO_TIME)
        return;
    uint64_t since = (uint64_t)entries->time[entry] - (uint64_t)timeline->first_time;
    output_printf(d->output, " (%" PRIu64 ".%06u s)", since / 1000000, (unsigned)(since % 1000000));
}

static unsigned colour_of(const struct timeline_drawing *d, const struct timeline_band *band)
{
    const struct snapshot *snapshot = d->timeline->snapshot;
    if (d->options->colour)
        return d->options->colour(d->options->context, band) % SVG_TIMELINE_COLOURS;
    uint64_t hash = 0;
    unsigned depth = 0;
    uint32_t node = snapshot_context_stack(snapshot, snapshot->entries.context[band->alloc]);
    for (; node != STACK_EMPTY && depth < HASHED; node = snapshot->stacks[node].parent, depth++) {
        uint32_t label = frame_label(d->texts, snapshot->stacks[node].frame);
        size_t length;
        if (label == FRAME_LEFT_OUT)
            continue;
        const char *text = frame_label_text(d->texts, label, &length);
        hash = hash_mix(hash ^ hash_bytes(text, length));
    }
    return (unsigned)(hash_mix(hash ? hash : band->size) % SVG_TIMELINE_COLOURS);
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

/* An edge between two heights that change from column to column. */
struct edge {
    const uint64_t *base; /* bytes below */
    const uint64_t *more; /* added to it; NULL: `size` is */
    uint64_t size;
};

static unsigned level_at(const struct timeline_drawing *d, const struct timeline_place *place, const struct edge *edge,
                         uint32_t column)
{
    uint64_t bytes = edge->base ? edge->base[column] : 0, more = edge->more ? edge->more[column] : edge->size;
    return timeline_level(d, place, bytes > UINT64_MAX - more ? UINT64_MAX : bytes + more);
}

/* From left to right; `level` is where it stands, the last one is returned. */
static unsigned write_edge(struct timeline_drawing *d, const struct timeline_place *place, const struct edge *edge,
                           uint32_t from, uint32_t to, unsigned level)
{
    uint32_t begun = from;
    for (uint32_t c = from; c < to; c++) {
        unsigned now = level_at(d, place, edge, c);
        if (now == level)
            continue;
        if (c > begun)
            output_printf(d->output, "h%u", c - begun);
        output_printf(d->output, "v%d", (int)now - (int)level);
        level = now;
        begun = c;
    }
    output_printf(d->output, "h%u", to - begun);
    return level;
}

static void write_edge_back(struct timeline_drawing *d, const struct timeline_place *place, const struct edge *edge,
                            uint32_t from, uint32_t to)
{
    uint32_t begun = to;
    unsigned level = level_at(d, place, edge, to - 1);
    for (uint32_t c = to; c-- > from;) {
        unsigned now = level_at(d, place, edge, c);
        if (now == level)
            continue;
        output_printf(d->output, "h-%uv%d", begun - c - 1, (int)now - (int)level);
        level = now;
        begun = c + 1;
    }
    output_printf(d->output, "h-%uZ", begun - from);
}

/* The upper edge, a V, the lower one back: the script reads them so. */
static void write_area(struct timeline_drawing *d, const struct timeline_place *place, const struct edge *upper,
                       const struct edge *lower, uint32_t from, uint32_t to)
{
    unsigned level = level_at(d, place, upper, from);
    output_printf(d->output, "d=\"M%u %u", from, level);
    write_edge(d, place, upper, from, to, level);
    output_printf(d->output, "V%u", level_at(d, place, lower, to - 1));
    write_edge_back(d, place, lower, from, to);
    output_char(d->output, '"');
}

/* --- bands -------------------------------------------------------------------------------------------------------- */

static void write_size(struct timeline_drawing *d, uint64_t bytes)
{
    char size[SIZE_TEXT];
    output_printf(d->output, "%s (", size_format(bytes, size));
    svg_grouped(d->output, bytes);
    output_text(d->output, " bytes)");
}

static void write_tooltip(struct timeline_drawing *d, const struct timeline_band *band)
{
    const struct entries *entries = &d->timeline->snapshot->entries;
    output_text(d->output, "<title>");
    write_size(d, band->size);
    output_text(d->output, " from ");
    timeline_write_entry(d, band->alloc);
    if (band->free == TIMELINE_ON) {
        output_text(d->output, ", never freed");
    } else {
        output_text(d->output, " to ");
        timeline_write_entry(d, band->free);
    }
    if (!(entries->flags[band->alloc] & ENTRY_STREAM_UNKNOWN))
        output_printf(d->output, ", stream %" PRId64, d->timeline->snapshot->streams[entries->stream[band->alloc]]);
    timeline_write_stack(d, entries->context[band->alloc]);
    output_text(d->output, "</title>");
}

/* What stands on this band begins higher. */
static void pile_up(uint64_t *base, const struct timeline_band *band)
{
    for (uint32_t c = band->from; c < band->to; c++)
        base[c] = base[c] > UINT64_MAX - band->size ? UINT64_MAX : base[c] + band->size;
}

static void write_band(struct timeline_drawing *d, const struct timeline_place *place, const struct timeline_band *band,
                       uint64_t *base)
{
    struct edge lower = {.base = base}, upper = {.base = base, .size = band->size};
    unsigned high = timeline_level(d, place, 0) - timeline_level(d, place, band->size);
    output_printf(d->output, "<path class=\"c%u%s\" data-b=\"%u,%u,%" PRIu64 "\" ", colour_of(d, band),
                  high >= SEPARATED * TIMELINE_FINE && band->to - band->from >= 2 * SEPARATED ? " t" : "", band->from, band->to, band->size);
    write_area(d, place, &upper, &lower, band->from, band->to);
    output_char(d->output, '>');
    write_tooltip(d, band);
    output_text(d->output, "</path>\n");
    pile_up(base, band);
}

static bool has_any(const struct timeline *timeline, const uint64_t *bytes)
{
    for (uint32_t c = 0; c < timeline->columns; c++)
        if (bytes[c])
            return true;
    return false;
}

static void write_merged(struct timeline_drawing *d, const struct timeline_place *place, const char *class,
                         const uint64_t *base, const uint64_t *bytes, const char *what)
{
    struct edge lower = {.base = base}, upper = {.base = base, .more = bytes};
    if (!has_any(d->timeline, bytes))
        return;
    output_printf(d->output, "<path class=\"%s\" ", class);
    write_area(d, place, &upper, &lower, 0, d->timeline->columns);
    output_printf(d->output, "><title>%s</title></path>\n", what);
}

static void write_all(struct timeline_drawing *d, const struct timeline_chart *chart, const struct timeline_place *place,
                      uint64_t *base)
{
    char what[160];
    memset(base, 0, d->timeline->columns * sizeof(*base));
    write_merged(d, place, "before", NULL, chart->before, "allocated before recording");
    memcpy(base, chart->before, d->timeline->columns * sizeof(*base));
    output_text(d->output, "<g class=\"bands\">\n");
    for (size_t b = 0; b < chart->band_count && !output_failed(d->output); b++)
        write_band(d, place, &chart->bands[b], base);
    output_text(d->output, "</g>\n");
    snprintf(what, sizeof(what), "smaller allocations: %" PRIu64 " that last, and what comes and goes within a column",
             chart->lives - chart->band_count);
    write_merged(d, place, "rest", base, chart->rest, what);
}

/* Twice: into memory, to see that they fit, and out. */
void timeline_draw_bands(struct timeline_drawing *d, struct timeline_chart *chart, const struct timeline_place *place)
{
    struct output *output = d->output;
    uint64_t *base = malloc(((size_t)d->timeline->columns + 1) * sizeof(*base));
    unsigned char *bytes = NULL;
    size_t length = 0;
    bool fits = false;
    struct error err;
    d->failed = d->failed || !base;
    while (!d->failed && !fits) {
        d->failed = output_to_memory(&bytes, &length, &d->output, &err) != STATUS_OK;
        if (d->failed)
            break;
        write_all(d, chart, place, base);
        d->failed = output_commit(d->output, &err) != STATUS_OK;
        fits = length <= d->budget || chart->band_count <= 1;
        if (!d->failed && fits)
            output_write(output, bytes, length);
        else if (!d->failed)
            d->failed = timeline_keep_bands(d->timeline, chart, chart->band_count / 2) != STATUS_OK;
        free(bytes);
        bytes = NULL;
    }
    d->output = output;
    free(base);
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

struct room {
    uint32_t from, to;
    unsigned low, high; /* units: what all its columns have */
};

/* The widest piece of a band in which a label has its height. */
static struct room find_room(const struct timeline_drawing *d, const struct timeline_place *place, const struct edge *upper,
                             const struct edge *lower, uint32_t from, uint32_t to)
{
    struct room best = {0};
    uint32_t start = from;
    unsigned high = 0, low = UINT32_MAX;
    for (uint32_t c = from; c < to; c++) {
        unsigned top = level_at(d, place, upper, c), bottom = level_at(d, place, lower, c);
        high = top > high ? top : high;
        low = bottom < low ? bottom : low;
        if (low < high + LABEL_HEIGHT * TIMELINE_FINE) { /* what goes on from here alone */
            high = top;
            low = bottom;
            for (start = c + 1; start > from; start--) {
                unsigned t = level_at(d, place, upper, start - 1), b = level_at(d, place, lower, start - 1);
                unsigned h = t > high ? t : high, l = b < low ? b : low;
                if (l < h + LABEL_HEIGHT * TIMELINE_FINE)
                    break;
                high = h;
                low = l;
            }
        }
        if (low >= high + LABEL_HEIGHT * TIMELINE_FINE && c + 1 - start > best.to - best.from)
            best = (struct room){start, c + 1, low, high};
    }
    return best;
}

/* Of `file:line:name` the name says most: it stands alone where the whole does not fit or the file is not known. */
static void shorten(const char **text, size_t *length, size_t columns)
{
    const char *end = *text + *length, *colon = memchr(*text, ':', *length), *at = colon ? colon + 1 : end;
    bool is_unknown = *length > 3 && memcmp(*text, "??:", 3) == 0;
    if (!colon || (!is_unknown && svg_columns(*text, *length) <= columns))
        return;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    if (at == colon + 1 || at + 1 >= end || *at != ':')
        return; /* a `::` of a name, no line */
    *text = at + 1;
    *length = (size_t)(end - *text);
}

static void write_label(struct timeline_drawing *d, const struct timeline_place *place, const struct room *room,
                        const char *text, size_t length, const char *size)
{
    unsigned x = timeline_tenths(d->timeline, room->from), width = timeline_tenths(d->timeline, room->to) - x;
    size_t columns = width < 100 ? 0 : (width - 100) / SVG_COLUMN_TENTHS;
    if (room->to <= room->from || columns < LABEL_LEAST)
        return;
    output_text(d->output, "<text x=\"");
    svg_hundredths(d->output, TIMELINE_LEFT * 100 + x * 10 + 500);
    output_text(d->output, "\" y=\"");
    svg_hundredths(d->output, place->plot * 100 + (room->low + room->high) / 2 * 100 / TIMELINE_FINE + 400);
    output_text(d->output, "\">");
    shorten(&text, &length, columns);
    bool has_size = size && svg_columns(text, length) + 2 + strlen(size) <= columns;
    svg_text(d->output, text, length, columns);
    if (has_size)
        output_printf(d->output, "  %s", size);
    output_text(d->output, "</text>\n");
}

/* Of `file:line:name`. */
static void label_of(const struct timeline_drawing *d, const struct timeline_band *band, const char **text, size_t *length)
{
    uint32_t label;
    if (timeline_frames(d, d->timeline->snapshot->entries.context[band->alloc], &label, 1)) {
        *text = frame_label_text(d->texts, label, length);
    } else {
        *text = "";
        *length = 0;
    }
}

void timeline_draw_labels(struct timeline_drawing *d, const struct timeline_chart *chart, const struct timeline_place *place)
{
    uint32_t columns = d->timeline->columns;
    uint64_t *base = malloc(((size_t)columns + 1) * sizeof(*base));
    d->failed = d->failed || !base;
    output_text(d->output, "<g class=\"labels\">\n");
    if (base) {
        struct edge none = {0}, before = {.more = chart->before}, low = {.base = base}, high = {.base = base, .more = chart->rest};
        struct room room = find_room(d, place, &before, &none, 0, columns);
        write_label(d, place, &room, "allocated before recording", 26, NULL);
        memcpy(base, chart->before, columns * sizeof(*base));
        for (size_t b = 0; b < chart->band_count; b++) {
            const struct timeline_band *band = &chart->bands[b];
            struct edge upper = {.base = base, .size = band->size};
            if (timeline_level(d, place, 0) - timeline_level(d, place, band->size) >= LABEL_HEIGHT * TIMELINE_FINE) {
                char size[SIZE_TEXT];
                const char *text;
                size_t length;
                room = find_room(d, place, &upper, &low, band->from, band->to);
                label_of(d, band, &text, &length);
                size_format(band->size, size);
                if (length)
                    write_label(d, place, &room, text, length, size);
                else
                    write_label(d, place, &room, size, strlen(size), NULL);
            }
            pile_up(base, band);
        }
        room = find_room(d, place, &high, &low, 0, columns);
        write_label(d, place, &room, "smaller allocations", 19, NULL);
    }
    output_text(d->output, "</g>\n");
    free(base);
}
