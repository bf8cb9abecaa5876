/* Flame graphs as SVG.  Uses src/analyze, src/base and render/svg. */
#include "render/svg_flame.h"

#include "base/size.h"
#include "base/table.h"
#include "render/svg.h"
#include "render/svg_flame_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TITLE_COLUMNS 600u                                       /* of a tooltip's first line */
#define INNER ((uint64_t)(FLAME_WIDTH - 2 * FLAME_MARGIN) * 100) /* hundredths of a pixel */

struct drawing {
    const struct flame_tree *tree;
    struct output *output;
    uint64_t least; /* bytes of the smallest box drawn */
    uint64_t left_out_bytes;
    unsigned kinds; /* bit k: a box of that kind was drawn */
    uint32_t depth; /* of the deepest box drawn */
};

static const struct {
    const char *class, *legend;
} kinds[] = {
    [FLAME_KIND_ROOT] = {"r", NULL},
    [FLAME_KIND_PROCESS] = {"s", NULL},
    [FLAME_KIND_DEVICE] = {"s", NULL},
    [FLAME_KIND_STREAM] = {"s", NULL},
    [FLAME_KIND_SEGMENT] = {"s", NULL},
    [FLAME_KIND_ALLOCATED] = {"a", "allocated"},
    [FLAME_KIND_PENDING] = {"w", "waits to be freed"},
    [FLAME_KIND_INACTIVE] = {"i", "inactive"},
    [FLAME_KIND_PYTHON] = {"p", "Python"},
    [FLAME_KIND_NATIVE] = {"n", "native code"},
    [FLAME_KIND_UNKNOWN] = {"u", "no stack"},
    [FLAME_KIND_GAPS] = {"g", "rounded up"},
};

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The smallest box that is drawn: wide enough to see after some zooming, and not too many of them. */
static int choose_least(struct drawing *d)
{
    const struct flame_tree *tree = d->tree;
    d->least = tree->count <= SVG_FLAME_FEW ? 1 : tree->nodes[0].total / (INNER / 2) + 1;
    if (tree->count <= SVG_FLAME_MOST)
        return 0;
    uint64_t *totals = malloc(tree->count * sizeof(*totals));
    if (!totals)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < tree->count; i++)
        totals[i] = tree->nodes[i].total;
    qsort(totals, tree->count, sizeof(*totals), descending);
    if (totals[SVG_FLAME_MOST] >= d->least)
        d->least = totals[SVG_FLAME_MOST] + 1;
    free(totals);
    return 0;
}

static bool is_drawn(const struct drawing *d, uint32_t node)
{
    return node == 0 || d->tree->nodes[node].total >= d->least;
}

/* The next node in drawing order (parents first, siblings by size), below the root; NONE32 at the end. */
static uint32_t next_node(const struct drawing *d, uint32_t node)
{
    const struct flame_node *nodes = d->tree->nodes;
    if (is_drawn(d, node) && nodes[node].first_child != NONE32)
        return nodes[node].first_child;
    while (node != NONE32 && nodes[node].next_sibling == NONE32)
        node = nodes[node].parent;
    return node == NONE32 ? NONE32 : nodes[node].next_sibling;
}

static void survey(struct drawing *d)
{
    for (uint32_t node = 0; node != NONE32; node = next_node(d, node)) {
        const struct flame_node *at = &d->tree->nodes[node];
        if (!is_drawn(d, node)) {
            d->left_out_bytes += at->total;
            continue;
        }
        d->kinds |= 1u << at->kind;
        if (at->depth > d->depth)
            d->depth = at->depth;
    }
}

/* 1610612736 as 1,610,612,736 */
static void write_grouped(struct output *output, uint64_t number)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            output_char(output, ',');
        output_char(output, digits[i]);
    }
}

/* Tenths of a percent, rounded, by integers. */
static void write_percent(struct output *output, uint64_t part, uint64_t whole)
{
    unsigned tenths = whole ? (unsigned)(((unsigned __int128)part * 2000 + whole) / ((unsigned __int128)whole * 2)) : 0;
    output_printf(output, "%u.%u%%", tenths / 10, tenths % 10);
}

