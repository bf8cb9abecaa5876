/* Flame graphs as SVG.  Uses src/analyze, src/base and render/svg. */
#include "render/svg_flame.h"

#include "base/size.h"
#include "base/table.h"
#include "render/svg.h"
#include "render/svg_flame_parts.h"
#include "render/svg_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TITLE_COLUMNS 600u                                       /* of a tooltip's first line */
#define INNER ((uint64_t)SVG_PAGE_INNER * 100) /* hundredths of a pixel */

struct drawing {
    const struct flame_tree *tree;
    struct output *output;
    uint64_t least; /* bytes of the smallest box drawn */
    uint64_t left_out_bytes;
    unsigned kinds; /* bit k: a box of that kind was drawn */
    unsigned changes; /* bit c: a box of that change was */
    uint32_t depth; /* of the deepest box drawn */
    const struct svg_flame_options *options;
    enum flame_kind state; /* of the blocks whose frames are being drawn */
};

static const struct {
    const char *class, *legend;
} kinds[] = {
    [FLAME_KIND_ROOT] = {"r0", NULL},
    [FLAME_KIND_PROCESS] = {"s0", NULL},
    [FLAME_KIND_DEVICE] = {"s0", NULL},
    [FLAME_KIND_STREAM] = {"s0", NULL},
    [FLAME_KIND_SEGMENT] = {"s0", NULL},
    [FLAME_KIND_ALLOCATED] = {"a0", "allocated"},
    [FLAME_KIND_PENDING] = {"w0", "waits to be freed"},
    [FLAME_KIND_INACTIVE] = {"i0", "inactive"},
    [FLAME_KIND_PYTHON] = {"p0", "Python"},
    [FLAME_KIND_NATIVE] = {"n0", "native code"},
    [FLAME_KIND_UNKNOWN] = {"u0", "no stack"},
    [FLAME_KIND_GAPS] = {"g0", "rounded up"},
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* Of a tree that is two: how much a box changed. */
static const struct {
    const char *class, *legend;
} changes[] = {{"m3", "more than doubled, or new"}, {"m2", "grew by more than a tenth"}, {"m1", "grew"}, {"j0", "unchanged"},
               {"v1", "shrank"}, {"v2", "shrank by more than a tenth"}, {"v3", "less than half, or gone"}};
#define CHANGE_COUNT (sizeof(changes) / sizeof(changes[0]))

static unsigned change_of(const struct flame_tree *tree, uint32_t node)
{
    uint64_t before = tree->before[node], after = tree->after[node];
    bool grew = after > before;
    uint64_t more = grew ? after : before, less = grew ? before : after, change = more - less;
    unsigned degree = !change ? 0 : change > less ? 3 : change > less / 10 ? 2 : 1;
    return grew ? 3 - degree : 3 + degree;
}

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
        if (d->tree->before)
            d->changes |= 1u << change_of(d->tree, node);
        if (at->depth > d->depth)
            d->depth = at->depth;
    }
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

static bool is_frame(const struct flame_node *node)
{
    return node->kind == FLAME_KIND_PYTHON || node->kind == FLAME_KIND_NATIVE || node->kind == FLAME_KIND_UNKNOWN;
}

static void write_class(struct drawing *d, uint32_t number, const char *label, size_t length)
{
    const struct flame_node *node = &d->tree->nodes[number];
    enum flame_kind kind = (enum flame_kind)node->kind;
    if (d->tree->before)
        output_text(d->output, changes[change_of(d->tree, number)].class);
    else if (is_frame(node) && d->options->color == SVG_FLAME_STATE)
        output_text(d->output, kinds[d->state].class);
    else if (is_frame(node) && d->options->color == SVG_FLAME_SHADE && node->shade != FLAME_NO_SHADE)
        output_printf(d->output, "%c%u", d->options->shade_letter, node->shade);
    else
        output_printf(d->output, "%c%u", kinds[kind].class[0], shade_of(label, length, kind));
}

/* What stands beside a label: the size, or of two trees the change. */
static const char *size_of(const struct flame_tree *tree, uint32_t node, char size[SIZE_TEXT])
{
    if (!tree->before)
        return size_format(tree->nodes[node].total, size);
    if (tree->before[node] == tree->after[node])
        return "no change";
    return size_format_delta(tree->before[node], tree->after[node], size);
}

static void write_details(struct drawing *d, uint32_t number)
{
    const struct flame_tree *tree = d->tree;
    char size[SIZE_TEXT];
    output_printf(d->output, "\n%s (", size_of(tree, number, size));
    if (tree->before) {
        output_printf(d->output, "%s before, ", size_format(tree->before[number], size));
        output_printf(d->output, "%s after)", size_format(tree->after[number], size));
        return;
    }
    svg_grouped(d->output, tree->nodes[number].total);
    output_text(d->output, " bytes), ");
    svg_percent(d->output, tree->nodes[number].total, tree->nodes[0].total);
}

