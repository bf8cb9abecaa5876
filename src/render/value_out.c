/* Values through the emitter.  May use src/snapshot and src/base. */
#include "render/value_out.h"

#include <stdio.h>

#define MAX_VALUE_DEPTH 6
#define MAX_VALUE_ITEMS 2000

struct walk {
    struct emitter *emitter;
    const struct snapshot *snapshot;
    unsigned depth, items;
};

static void one_out(struct walk *walk, const char *key, value content);

static void items_out(struct walk *walk, const char *key, value content)
{
    const struct values *values = walk->snapshot->values;
    bool is_dict = value_kind(content) == VALUE_DICT;
    size_t count = values_count(values, content);
    if (walk->depth >= MAX_VALUE_DEPTH) {
        emitter_text(walk->emitter, key, "...");
        return;
    }
    walk->depth++;
    if (is_dict)
        emitter_begin_object(walk->emitter, key, NULL);
    else
        emitter_begin_list(walk->emitter, key, NULL);
    for (size_t i = 0; i < count && walk->items < MAX_VALUE_ITEMS; i += is_dict ? 2 : 1, walk->items++) {
        const value *items = values_items(values, content);
        if (!is_dict) {
            one_out(walk, NULL, items[i]);
            continue;
        }
        char number[32];
        int64_t plain = 0;
        const char *name = number;
        if (value_kind(items[i]) == VALUE_STRING)
            name = snapshot_object_text(walk->snapshot, (uint32_t)value_payload(items[i]), NULL);
        else if (values_get_int(values, items[i], &plain))
            snprintf(number, sizeof(number), "%lld", (long long)plain);
        else
            snprintf(number, sizeof(number), "item_%zu", i / 2);
        one_out(walk, name, items[i + 1]);
    }
    emitter_end(walk->emitter);
    walk->depth--;
}

static void one_out(struct walk *walk, const char *key, value content)
{
    struct emitter *emitter = walk->emitter;
    const struct values *values = walk->snapshot->values;
    emitter_label(emitter, key); /* such names are shown as they are */
    int64_t number;
    uint64_t large;
    size_t length;
    const char *text;
    switch (value_kind(content)) {
    case VALUE_NONE: emitter_absent(emitter, key); return;
    case VALUE_FALSE:
    case VALUE_TRUE: emitter_bool(emitter, key, value_kind(content) == VALUE_TRUE); return;
    case VALUE_INT:
    case VALUE_LONG:
        if (values_get_int(values, content, &number))
            emitter_integer(emitter, key, number);
        else if (values_get_unsigned(values, content, &large))
            emitter_count(emitter, key, large);
        else
            emitter_text(emitter, key, "(an integer of more than 64 bits)");
        return;
    case VALUE_FLOAT: emitter_real(emitter, key, values_get_float(values, content)); return;
    case VALUE_STRING:
        text = snapshot_object_text(walk->snapshot, (uint32_t)value_payload(content), &length);
        emitter_string(emitter, key, text, length);
        return;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_SET:
    case VALUE_FROZENSET:
    case VALUE_DICT: items_out(walk, key, content); return;
    default: emitter_text(emitter, key, "(binary data)"); return;
    }
}

void value_out(struct emitter *emitter, const struct snapshot *snapshot, const char *key, value content)
{
    struct walk walk = {emitter, snapshot, 0, 0};
    one_out(&walk, key, content);
}
