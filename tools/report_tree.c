/* The tree of a report.  Uses analyze, render and base. */
#include "tools/report_tree.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define DEEPEST_INDENT 40u

struct branch {
    uint64_t bytes, self, count;
    uint32_t node, depth;
    uint32_t first, next; /* child, sibling: the largest first; 0: none */
};

struct report_tree {
    const struct report *report;
    struct branch *branches; /* by node */
};

static int compare_branches(const void *a, const void *b)
{
    const struct branch *x = *(struct branch *const *)a, *y = *(struct branch *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node; /* callers come first */
}

/* Callers have lower numbers than what they call. */
static void add_up(const struct report *report, struct branch *branches)
{
    size_t count = report->stacks.count;
    for (size_t i = 0; i < report->count; i++) {
        struct branch *branch = &branches[report->rows[i].stack];
        branch->self += report->rows[i].amount.bytes;
        branch->bytes += report->rows[i].amount.bytes;
        branch->count += report->rows[i].amount.count;
    }
    for (size_t i = count; i-- > 1;) {
        branches[report->stacks.nodes[i].parent].bytes += branches[i].bytes;
        branches[report->stacks.nodes[i].parent].count += branches[i].count;
    }
    for (size_t i = 1; i < count; i++)
        branches[i].depth = branches[report->stacks.nodes[i].parent].depth + 1;
}

static void branch_out(struct emitter *emitter, const struct report *report, const struct branch *branch, struct text *line)
{
    uint32_t node = branch->node;
    size_t length = 0;
    const char *frame = report_frame(report, &node, &length);
    text_clear(line);
    for (uint32_t i = 1; !emitter_is_json(emitter) && i < branch->depth && i < DEEPEST_INDENT; i++)
        text_add(line, "  ");
    text_append(line, frame ? frame : "", length);
    emitter_row(emitter);
    emitter_size(emitter, "bytes", branch->bytes);
    emitter_percent(emitter, "percent", report->total.bytes ? 100.0 * (double)branch->bytes / (double)report->total.bytes : 0);
    emitter_size(emitter, "self", branch->self);
    emitter_count(emitter, "count", branch->count);
    emitter_count(emitter, "depth", branch->depth);
    emitter_string(emitter, "frame", text_string(line), line->length);
}

/* Depth first, without recursion: a stack may be as deep as a file says. */
static void walk(struct emitter *emitter, const struct report *report, const struct branch *branches)
{
    struct text line = {0};
    for (uint32_t at = branches[0].first; at;) {
        branch_out(emitter, report, &branches[at], &line);
        if (branches[at].first) {
            at = branches[at].first;
            continue;
        }
        while (at && !branches[at].next)
            at = report->stacks.nodes[at].parent;
        at = branches[at].next;
    }
    text_free(&line);
}

struct report_tree *report_tree_new(const struct report *report, uint64_t limit)
{
    size_t count = report->stacks.count, listed = 0;
    struct report_tree *tree = calloc(1, sizeof(*tree));
    struct branch **order = malloc((count + 1) * sizeof(struct branch *));
    struct branch *branches = calloc(count + 1, sizeof(*branches));
    if (!tree || !order || !branches) {
        free(tree);
        free(order);
        free(branches);
        return NULL;
    }
    *tree = (struct report_tree){report, branches};
    add_up(report, branches);
    for (size_t i = 1; i < count; i++) {
        branches[i].node = (uint32_t)i;
        if (branches[i].count)
            order[listed++] = &branches[i];
    }
    if (listed > 1)
        qsort(order, listed, sizeof(struct branch *), compare_branches);
    for (size_t i = listed < limit ? listed : (size_t)limit; i-- > 0;) { /* the smallest goes in first */
        struct branch *caller = &branches[report->stacks.nodes[order[i]->node].parent];
        order[i]->next = caller->first;
        caller->first = order[i]->node;
    }
    free(order);
    return tree;
}

void report_tree_free(struct report_tree *tree)
{
    if (tree)
        free(tree->branches);
    free(tree);
}

void report_tree_out(struct emitter *emitter, const struct report_tree *tree)
{
    static const struct emitter_column columns[] = {
        {"bytes", NULL, EMITTER_NUMBER}, {"percent", "%", EMITTER_NUMBER}, {"self", NULL, EMITTER_NUMBER},
        {"count", NULL, EMITTER_NUMBER}, {"depth", NULL, EMITTER_NUMBER},  {"frame", NULL, EMITTER_STRING},
    };
    emitter_begin_table(emitter, "tree", "", columns, sizeof(columns) / sizeof(columns[0]));
    walk(emitter, tree->report, tree->branches);
    emitter_end(emitter);
}
