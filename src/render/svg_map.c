/* The map as SVG: where everything lies.  Uses src/analyze, src/base and render/svg. */
#include "render/svg_map.h"

#include "base/size.h"
#include "render/svg.h"
#include "render/svg_map_parts.h"
#include "render/svg_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INNER ((uint64_t)SVG_PAGE_INNER * 100) /* hundredths of a pixel, as all widths here */
#define GAP ((uint64_t)MAP_GAP * 100)
#define LEAST_WIDTH ((uint64_t)MAP_LEAST * 100)
#define ROWS_MOST 40     /* and one for each group */
#define SMALLEST_ROW 200 /* of the smallest cell: it is about six pixels wide then */
#define FEW_CELLS 3000   /* up to so many have long stacks in their tooltips */
#define LABEL_LEFT 400
#define LEGEND_MOST (MAP_SHADES + MAP_KIND_COUNT + 1)
#define LEGEND_COLUMNS 44 /* of a name */

/* An item, or a run of small ones. */
struct unit {
    uint32_t first, count; /* items */
    uint64_t size;
    struct map_cell run;   /* where count > 1 */
};

struct drawing {
    struct map *map;
    struct output *output;
    struct unit *units;
    size_t *unit_ends;     /* by group */
    uint64_t least, smallest, row; /* bytes */
    uint64_t cells, runs;
    bool is_cut;           /* an unmapped part is drawn shorter than it is */
    unsigned kinds;        /* bit k: there is a cell of that kind */
    bool has_waste;
    bool is_widened;       /* a unit is drawn wider than it is */
    uint64_t x;            /* where the next unit goes, in the row at y (pixels) */
    unsigned y;
};

/* Where a unit lies. */
struct bar {
    uint64_t x;
    unsigned y;
    uint64_t rows, width, size; /* the width that the size has on all its rows together */
};

/* --- what is drawn ----------------------------------------------------------------------------------------------- */

static void survey_cell(struct drawing *d, const struct map_cell *cell)
{
    d->cells++;
    d->runs += cell->pieces > 1;
    d->kinds |= 1u << cell->kind | (cell->living ? 1u << cell->living_kind : 0);
    d->has_waste = d->has_waste || cell->wasted;
    d->is_cut = d->is_cut || cell->size < cell->bytes;
    if (cell->size && cell->size < d->smallest)
        d->smallest = cell->size;
}

static void survey_unit(struct drawing *d, struct unit *unit)
{
    const struct map_item *item = &d->map->items[unit->first];
    struct map_walk walk;
    struct map_cell cell;
    if (unit->count > 1) {
        unit->size = unit->run.size;
        survey_cell(d, &unit->run);
        return;
    }
    unit->size = item->size;
    for (map_walk_start(&walk, d->map, item, d->least); map_walk_next(&walk, &cell);)
        survey_cell(d, &cell);
}

static int find_units(struct drawing *d)
{
    const struct map *map = d->map;
    size_t count = 0;
    d->units = malloc((map->item_count + 1) * sizeof(*d->units));
    d->unit_ends = malloc((map->group_count + 1) * sizeof(*d->unit_ends));
    if (!d->units || !d->unit_ends)
        return STATUS_NO_MEMORY;
    d->smallest = UINT64_MAX;
    for (size_t g = 0; g < map->group_count; g++) {
        size_t at = map->groups[g].first_item, end = at + map->groups[g].item_count;
        while (at < end) {
            struct unit *unit = &d->units[count];
            unit->first = (uint32_t)at;
            unit->count = (uint32_t)map_item_run(map, at, end, d->least, &unit->run);
            at += unit->count;
            survey_unit(d, unit);
            count += unit->size > 0;
        }
        d->unit_ends[g] = count;
    }
    return 0;
}

/* --- where ------------------------------------------------------------------------------------------------------- */

