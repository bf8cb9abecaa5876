/*
 * Marks that were set in a ring file become annotations, each at its place among the entries, exactly.  May use
 * src/base and the snapshot.
 */
#include "format/ring_builder.h"

#include <stdlib.h>
#include <string.h>

static int compare_marks(const void *a, const void *b)
{
    const struct ring_mark *x = a, *y = b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

int ring_marks_begin(struct build *build)
{
    const struct ring_header *header = &build->reader->header;
    struct ring_marks *marks = &build->marks;
    uint32_t count = header->mark_count < RING_MARKS ? header->mark_count : RING_MARKS;
    marks->items = malloc((count + 1) * sizeof(*marks->items));
    if (!marks->items)
        return error_no_memory(build->reader->err);
    for (uint32_t i = 0; i < count; i++)
        if (header->marks[i].state == RING_MARK_WHOLE)
            marks->items[marks->count++] = header->marks[i];
    qsort(marks->items, marks->count, sizeof(*marks->items), compare_marks);
    return STATUS_OK;
}

void ring_marks_free(struct build *build)
{
    free(build->marks.items);
}

/* Entries may have its own microsecond: how many of them came before it is told. */
int ring_add_annotation(struct build *build, struct annotation *annotation)
{
    const struct entries *entries = &build->snapshot->entries;
    for (; build->timed < entries->count; build->timed++)
        if (!build->timed || entries->time[build->timed] != entries->time[build->timed - 1])
            build->same_time = build->timed;
    if (entries->count && annotation->time <= entries->time[entries->count - 1]) {
        annotation->time = entries->time[entries->count - 1];
        annotation->later = (uint32_t)(entries->count - build->same_time);
    }
    bool failed = snapshot_add_annotation(build->snapshot, annotation) == NONE32;
    return failed ? error_no_memory(build->reader->err) : STATUS_OK;
}

static int add_mark(struct build *build, const struct ring_mark *mark)
{
    struct snapshot *snapshot = build->snapshot;
    size_t length = strnlen(mark->name, sizeof(mark->name));
    struct annotation annotation = {.time = ring_build_time(build, mark->ticks), .shape = SHAPE_OURS, .stage = 2};
    annotation.name = snapshot_shared_string(snapshot, mark->name, length);
    if (annotation.name == STRING_NONE)
        return error_no_memory(build->reader->err);
    return ring_add_annotation(build, &annotation);
}

int ring_marks_until(struct build *build, const struct ring_event *event)
{
    struct ring_marks *marks = &build->marks;
    int status = STATUS_OK;
    for (; marks->next < marks->count && !status; marks->next++) {
        const struct ring_mark *mark = &marks->items[marks->next];
        if (event && mark->sequence >= event->slot.sequence &&
            !(mark->sequence == event->slot.sequence && event->is_unrecorded && mark->ticks < event->slot.ticks))
            break;
        struct ring_mark bounded = *mark;
        if (event && bounded.ticks > event->slot.ticks)
            bounded.ticks = event->slot.ticks;
        status = add_mark(build, &bounded);
    }
    return status;
}
