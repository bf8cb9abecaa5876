/* The words of a map: headings, tooltips, classes.  Uses src/analyze, src/base and render/svg. */
#include "render/svg_map.h"
#include "render/svg_map_parts.h"

#include "base/size.h"
#include "render/svg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FRAME_COLUMNS 160u /* of a tooltip's line */
#define FRAMES_MOST 16

static const struct {
    const char *class, *text;
} kinds[MAP_KIND_COUNT] = {
    [MAP_ALLOCATED] = {"a", "allocated"},     [MAP_PENDING] = {"w", "waits to be freed"},
    [MAP_INACTIVE] = {"i", "inactive"},       [MAP_OTHER] = {"u", "in a state that is not known"},
    [MAP_BARE] = {"n", "without a block"},    [MAP_UNSELECTED] = {"x", "not selected"},
    [MAP_UNMAPPED] = {"e", "not mapped"},
};

const char *map_kind_text(enum map_kind kind)
{
    return kinds[kind].text;
}

char svg_shade_letter(enum map_color color)
{
    static const char letters[] = {[MAP_BY_STATE] = 'a', [MAP_BY_AGE] = 'y', [MAP_BY_SIZE] = 'z', [MAP_BY_STACK] = 'k'};
    return letters[color];
}

void map_class(const struct map *map, enum map_kind kind, unsigned shade, char class[8])
{
    if (map->color == MAP_BY_STATE || !map_is_living(kind))
        snprintf(class, 8, "%s", kinds[kind].class);
    else
        snprintf(class, 8, "%c%u", svg_shade_letter(map->color), shade % 10);
}

static void add_count(struct text *text, uint64_t count, const char *what)
{
    text_printf(text, "%" PRIu64 " %s%s", count, what, count == 1 ? "" : "s");
}

static void add_bytes(struct text *text, uint64_t bytes, const char *what)
{
    char size[SIZE_TEXT];
    if (bytes)
        text_printf(text, ", %s %s", size_format(bytes, size), what);
}

void map_sums_text(const struct map_sums *sums, struct text *text)
{
    char size[SIZE_TEXT];
    add_count(text, sums->segments, "segment");
    text_printf(text, ", %s reserved, ", size_format(sums->reserved, size));
    text_printf(text, "%s in ", size_format(sums->bytes[MAP_ALLOCATED] + sums->bytes[MAP_PENDING], size));
    add_count(text, sums->blocks, "block");
    if (sums->bytes[MAP_PENDING])
        text_printf(text, " (%s waits to be freed", size_format(sums->bytes[MAP_PENDING], size));
    if (sums->wasted)
        text_printf(text, "%s%s rounded up", sums->bytes[MAP_PENDING] ? ", " : " (", size_format(sums->wasted, size));
    if (sums->bytes[MAP_PENDING] || sums->wasted)
        text_char(text, ')');
    add_bytes(text, sums->bytes[MAP_INACTIVE], "inactive");
    if (sums->largest_hole && sums->largest_hole < sums->bytes[MAP_INACTIVE])
        text_printf(text, " (largest hole %s)", size_format(sums->largest_hole, size));
    add_bytes(text, sums->bytes[MAP_OTHER], "in other states");
    add_bytes(text, sums->bytes[MAP_BARE], "without a block");
    add_bytes(text, sums->bytes[MAP_UNSELECTED], "not selected");
    add_bytes(text, sums->bytes[MAP_UNMAPPED], "not mapped between");
}

/* "process 4711 (rank 1), device 0, private pool (0, 1), stream 7" */
static void add_place(const struct map *map, uint32_t number, struct text *text)
{
    const struct snapshot *snapshot = map->snapshot;
    const struct segment *segment = &map->state->segments[number];
    if (snapshot->process_count > 1) {
        const struct process *process = &snapshot->processes[segment->process];
        text_printf(text, "process %" PRId64, process->pid);
        if (process->rank >= 0)
            text_printf(text, " (rank %" PRId64 ")", process->rank);
        text_add(text, ", ");
    }
    text_printf(text, "device %u", segment->device);
    if (segment->is_outside)
        text_add(text, ", beside the framework's allocator");
    if (segment->kind != MEMORY_PLAIN)
        text_printf(text, ", %s memory", memory_kind_name(segment->kind));
    if (segment->pool < snapshot->pool_count) {
        const int64_t *id = snapshot->pools[segment->pool].id;
        if (id[0] || id[1])
            text_printf(text, ", private pool (%" PRId64 ", %" PRId64 ")", id[0], id[1]);
        else
            text_add(text, ", default pool");
    }
    text_printf(text, ", stream %" PRId64, segment->stream);
}

void map_heading(const struct map *map, const struct map_group *group, struct text *text)
{
    if (group->stands_for > 1)
        text_printf(text, "%" PRIu32 " more, smaller, streams or pools", group->stands_for);
    else
        add_place(map, group->segment, text);
    text_add(text, ": ");
    map_sums_text(&group->sums, text);
}

static void write_size(struct output *output, uint64_t bytes, const char *what)
{
    char size[SIZE_TEXT];
    output_printf(output, "%s %s (", size_format(bytes, size), what);
    svg_grouped(output, bytes);
    output_text(output, " bytes");
}

static void write_frames(struct map *map, uint32_t block, size_t most, struct output *output)
{
    uint32_t labels[FRAMES_MOST];
    bool is_more;
    size_t count = map_block_frames(map, block, labels, most < FRAMES_MOST ? most : FRAMES_MOST, &is_more);
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *label = frame_label_text(map->texts, labels[i], &length);
        output_char(output, '\n');
        svg_text(output, label, length, FRAME_COLUMNS);
    }
    if (is_more)
        output_text(output, "\n...");
    const char *reason = count ? NULL : map_block_reason(map, block);
    if (reason)
        output_printf(output, "\n%s", reason);
}

static void write_run(const struct map_cell *cell, struct output *output)
{
    char size[SIZE_TEXT];
    write_size(output, cell->bytes, "in small pieces");
    output_text(output, "), ");
    svg_grouped(output, cell->pieces);
    output_printf(output, " drawn as one: %s of living blocks", size_format(cell->living, size));
    if (cell->wasted)
        output_printf(output, ", %s of that rounded up", size_format(cell->wasted, size));
}

void map_tooltip(struct map *map, const struct map_group *group, const struct map_cell *cell, size_t frames,
                 struct output *output)
{
    const struct segment *segment = &map->state->segments[cell->segment];
    char size[SIZE_TEXT];
    if (cell->pieces > 1) {
        write_run(cell, output);
    } else {
        write_size(output, cell->bytes, map_kind_text((enum map_kind)cell->kind));
        if (cell->wasted) {
            output_text(output, ", ");
            svg_grouped(output, cell->bytes - cell->wasted);
            output_text(output, " requested");
        }
        output_char(output, ')');
    }
    output_printf(output, "\nat 0x%" PRIx64, cell->address);
    if (cell->kind != MAP_UNMAPPED || cell->pieces > 1)
        output_printf(output, " in a segment of %s at 0x%" PRIx64, size_format(segment->total_size, size), segment->address);
    if (group->stands_for > 1) {
        struct text place = {0};
        text_add(&place, ", ");
        add_place(map, cell->segment, &place);
        svg_text(output, text_string(&place), place.length, SIZE_MAX);
        text_free(&place);
    }
    if (cell->block != NONE32 && map_is_living((enum map_kind)cell->kind))
        write_frames(map, cell->block, frames, output);
}