/* Of a unit; narrow ones are made wide enough to be seen and hit. */
static uint64_t width_of(const struct drawing *d, uint64_t bytes)
{
    unsigned __int128 width = (unsigned __int128)bytes * INNER / d->row;
    return width > UINT64_MAX ? UINT64_MAX : width < LEAST_WIDTH ? LEAST_WIDTH : (uint64_t)width;
}

/* Where a unit goes: on this row, or on the next if it does not fit; afterwards x and y are the next one's. */
static struct bar place_unit(struct drawing *d, const struct unit *unit)
{
    struct bar bar = {.width = width_of(d, unit->size), .size = unit->size};
    bar.rows = bar.width > INNER ? bar.width / INNER + (bar.width % INNER != 0) : 1;
    if (d->x && (d->x + GAP + bar.width > INNER || bar.rows > 1)) {
        d->x = 0;
        d->y += MAP_SHELF;
    }
    bar.x = d->x ? d->x + GAP : 0;
    bar.y = d->y;
    d->x = bar.rows > 1 ? INNER : bar.x + bar.width;
    d->y += (unsigned)(bar.rows - 1) * MAP_PITCH;
    return bar;
}

/* Hundredths of a pixel from the unit's beginning. */
static uint64_t place_in(const struct bar *bar, uint64_t offset)
{
    return (uint64_t)((unsigned __int128)offset * bar->width / bar->size);
}

/* Rows of all groups with so many bytes a row; a great number where there are too many to count. */
static uint64_t count_rows(struct drawing *d, uint64_t row, uint64_t most)
{
    uint64_t rows = 0;
    d->row = row;
    for (size_t g = 0, at = 0; g < d->map->group_count; g++) {
        rows += at < d->unit_ends[g];
        d->x = 0;
        d->y = 0;
        for (; at < d->unit_ends[g] && rows <= most; at++) {
            unsigned before = d->y;
            struct bar bar = place_unit(d, &d->units[at]);
            rows += bar.rows - 1 + (bar.y > before);
        }
    }
    return rows;
}

static uint64_t power_above(uint64_t bytes)
{
    uint64_t power = 1;
    while (power < bytes && power < (uint64_t)1 << 62)
        power <<= 1;
    return power;
}

/* The fewest bytes a row with which the picture is not too long; but no fewer than show the smallest cell and the
 * longest segment well. */
static void choose_row(struct drawing *d)
{
    const struct map *map = d->map;
    uint64_t row = 1 << 12, longest = 1 << 12, most = ROWS_MOST + map->group_count;
    size_t count = map->group_count ? d->unit_ends[map->group_count - 1] : 0;
    for (size_t i = 0; i < count; i++)
        longest = d->units[i].size > longest ? d->units[i].size : longest;
    uint64_t wish = d->smallest < ((uint64_t)1 << 62) / SMALLEST_ROW ? d->smallest * SMALLEST_ROW : longest;
    wish = power_above(wish < longest ? wish : longest);
    while (row < wish || (row < (uint64_t)1 << 62 && count_rows(d, row, most) > most))
        row <<= 1;
    d->row = row;
}

/* --- bars -------------------------------------------------------------------------------------------------------- */

static void write_rectangle(struct output *output, uint64_t x, unsigned y, uint64_t width, uint64_t height)
{
    output_char(output, 'M');
    svg_hundredths(output, SVG_PAGE_MARGIN * 100 + x);
    output_char(output, ' ');
    svg_hundredths(output, (uint64_t)y * 100 + MAP_BAR * 100 - height);
    output_char(output, 'h');
    svg_hundredths(output, width);
    output_char(output, 'v');
    svg_hundredths(output, height);
    output_text(output, "h-");
    svg_hundredths(output, width);
    output_char(output, 'z');
}

struct piece {
    uint64_t x, width;
    unsigned y;
};

/* The piece of [left, right) hundredths of a unit that lies in one row; *left becomes its end. */
static struct piece next_piece(const struct bar *bar, uint64_t *left, uint64_t right)
{
    uint64_t row = bar->rows > 1 ? *left / INNER : 0;
    uint64_t end = bar->rows > 1 && right > (row + 1) * INNER ? (row + 1) * INNER : right;
    struct piece piece = {bar->x + *left - row * INNER, end - *left, bar->y + (unsigned)row * MAP_PITCH};
    *left = end;
    return piece;
}