static uint64_t place(uint64_t offset, uint64_t total)
{
    return total ? (uint64_t)((unsigned __int128)offset * INNER / total) : 0;
}

/* The shade says which file a frame is of: the hash of what stands before the first colon. */
static unsigned shade_of(const char *label, size_t length, enum flame_kind kind)
{
    if (kind != FLAME_KIND_PYTHON && kind != FLAME_KIND_NATIVE)
        return 0;
    const char *colon = memchr(label, ':', length);
    return (unsigned)(hash_bytes(label, colon ? (size_t)(colon - label) : length) % 4);
}

/* Of `file:line:name` the name says most: it stands alone where the whole does not fit or the file is not known. */
static void shorten(const char **label, size_t *length, size_t columns)
{
    const char *colon = memchr(*label, ':', *length), *end = *label + *length;
    bool is_unknown = *length > 3 && memcmp(*label, "??:", 3) == 0;
    if (!colon || (!is_unknown && svg_columns(*label, *length) <= columns))
        return;
    const char *second = memchr(colon + 1, ':', (size_t)(end - colon - 1));
    for (const char *c = colon + 1; second && c < second; c++)
        if (*c < '0' || *c > '9')
            return; /* a `::` of a name, no line */
    if (second && second > colon + 1 && second + 1 < end) {
        *label = second + 1;
        *length = (size_t)(end - *label);
    }
}

static void write_label(struct drawing *d, const struct flame_node *node, uint64_t x, uint64_t width, uint32_t row)
{
    size_t length, columns = width < 800 ? 0 : (size_t)((width - 800) / (SVG_COLUMN_TENTHS * 10));
    const char *label = frame_label_text(d->tree->texts, node->label, &length);
    char size[SIZE_TEXT];
    if (columns < 3)
        return;
    output_text(d->output, "<text x=\"");
    svg_hundredths(d->output, x + 400);
    output_printf(d->output, "\" y=\"%u\">", row * FLAME_ROW + 14);
    if (node->kind == FLAME_KIND_PYTHON || node->kind == FLAME_KIND_NATIVE)
        shorten(&label, &length, columns);
    svg_text(d->output, label, length, columns);
    size_format(node->total, size);
    if (svg_columns(label, length) + 2 + strlen(size) <= columns)
        output_printf(d->output, "<tspan class=\"z\" dx=\"10\">%s</tspan>", size);
    output_text(d->output, "</text>");
}

static void write_box(struct drawing *d, uint32_t number, uint64_t offset)
{
    const struct flame_node *node = &d->tree->nodes[number];
    uint64_t total = d->tree->nodes[0].total, left = place(offset, total), right = place(offset + node->total, total);
    uint64_t width = right - left, x = FLAME_MARGIN * 100 + left;
    struct output *output = d->output;
    size_t length;
    const char *label = frame_label_text(d->tree->texts, node->label, &length);
    char size[SIZE_TEXT];
    if (!total)
        width = INNER;
    output_printf(output, "<g class=\"%s%u\" data-b=\"%" PRIu64 ",%" PRIu64 "\"><title>", kinds[node->kind].class,
                  shade_of(label, length, (enum flame_kind)node->kind), offset, node->total);
    svg_text(output, label, length, TITLE_COLUMNS);
    output_printf(output, "\n%s (", size_format(node->total, size));
    write_grouped(output, node->total);
    output_text(output, " bytes), ");
    write_percent(output, node->total, total);
    output_text(output, "</title><rect x=\"");
    svg_hundredths(output, x);
    output_printf(output, "\" y=\"%" PRIu32 "\" width=\"", node->depth * FLAME_ROW);
    svg_hundredths(output, width > 200 ? width - 60 : width);
    output_printf(output, "\" height=\"%d\"/>", FLAME_ROW - 1);
    write_label(d, node, x, width, node->depth);
    output_text(output, "</g>\n");
}

/* Boxes in drawing order.  A child begins where its elder siblings end; the parent's own bytes come last, uncovered. */
static int write_boxes(struct drawing *d)
{
    const struct flame_node *nodes = d->tree->nodes;
    uint64_t *ends = calloc((size_t)d->tree->depth + 2, sizeof(*ends)); /* by depth: where the next box begins */
    if (!ends)
        return STATUS_NO_MEMORY;
    for (uint32_t node = 0; node != NONE32 && !output_failed(d->output); node = next_node(d, node)) {
        uint64_t offset = ends[nodes[node].depth];
        ends[nodes[node].depth] = offset + nodes[node].total;
        ends[nodes[node].depth + 1] = offset;
        if (is_drawn(d, node))
            write_box(d, node, offset);
    }
    free(ends);
    return 0;
}

