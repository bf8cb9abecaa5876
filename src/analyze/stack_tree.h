/*
 * Stacks of one or several snapshots as nodes of one tree, by content: file, line, name; libraries and offsets of native
 * frames without a name.  Addresses of two runs mean nothing to each other and take no part.
 *
 * Node 0 is the empty stack; a node reads from the innermost frame towards the outermost.  Callers have lower numbers
 * than what they call.  Owns its texts and needs no snapshot once made.  Cost: one text a frame, one look-up a stack.
 */
#ifndef ANALYZE_STACK_TREE_H
#define ANALYZE_STACK_TREE_H

#include "base/strings.h"
#include "base/table.h"
#include "base/text.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

struct stack_tree_node {
    uint32_t parent, frame; /* frame: of frames */
};

struct stack_tree {
    struct stack_tree_node *nodes;
    size_t count, capacity;
    struct strings *frames;
    struct table index; /* parent, frame -> node */
    struct text text;
    bool ignore_lines;  /* set before stacks are added */
    bool user_frames;   /* frames of the plumbing are left out */
};

int stack_tree_open(struct stack_tree *tree); /* of a zeroed struct, or one with the options set; STATUS_NO_MEMORY */
void stack_tree_close(struct stack_tree *tree);

/* The node of each of a snapshot's stacks; the caller frees.  NULL: no memory. */
uint32_t *stack_tree_add(struct stack_tree *tree, const struct snapshot *snapshot);

/* The same of the blocks of a state whose frames stand in a history (files before 2.0), 0 where there is none; stacks is
 * what stack_tree_add() gave.  *nodes stays NULL where no block has one. */
int stack_tree_add_histories(struct stack_tree *tree, const struct snapshot *snapshot, const struct state *state,
                             const uint32_t *stacks, uint32_t **nodes);

/* The node of one frame of this text, called from `parent`; NONE32: no memory. */
uint32_t stack_tree_push(struct stack_tree *tree, uint32_t parent, const char *text, size_t length);

/* Walk frames from the innermost: start with *node = the stack's; NULL after the last. */
const char *stack_tree_frame(const struct stack_tree *tree, uint32_t *node, size_t *length);

/* By the frames' texts, from the innermost. */
int stack_tree_compare(const struct stack_tree *tree, uint32_t a, uint32_t b);

/* The text of one frame of a snapshot, as the tree has it, appended. */
void stack_tree_frame_text(const struct snapshot *snapshot, const struct frame *frame, bool ignore_lines, struct text *text);

#endif