/* Rectangles for [from, to) of a unit, as high as `height` hundredths.  In a bar that is a cell's own, its end leaves a
 * line to the next. */
static void write_pieces(struct drawing *d, const struct bar *bar, uint64_t from, uint64_t to, uint64_t height, bool is_own)
{
    uint64_t left = place_in(bar, from), right = place_in(bar, to);
    do {
        struct piece piece = next_piece(bar, &left, right);
        uint64_t line = is_own && left == right && piece.width > 200 ? 60 : 0;
        write_rectangle(d->output, piece.x, piece.y, piece.width - line, height);
    } while (left < right && !output_failed(d->output));
}

/* The first of the widest pieces. */
static struct piece widest_piece(const struct bar *bar, uint64_t from, uint64_t to)
{
    uint64_t left = place_in(bar, from), right = place_in(bar, to);
    struct piece widest = {0};
    while (left < right && widest.width < INNER) {
        struct piece piece = next_piece(bar, &left, right);
        if (piece.width > widest.width)
            widest = piece;
    }
    return widest;
}

/* The function's name of `file:line:name`; of code outside of functions, such as <module>, what stands before. */
static void name_of(const char **label, size_t *length)
{
    const char *colon = memchr(*label, ':', *length), *end = *label + *length;
    const char *second = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
    for (const char *c = colon; second && c + 1 < second; c++)
        if (c[1] < '0' || c[1] > '9')
            return;
    if (!second || second == colon + 1 || second + 1 == end)
        return;
    if (second[1] == '<') {
        *length = (size_t)(second - *label);
        return;
    }
    *label = second + 1;
    *length = (size_t)(end - *label);
}

/* The size, whole or not at all, and whose it is; in the part that was asked for. */
static void write_label(struct drawing *d, const struct map_cell *cell, const struct piece *piece)
{
    size_t columns = piece->width < 800 ? 0 : (size_t)((piece->width - 800) / (SVG_COLUMN_TENTHS * 10)), length;
    char size[SIZE_TEXT];
    size_t used = strlen(size_format(cell->bytes, size));
    if (used > columns || cell->pieces > 1)
        return;
    output_text(d->output, "<text x=\"");
    svg_hundredths(d->output, SVG_PAGE_MARGIN * 100 + piece->x + LABEL_LEFT);
    output_printf(d->output, "\" y=\"%u\">%s", piece->y + 13, size);
    uint32_t owner = cell->block != NONE32 && map_is_living((enum map_kind)cell->kind) ? map_block_owner(d->map, cell->block)
                                                                                         : NONE32;
    if (owner != NONE32 && used + 6 <= columns) {
        const char *label = frame_label_text(d->map->texts, owner, &length);
        name_of(&label, &length);
        output_text(d->output, "<tspan dx=\"10\">");
        svg_text(d->output, label, length, columns - used - 2);
        output_text(d->output, "</tspan>");
    }
    output_text(d->output, "</text>");
}

/* Of a run: the lower part of the bar is the living share. */
static void write_run(struct drawing *d, const struct map_cell *cell, const struct bar *bar)
{
    char class[8];
    uint64_t height = (uint64_t)((unsigned __int128)cell->living * (MAP_BAR * 100) / (cell->bytes ? cell->bytes : 1));
    if (!height)
        return;
    map_class(d->map, (enum map_kind)cell->living_kind, cell->shade, class);
    output_printf(d->output, "<path class=\"%s\" d=\"", class);
    write_pieces(d, bar, cell->offset, cell->offset + cell->size, height, false);
    output_text(d->output, "\"/>");
}