static void write_head(struct drawing *d, const struct svg_flame_options *options)
{
    unsigned height = FLAME_TOP + (d->depth + 1) * FLAME_ROW + FLAME_FOOTER;
    size_t columns = (FLAME_WIDTH - 2 * FLAME_MARGIN) * 10 / (SVG_COLUMN_TENTHS * 15 / 10); /* the title is larger */
    const char *subtitle = options->subtitle ? options->subtitle : "";
    struct output *output = d->output;
    output_printf(output,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" height=\"%u\" viewBox=\"0 0 %d %u\" "
                  "preserveAspectRatio=\"xMidYMin meet\" aria-label=\"",
                  height, FLAME_WIDTH, height);
    svg_text(output, options->title, strlen(options->title), TITLE_COLUMNS);
    output_text(output, "\">\n");
    output_text(output, flame_style);
    output_text(output,
                "<rect class=\"b\" width=\"100%\" height=\"100%\"/>\n<text id=\"title\" x=\"12\" y=\"28\" data-t=\"");
    svg_text(output, options->title, strlen(options->title), TITLE_COLUMNS);
    output_text(output, "\">");
    svg_text(output, options->title, strlen(options->title), columns);
    output_text(output, "</text>\n<text id=\"sub\" x=\"12\" y=\"49\" data-t=\"");
    svg_text(output, subtitle, strlen(subtitle), TITLE_COLUMNS);
    output_text(output, "\">");
    svg_text(output, subtitle, strlen(subtitle), (FLAME_WIDTH - 2 * FLAME_MARGIN) * 10 / SVG_COLUMN_TENTHS);
    output_text(output, "</text>\n");
}

static void write_legend(struct drawing *d)
{
    unsigned x = FLAME_MARGIN;
    output_text(d->output, "<g id=\"legend\">\n");
    for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        if (!kinds[kind].legend || !(d->kinds & 1u << kind))
            continue;
        output_printf(d->output,
                      "<g class=\"%s0\" transform=\"translate(%u,%d)\"><rect width=\"14\" height=\"14\"/>"
                      "<text class=\"l\" x=\"20\" y=\"11\">%s</text></g>\n",
                      kinds[kind].class, x, FLAME_LEGEND, kinds[kind].legend);
        x += (unsigned)(strlen(kinds[kind].legend) * SVG_COLUMN_TENTHS / 10) + 44;
    }
    output_text(d->output, "</g>\n");
}

static void write_footer(struct drawing *d)
{
    char size[SIZE_TEXT], note[160] = "";
    if (d->left_out_bytes)
        snprintf(note, sizeof(note),
                 "Not drawn: boxes smaller than %" PRIu64 " bytes, %s in all. Every sum includes them.", d->least,
                 size_format(d->left_out_bytes, size));
    else if (!d->tree->nodes[0].total)
        snprintf(note, sizeof(note), "Nothing was reserved at this moment.");
    unsigned y = FLAME_TOP + (d->depth + 1) * FLAME_ROW + 18;
    output_printf(d->output, "<text id=\"foot\" x=\"12\" y=\"%u\" data-t=\"%s\">%s</text>\n", y, note, note);
}

int svg_flame(const struct flame_tree *tree, const struct svg_flame_options *options, struct output *output,
              struct error *err)
{
    struct drawing d = {.tree = tree, .output = output};
    if (choose_least(&d))
        return error_no_memory(err);
    survey(&d);
    write_head(&d, options);
    write_legend(&d);
    output_printf(output, "<g id=\"frames\" transform=\"translate(0,%d)\">\n", FLAME_TOP);
    int status = write_boxes(&d);
    output_text(output, "</g>\n");
    write_footer(&d);
    output_text(output, flame_script);
    output_text(output, "</svg>\n");
    return status ? error_no_memory(err) : 0;
}
