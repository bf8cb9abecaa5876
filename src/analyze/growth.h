/*
 * Three or more states compared by stack: in states that follow one another, what only grows; in states that should be
 * alike (ranks), who stands out.  Sides and stacks are those of diff.h.  The caller frees with growth_free(); the rows do
 * not need the snapshots any more.  Cost: O(blocks + stacks) of all sides, 8 bytes a row and side.
 */
#ifndef ANALYZE_GROWTH_H
#define ANALYZE_GROWTH_H

#include "analyze/diff_side.h"
#include "base/error.h"

struct growth_row {
    size_t first;      /* its bytes of side s: growth->bytes[first + s] */
    uint64_t rises, falls; /* steps from one side to the next */
    uint64_t median;   /* of the sides' bytes; of an even number of sides the lower one */
    uint64_t apart;    /* how far from it the side is that stands out */
    size_t side;       /* that side: the first of those that are farthest */
    uint32_t stack;
};

struct growth {
    struct growth_row *rows;
    size_t count, capacity, sides;
    uint64_t *bytes;
    size_t bytes_capacity;
    struct diff_amount *totals; /* by side */
    struct stack_tree stacks;
};

/* Rows in the order of what only grows: those that rise at each step by their growth, then those that rise at fewer and
 * never fall, the others last. */
int growth_make(const struct diff_side *sides, size_t count, const struct diff_options *options, struct growth *growth,
                struct error *err);
void growth_order_apart(struct growth *growth); /* the farthest from the median first */
void growth_free(struct growth *growth);

static inline const uint64_t *growth_bytes(const struct growth *growth, const struct growth_row *row)
{
    return &growth->bytes[row->first];
}

/* It never shrinks, and is larger at the end. */
static inline bool growth_only_grows(const struct growth_row *row)
{
    return row->rises && !row->falls;
}

#endif
