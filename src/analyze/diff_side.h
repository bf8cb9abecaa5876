/*
 * One side of a comparison: the living blocks of a state by the stack that allocated them, or by the innermost range.
 * A block lives if it is allocated or waits for its free to complete; it counts with its own size.  Blocks without a
 * stack stand under the reason why they have none.
 */
#ifndef ANALYZE_DIFF_SIDE_H
#define ANALYZE_DIFF_SIDE_H

#include "analyze/selection.h"
#include "analyze/stack_tree.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

struct diff_options {
    bool ignore_lines;
    bool user_frames; /* frames of the plumbing are left out before stacks are compared */
    bool by_annotation; /* not by stack: by the innermost range (ranges.h) in which a block was made */
};

struct diff_side {
    const struct snapshot *snapshot;
    const struct state *state;
    const struct selection *selection; /* NULL: everything */
    bool has_process;                  /* only the blocks of this process: */
    uint16_t process;
};

struct diff_amount {
    uint64_t bytes, requested, blocks;
};

/* Called for each living block: its node of the tree.  Not 0 stops and is returned. */
typedef int diff_side_visit(void *context, uint32_t node, const struct block *block, uint64_t requested);

/* 0, STATUS_NO_MEMORY, or what visit returned. */
int diff_side_walk(struct stack_tree *tree, const struct diff_side *side, const struct diff_options *options,
                   diff_side_visit *visit, void *context);

#endif
