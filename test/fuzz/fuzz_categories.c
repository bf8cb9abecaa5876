/*
 * Any bytes as rules of categories: refused with a message, or read as rules that hold together and that can be applied
 * to a snapshot.
 */
#include "analyze/category.h"
#include "format/categories_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A stack of two frames, one without frames, none at all. */
static struct snapshot *example(uint32_t contexts[2])
{
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    uint32_t stack = STACK_EMPTY;
    static const char *const names[] = {"forward", "train"};
    for (int64_t i = 1; snapshot && i >= 0; i--) {
        struct frame frame = {.name = snapshot_shared_string(snapshot, names[i], strlen(names[i])),
                              .filename = snapshot_shared_string(snapshot, "/torch/nn/modules/a.py", 22), .line = i,
                              .module = NONE32};
        stack = snapshot_push_frame(snapshot, stack, snapshot_add_frame(snapshot, &frame));
    }
    if (!snapshot)
        abort();
    contexts[0] = snapshot_add_context(snapshot, stack);
    contexts[1] = snapshot_add_context(snapshot, STACK_EMPTY);
    return snapshot;
}

static void check(const struct category_rules *rules)
{
    uint32_t contexts[3] = {0, 0, CONTEXT_NONE};
    struct snapshot *snapshot = example(contexts);
    const struct category_rules *sets[] = {rules};
    struct categories categories;
    for (size_t i = 0; i < rules->count; i++)
        if (!rules->rules[i].category || !*rules->rules[i].category)
            abort();
    if (categories_open(snapshot, sets, 1, &categories, NULL))
        abort();
    for (size_t i = 0; i < 6; i++) {
        struct category_subject subject = {contexts[i % 3], 33554432, i > 2};
        uint32_t number = category_of(&categories, &subject);
        if (number >= category_count(&categories) || !*category_name(&categories, number))
            abort();
    }
    categories_close(&categories);
    snapshot_free(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct category_rules rules;
    struct error err = {0};
    if (size > 65536)
        return 0;
    if (categories_read_memory(data, size, &rules, &err)) {
        if (rules.count || rules.rules || !*err.message)
            abort();
        return 0;
    }
    check(&rules);
    category_rules_free(&rules);
    return 0;
}
