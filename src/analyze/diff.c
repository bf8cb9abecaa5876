/* The difference of two states by stack.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/diff.h"

#include "analyze/flame.h"
#include "analyze/frame_text.h"
#include "analyze/ranges.h"
#include "base/array.h"
#include "base/table.h"
#include "base/text.h"
#include "snapshot/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct building {
    struct diff *diff;
    const struct diff_options *options;
    struct table nodes;   /* parent, frame -> node */
    struct table row_of;  /* node -> row */
    struct text text;
};

/* The node for a frame called from `parent`; NONE32: no memory. */
static uint32_t push_node(struct building *b, uint32_t parent, uint32_t frame)
{
    uint32_t *slot = table_at(&b->nodes, (uint64_t)parent << 32 | frame, NONE32);
    if (!slot)
        return NONE32;
    if (*slot == NONE32) {
        struct diff *diff = b->diff;
        if (diff->node_count >= NONE32 ||
            array_reserve(&diff->nodes, &diff->node_capacity, diff->node_count + 1, sizeof(*diff->nodes)))
            return NONE32;
        diff->nodes[diff->node_count] = (struct diff_node){parent, frame};
        *slot = (uint32_t)diff->node_count++;
    }
    return *slot;
}

static void frame_text(struct building *b, const struct snapshot *snapshot, const struct frame *frame)
{
    struct text *text = &b->text;
    text_clear(text);
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
        if (!b->options->ignore_lines)
            text_printf(text, "%" PRId64 ":", frame->line);
    }
    text_append(text, name, name_length);
}

/* The common number of each of a snapshot's frames, FRAME_LEFT_OUT for plumbing; NULL: no memory. */
static uint32_t *number_frames(struct building *b, const struct snapshot *snapshot)
{
    uint32_t *numbers = malloc((snapshot->frame_count + 1) * sizeof(*numbers));
    for (uint32_t i = 0; numbers && i < snapshot->frame_count; i++) {
        if (b->options->user_frames && selection_is_plumbing(snapshot, i)) {
            numbers[i] = FRAME_LEFT_OUT;
            continue;
        }
        frame_text(b, snapshot, &snapshot->frames[i]);
        numbers[i] = strings_intern(b->diff->frames, text_string(&b->text), b->text.length);
        if (numbers[i] == STRING_NONE || text_failed(&b->text)) {
            free(numbers);
            return NULL;
        }
    }
    return numbers;
}

/* The common node of each of a snapshot's stacks; NULL: no memory. */
static uint32_t *number_stacks(struct building *b, const struct snapshot *snapshot)
{
    uint32_t *frames = number_frames(b, snapshot);
    uint32_t *nodes = frames ? malloc(snapshot->stack_count * sizeof(*nodes)) : NULL;
    for (size_t i = 0; nodes && i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        if (i == STACK_EMPTY)
            nodes[i] = 0;
        else if (frames[node->frame] == FRAME_LEFT_OUT)
            nodes[i] = nodes[node->parent];
        else
            nodes[i] = push_node(b, nodes[node->parent], frames[node->frame]);
        if (nodes[i] == NONE32) {
            free(nodes);
            nodes = NULL;
        }
    }
    free(frames);
    return nodes;
}

static uint32_t node_of_text(struct building *b, const char *text)
{
    uint32_t frame = strings_intern_text(b->diff->frames, text);
    return frame == STRING_NONE ? NONE32 : push_node(b, 0, frame);
}

/* Files before 2.0: the frames stand in the block's history, some as plain data. */
struct history {
    struct building *b;
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
        uint32_t frame = strings_intern(history->b->diff->frames, text, length);
        node = frame == STRING_NONE ? NONE32 : push_node(history->b, node, frame);
    }
    history->nodes[line->block] = node;
    return node == NONE32 ? STATUS_NO_MEMORY : STATUS_OK;
}

