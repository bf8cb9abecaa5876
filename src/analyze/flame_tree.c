/* The tree that a flame graph is drawn from: lines merged by label, weights in bytes.  Uses src/snapshot, src/base. */
#include "analyze/flame.h"

#include "base/array.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINKED_CHILDREN 6

struct builder {
    struct flame_tree *tree;
    const struct snapshot *snapshot;
    struct table children; /* parent, label -> node, where a parent has more than LINKED_CHILDREN */
    struct known {
        uint32_t under, node;
    } * known; /* by stack: where it hangs, and under which node it was asked for last */
    uint32_t *path;
    size_t path_capacity;
    uint32_t *labels;
    size_t label_capacity;
    enum flame_view view;
    bool has_devices, has_processes;
    uint32_t base; /* node of the segment being visited */
    const struct state *state;
    const struct selection *selection; /* NULL: everything */
    bool reversed, whole_blocks;
    uint32_t last; /* node of the block's line before */
    const uint8_t *shades;
    uint64_t (*shade_bytes)[FLAME_SHADES]; /* by node */
    size_t shade_capacity;
    size_t block;  /* being given away line by line, so that the sum is exact whatever the requests say */
    uint64_t left; /* bytes of it that are left */
};

static uint32_t add_node(struct builder *b, uint32_t parent, uint32_t label, enum flame_kind kind)
{
    struct flame_tree *tree = b->tree;
    if (tree->count >= NONE32 || array_reserve(&tree->nodes, &tree->capacity, tree->count + 1, sizeof(*tree->nodes)))
        return NONE32;
    struct flame_node node = {
        .label = label, .parent = parent, .first_child = NONE32, .next_sibling = NONE32, .kind = (uint8_t)kind,
        .shade = FLAME_NO_SHADE};
    node.depth = tree->nodes[parent].depth + 1;
    if (node.depth > tree->depth)
        tree->depth = node.depth;
    tree->nodes[tree->count] = node;
    return (uint32_t)tree->count++;
}

/* Most nodes have few children: those are found along their links (of the order in which they came; link_tree() makes
 * the final ones), only the others through the table. */
static uint32_t child_of(struct builder *b, uint32_t parent, uint32_t label, enum flame_kind kind)
{
    struct flame_tree *tree = b->tree;
    uint32_t last = NONE32, child = tree->nodes[parent].first_child, made;
    unsigned linked = 0;
    if (label == STRING_NONE)
        return NONE32;
    for (; child != NONE32; child = tree->nodes[child].next_sibling, linked++) {
        if (tree->nodes[child].label == label)
            return child;
        last = child;
    }
    uint32_t *place = NULL;
    if (linked == LINKED_CHILDREN) {
        place = table_at(&b->children, (uint64_t)parent << 32 | label, NONE32);
        if (!place || *place != NONE32)
            return place ? *place : NONE32;
    }
    made = add_node(b, parent, label, kind);
    if (place)
        *place = made;
    else if (made != NONE32 && last == NONE32)
        tree->nodes[parent].first_child = made;
    else if (made != NONE32)
        tree->nodes[last].next_sibling = made;
    return made;
}

__attribute__((format(printf, 4, 5))) static uint32_t named_child(struct builder *b, uint32_t parent,
                                                                  enum flame_kind kind, const char *format, ...)
{
    char name[80];
    va_list arguments;
    if (parent == NONE32)
        return NONE32;
    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    return child_of(b, parent, frame_label_of_text(b->tree->texts, name, strlen(name)), kind);
}

static enum flame_kind kind_of_frame(const struct snapshot *snapshot, uint32_t frame)
{
    return frame_is_python(snapshot, &snapshot->frames[frame]) ? FLAME_KIND_PYTHON : FLAME_KIND_NATIVE;
}

