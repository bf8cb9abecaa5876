/* Keys of reports.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/report_key.h"

#include "analyze/frame_text.h"
#include "analyze/ranges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of each stack the innermost frame of the program's own, or else the innermost one. */
static int find_told(struct report_keys *keys)
{
    const struct snapshot *snapshot = keys->snapshot;
    uint8_t *plumbing = malloc(snapshot->frame_count + 1), *has_own = malloc(snapshot->stack_count + 1);
    keys->told = malloc((snapshot->stack_count + 1) * sizeof(*keys->told));
    bool failed = !plumbing || !has_own || !keys->told;
    for (uint32_t i = 0; !failed && i < snapshot->frame_count; i++)
        plumbing[i] = selection_is_plumbing(snapshot, i);
    for (size_t i = 0; !failed && i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        bool is_root = i == STACK_EMPTY;
        bool callers = !is_root && plumbing[node->frame] && has_own[node->parent];
        has_own[i] = !is_root && (!plumbing[node->frame] || has_own[node->parent]);
        keys->told[i] = is_root ? NONE32 : callers ? keys->told[node->parent] : node->frame;
    }
    free(plumbing);
    free(has_own);
    return failed ? STATUS_NO_MEMORY : STATUS_OK;
}

int report_keys_open(struct report_keys *keys, const struct snapshot *snapshot, const struct state *state,
                     const struct report_options *options, struct stack_tree *tree, struct error *err)
{
    *keys = (struct report_keys){.snapshot = snapshot, .options = options, .tree = tree};
    enum report_group group = options->group;
    int status = no_stacks_open(snapshot, &keys->reasons, err);
    if (!status && group == REPORT_CATEGORY)
        return categories_open(snapshot, options->rules, options->rule_sets, &keys->categories, err);
    if (!status && (group == REPORT_OWNER || group == REPORT_LIBRARY))
        status = owners_open(snapshot, &keys->owners, err);
    if (!status && (group == REPORT_FUNCTION || group == REPORT_FILE) && find_told(keys))
        status = error_no_memory(err);
    if (!status && group == REPORT_ANNOTATION && !(keys->ranges = ranges_innermost(snapshot)))
        status = error_no_memory(err);
    if (status)
        return status;
    if (group == REPORT_STACK) {
        keys->stacks = stack_tree_add(tree, snapshot);
        if (!keys->stacks || stack_tree_add_histories(tree, snapshot, state, keys->stacks, &keys->histories))
            return error_no_memory(err);
        return STATUS_OK;
    }
    keys->stacks = malloc((snapshot->stack_count + 1) * sizeof(*keys->stacks));
    if (!keys->stacks)
        return error_no_memory(err);
    memset(keys->stacks, 0xff, (snapshot->stack_count + 1) * sizeof(*keys->stacks));
    return STATUS_OK;
}

void report_keys_close(struct report_keys *keys)
{
    no_stacks_close(&keys->reasons);
    owners_close(&keys->owners);
    if (keys->categories.snapshot)
        categories_close(&keys->categories);
    table_free(&keys->numbers);
    text_free(&keys->text);
    free(keys->stacks);
    free(keys->histories);
    free(keys->told);
    free(keys->ranges);
}

static uint32_t of_text(struct report_keys *keys, const char *text)
{
    return stack_tree_push(keys->tree, 0, text, strlen(text));
}