/* Common nodes of the blocks whose frames stand in a history; *nodes stays NULL where there are none such. */
static int number_histories(struct building *b, const struct diff_side *side, const uint32_t *stacks, uint32_t **nodes)
{
    const struct state *state = side->state;
    bool is_old = false;
    for (size_t i = 0; i < state->block_count && !is_old && side->snapshot->odd_count; i++)
        is_old = state->blocks[i].shape != SHAPE_OURS && state->blocks[i].context == CONTEXT_NONE;
    if (!is_old)
        return STATUS_OK;
    struct history history = {.b = b, .texts = frame_texts_new(side->snapshot), .stacks = stacks,
                              .nodes = calloc(state->block_count + 1, sizeof(**nodes))};
    int status = history.texts && history.nodes ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t s = 0; s < state->segment_count && !status; s++)
        status = flame_segment_lines(side->snapshot, state, s, take_history, &history);
    frame_texts_free(history.texts);
    free(history.labels);
    *nodes = history.nodes;
    return status;
}

static uint32_t node_without_stack(struct building *b, const struct diff_side *side, const struct block *block)
{
    if (!side->snapshot->entries.count)
        return node_of_text(b, "(no stack: recording was off)");
    if (block->flags & BLOCK_BEFORE_RECORDING)
        return node_of_text(b, "(allocated before recording)");
    if (block->context == CONTEXT_NONE)
        return node_of_text(b, "(no stack was taken)");
    return node_of_text(b, b->options->user_frames ? "(no frame of the program's own)" : "(a stack without frames)");
}

/* Ranges of one side: by entry, and which entry made a block. */
struct ranges {
    uint32_t *names;
    struct ranges_index index;
};

static int find_ranges(struct ranges *ranges, const struct snapshot *snapshot)
{
    ranges->names = ranges_innermost(snapshot);
    return ranges->names ? ranges_index_make(&ranges->index, snapshot) : STATUS_NO_MEMORY;
}

static uint32_t node_of_range(struct building *b, const struct ranges *ranges, const struct diff_side *side,
                              const struct state *state, const struct block *block)
{
    size_t entry = ranges_maker(&ranges->index, state, block), length;
    if (entry == SIZE_MAX && (block->flags & BLOCK_BEFORE_RECORDING))
        return node_of_text(b, "(allocated before recording)");
    if (entry == SIZE_MAX || ranges->names[entry] == STRING_NONE)
        return node_of_text(b, "(in no range)");
    const char *name = snapshot_object_text(side->snapshot, ranges->names[entry], &length);
    return length ? node_of_text(b, name) : node_of_text(b, "(a range without a name)");
}

static int count_block(struct building *b, uint32_t node, const struct block *block, uint64_t requested, bool is_after)
{
    struct diff *diff = b->diff;
    uint32_t *slot = table_at(&b->row_of, node, NONE32);
    if (!slot)
        return STATUS_NO_MEMORY;
    if (*slot == NONE32) {
        if (array_reserve(&diff->rows, &diff->capacity, diff->count + 1, sizeof(*diff->rows)))
            return STATUS_NO_MEMORY;
        diff->rows[diff->count] = (struct diff_row){.stack = node};
        *slot = (uint32_t)diff->count++;
    }
    struct diff_row *row = &diff->rows[*slot];
    struct diff_amount *amounts[] = {is_after ? &row->after : &row->before, is_after ? &diff->after : &diff->before};
    for (int i = 0; i < 2; i++) {
        amounts[i]->bytes += block->size;
        amounts[i]->requested += requested;
        amounts[i]->blocks++;
    }
    return STATUS_OK;
}

static bool is_living(const struct block *block)
{
    return block->state == BLOCK_ACTIVE_ALLOCATED || block->state == BLOCK_ACTIVE_PENDING_FREE;
}

/* A copy that tells which blocks are older than the trace, if that is asked or some have no stack. */
static int mark_state(const struct diff_side *side, bool needed, struct state *marked)
{
    for (size_t i = 0; i < side->state->block_count && !needed; i++)
        needed = is_living(&side->state->blocks[i]) &&
                 snapshot_context_stack(side->snapshot, side->state->blocks[i].context) == STACK_EMPTY;
    if (state_copy(marked, side->state))
        return STATUS_NO_MEMORY;
    return needed && side->snapshot->entries.count ? state_mark_before_recording(side->snapshot, marked, NULL) : STATUS_OK;
}

