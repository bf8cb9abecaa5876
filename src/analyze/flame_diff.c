/* Two flame trees as one, for differential flame graphs.  Uses src/snapshot and src/base. */
#include "analyze/flame.h"

#include "base/array.h"
#include "base/table.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct joining {
    struct flame_tree *tree;
    struct table children; /* parent, label -> node */
    struct text text;
    bool ignore_lines;
    size_t capacity[4];
    uint64_t *self[2];     /* before, after; by node, as the totals in tree->before and tree->after */
};

/* "file:12:name" as "file:name". */
static void add_without_line(struct text *text, const char *label, size_t length)
{
    const char *colon = memchr(label, ':', length), *end = label + length;
    const char *second = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
    bool is_number = second && second > colon + 1;
    for (const char *c = colon; is_number && c + 1 < second; c++)
        is_number = c[1] >= '0' && c[1] <= '9';
    text_append(text, label, is_number ? (size_t)(colon - label) : length);
    if (is_number)
        text_append(text, second, (size_t)(end - second));
}

static uint32_t label_of(struct joining *j, const struct flame_tree *from, const struct flame_node *node)
{
    size_t length;
    const char *label = frame_label_text(from->texts, node->label, &length);
    if (!j->ignore_lines || (node->kind != FLAME_KIND_PYTHON && node->kind != FLAME_KIND_NATIVE))
        return frame_label_of_text(j->tree->texts, label, length);
    text_clear(&j->text);
    add_without_line(&j->text, label, length);
    return frame_label_of_text(j->tree->texts, text_string(&j->text), j->text.length);
}

static uint32_t add_node(struct joining *j, uint32_t parent, uint32_t label, const struct flame_node *from)
{
    struct flame_tree *tree = j->tree;
    size_t need = tree->count + 1;
    if (need >= NONE32 || array_reserve(&tree->nodes, &tree->capacity, need, sizeof(*tree->nodes)) ||
        array_reserve(&tree->before, &j->capacity[0], need, sizeof(uint64_t)) ||
        array_reserve(&tree->after, &j->capacity[1], need, sizeof(uint64_t)) ||
        array_reserve(&j->self[0], &j->capacity[2], need, sizeof(uint64_t)) ||
        array_reserve(&j->self[1], &j->capacity[3], need, sizeof(uint64_t)))
        return NONE32;
    tree->nodes[tree->count] = (struct flame_node){.label = label, .parent = parent, .first_child = NONE32,
                                                   .next_sibling = NONE32, .depth = from->depth, .kind = from->kind,
                                                   .shade = FLAME_NO_SHADE};
    tree->before[tree->count] = tree->after[tree->count] = j->self[0][tree->count] = j->self[1][tree->count] = 0;
    if (from->depth > tree->depth)
        tree->depth = from->depth;
    return (uint32_t)tree->count++;
}

static uint32_t node_for(struct joining *j, const struct flame_tree *from, uint32_t number, const uint32_t *nodes)
{
    const struct flame_node *node = &from->nodes[number];
    uint32_t label = label_of(j, from, node);
    if (label == STRING_NONE)
        return NONE32;
    if (!number)
        return j->tree->count ? 0 : add_node(j, NONE32, label, node);
    uint32_t parent = nodes[node->parent], *slot = table_at(&j->children, (uint64_t)parent << 32 | label, NONE32);
    if (!slot)
        return NONE32;
    if (*slot == NONE32)
        *slot = add_node(j, parent, label, node);
    return *slot;
}

static int add_tree(struct joining *j, const struct flame_tree *from, bool is_after)
{
    uint32_t *nodes = malloc((from->count + 1) * sizeof(*nodes));
    int status = nodes ? 0 : STATUS_NO_MEMORY;
    for (uint32_t i = 0; !status && i < from->count; i++) {
        nodes[i] = node_for(j, from, i, nodes);
        if (nodes[i] == NONE32) {
            status = STATUS_NO_MEMORY;
            break;
        }
        (is_after ? j->tree->after : j->tree->before)[nodes[i]] += from->nodes[i].total;
        j->self[is_after][nodes[i]] += from->nodes[i].self;
    }
    free(nodes);
    return status;
}

static uint64_t drawn(uint64_t before, uint64_t after, enum flame_width width)
{
    uint64_t larger = before > after ? before : after;
    return width == FLAME_WIDTH_AFTER    ? after
           : width == FLAME_WIDTH_LARGER ? larger
                                         : larger - (before > after ? after : before);
}

int flame_tree_diff(const struct flame_tree *before, const struct flame_tree *after, enum flame_width width,
                    bool ignore_lines, struct flame_tree *result, struct error *err)
{
    struct joining j = {.tree = result, .ignore_lines = ignore_lines};
    uint64_t sum;
    *result = (struct flame_tree){0};
    if (__builtin_add_overflow(before->nodes[0].total, after->nodes[0].total, &sum))
        return error_set(err, STATUS_INPUT, "the segments of both add up to more than 64 bits hold");
    result->texts = frame_texts_new(frame_texts_snapshot(after->texts));
    int status = result->texts ? add_tree(&j, after, true) : STATUS_NO_MEMORY;
    if (!status)
        status = add_tree(&j, before, false);
    for (size_t i = 0; !status && i < result->count; i++)
        result->nodes[i].self = drawn(j.self[0][i], j.self[1][i], width);
    if (!status)
        status = flame_tree_link(result);
    if (!status && frame_texts_failed(result->texts))
        status = STATUS_NO_MEMORY;
    table_free(&j.children);
    text_free(&j.text);
    free(j.self[0]);
    free(j.self[1]);
    if (!status)
        return 0;
    flame_tree_free(result);
    return error_no_memory(err);
}