/* The node of a stack under `under`: climb to the nearest caller that has a node already, then make the rest. */
static uint32_t node_of_stack(struct builder *b, uint32_t under, uint32_t stack)
{
    const struct snapshot *snapshot = b->snapshot;
    size_t count = 0;
    uint32_t node = under;
    for (; stack != STACK_EMPTY; stack = snapshot->stacks[stack].parent) {
        if (b->known[stack].under == under) { /* the root is a parent of nothing: 0 stands for "not asked yet" */
            node = b->known[stack].node;
            break;
        }
        if (array_reserve(&b->path, &b->path_capacity, count + 1, sizeof(*b->path)))
            return NONE32;
        b->path[count++] = stack;
    }
    while (count && node != NONE32) {
        stack = b->path[--count];
        uint32_t frame = snapshot->stacks[stack].frame, label = frame_label(b->tree->texts, frame);
        if (b->selection && b->selection->user_frames && selection_is_plumbing(snapshot, frame))
            label = FRAME_LEFT_OUT;
        if (label != FRAME_LEFT_OUT)
            node = child_of(b, node, label, kind_of_frame(snapshot, frame));
        b->known[stack] = (struct known){under, node};
    }
    return node;
}

/* Callers below callees: the path differs for each stack, so that only whole ones are known again. */
static uint32_t node_of_reversed(struct builder *b, uint32_t under, uint32_t stack)
{
    const struct snapshot *snapshot = b->snapshot;
    uint32_t node = under;
    if (b->known[stack].under == under)
        return b->known[stack].node;
    for (uint32_t at = stack; at != STACK_EMPTY && node != NONE32; at = snapshot->stacks[at].parent) {
        uint32_t frame = snapshot->stacks[at].frame, label = frame_label(b->tree->texts, frame);
        if (label != FRAME_LEFT_OUT && !(b->selection && b->selection->user_frames && selection_is_plumbing(snapshot, frame)))
            node = child_of(b, node, label, kind_of_frame(snapshot, frame));
    }
    b->known[stack] = (struct known){under, node};
    return node;
}

static uint32_t node_of_frames(struct builder *b, uint32_t node, const struct flame_line *line)
{
    size_t count = flame_line_labels(b->tree->texts, line, &b->labels, &b->label_capacity);
    if (count == SIZE_MAX)
        return NONE32;
    for (size_t i = 0; i < count && node != NONE32; i++)
        node = child_of(b, node, b->labels[b->reversed ? count - 1 - i : i], FLAME_KIND_PYTHON);
    return node;
}

static enum flame_kind kind_of_state(const char *word)
{
    if (strcmp(word, "active_allocated") == 0)
        return FLAME_KIND_ALLOCATED;
    return strcmp(word, "inactive") == 0 ? FLAME_KIND_INACTIVE : FLAME_KIND_PENDING;
}

static uint32_t node_of_line(struct builder *b, const struct flame_line *line)
{
    enum flame_kind kind = kind_of_state(line->state);
    uint32_t node = child_of(b, b->base, frame_label_of_text(b->tree->texts, line->state, strlen(line->state)), kind);
    /* What is free was asked for by nobody: its last request is no part of the picture. */
    if (node == NONE32 || (kind == FLAME_KIND_INACTIVE && line->leaf != FLAME_STACK))
        return node;
    switch (line->leaf) {
    case FLAME_STACK:
        if (line->stack == NONE32)
            return node_of_frames(b, node, line);
        return b->reversed ? node_of_reversed(b, node, line->stack) : node_of_stack(b, node, line->stack);
    case FLAME_NO_FRAMES:
        return named_child(b, node, FLAME_KIND_UNKNOWN, "<non-python>");
    case FLAME_NO_CONTEXT:
        return named_child(b, node, FLAME_KIND_UNKNOWN, "<no-context>");
    case FLAME_GAPS:
        return named_child(b, node, FLAME_KIND_GAPS, "<gaps>");
    }
    return node;
}

static int shade_node(struct builder *b, uint32_t node, uint64_t bytes)
{
    size_t had = b->shade_capacity;
    const struct block *block = &b->state->blocks[b->block];
    if (!b->shades || (block->state != BLOCK_ACTIVE_ALLOCATED && block->state != BLOCK_ACTIVE_PENDING_FREE))
        return 0;
    if (array_reserve(&b->shade_bytes, &b->shade_capacity, (size_t)node + 1, sizeof(*b->shade_bytes)))
        return STATUS_NO_MEMORY;
    if (b->shade_capacity > had)
        memset(b->shade_bytes + had, 0, (b->shade_capacity - had) * sizeof(*b->shade_bytes));
    b->shade_bytes[node][b->shades[b->block] % FLAME_SHADES] += bytes;
    return 0;
}

