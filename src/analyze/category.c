/* Categories by rules.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/category.h"

#include "analyze/frame_text.h"
#include "analyze/no_stack.h"
#include "base/array.h"
#include "base/text.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* A rule that looks at sizes or lives, too: which stacks it could be about. */
struct category_late {
    const struct category_rule *rule;
    uint32_t category, order;
    uint8_t *stacks;
};

struct opening {
    struct categories *categories;
    struct text *lines;    /* by frame: what expressions are matched against */
    uint8_t *shown;        /* by frame */
    uint8_t *frames, *stacks, *matches; /* scratch: by frame; by stack; by stack, of the rule at hand */
    uint32_t order;        /* of the rule at hand */
    size_t late_capacity;
};

/* --- what is kept once ---------------------------------------------------------------------------------------------- */

static uint64_t once_key(const struct categories *categories, uint32_t stack, uint64_t requested)
{
    return hash_mix((uint64_t)categories->contents[stack] + 1) ^ requested;
}

static bool is_once_size(const struct category_rules *const *sets, size_t set_count, uint64_t size)
{
    for (size_t s = 0; s < set_count; s++)
        for (size_t r = 0; r < sets[s]->count; r++)
            for (size_t i = 0; sets[s]->rules[r].once && i < sets[s]->rules[r].requested_count; i++)
                if (sets[s]->rules[r].requested[i] == size)
                    return true;
    return false;
}

/* How many blocks at the end are of one stack and of a size that some rule wants only one of. */
static int count_once(struct categories *categories, const struct category_rules *const *sets, size_t set_count)
{
    const struct snapshot *snapshot = categories->snapshot;
    const struct state *end = &snapshot->end;
    categories->contents = snapshot_stack_contents(snapshot);
    if (!categories->contents)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < end->block_count; i++) {
        const struct block *block = &end->blocks[i];
        if (block->state != BLOCK_ACTIVE_ALLOCATED || !is_once_size(sets, set_count, block->requested))
            continue;
        uint32_t stack = snapshot_context_stack(snapshot, block->context);
        uint32_t *count = table_at(&categories->kept, once_key(categories, stack, block->requested), 0);
        if (!count)
            return STATUS_NO_MEMORY;
        *count += *count < 2;
    }
    return STATUS_OK;
}

/* --- frames and stacks --------------------------------------------------------------------------------------------- */

static int write_lines(struct opening *o)
{
    const struct snapshot *snapshot = o->categories->snapshot;
    for (size_t i = 0; i < snapshot->frame_count; i++) {
        const struct frame *frame = &snapshot->frames[i];
        size_t file_length, name_length, length;
        const char *file = snapshot_object_text(snapshot, frame->filename, &file_length);
        const char *name = snapshot_object_text(snapshot, frame->name, &name_length);
        text_append(&o->lines[i], file, file_length);
        text_printf(&o->lines[i], ":%lld:", (long long)frame->line);
        text_append(&o->lines[i], name, name_length);
        if (frame->module != NONE32) {
            text_char(&o->lines[i], ' ');
            const char *path = snapshot_content_text(snapshot, snapshot->modules[frame->module].path, &length);
            text_append(&o->lines[i], path, length);
        }
        if (text_failed(&o->lines[i]))
            return STATUS_NO_MEMORY;
        o->shown[i] = frame_is_shown(name, name_length, file, file_length);
    }
    return STATUS_OK;
}

/* Of each stack: does some frame match (or with `innermost` the first that is shown)?  Into o->stacks. */
static int match(struct opening *o, const char *expression, bool innermost, struct error *err)
{
    const struct snapshot *snapshot = o->categories->snapshot;
    regex_t compiled;
    int failed = regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB);
    if (failed) {
        char why[120];
        regerror(failed, &compiled, why, sizeof(why));
        return error_set(err, STATUS_USAGE, "'%.80s' is no regular expression: %s", expression, why);
    }
    for (size_t i = 0; i < snapshot->frame_count; i++)
        o->frames[i] = regexec(&compiled, text_string(&o->lines[i]), 0, NULL, 0) == 0;
    regfree(&compiled);
    o->stacks[STACK_EMPTY] = 0;
    for (size_t i = 1; i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        uint8_t callers = o->stacks[node->parent], own = o->frames[node->frame];
        o->stacks[i] = innermost ? (o->shown[node->frame] ? own : callers) : own | callers;
    }
    return STATUS_OK;
}

static int narrow(struct opening *o, const char *expression, bool innermost, bool wanted, struct error *err)
{
    if (!expression)
        return STATUS_OK;
    int status = match(o, expression, innermost, err);
    for (size_t i = 0; !status && i < o->categories->snapshot->stack_count; i++)
        o->matches[i] &= (o->stacks[i] != 0) == wanted;
    return status;
}

/* --- rules ---------------------------------------------------------------------------------------------------------- */

static int add_late(struct opening *o, const struct category_rule *rule, uint32_t category)
{
    struct categories *categories = o->categories;
    size_t count = categories->snapshot->stack_count;
    if (array_reserve(&categories->late, &o->late_capacity, categories->late_count + 1, sizeof(*categories->late)))
        return STATUS_NO_MEMORY;
    struct category_late *late = &categories->late[categories->late_count];
    *late = (struct category_late){.rule = rule, .category = category, .order = o->order, .stacks = malloc(count + 1)};
    if (!late->stacks)
        return STATUS_NO_MEMORY;
    memcpy(late->stacks, o->matches, count);
    categories->late_count++;
    return STATUS_OK;
}

