/* The keys that report.c groups by: an allocation's row.  A part of report.h. */
#ifndef ANALYZE_REPORT_KEY_H
#define ANALYZE_REPORT_KEY_H

#include "analyze/category.h"
#include "analyze/no_stack.h"
#include "analyze/owner.h"
#include "analyze/report.h"

/* What is grouped: a living block, or an allocation of the trace. */
struct report_item {
    uint32_t context;
    uint64_t entry;   /* that made it, UINT64_MAX */
    uint64_t bytes, requested;
    int64_t stream;
    uint32_t pool;    /* NONE32 */
    size_t block;     /* of the state, SIZE_MAX */
    uint16_t process, device;
    bool is_before, is_kept, knows_stream;
};

struct report_keys {
    const struct snapshot *snapshot;
    const struct report_options *options;
    struct stack_tree *tree;
    uint32_t *stacks;     /* stack -> node of the tree: the stack, or the text that stands for it; NONE32: not made yet */
    uint32_t *histories;  /* block -> node; NULL */
    uint32_t *told;       /* stack -> the frame that says whose it is, NONE32 */
    uint32_t *ranges;     /* entry -> name */
    struct no_stacks reasons;
    struct owners owners;
    struct categories categories;
    struct table numbers; /* any other key -> node */
    struct text text;
};

int report_keys_open(struct report_keys *keys, const struct snapshot *snapshot, const struct state *state,
                     const struct report_options *options, struct stack_tree *tree, struct error *err);
void report_keys_close(struct report_keys *keys);
uint32_t report_key(struct report_keys *keys, const struct report_item *item); /* NONE32: no memory */

#endif