static int add_line(void *context, const struct flame_line *line)
{
    struct builder *b = context;
    if (line->block != b->block) {
        b->block = line->block;
        b->last = NONE32;
        const struct block *block = &b->state->blocks[line->block];
        b->left = !b->selection || selection_has_block(b->selection, b->state, block) ? block->size : 0;
    }
    uint64_t bytes = line->is_negative ? 0 : line->bytes < b->left ? line->bytes : b->left;
    if (!bytes)
        return 0;
    uint32_t node = b->last;
    if (line->leaf != FLAME_GAPS || !b->whole_blocks || node == NONE32)
        node = node_of_line(b, line);
    if (node == NONE32)
        return STATUS_NO_MEMORY;
    b->last = node;
    b->left -= bytes;
    b->tree->nodes[node].self += bytes;
    return shade_node(b, node, bytes);
}

static uint32_t node_of_segment(struct builder *b, const struct segment *segment)
{
    uint32_t node = 0;
    if (b->has_processes)
        node =
            named_child(b, node, FLAME_KIND_PROCESS, "process_%" PRId64, b->snapshot->processes[segment->process].pid);
    if (b->has_devices)
        node = named_child(b, node, FLAME_KIND_DEVICE, "device_%u", segment->device);
    node = named_child(b, node, FLAME_KIND_STREAM, "stream_%" PRId64, segment->stream);
    if (b->view == FLAME_SEGMENTS)
        node = named_child(b, node, FLAME_KIND_SEGMENT, "seg_%" PRIu64, segment->address);
    return node;
}

static int add_segment(struct builder *b, size_t number)
{
    const struct segment *segment = &b->state->segments[number];
    b->base = node_of_segment(b, segment);
    if (b->base == NONE32)
        return STATUS_NO_MEMORY;
    uint64_t covered = 0;
    for (uint32_t i = 0; i < segment->block_count; i++)
        covered += b->state->blocks[segment->first_block + i].size;
    /* Bytes that no block of the file covers. */
    if ((!b->selection || selection_is_everything(b->selection)) && covered < segment->total_size)
        b->tree->nodes[b->base].self += segment->total_size - covered;
    return flame_segment_lines(b->snapshot, b->state, number, add_line, b);
}

static bool is_state(const struct flame_node *node)
{
    return node->kind == FLAME_KIND_ALLOCATED || node->kind == FLAME_KIND_PENDING || node->kind == FLAME_KIND_INACTIVE;
}

