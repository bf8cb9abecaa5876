/* Stacks by content.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/stack_tree.h"

#include "analyze/flame.h"
#include "analyze/frame_text.h"
#include "analyze/selection.h"
#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int stack_tree_open(struct stack_tree *tree)
{
    tree->frames = strings_new();
    if (!tree->frames || array_reserve(&tree->nodes, &tree->capacity, 1, sizeof(*tree->nodes)))
        return STATUS_NO_MEMORY;
    tree->nodes[0] = (struct stack_tree_node){0, 0};
    tree->count = 1;
    return STATUS_OK;
}

void stack_tree_close(struct stack_tree *tree)
{
    free(tree->nodes);
    strings_free(tree->frames);
    table_free(&tree->index);
    text_free(&tree->text);
    memset(tree, 0, sizeof(*tree));
}

/* The node for a frame called from `parent`; NONE32: no memory. */
static uint32_t push_node(struct stack_tree *tree, uint32_t parent, uint32_t frame)
{
    uint32_t *slot = table_at(&tree->index, (uint64_t)parent << 32 | frame, NONE32);
    if (!slot)
        return NONE32;
    if (*slot == NONE32) {
        if (tree->count >= NONE32 || array_reserve(&tree->nodes, &tree->capacity, tree->count + 1, sizeof(*tree->nodes)))
            return NONE32;
        tree->nodes[tree->count] = (struct stack_tree_node){parent, frame};
        *slot = (uint32_t)tree->count++;
    }
    return *slot;
}

uint32_t stack_tree_push(struct stack_tree *tree, uint32_t parent, const char *text, size_t length)
{
    uint32_t frame = strings_intern(tree->frames, text, length);
    return frame == STRING_NONE ? NONE32 : push_node(tree, parent, frame);
}

void stack_tree_frame_text(const struct snapshot *snapshot, const struct frame *frame, bool ignore_lines, struct text *text)
{
    size_t file_length, name_length;
    const char *file = snapshot_object_text(snapshot, frame->filename, &file_length);
    const char *name = snapshot_object_text(snapshot, frame->name, &name_length);
    if (!file_length && !name_length && (frame->flags & FRAME_NATIVE)) {
        if (frame->module != NONE32)
            frame_native_name(snapshot, frame, text);
        else
            text_add(text, "(code outside every library)"); /* its address differs from run to run */
        return;
    }
    if (file_length) {
        text_append(text, file, file_length);
        text_char(text, ':');
        if (!ignore_lines)
            text_printf(text, "%" PRId64 ":", frame->line);
    }
    text_append(text, name, name_length);
}

/* The common number of each of a snapshot's frames, FRAME_LEFT_OUT for plumbing; NULL: no memory. */
static uint32_t *number_frames(struct stack_tree *tree, const struct snapshot *snapshot)
{
    uint32_t *numbers = malloc((snapshot->frame_count + 1) * sizeof(*numbers));
    for (uint32_t i = 0; numbers && i < snapshot->frame_count; i++) {
        if (tree->user_frames && selection_is_plumbing(snapshot, i)) {
            numbers[i] = FRAME_LEFT_OUT;
            continue;
        }
        text_clear(&tree->text);
        stack_tree_frame_text(snapshot, &snapshot->frames[i], tree->ignore_lines, &tree->text);
        numbers[i] = strings_intern(tree->frames, text_string(&tree->text), tree->text.length);
        if (numbers[i] == STRING_NONE || text_failed(&tree->text)) {
            free(numbers);
            return NULL;
        }
    }
    return numbers;
}

uint32_t *stack_tree_add(struct stack_tree *tree, const struct snapshot *snapshot)
{
    uint32_t *frames = number_frames(tree, snapshot);
    uint32_t *nodes = frames ? malloc(snapshot->stack_count * sizeof(*nodes)) : NULL;
    for (size_t i = 0; nodes && i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        if (i == STACK_EMPTY)
            nodes[i] = 0;
        else if (frames[node->frame] == FRAME_LEFT_OUT)
            nodes[i] = nodes[node->parent];
        else
            nodes[i] = push_node(tree, nodes[node->parent], frames[node->frame]);
        if (nodes[i] == NONE32) {
            free(nodes);
            nodes = NULL;
        }
    }
    free(frames);
    return nodes;
}

/* --- files before 2.0: the frames stand in the block's history, some as plain data --------------------------------- */

struct history {
    struct stack_tree *tree;
    struct frame_texts *texts;
    const uint32_t *stacks; /* common node by stack */
    uint32_t *nodes;        /* by block of the state; 0: none found */
    uint32_t *labels;
    size_t capacity;
};

static int take_history(void *context, const struct flame_line *line)
{
    struct history *history = context;
    if (line->leaf != FLAME_STACK || history->nodes[line->block]) /* the newest one is enough */
        return STATUS_OK;
    if (line->stack != NONE32) {
        history->nodes[line->block] = history->stacks[line->stack];
        return STATUS_OK;
    }
    size_t count = flame_line_labels(history->texts, line, &history->labels, &history->capacity);
    if (count == SIZE_MAX)
        return STATUS_NO_MEMORY;
    uint32_t node = 0;
    for (size_t i = 0; i < count && node != NONE32; i++) {
        size_t length;
        const char *text = frame_label_text(history->texts, history->labels[i], &length);
        node = stack_tree_push(history->tree, node, text, length);
    }
    history->nodes[line->block] = node;
    return node == NONE32 ? STATUS_NO_MEMORY : STATUS_OK;
}

int stack_tree_add_histories(struct stack_tree *tree, const struct snapshot *snapshot, const struct state *state,
                             const uint32_t *stacks, uint32_t **nodes)
{
    bool is_old = false;
    for (size_t i = 0; i < state->block_count && !is_old && snapshot->odd_count; i++)
        is_old = state->blocks[i].shape != SHAPE_OURS && state->blocks[i].context == CONTEXT_NONE;
    if (!is_old)
        return STATUS_OK;
    struct history history = {.tree = tree, .texts = frame_texts_new(snapshot), .stacks = stacks,
                              .nodes = calloc(state->block_count + 1, sizeof(**nodes))};
    int status = history.texts && history.nodes ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t s = 0; s < state->segment_count && !status; s++)
        status = flame_segment_lines(snapshot, state, s, take_history, &history);
    frame_texts_free(history.texts);
    free(history.labels);
    *nodes = history.nodes;
    return status;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

const char *stack_tree_frame(const struct stack_tree *tree, uint32_t *node, size_t *length)
{
    if (!*node || *node >= tree->count)
        return NULL;
    uint32_t frame = tree->nodes[*node].frame;
    *node = tree->nodes[*node].parent;
    *length = strings_length(tree->frames, frame);
    return strings_text(tree->frames, frame);
}

int stack_tree_compare(const struct stack_tree *tree, uint32_t a, uint32_t b)
{
    while (a != b) {
        size_t a_length = 0, b_length = 0;
        const char *x = stack_tree_frame(tree, &a, &a_length), *y = stack_tree_frame(tree, &b, &b_length);
        if (!x || !y)
            return x ? 1 : y ? -1 : 0;
        int order = memcmp(x, y, a_length < b_length ? a_length : b_length);
        if (order || a_length != b_length)
            return order ? order : a_length < b_length ? -1 : 1;
    }
    return 0;
}