static void write_cell(struct drawing *d, const struct map_group *group, const struct map_cell *cell, const struct bar *bar)
{
    struct output *output = d->output;
    char class[8];
    map_class(d->map, (enum map_kind)cell->kind, cell->shade, class);
    output_printf(output, "<g class=\"%s\" data-b=\"%" PRIu64, class, cell->size);
    if (cell->pieces > 1)
        output_printf(output, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, cell->wasted, cell->living, cell->bytes);
    else if (cell->wasted)
        output_printf(output, ",%" PRIu64, cell->wasted);
    output_text(output, "\"><title>");
    map_tooltip(d->map, group, cell, d->cells > FEW_CELLS ? 3 : 8, output);
    output_text(output, "</title><path d=\"");
    write_pieces(d, bar, cell->offset, cell->offset + cell->size, MAP_BAR * 100, true);
    output_text(output, "\"/>");
    if (cell->pieces > 1) {
        write_run(d, cell, bar);
    } else if (place_in(bar, cell->wasted) >= 30) {
        output_text(output, "<path class=\"g\" d=\"");
        write_pieces(d, bar, cell->offset + cell->size - cell->wasted, cell->offset + cell->size, MAP_BAR * 100, true);
        output_text(output, "\"/>");
    }
    struct piece widest = widest_piece(bar, cell->offset, cell->offset + cell->size - cell->wasted);
    write_label(d, cell, &widest);
    output_text(output, "</g>\n");
}

static void write_unit(struct drawing *d, const struct map_group *group, const struct unit *unit, const struct bar *bar)
{
    struct map_walk walk;
    struct map_cell cell;
    output_text(d->output, "<g>\n");
    if (unit->count > 1) {
        write_cell(d, group, &unit->run, bar);
    } else {
        map_walk_start(&walk, d->map, &d->map->items[unit->first], d->least);
        while (map_walk_next(&walk, &cell))
            write_cell(d, group, &cell, bar);
    }
    output_text(d->output, "</g>\n");
}

static void write_point(struct output *output, char command, uint64_t x, unsigned y)
{
    output_char(output, command);
    svg_hundredths(output, SVG_PAGE_MARGIN * 100 + x);
    output_printf(output, " %u", y);
}

/* A line around a unit; where it goes on in another row, that side is open, and one line parts the rows. */
static void write_outline(struct drawing *d, const struct bar *bar)
{
    uint64_t end = bar->x + bar->width - (bar->rows - 1) * INNER; /* of the last row */
    for (uint64_t row = 0; row < bar->rows && !output_failed(d->output); row++) {
        uint64_t right = row + 1 == bar->rows ? end : INNER;
        unsigned top = bar->y + (unsigned)row * MAP_PITCH;
        write_point(d->output, 'M', right, top);
        write_point(d->output, 'L', bar->x, top);
        if (!row)
            write_point(d->output, 'L', bar->x, top + MAP_BAR);
        if (row + 2 == bar->rows && end < INNER) {
            write_point(d->output, 'M', end, top + MAP_BAR);
            write_point(d->output, 'L', INNER, top + MAP_BAR);
        }
        if (row + 1 == bar->rows) {
            write_point(d->output, row ? 'M' : 'L', bar->x, top + MAP_BAR);
            write_point(d->output, 'L', right, top + MAP_BAR);
            write_point(d->output, 'L', right, top);
        }
    }
}

static void write_outlines(struct drawing *d, size_t first, size_t end, unsigned y)
{
    d->x = 0;
    d->y = y;
    output_text(d->output, "<path class=\"o\" d=\"");
    for (size_t i = first; i < end; i++) {
        struct bar bar = place_unit(d, &d->units[i]);
        write_outline(d, &bar);
    }
    output_text(d->output, "\"/>\n");
}