static int by_size(const void *a, const void *b, void *context)
{
    const struct flame_tree *tree = context;
    const struct flame_node *x = &tree->nodes[*(const uint32_t *)a], *y = &tree->nodes[*(const uint32_t *)b];
    if (is_state(x) && is_state(y) && x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    size_t m, n;
    const char *s = frame_label_text(tree->texts, x->label, &m), *t = frame_label_text(tree->texts, y->label, &n);
    int order = memcmp(s, t, m < n ? m : n);
    return order ? order : (m > n) - (m < n);
}

static void link_children(struct flame_tree *tree, uint32_t parent, uint32_t *children, uint32_t *end)
{
    if (end - children > 1)
        qsort_r(children, (size_t)(end - children), sizeof(*children), by_size, tree);
    for (uint32_t *child = children; child < end; child++)
        tree->nodes[*child].next_sibling = child + 1 < end ? child[1] : NONE32;
    tree->nodes[parent].first_child = children < end ? *children : NONE32;
}

/* Totals from the leaves inwards, then the links: siblings largest first, so that the picture does not depend on the
 * order in which blocks stand. */
int flame_tree_link(struct flame_tree *tree)
{
    for (size_t i = tree->count; i-- > 0;) {
        tree->nodes[i].first_child = tree->nodes[i].next_sibling = NONE32;
        tree->nodes[i].total += tree->nodes[i].self;
        if (i)
            tree->nodes[tree->nodes[i].parent].total += tree->nodes[i].total;
    }
    uint32_t *order = malloc(tree->count * sizeof(*order)), *ends = calloc(tree->count + 1, sizeof(*ends));
    if (!order || !ends) {
        free(order);
        free(ends);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 1; i < tree->count; i++)
        ends[tree->nodes[i].parent + 1]++;
    for (size_t i = 1; i < tree->count; i++)
        ends[i] += ends[i - 1];
    for (size_t i = 1; i < tree->count; i++) /* ends[p], the start of p's children, becomes their end */
        order[ends[tree->nodes[i].parent]++] = (uint32_t)i;
    for (size_t i = 0; i < tree->count; i++)
        link_children(tree, (uint32_t)i, order + (i ? ends[i - 1] : 0), order + ends[i]);
    free(order);
    free(ends);
    return 0;
}

/* From the leaves inwards, then of each node what most of it is. */
static void choose_shades(struct builder *b)
{
    struct flame_tree *tree = b->tree;
    for (size_t i = tree->count < b->shade_capacity ? tree->count : b->shade_capacity; i-- > 1;) {
        const uint64_t *bytes = b->shade_bytes[i];
        uint64_t most = 0;
        for (unsigned shade = 0; shade < FLAME_SHADES; shade++) {
            b->shade_bytes[tree->nodes[i].parent][shade] += bytes[shade];
            if (bytes[shade] > most) {
                most = bytes[shade];
                tree->nodes[i].shade = (uint8_t)shade;
            }
        }
    }
}

static int build(struct builder *b, struct error *err)
{
    struct flame_tree *tree = b->tree;
    tree->texts = frame_texts_new(b->snapshot);
    b->known = calloc(b->snapshot->stack_count, sizeof(*b->known));
    if (!tree->texts || !b->known || array_reserve(&tree->nodes, &tree->capacity, 1, sizeof(*tree->nodes)))
        return error_no_memory(err);
    tree->nodes[0] = (struct flame_node){.label = frame_label_of_text(tree->texts, "all", 3),
                                         .parent = NONE32,
                                         .first_child = NONE32,
                                         .next_sibling = NONE32,
                                         .kind = FLAME_KIND_ROOT,
                                         .shade = FLAME_NO_SHADE};
    tree->count = 1;
    uint64_t sum = 0;
    for (size_t i = 0; i < b->state->segment_count; i++) {
        const struct segment *segment = &b->state->segments[i];
        if (b->selection && !selection_has_segment(b->selection, segment))
            continue;
        if (__builtin_add_overflow(sum, segment->total_size, &sum))
            return error_set(err, STATUS_INPUT, "the segments add up to more than 64 bits hold");
        int status = add_segment(b, i);
        if (status)
            return status == STATUS_NO_MEMORY ? error_no_memory(err) : status;
    }
    choose_shades(b);
    return frame_texts_failed(tree->texts) || flame_tree_link(tree) ? error_no_memory(err) : 0;
}

int flame_tree_build(const struct snapshot *snapshot, const struct state *state, enum flame_view view,
                     const struct selection *selection, struct flame_tree *tree, struct error *err)
{
    const struct flame_options options = {.view = view, .selection = selection};
    return flame_tree_make(snapshot, state, &options, tree, err);
}

int flame_tree_make(const struct snapshot *snapshot, const struct state *state, const struct flame_options *options,
                    struct flame_tree *tree, struct error *err)
{
    const struct selection *selection = options->selection;
    struct builder b = {.tree = tree, .snapshot = snapshot, .state = state, .view = options->view, .block = SIZE_MAX,
                        .reversed = options->reversed, .whole_blocks = options->whole_blocks, .last = NONE32,
                        .shades = options->shades};
    b.selection = selection && (!selection_is_everything(selection) || selection->user_frames) ? selection : NULL;
    *tree = (struct flame_tree){0};
    for (size_t i = 1; i < state->segment_count; i++) {
        b.has_devices = b.has_devices || state->segments[i].device != state->segments[0].device;
        b.has_processes = b.has_processes || state->segments[i].process != state->segments[0].process;
    }
    int status = build(&b, err);
    table_free(&b.children);
    free(b.known);
    free(b.path);
    free(b.labels);
    free(b.shade_bytes);
    if (status)
        flame_tree_free(tree);
    return status;
}

void flame_tree_free(struct flame_tree *tree)
{
    frame_texts_free(tree->texts);
    free(tree->nodes);
    free(tree->before);
    free(tree->after);
    *tree = (struct flame_tree){0};
}