static uint32_t of_reason(struct report_keys *keys, const struct report_item *item)
{
    return of_text(keys, no_stack_text(no_stack_of(&keys->reasons, item->process, item->device, item->context, item->is_before)));
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The text that stands for a stack, into keys->text. */
static void write_told(struct report_keys *keys, uint32_t stack)
{
    const struct snapshot *snapshot = keys->snapshot;
    struct text *text = &keys->text;
    size_t length;
    text_clear(text);
    if (keys->options->group == REPORT_OWNER || keys->options->group == REPORT_LIBRARY) {
        uint32_t number = keys->owners.frame_of[stack];
        uint32_t module = number == NONE32 ? NONE32 : snapshot->frames[number].module;
        if (keys->options->group == REPORT_LIBRARY && module != NONE32)
            text_add(text, last_part(snapshot_content_text(snapshot, snapshot->modules[module].path, NULL)));
        else
            text_add(text, owner_name(&keys->owners, keys->owners.of_stack[stack]));
        return;
    }
    const struct frame *frame = &snapshot->frames[keys->told[stack]];
    uint32_t object = keys->options->group == REPORT_FILE ? frame->filename : frame->name;
    const char *told = snapshot_object_text(snapshot, object, &length);
    if (length)
        text_append(text, told, length);
    else if (frame->module != NONE32 && keys->options->group == REPORT_FILE)
        text_add(text, snapshot_content_text(snapshot, snapshot->modules[frame->module].path, NULL));
    else if (frame->flags & FRAME_NATIVE)
        frame_native_name(snapshot, frame, text);
    else
        text_add(text, "(unknown)");
}

static uint32_t of_stack(struct report_keys *keys, const struct report_item *item)
{
    uint32_t stack = snapshot_context_stack(keys->snapshot, item->context);
    if (keys->options->group == REPORT_STACK) {
        uint32_t node = keys->stacks[stack];
        if (!node && keys->histories && item->block != SIZE_MAX)
            node = keys->histories[item->block];
        return node ? node : of_reason(keys, item);
    }
    if (stack == STACK_EMPTY)
        return of_reason(keys, item);
    if (keys->stacks[stack] == NONE32) {
        write_told(keys, stack);
        if (!text_failed(&keys->text))
            keys->stacks[stack] = stack_tree_push(keys->tree, 0, text_string(&keys->text), keys->text.length);
    }
    return keys->stacks[stack];
}

static void write_number(struct report_keys *keys, const struct report_item *item)
{
    const struct snapshot *snapshot = keys->snapshot;
    struct text *text = &keys->text;
    text_clear(text);
    switch (keys->options->group) {
    case REPORT_STREAM:
        if (item->knows_stream)
            text_printf(text, "%" PRId64, item->stream);
        else
            text_add(text, "(unknown)");
        break;
    case REPORT_SIZE:
        text_printf(text, "%" PRIu64, item->bytes);
        break;
    case REPORT_POOL:
        if (item->pool < snapshot->pool_count)
            text_printf(text, "%" PRId64 ":%" PRId64, snapshot->pools[item->pool].id[0], snapshot->pools[item->pool].id[1]);
        else
            text_add(text, "(unknown)");
        break;
    default:
        if (snapshot->process_count > 1 && item->process < snapshot->process_count)
            text_printf(text, "%" PRId64 ":", snapshot->processes[item->process].pid);
        text_printf(text, "%u", item->device);
    }
}

static uint32_t of_number(struct report_keys *keys, const struct report_item *item)
{
    enum report_group group = keys->options->group;
    uint64_t key = group == REPORT_STREAM && item->knows_stream ? (uint64_t)item->stream
                   : group == REPORT_STREAM                     ? UINT64_MAX - 1
                   : group == REPORT_SIZE                       ? item->bytes
                   : group == REPORT_POOL                       ? item->pool
                                                                : (uint64_t)item->process << 16 | item->device;
    uint32_t *node = table_at(&keys->numbers, key, NONE32);
    if (!node)
        return NONE32;
    if (*node == NONE32) {
        write_number(keys, item);
        if (!text_failed(&keys->text))
            *node = stack_tree_push(keys->tree, 0, text_string(&keys->text), keys->text.length);
    }
    return *node;
}

static uint32_t of_range(struct report_keys *keys, const struct report_item *item)
{
    size_t length;
    if (item->entry == UINT64_MAX)
        return of_text(keys, item->is_before ? no_stack_text(NO_STACK_BEFORE) : "(in no range)");
    if (keys->ranges[item->entry] == STRING_NONE)
        return of_text(keys, "(in no range)");
    const char *name = snapshot_object_text(keys->snapshot, keys->ranges[item->entry], &length);
    return length ? stack_tree_push(keys->tree, 0, name, length) : of_text(keys, "(a range without a name)");
}

uint32_t report_key(struct report_keys *keys, const struct report_item *item)
{
    struct category_subject subject = {item->context, item->requested, item->is_kept};
    switch (keys->options->group) {
    case REPORT_STREAM:
    case REPORT_SIZE:
    case REPORT_POOL:
    case REPORT_DEVICE:
        return of_number(keys, item);
    case REPORT_ANNOTATION:
        return of_range(keys, item);
    case REPORT_CATEGORY:
        return of_text(keys, category_name(&keys->categories, category_of(&keys->categories, &subject)));
    default:
        return of_stack(keys, item);
    }
}