static int write_group(struct drawing *d, size_t number, size_t first)
{
    const struct map_group *group = &d->map->groups[number];
    struct text heading = {0};
    size_t columns = SVG_PAGE_INNER * 10 / SVG_COLUMN_TENTHS;
    unsigned top = d->y;
    map_heading(d->map, group, &heading);
    output_text(d->output, "<g class=\"q\"><text class=\"h\" x=\"12\" y=\"");
    output_printf(d->output, "%u\" data-t=\"", top + 14);
    svg_text(d->output, text_string(&heading), heading.length, SIZE_MAX);
    output_text(d->output, "\">");
    svg_text(d->output, text_string(&heading), heading.length, columns);
    output_text(d->output, "</text>\n");
    bool failed = text_failed(&heading);
    text_free(&heading);
    d->x = 0;
    d->y = top + MAP_HEAD;
    for (size_t i = first; i < d->unit_ends[number] && !output_failed(d->output); i++) {
        struct bar bar = place_unit(d, &d->units[i]);
        d->is_widened = d->is_widened || bar.width == LEAST_WIDTH;
        write_unit(d, group, &d->units[i], &bar);
    }
    write_outlines(d, first, d->unit_ends[number], top + MAP_HEAD);
    d->y += MAP_SHELF + MAP_BELOW;
    output_text(d->output, "</g>\n");
    return failed ? STATUS_NO_MEMORY : 0;
}

/* The height of all groups, without drawing them. */
static unsigned measure(struct drawing *d)
{
    unsigned height = MAP_AXIS;
    for (size_t g = 0, at = 0; g < d->map->group_count; g++) {
        d->x = 0;
        d->y = height + MAP_HEAD;
        for (; at < d->unit_ends[g]; at++)
            place_unit(d, &d->units[at]);
        height = d->y + MAP_SHELF + MAP_BELOW;
    }
    return height;
}

/* --- around it --------------------------------------------------------------------------------------------------- */

static void write_axis(struct drawing *d)
{
    char size[SIZE_TEXT];
    output_printf(d->output, "<g id=\"axis\" data-r=\"%" PRIu64 "\"><path d=\"", d->row);
    for (int i = 0; i <= 4; i++)
        output_printf(d->output, "M%d 18v6", SVG_PAGE_MARGIN + SVG_PAGE_INNER * i / 4);
    output_printf(d->output, "M%d 21h%d\"/>", SVG_PAGE_MARGIN, SVG_PAGE_INNER);
    for (int i = 0; i <= 4; i++)
        output_printf(d->output, "<text x=\"%d\" y=\"13\"%s>%s</text>", SVG_PAGE_MARGIN + SVG_PAGE_INNER * i / 4,
                      i == 0 ? "" : i == 4 ? " text-anchor=\"end\"" : " text-anchor=\"middle\"",
                      i ? size_format(d->row / 4 * (uint64_t)i, size) : "0");
    output_text(d->output, "</g>\n");
}

/* One entry; a text that is too long is cut. */
static void add_legend(struct svg_legend *legend, size_t *count, const char *class, const char *text)
{
    legend[(*count)++] = (struct svg_legend){class, text};
}

