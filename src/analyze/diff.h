/*
 * What grew: the living blocks of two states by the stack that allocated them.
 *
 * Stacks are compared by content (file, line, name; libraries and offsets of native frames without a name), because
 * addresses of two runs mean nothing to each other; ignore_lines leaves the line numbers out, for code that was edited.
 * Blocks without a stack are grouped by the reason why they have none.  A block lives if it is allocated or waits for
 * its free to complete; it counts with its own size, the requested bytes stand beside it.  By annotation, a row's one
 * frame is the name of a range.
 *
 * Rows are sorted by |delta|, largest first; ties by blocks, then by stack text.  The caller frees with diff_free();
 * the rows do not need the snapshots any more.  Cost: O(blocks + stacks) and the sort.
 */
#ifndef ANALYZE_DIFF_H
#define ANALYZE_DIFF_H

#include "analyze/diff_side.h"
#include "base/error.h"
#include "snapshot/snapshot.h"

struct diff_row {
    struct diff_amount before, after;
    uint32_t stack; /* for diff_frame() */
};

struct diff {
    struct diff_row *rows; /* every stack of either side */
    size_t count, capacity;
    struct diff_amount before, after; /* totals */
    struct stack_tree stacks;
};

int diff_states(const struct diff_side *before, const struct diff_side *after, const struct diff_options *options,
                struct diff *result, struct error *err);
void diff_free(struct diff *diff);

/* Walk a row's frames from the innermost: start with *node = row->stack; NULL after the last.  A block without a stack
 * has the one text "(allocated before recording)" or another reason. */
const char *diff_frame(const struct diff *diff, uint32_t *node, size_t *length);

static inline int64_t diff_delta(const struct diff_row *row)
{
    return (int64_t)(row->after.bytes - row->before.bytes);
}

#endif