static int count_side(struct building *b, const struct diff_side *side, bool is_after)
{
    struct state marked = {0};
    struct ranges ranges = {0};
    uint32_t *histories = NULL, *nodes = number_stacks(b, side->snapshot);
    int status = nodes ? mark_state(side, b->options->by_annotation, &marked) : STATUS_NO_MEMORY;
    if (!status)
        status = b->options->by_annotation ? find_ranges(&ranges, side->snapshot)
                                           : number_histories(b, side, nodes, &histories);
    for (size_t i = 0; !status && i < marked.block_count; i++) {
        const struct block *block = &marked.blocks[i];
        if (!is_living(block) || (side->selection && !selection_has_block(side->selection, &marked, block)))
            continue;
        uint32_t node = nodes[snapshot_context_stack(side->snapshot, block->context)];
        if (!node && histories)
            node = histories[i];
        if (b->options->by_annotation)
            node = node_of_range(b, &ranges, side, &marked, block);
        if (!node)
            node = node_without_stack(b, side, block);
        status = node == NONE32 ? STATUS_NO_MEMORY
                                : count_block(b, node, block, flame_block_requested(side->snapshot, side->state, i), is_after);
    }
    state_free(&marked);
    free(histories);
    free(ranges.names);
    ranges_index_free(&ranges.index);
    free(nodes);
    return status;
}

/* --- order ------------------------------------------------------------------------------------------------------ */

const char *diff_frame(const struct diff *diff, uint32_t *node, size_t *length)
{
    if (!*node || *node >= diff->node_count)
        return NULL;
    uint32_t frame = diff->nodes[*node].frame;
    *node = diff->nodes[*node].parent;
    *length = strings_length(diff->frames, frame);
    return strings_text(diff->frames, frame);
}

static uint64_t magnitude(uint64_t before, uint64_t after)
{
    return after > before ? after - before : before - after;
}

static int compare_stacks(const struct diff *diff, uint32_t a, uint32_t b)
{
    while (a != b) {
        size_t a_length = 0, b_length = 0;
        const char *x = diff_frame(diff, &a, &a_length), *y = diff_frame(diff, &b, &b_length);
        if (!x || !y)
            return x ? 1 : y ? -1 : 0;
        int order = memcmp(x, y, a_length < b_length ? a_length : b_length);
        if (order || a_length != b_length)
            return order ? order : a_length < b_length ? -1 : 1;
    }
    return 0;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct diff_row *x = a, *y = b;
    uint64_t keys[][2] = {{magnitude(x->before.bytes, x->after.bytes), magnitude(y->before.bytes, y->after.bytes)},
                          {magnitude(x->before.blocks, x->after.blocks), magnitude(y->before.blocks, y->after.blocks)},
                          {x->after.bytes, y->after.bytes}};
    for (size_t i = 0; i < 3; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    return compare_stacks(context, x->stack, y->stack);
}

int diff_states(const struct diff_side *before, const struct diff_side *after, const struct diff_options *options,
                struct diff *result, struct error *err)
{
    struct building b = {.diff = result, .options = options};
    memset(result, 0, sizeof(*result));
    result->frames = strings_new();
    int status = result->frames && !array_reserve(&result->nodes, &result->node_capacity, 1, sizeof(*result->nodes))
                     ? STATUS_OK
                     : STATUS_NO_MEMORY;
    if (!status) {
        result->nodes[0] = (struct diff_node){0, 0};
        result->node_count = 1;
        status = count_side(&b, before, false);
    }
    if (!status)
        status = count_side(&b, after, true);
    table_free(&b.nodes);
    table_free(&b.row_of);
    text_free(&b.text);
    if (status) {
        diff_free(result);
        return error_no_memory(err);
    }
    if (result->count > 1)
        qsort_r(result->rows, result->count, sizeof(*result->rows), compare_rows, result);
    return STATUS_OK;
}

void diff_free(struct diff *diff)
{
    free(diff->rows);
    free(diff->nodes);
    strings_free(diff->frames);
    memset(diff, 0, sizeof(*diff));
}