static int apply(struct opening *o, const struct category_rule *rule, struct error *err)
{
    struct categories *categories = o->categories;
    size_t count = categories->snapshot->stack_count;
    uint32_t category = strings_intern_text(categories->names, rule->category);
    if (category == STRING_NONE)
        return error_no_memory(err);
    category -= 1;
    for (size_t i = 0; i < count; i++)
        o->matches[i] = (i == STACK_EMPTY) == (rule->frames == CATEGORY_FRAMES_NONE);
    int status = narrow(o, rule->frame, false, true, err);
    if (!status)
        status = narrow(o, rule->not_frame, false, false, err);
    if (!status)
        status = narrow(o, rule->innermost, true, true, err);
    if (!status && (rule->kept || rule->requested_count))
        status = add_late(o, rule, category) ? error_no_memory(err) : STATUS_OK;
    else if (!status)
        for (size_t i = 0; i < count; i++)
            if (o->matches[i] && categories->rule_of[i] == NONE32) {
                categories->rule_of[i] = o->order;
                categories->of_stack[i] = category;
            }
    o->order++;
    return status;
}

static int open_all(struct opening *o, const struct category_rules *const *sets, size_t set_count, struct error *err)
{
    struct categories *categories = o->categories;
    const struct snapshot *snapshot = categories->snapshot;
    size_t frames = snapshot->frame_count + 1, stacks = snapshot->stack_count + 1;
    categories->names = strings_new();
    categories->of_stack = calloc(stacks, sizeof(*categories->of_stack));
    categories->rule_of = malloc(stacks * sizeof(*categories->rule_of));
    o->lines = calloc(frames, sizeof(*o->lines));
    o->shown = calloc(frames, 1);
    o->frames = calloc(frames, 1);
    o->stacks = calloc(stacks, 1);
    o->matches = calloc(stacks, 1);
    if (!categories->names || !categories->of_stack || !categories->rule_of || !o->lines || !o->shown || !o->frames ||
        !o->stacks || !o->matches || strings_intern_text(categories->names, "other") == STRING_NONE ||
        strings_intern_text(categories->names, "no stack") == STRING_NONE || write_lines(o))
        return error_no_memory(err);
    memset(categories->rule_of, 0xff, stacks * sizeof(*categories->rule_of));
    int status = STATUS_OK;
    for (size_t s = 0; s < set_count && !status; s++) {
        for (size_t r = 0; r < sets[s]->count && !status; r++)
            status = apply(o, &sets[s]->rules[r], err);
        if (sets[s]->replaces)
            break;
    }
    return status;
}

/* Whether a context without frames is a thread's or no stack at all is worked out once. */
static int mark_threads(struct categories *categories, struct error *err)
{
    const struct snapshot *snapshot = categories->snapshot;
    struct no_stacks reasons;
    if (no_stacks_open(snapshot, &reasons, err))
        return STATUS_NO_MEMORY;
    categories->is_thread = reasons.allocations ? calloc(snapshot->context_count + 1, 1) : NULL;
    for (uint32_t i = 0; categories->is_thread && i < snapshot->context_count; i++)
        categories->is_thread[i] = no_stack_is_threads(&reasons, i);
    bool failed = reasons.allocations && !categories->is_thread;
    no_stacks_close(&reasons);
    return failed ? error_no_memory(err) : STATUS_OK;
}

int categories_open(const struct snapshot *snapshot, const struct category_rules *const *sets, size_t set_count,
                    struct categories *categories, struct error *err)
{
    struct opening o = {.categories = categories};
    *categories = (struct categories){.snapshot = snapshot};
    int status = open_all(&o, sets, set_count, err);
    if (!status)
        status = mark_threads(categories, err);
    if (!status && count_once(categories, sets, set_count))
        status = error_no_memory(err);
    for (size_t i = 0; o.lines && i < snapshot->frame_count; i++)
        text_free(&o.lines[i]);
    free(o.lines);
    free(o.shown);
    free(o.frames);
    free(o.stacks);
    free(o.matches);
    if (status)
        categories_close(categories);
    return status;
}

void categories_close(struct categories *categories)
{
    for (size_t i = 0; i < categories->late_count; i++)
        free(categories->late[i].stacks);
    free(categories->late);
    strings_free(categories->names);
    free(categories->of_stack);
    free(categories->rule_of);
    free(categories->is_thread);
    free(categories->contents);
    table_free(&categories->kept);
    *categories = (struct categories){0};
}

/* --- questions ------------------------------------------------------------------------------------------------------ */

static bool is_asked(const struct categories *categories, const struct category_rule *rule, uint32_t stack,
                     const struct category_subject *subject)
{
    bool fits = !rule->requested_count;
    for (size_t i = 0; i < rule->requested_count && !fits; i++)
        fits = rule->requested[i] == subject->requested;
    return fits && (!rule->kept || subject->is_kept) &&
           (!rule->once || table_get(&categories->kept, once_key(categories, stack, subject->requested), 0) < 2);
}

uint32_t category_of(const struct categories *categories, const struct category_subject *subject)
{
    uint32_t stack = snapshot_context_stack(categories->snapshot, subject->context);
    if (stack == STACK_EMPTY && (subject->context >= categories->snapshot->context_count || !categories->is_thread ||
                                 !categories->is_thread[subject->context]))
        return CATEGORY_NO_STACK;
    for (size_t i = 0; i < categories->late_count && categories->late[i].order < categories->rule_of[stack]; i++)
        if (categories->late[i].stacks[stack] && is_asked(categories, categories->late[i].rule, stack, subject))
            return categories->late[i].category;
    return categories->of_stack[stack];
}

uint32_t category_count(const struct categories *categories)
{
    return strings_count(categories->names) - 1;
}

const char *category_name(const struct categories *categories, uint32_t category)
{
    return strings_text(categories->names, category + 1);
}
