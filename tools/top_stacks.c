/* The stacks that hold most.  Uses analyze, symbol, snapshot and base. */
#include "tools/top_stacks.h"

#include "analyze/frame_text.h"
#include "analyze/selection.h"
#include "base/array.h"
#include "symbol/symbolize.h"

#include <stdlib.h>
#include <string.h>

/* What lives under one stack. */
struct held {
    uint32_t stack;
    uint64_t bytes, blocks;
};

void top_names_free(struct top_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    table_free(&names->known);
    memset(names, 0, sizeof(*names));
}

static int compare_held(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* Living blocks by stack, the biggest first.  NULL: no memory. */
static struct held *add_up(const struct snapshot *snapshot, size_t *count)
{
    struct table places = {0};
    struct held *list = malloc((snapshot->stack_count + 1) * sizeof(*list));
    *count = 0;
    for (size_t i = 0; i < snapshot->end.block_count && list; i++) {
        const struct block *block = &snapshot->end.blocks[i];
        if (block->state == BLOCK_INACTIVE)
            continue;
        uint32_t stack = snapshot_context_stack(snapshot, block->context);
        uint32_t *place = table_at(&places, stack, NONE32);
        if (!place) {
            free(list);
            list = NULL;
            break;
        }
        if (*place == NONE32) {
            *place = (uint32_t)*count;
            list[(*count)++] = (struct held){.stack = stack};
        }
        list[*place].bytes += block->size;
        list[*place].blocks++;
    }
    table_free(&places);
    if (list && *count)
        qsort(list, *count, sizeof(*list), compare_held);
    return list;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static uint64_t text_hash(const struct snapshot *snapshot, uint32_t object)
{
    size_t length;
    const char *text = snapshot_object_text(snapshot, object, &length);
    return hash_bytes(text, length);
}

/* By content: numbers of stacks are not the same from one look to the next. */
static uint64_t stack_hash(const struct snapshot *snapshot, uint32_t stack)
{
    uint64_t hash = (uint64_t)snapshot->processes[0].pid;
    for (; stack != STACK_EMPTY; stack = snapshot->stacks[stack].parent) {
        const struct frame *frame = &snapshot->frames[snapshot->stacks[stack].frame];
        uint64_t module = frame->module == NONE32 ? 0 : snapshot->modules[frame->module].load_address + 1;
        hash = hash_mix(hash ^ hash_mix(frame->offset ^ hash_mix(module)));
        hash = hash_mix(hash ^ (uint64_t)frame->line ^ text_hash(snapshot, frame->name) << 1 ^
                        text_hash(snapshot, frame->filename));
    }
    return hash;
}

static uint32_t copy_text(struct snapshot *to, const struct snapshot *from, uint32_t object)
{
    size_t length;
    if (object == STRING_NONE)
        return STRING_NONE;
    const char *text = snapshot_object_text(from, object, &length);
    return snapshot_shared_string(to, text, length);
}

/* A snapshot of one stack: looking names up costs as much as there are frames. */
static struct snapshot *copy_stack(const struct snapshot *from, const uint32_t *frames, size_t depth)
{
    struct snapshot *to = snapshot_new(SOURCE_RECORDED);
    uint32_t stack = STACK_EMPTY;
    for (size_t i = 0; i < from->module_count && to; i++) {
        struct module module = from->modules[i];
        size_t length;
        const char *path = snapshot_content_text(from, module.path, &length);
        module.path = snapshot_string(to, path, length);
        snapshot_add_module(to, &module);
    }
    for (size_t i = 0; i < depth && to; i++) { /* outermost first */
        struct frame frame = from->frames[frames[i]];
        frame.name = copy_text(to, from, frame.name);
        frame.filename = copy_text(to, from, frame.filename);
        frame.shape = SHAPE_OURS;
        uint32_t number = snapshot_add_frame(to, &frame);
        stack = number == NONE32 ? NONE32 : snapshot_push_frame(to, stack, number);
        if (stack == NONE32)
            break;
    }
    if (to && to->module_count == from->module_count && stack != NONE32 && snapshot_add_context(to, stack) != NONE32) {
        to->processes[0].pid = from->processes[0].pid; /* for its perf map */
        return to;
    }
    snapshot_free(to);
    return NULL;
}

/* What a reader looks for in a stack, the best first. */
enum wish { WISH_USER, WISH_NAME, WISH_ANY, WISHES };

static bool fulfils(const struct snapshot *snapshot, uint32_t number, enum wish wish)
{
    const struct frame *frame = &snapshot->frames[number];
    bool has_name = frame->name != STRING_NONE && (frame->flags & (FRAME_NATIVE | FRAME_SYMBOLIZED)) != FRAME_NATIVE;
    return wish == WISH_ANY || (has_name && (wish == WISH_NAME || !selection_is_plumbing(snapshot, number)));
}

/* The innermost frame that the reader looks for. */
static char *innermost(const struct snapshot *snapshot)
{
    struct frame_texts *texts = frame_texts_new(snapshot);
    char *where = NULL;
    for (int wish = 0; wish < WISHES && texts; wish++) {
        for (uint32_t at = snapshot->contexts[0]; at != STACK_EMPTY && !where; at = snapshot->stacks[at].parent) {
            uint32_t frame = snapshot->stacks[at].frame, label = frame_label(texts, frame);
            if (fulfils(snapshot, frame, (enum wish)wish) && label != FRAME_LEFT_OUT && !frame_texts_failed(texts))
                where = strdup(frame_label_text(texts, label, NULL));
        }
    }
    if (texts && !where && !frame_texts_failed(texts))
        where = strdup(snapshot->contexts[0] == STACK_EMPTY ? "(no stack)" : "(frames of the framework only)");
    frame_texts_free(texts);
    return where;
}

static char *look_up(const struct snapshot *snapshot, uint32_t stack)
{
    uint32_t *frames = NULL;
    size_t capacity = 0, depth = stack_frames(snapshot, stack, &frames, &capacity);
    struct snapshot *one = depth == SIZE_MAX ? NULL : copy_stack(snapshot, frames, depth);
    char *where = NULL;
    if (one && !symbolize_snapshot(one, NULL, NULL))
        where = innermost(one);
    snapshot_free(one);
    free(frames);
    return where;
}

static const char *name_of(struct top_names *names, const struct snapshot *snapshot, uint32_t stack)
{
    uint64_t hash = stack_hash(snapshot, stack);
    uint32_t known = table_get(&names->known, hash, NONE32);
    if (known != NONE32)
        return names->texts[known];
    char *where = look_up(snapshot, stack);
    if (!where || array_reserve(&names->texts, &names->capacity, names->count + 1, sizeof(*names->texts)) ||
        table_set(&names->known, hash, (uint32_t)names->count)) {
        free(where);
        return NULL;
    }
    names->texts[names->count++] = where;
    return where;
}

/* --- the biggest of several processes ----------------------------------------------------------------------------- */

size_t top_stacks_add(struct top_names *names, const struct snapshot *snapshot, struct top_stack *stacks, size_t count,
                      size_t most)
{
    size_t held_count;
    struct held *held = most ? add_up(snapshot, &held_count) : NULL;
    if (!held)
        return most ? SIZE_MAX : 0;
    for (size_t i = 0; i < held_count && i < most && count != SIZE_MAX; i++) {
        size_t at = count < most ? count : most;
        while (at > 0 && stacks[at - 1].bytes < held[i].bytes)
            at--;
        if (at == most)
            break;
        const char *where = name_of(names, snapshot, held[i].stack);
        count = count < most ? count + 1 : most;
        memmove(&stacks[at + 1], &stacks[at], (count - at - 1) * sizeof(*stacks));
        stacks[at] = (struct top_stack){snapshot->processes[0].pid, held[i].bytes, held[i].blocks, where};
        if (!where)
            count = SIZE_MAX;
    }
    free(held);
    return count;
}
