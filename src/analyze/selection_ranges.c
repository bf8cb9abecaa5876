/* Selection by annotations.  May use src/analyze/ranges, src/snapshot and src/base. */
#include "analyze/selection_ranges.h"

#include "base/table.h"

#include <stdlib.h>

struct matching {
    const struct snapshot *snapshot;
    uint8_t *matches, *inside; /* by annotation, by entry */
    struct table open;         /* thread -> matching ranges */
};

static int step(void *context, size_t number)
{
    struct matching *matching = context;
    const struct annotation *annotation = &matching->snapshot->annotations[number];
    if (!matching->matches[number])
        return STATUS_OK;
    uint32_t *open = table_at(&matching->open, ranges_thread(annotation->process, annotation->thread), 0);
    if (!open)
        return STATUS_NO_MEMORY;
    if (annotation->stage == 0)
        ++*open;
    else if (*open)
        --*open;
    return STATUS_OK;
}

static int look(void *context, size_t number)
{
    struct matching *matching = context;
    const struct entries *entries = &matching->snapshot->entries;
    uint16_t process = entries->process ? entries->process[number] : 0;
    uint32_t thread = entries->thread ? entries->thread[number] : 0;
    matching->inside[number] = table_get(&matching->open, ranges_thread(process, 0), 0) > 0 ||
                               table_get(&matching->open, ranges_thread(process, thread), 0) > 0;
    return STATUS_OK;
}

static uint8_t *match(const struct snapshot *snapshot, const regex_t *expression)
{
    uint8_t *matches = calloc(snapshot->annotation_count + 1, 1);
    for (size_t i = 0; matches && i < snapshot->annotation_count; i++) {
        const struct annotation *annotation = &snapshot->annotations[i];
        const char *name = snapshot_object_text(snapshot, annotation->name, NULL);
        matches[i] = annotation->stage <= 1 && regexec(expression, name, 0, NULL, 0) == 0;
    }
    return matches;
}

int selection_ranges_bind(struct selection_ranges *ranges, const regex_t *expression, const struct snapshot *snapshot,
                          struct error *err)
{
    struct matching matching = {.snapshot = snapshot};
    const struct ranges_visitor visitor = {step, look, &matching};
    selection_ranges_free(ranges);
    matching.matches = match(snapshot, expression);
    matching.inside = ranges->inside = calloc(snapshot->entries.count + 1, 1);
    bool failed = !matching.matches || !matching.inside || ranges_walk(snapshot, &visitor) ||
                  ranges_index_make(&ranges->index, snapshot);
    free(matching.matches);
    table_free(&matching.open);
    return failed ? error_no_memory(err) : STATUS_OK;
}

void selection_ranges_free(struct selection_ranges *ranges)
{
    free(ranges->inside);
    ranges_index_free(&ranges->index);
    *ranges = (struct selection_ranges){0};
}

bool selection_ranges_has_block(const struct selection_ranges *ranges, const struct state *state, const struct block *block)
{
    size_t entry = ranges_maker(&ranges->index, state, block);
    return entry != SIZE_MAX && ranges->inside[entry];
}
