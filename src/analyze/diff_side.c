/* The living blocks of one side of a comparison.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/diff_side.h"

#include "analyze/flame.h"
#include "analyze/no_stack.h"
#include "analyze/ranges.h"
#include "snapshot/state.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    struct stack_tree *tree;
    const struct diff_side *side;
    const struct diff_options *options;
    struct state marked;
    struct no_stacks reasons;
    uint32_t *stacks, *histories; /* common nodes */
    uint32_t *range_names;        /* by entry */
    struct ranges_index ranges;
};

static uint32_t node_of_text(struct walk *walk, const char *text)
{
    return stack_tree_push(walk->tree, 0, text, strlen(text));
}

static uint32_t node_without_stack(struct walk *walk, const struct block *block)
{
    const struct segment *segment = &walk->marked.segments[block->segment];
    return node_of_text(walk, no_stack_text(no_stack_of(&walk->reasons, segment->process, segment->device, block->context,
                                                        block->flags & BLOCK_BEFORE_RECORDING)));
}

static uint32_t node_of_range(struct walk *walk, const struct block *block)
{
    size_t entry = ranges_maker(&walk->ranges, &walk->marked, block), length;
    if (entry == SIZE_MAX && (block->flags & BLOCK_BEFORE_RECORDING))
        return node_of_text(walk, no_stack_text(NO_STACK_BEFORE));
    if (entry == SIZE_MAX || walk->range_names[entry] == STRING_NONE)
        return node_of_text(walk, "(in no range)");
    const char *name = snapshot_object_text(walk->side->snapshot, walk->range_names[entry], &length);
    return length ? node_of_text(walk, name) : node_of_text(walk, "(a range without a name)");
}

static uint32_t node_of_block(struct walk *walk, size_t number)
{
    const struct block *block = &walk->marked.blocks[number];
    if (walk->options->by_annotation)
        return node_of_range(walk, block);
    uint32_t node = walk->stacks[snapshot_context_stack(walk->side->snapshot, block->context)];
    if (!node && walk->histories)
        node = walk->histories[number];
    return node ? node : node_without_stack(walk, block);
}

static bool is_living(const struct block *block)
{
    return block->state == BLOCK_ACTIVE_ALLOCATED || block->state == BLOCK_ACTIVE_PENDING_FREE;
}

/* A copy that tells which blocks are older than the trace, if that is asked or some have no stack. */
static int mark_state(struct walk *walk)
{
    const struct snapshot *snapshot = walk->side->snapshot;
    const struct state *state = walk->side->state;
    bool needed = walk->options->by_annotation;
    for (size_t i = 0; i < state->block_count && !needed; i++)
        needed = is_living(&state->blocks[i]) && snapshot_context_stack(snapshot, state->blocks[i].context) == STACK_EMPTY;
    if (state_copy(&walk->marked, state))
        return STATUS_NO_MEMORY;
    return needed && snapshot->entries.count ? state_mark_before_recording(snapshot, &walk->marked, NULL) : STATUS_OK;
}

static int prepare(struct walk *walk)
{
    const struct diff_side *side = walk->side;
    walk->stacks = stack_tree_add(walk->tree, side->snapshot);
    if (!walk->stacks || mark_state(walk) || no_stacks_open(side->snapshot, &walk->reasons, NULL))
        return STATUS_NO_MEMORY;
    if (!walk->options->by_annotation)
        return stack_tree_add_histories(walk->tree, side->snapshot, side->state, walk->stacks, &walk->histories);
    walk->range_names = ranges_innermost(side->snapshot);
    return walk->range_names ? ranges_index_make(&walk->ranges, side->snapshot) : STATUS_NO_MEMORY;
}

static bool is_chosen(const struct walk *walk, const struct block *block)
{
    const struct diff_side *side = walk->side;
    return is_living(block) && (!side->has_process || walk->marked.segments[block->segment].process == side->process) &&
           (!side->selection || selection_has_block(side->selection, &walk->marked, block));
}

int diff_side_walk(struct stack_tree *tree, const struct diff_side *side, const struct diff_options *options,
                   diff_side_visit *visit, void *context)
{
    struct walk walk = {.tree = tree, .side = side, .options = options};
    int status = prepare(&walk);
    for (size_t i = 0; !status && i < walk.marked.block_count; i++) {
        const struct block *block = &walk.marked.blocks[i];
        if (!is_chosen(&walk, block))
            continue;
        uint32_t node = node_of_block(&walk, i);
        status = node == NONE32 ? STATUS_NO_MEMORY
                                : visit(context, node, block, flame_block_requested(side->snapshot, side->state, i));
    }
    state_free(&walk.marked);
    no_stacks_close(&walk.reasons);
    ranges_index_free(&walk.ranges);
    free(walk.stacks);
    free(walk.histories);
    free(walk.range_names);
    return status;
}