/* As many bytes as take at most so many columns, whole characters only. */
static size_t cut_to(const char *text, size_t length, size_t columns)
{
    length = length > 4 * columns ? 4 * columns : length;
    while (length && svg_columns(text, length) > columns)
        length--;
    while (length && (text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

static void shade_name(const struct map *map, unsigned shade, char *text, size_t room)
{
    char size[SIZE_TEXT];
    const char *name = map->shades[shade].text;
    size_t length = strlen(name);
    size_format(map->shades[shade].bytes, size);
    if (length > LEGEND_COLUMNS && svg_columns(name, length) > LEGEND_COLUMNS)
        name_of(&name, &length);
    size_t shown = cut_to(name, length, LEGEND_COLUMNS);
    snprintf(text, room, "%.*s%s: %s", (int)shown, name, shown < length ? "..." : "", size);
}

size_t svg_shade_legend(const struct map *map, struct svg_legend *legend, struct svg_shade_names *names)
{
    size_t count = 0;
    for (unsigned i = 0; i < map->shade_count && map->color != MAP_BY_STATE; i++) {
        if (!map->shades[i].blocks)
            continue;
        map_class(map, MAP_ALLOCATED, i, names->classes[i]);
        shade_name(map, i, names->texts[i], sizeof(names->texts[i]));
        add_legend(legend, &count, names->classes[i], names->texts[i]);
    }
    return count;
}

static size_t legend_of(const struct drawing *d, struct svg_legend *legend, struct svg_shade_names *names)
{
    const struct map *map = d->map;
    static const enum map_kind others[] = {MAP_INACTIVE, MAP_OTHER, MAP_BARE, MAP_UNSELECTED, MAP_UNMAPPED};
    size_t count = 0;
    if (map->color == MAP_BY_STATE) {
        if (d->kinds & 1u << MAP_ALLOCATED)
            add_legend(legend, &count, "a", map_kind_text(MAP_ALLOCATED));
        if (d->kinds & 1u << MAP_PENDING)
            add_legend(legend, &count, "w", map_kind_text(MAP_PENDING));
    }
    count += svg_shade_legend(map, legend + count, names);
    if (d->has_waste)
        add_legend(legend, &count, "g", "rounded up");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (d->kinds & 1u << others[i]) {
            static const char *const classes[MAP_KIND_COUNT] = {
                [MAP_INACTIVE] = "i", [MAP_OTHER] = "u", [MAP_BARE] = "n", [MAP_UNSELECTED] = "x", [MAP_UNMAPPED] = "e"};
            add_legend(legend, &count, classes[others[i]], map_kind_text(others[i]));
        }
    return count;
}

static void note_of(const struct drawing *d, char *note, size_t room)
{
    char size[SIZE_TEXT];
    size_t used = 0;
    *note = '\0';
    if (d->runs)
        used = (size_t)snprintf(note, room,
                                "Runs of neighbours smaller than %s are drawn as one (%" PRIu64
                                "), filled up to what lives in them. Every sum is exact. ",
                                size_format(d->least, size), d->runs);
    if (d->is_cut && used < room)
        used += (size_t)snprintf(note + used, room - used, "Long unmapped parts are drawn short. ");
    if (d->is_widened && used < room)
        snprintf(note + used, room - used, "Segments narrower than %d pixels are drawn so wide.", MAP_LEAST);
    if (!d->map->total.segments)
        snprintf(note, room, "There was no memory at this moment.");
}

static int write_page(struct drawing *d, const struct svg_map_options *options)
{
    struct map *map = d->map;
    struct svg_legend legend[LEGEND_MOST];
    struct svg_shade_names names;
    struct text numbers = {0};
    char size[SIZE_TEXT], note[400];
    int status = 0;
    map_sums_text(&map->total, &numbers);
    text_printf(&numbers, "; a row is %s%s", size_format(d->row, size), options->remark);
    struct svg_page page = {.title = options->title, .subtitle = text_string(&numbers), .body = "map", .style = map_style, .more_style = svg_shade_style,
                            .script = map_script, .legend = legend, .legend_count = legend_of(d, legend, &names),
                            .height = measure(d)};
    svg_page_begin(d->output, &page);
    write_axis(d);
    d->y = MAP_AXIS;
    for (size_t g = 0; g < map->group_count && !status; g++)
        status = write_group(d, g, g ? d->unit_ends[g - 1] : 0);
    note_of(d, note, sizeof(note));
    svg_page_end(d->output, &page, note);
    status = status || text_failed(&numbers) ? STATUS_NO_MEMORY : 0;
    text_free(&numbers);
    return status;
}

int svg_map(struct map *map, const struct svg_map_options *options, struct output *output, struct error *err)
{
    struct drawing d = {.map = map, .output = output, .least = map_least(map, SVG_MAP_MOST)};
    int status = find_units(&d);
    if (!status) {
        choose_row(&d);
        status = write_page(&d, options);
    }
    free(d.units);
    free(d.unit_ends);
    return status || frame_texts_failed(map->texts) ? error_no_memory(err) : 0;
}
