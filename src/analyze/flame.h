/*
 * PyTorch's two flame graphs as data: the lines of memory_viz's views, and the tree that a picture is drawn from.
 *
 *   segments   stream; segment; state of a block; its stack       memory   stream; state; stack
 *
 * A line weighs the bytes that were requested; what a block is larger than that goes to a second line, <gaps>.
 * Inactive blocks carry the request of their last use, so a gap can be negative: the lines say so as PyTorch does; in
 * the tree no weight is negative and each block weighs exactly its size.
 *
 * Visits blocks in file order.  The tree owns its labels.  Not thread safe.  Cost: one pass over the blocks; the tree
 * walks each pair of block group and stack once.
 */
#ifndef ANALYZE_FLAME_H
#define ANALYZE_FLAME_H

#include "analyze/frame_text.h"
#include "analyze/selection.h"
#include "base/error.h"
#include "snapshot/snapshot.h"

enum flame_view { FLAME_SEGMENTS, FLAME_MEMORY };
enum flame_leaf {
    FLAME_STACK,      /* by its stack or frames */
    FLAME_NO_FRAMES,  /* <non-python> */
    FLAME_NO_CONTEXT, /* <no-context>: old history without frames */
    FLAME_GAPS        /* <gaps> */
};

struct flame_line {
    const struct segment *segment;
    size_t block;      /* of the state */
    const char *state; /* the word for the block's state */
    enum flame_leaf leaf;
    uint32_t stack;    /* FLAME_STACK: node of the stack tree, or NONE32: `frames` */
    value frames;      /* a list of frames that stands in the file as plain data */
    bool is_negative;
    uint64_t bytes;    /* magnitude */
};

/* Called for each line; not 0 stops and is returned. */
typedef int flame_visit(void *context, const struct flame_line *line);

/* The lines of one segment of a state, in order.  0 or what visit returned. */
int flame_segment_lines(const struct snapshot *snapshot, const struct state *state, size_t segment, flame_visit *visit,
                        void *context);

/* Labels of a line's frames, outermost first, without those left out: how many, or SIZE_MAX without memory. */
size_t flame_line_labels(struct frame_texts *texts, const struct flame_line *line, uint32_t **labels, size_t *capacity);

/* What a block asked for, as the views count it (old blocks: their newest history). */
uint64_t flame_block_requested(const struct snapshot *snapshot, const struct state *state, size_t block);

enum flame_kind {
    FLAME_KIND_ROOT, FLAME_KIND_PROCESS, FLAME_KIND_DEVICE, FLAME_KIND_STREAM, FLAME_KIND_SEGMENT, FLAME_KIND_ALLOCATED,
    FLAME_KIND_PENDING, FLAME_KIND_INACTIVE, FLAME_KIND_PYTHON, FLAME_KIND_NATIVE, FLAME_KIND_UNKNOWN, FLAME_KIND_GAPS
};

struct flame_node {
    uint64_t total, self; /* total = self + the children's totals */
    uint32_t label;       /* of tree->texts */
    uint32_t parent;      /* NONE32: none, as for the next two */
    uint32_t first_child;
    uint32_t next_sibling; /* allocated, pending, inactive; else the largest first */
    uint32_t depth;
    uint8_t kind;         /* enum flame_kind */
    uint8_t shade;        /* of options.shades, what most of its living bytes have; FLAME_NO_SHADE: none */
};
#define FLAME_SHADES 9
#define FLAME_NO_SHADE UINT8_MAX

struct flame_tree {
    struct frame_texts *texts;
    struct flame_node *nodes; /* [0] is the root; parents come before children */
    size_t count, capacity;
    uint32_t depth;           /* of the deepest node */
    uint64_t *before, *after; /* by node: what two trees have there (flame_diff.c); NULL in others */
};

struct flame_options {
    enum flame_view view;
    const struct selection *selection; /* bound: which segments and blocks count; NULL: all */
    bool reversed;                     /* frames below a state from the innermost outwards: callers below callees */
    bool whole_blocks;                 /* a block's rounding counts to its stack, too, not to <gaps> */
    const uint8_t *shades;             /* by block, below FLAME_SHADES; or NULL */
};

/* Build; the caller frees with flame_tree_free().  The snapshot must outlive the tree.  A selection (bound; NULL: all)
 * tells which segments and blocks count. */
int flame_tree_build(const struct snapshot *snapshot, const struct state *state, enum flame_view view,
                     const struct selection *selection, struct flame_tree *tree, struct error *err);
int flame_tree_make(const struct snapshot *snapshot, const struct state *state, const struct flame_options *options,
                    struct flame_tree *tree, struct error *err);
void flame_tree_free(struct flame_tree *tree);

/* Two trees of one view as one: nodes by label.  Total is what is drawn: of each leaf the larger of both, so that what is
 * gone can be seen, too; the after's bytes; or those by which both differ.  ignore_lines: labels lose their line numbers
 * first.  The trees are only read; the caller frees *result. */
enum flame_width { FLAME_WIDTH_LARGER, FLAME_WIDTH_AFTER, FLAME_WIDTH_CHANGE };
int flame_tree_diff(const struct flame_tree *before, const struct flame_tree *after, enum flame_width width,
                    bool ignore_lines, struct flame_tree *result, struct error *err);

/* Totals and links of nodes of which parents, labels and selfs are set; flame_tree_diff()'s, too.  0 or no memory. */
int flame_tree_link(struct flame_tree *tree);

#endif