static void write_label(struct drawing *d, uint32_t number, uint64_t x, uint64_t width)
{
    const struct flame_node *node = &d->tree->nodes[number];
    size_t length, columns = width < 800 ? 0 : (size_t)((width - 800) / (SVG_COLUMN_TENTHS * 10));
    const char *label = frame_label_text(d->tree->texts, node->label, &length);
    char buffer[SIZE_TEXT];
    if (columns < 3)
        return;
    output_text(d->output, "<text x=\"");
    svg_hundredths(d->output, x + 400);
    output_printf(d->output, "\" y=\"%u\">", node->depth * FLAME_ROW + 14);
    if (node->kind == FLAME_KIND_PYTHON || node->kind == FLAME_KIND_NATIVE)
        shorten(&label, &length, columns);
    svg_text(d->output, label, length, columns);
    const char *size = size_of(d->tree, number, buffer);
    bool is_same = d->tree->before && d->tree->before[number] == d->tree->after[number];
    if (!is_same && svg_columns(label, length) + 2 + strlen(size) <= columns)
        output_printf(d->output, "<tspan class=\"z\" dx=\"10\">%s</tspan>", size);
    output_text(d->output, "</text>");
}

static void write_box(struct drawing *d, uint32_t number, uint64_t offset)
{
    const struct flame_node *node = &d->tree->nodes[number];
    uint64_t total = d->tree->nodes[0].total, left = place(offset, total), right = place(offset + node->total, total);
    uint64_t width = right - left, x = SVG_PAGE_MARGIN * 100 + left;
    struct output *output = d->output;
    size_t length;
    const char *label = frame_label_text(d->tree->texts, node->label, &length);
    if (!total)
        width = INNER;
    output_text(output, "<g class=\"");
    write_class(d, number, label, length);
    output_printf(output, "\" data-b=\"%" PRIu64 ",%" PRIu64 "\"><title>", offset, node->total);
    svg_text(output, label, length, TITLE_COLUMNS);
    write_details(d, number);
    output_text(output, "</title><rect x=\"");
    svg_hundredths(output, x);
    output_printf(output, "\" y=\"%" PRIu32 "\" width=\"", node->depth * FLAME_ROW);
    svg_hundredths(output, width > 200 ? width - 60 : width);
    output_printf(output, "\" height=\"%d\"/>", FLAME_ROW - 1);
    write_label(d, number, x, width);
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
        if (nodes[node].kind == FLAME_KIND_ALLOCATED || nodes[node].kind == FLAME_KIND_PENDING ||
            nodes[node].kind == FLAME_KIND_INACTIVE)
            d->state = (enum flame_kind)nodes[node].kind;
        if (is_drawn(d, node))
            write_box(d, node, offset);
    }
    free(ends);
    return 0;
}

static size_t legend_of(const struct drawing *d, struct svg_legend *legend)
{
    size_t count = 0;
    for (unsigned change = 0; change < CHANGE_COUNT && d->tree->before; change++)
        if (d->changes & 1u << change)
            legend[count++] = (struct svg_legend){changes[change].class, changes[change].legend};
    for (unsigned kind = 0; kind < KIND_COUNT && !d->tree->before; kind++) {
        bool is_code = kind == FLAME_KIND_PYTHON || kind == FLAME_KIND_NATIVE || kind == FLAME_KIND_UNKNOWN;
        if (kinds[kind].legend && (d->kinds & 1u << kind) && !(is_code && d->options->color != SVG_FLAME_CODE))
            legend[count++] = (struct svg_legend){kinds[kind].class, kinds[kind].legend};
    }
    for (size_t i = 0; i < d->options->shade_count; i++)
        legend[count++] = d->options->shades[i];
    return count;
}

static void note_of(const struct drawing *d, char *note, size_t room)
{
    char size[SIZE_TEXT];
    *note = '\0';
    if (d->left_out_bytes)
        snprintf(note, room, "Not drawn: boxes smaller than %" PRIu64 " bytes, %s in all. Every sum includes them.", d->least,
                 size_format(d->left_out_bytes, size));
    else if (!d->tree->nodes[0].total)
        snprintf(note, room, d->tree->before ? "Nothing changed." : "Nothing was reserved at this moment.");
}

int svg_flame(const struct flame_tree *tree, const struct svg_flame_options *options, struct output *output,
              struct error *err)
{
    struct drawing d = {.tree = tree, .output = output, .options = options};
    struct svg_legend legend[KIND_COUNT + CHANGE_COUNT + FLAME_SHADES];
    char note[160];
    if (choose_least(&d))
        return error_no_memory(err);
    survey(&d);
    struct svg_page page = {
        .title = options->title, .subtitle = options->subtitle, .body = "frames", .style = flame_style, .more_style = svg_shade_style,
        .script = flame_script, .legend = legend, .legend_count = legend_of(&d, legend),
        .height = (d.depth + 1) * FLAME_ROW};
    svg_page_begin(output, &page);
    int status = write_boxes(&d);
    note_of(&d, note, sizeof(note));
    svg_page_end(output, &page, note);
    return status ? error_no_memory(err) : 0;
}
