/*
 * When a file has ended: objects that were packed into columns while other words still named them get one name, the
 * row; and the graph of what is left is checked (plain data only, not too deep).  Uses base and snapshot.
 */
#include "base/array.h"
#include "format/torch_pack.h"

#include <stdlib.h>

struct torch_visit {
    value container;
    size_t next;
};

struct torch_walk {
    struct torch_visit *path;
    size_t depth, capacity;
};

/* The word by which the object goes from now on. */
static int torch_settled(struct torch_reader *reader, value *word, struct error *err)
{
    if (value_kind(*word) == VALUE_MARK)
        return error_set(err, STATUS_INPUT, "refuses a class as a value: a snapshot holds plain data only");
    if (value_is_container(*word)) {
        const struct value_notes *notes = values_notes(reader->values, *word);
        if (!notes)
            return error_set(err, STATUS_INPUT, "damaged pickle: an object is used after its end");
        if (notes->flags & PICKLE_PACKED)
            *word = value_row(value_kind(*word) == VALUE_LIST ? ROW_CONTEXT : ROW_FRAME, notes->row - 1);
    }
    *word = torch_resolve(reader, *word);
    return *word == value_make(VALUE_MARK, 0) ? error_no_memory(err) : 0;
}

static int torch_enter(struct torch_reader *reader, struct torch_walk *walk, value word, struct error *err)
{
    if (!value_is_container(word))
        return 0;
    struct value_notes *notes = values_notes(reader->values, word);
    if (notes->flags & PICKLE_SEEN)
        return 0;
    notes->flags |= PICKLE_SEEN;
    if (walk->depth > PICKLE_DEPTH)
        return error_set(err, STATUS_INPUT, "nested more than %d deep: no snapshot is", PICKLE_DEPTH);
    if (array_reserve(&walk->path, &walk->capacity, walk->depth + 1, sizeof(*walk->path)))
        return error_no_memory(err);
    walk->path[walk->depth++] = (struct torch_visit){word, 0};
    return 0;
}

static int torch_settle_word(struct torch_reader *reader, struct torch_walk *walk, value *root, struct error *err)
{
    int status = torch_settled(reader, root, err);
    if (!status)
        status = torch_enter(reader, walk, *root, err);
    while (walk->depth && !status) {
        struct torch_visit *visit = &walk->path[walk->depth - 1];
        if (visit->next >= values_count(reader->values, visit->container)) {
            walk->depth--;
            continue;
        }
        value *word = &values_items_mutable(reader->values, visit->container)[visit->next++];
        if (value_kind(*word) == VALUE_ROW || value_is_container(*word) || value_kind(*word) == VALUE_MARK) {
            value settled = *word;
            status = torch_settled(reader, &settled, err);
            if (status)
                break;
            values_items_mutable(reader->values, visit->container)[visit->next - 1] = settled;
            status = torch_enter(reader, walk, settled, err);
        }
    }
    return status;
}

int torch_settle(struct torch_reader *reader, struct error *err)
{
    struct snapshot *snapshot = reader->snapshot;
    struct torch_walk walk = {0};
    int status = 0;
    if (snapshot->has_raw)
        status = torch_settle_word(reader, &walk, &snapshot->raw, err);
    for (size_t i = 0; i < snapshot->setting_count && !status; i++)
        status = torch_settle_word(reader, &walk, &snapshot->settings[i].content, err);
    for (size_t i = 0; i < snapshot->odd_count && !status; i++) {
        value word = snapshot->odds[i].content; /* settling may add odd values, and so move them */
        status = torch_settle_word(reader, &walk, &word, err);
        snapshot->odds[i].content = word;
    }
    free(walk.path);
    return status;
}
