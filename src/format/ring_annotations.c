/*
 * Ranges and moments that the program named become annotations, each at its place among the entries.  The end of a range
 * gets the name of its beginning: a pop ends its thread's innermost range of the same domain, an end the start that has
 * its number.  An end whose beginning the ring forgot is left out; a range that nobody ended has a beginning alone.
 * May use src/base, the ring's layout and the snapshot.
 */
#include "base/array.h"
#include "format/ring_builder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_AT_ONCE 4096u

/* --- out of the file ---------------------------------------------------------------------------------------------- */

static int keep(struct ring_reader *reader, const struct ring_annotation *slot)
{
    if (array_reserve(&reader->annotations, &reader->annotation_capacity, reader->annotation_count + 1,
                      sizeof(*reader->annotations)))
        return error_no_memory(reader->err);
    reader->annotations[reader->annotation_count++] = *slot;
    return STATUS_OK;
}

/* Is it whole, and from before the header was read?  0 no, 1 yes, else an error. */
static int accept(struct ring_reader *reader, const struct ring_annotation *slot, uint64_t head, uint64_t offset)
{
    if (!slot->sequence || (slot->sequence & RING_BUSY) || slot->sequence > head)
        return 0;
    if (slot->stage > RING_INSTANT)
        return error_at(reader->err, STATUS_INPUT, offset, "has an annotation that makes no sense");
    return 1;
}

static int compare(const void *a, const void *b)
{
    const struct ring_annotation *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int read_part(struct ring_reader *reader, uint64_t first, uint64_t count, struct ring_annotation *copies)
{
    struct ring_annotation *again = copies + SLOTS_AT_ONCE;
    uint64_t offset = reader->header.annotations + first * sizeof(*copies), head = reader->header.annotation_head;
    int status = ring_read_at(reader, offset, copies, count * sizeof(*copies), "annotations");
    if (!status)
        status = ring_read_at(reader, offset, again, count * sizeof(*copies), "annotations");
    for (uint64_t i = 0; i < count && !status; i++) {
        if (memcmp(&copies[i], &again[i], sizeof(*copies))) /* being written: it is newer than what we look for */
            continue;
        status = accept(reader, &copies[i], head, offset + i * sizeof(*copies));
        status = status > 0 ? keep(reader, &copies[i]) : status;
    }
    return status;
}

int ring_read_annotations(struct ring_reader *reader)
{
    const struct ring_header *header = &reader->header;
    uint64_t used = header->annotation_head < RING_ANNOTATIONS ? header->annotation_head : RING_ANNOTATIONS;
    if (!header->annotations || !used || reader->living_only)
        return STATUS_OK;
    struct ring_annotation *copies = malloc(2 * SLOTS_AT_ONCE * sizeof(*copies));
    if (!copies)
        return error_no_memory(reader->err);
    int status = STATUS_OK;
    for (uint64_t first = 0; first < used && !status; first += SLOTS_AT_ONCE)
        status = read_part(reader, first, used - first < SLOTS_AT_ONCE ? used - first : SLOTS_AT_ONCE, copies);
    free(copies);
    if (!status && reader->annotation_count)
        qsort(reader->annotations, reader->annotation_count, sizeof(*reader->annotations), compare);
    return status;
}

/* --- into the snapshot -------------------------------------------------------------------------------------------- */

/* A range that is open: by its number, or the innermost of its thread and domain. */
struct open {
    uint32_t name;  /* string object */
    uint32_t outer; /* the one around it, NONE32 */
};

static uint32_t *innermost(struct build *build, const struct ring_annotation *of)
{
    struct ring_ranges *ranges = &build->ranges;
    if (of->stage == RING_RANGE_START || of->stage == RING_RANGE_END)
        return table_at(&ranges->by_number, of->range, NONE32);
    return table_at(&ranges->by_thread, (uint64_t)of->thread << 32 | of->domain, NONE32);
}

static int name_of(struct build *build, const struct ring_annotation *from, uint32_t *name)
{
    const struct ring_reader *reader = build->reader;
    if (from->name > reader->string_count || from->name_length > reader->string_count - from->name)
        return error_set(reader->err, STATUS_INPUT, "has an annotation (number %" PRIu64 ") without its name",
                         from->sequence);
    *name = snapshot_shared_string(build->snapshot, from->name_length ? reader->strings + from->name : "",
                                   from->name_length);
    return *name == STRING_NONE ? error_no_memory(reader->err) : STATUS_OK;
}

static int begin_range(struct build *build, const struct ring_annotation *from, uint32_t name)
{
    struct ring_ranges *ranges = &build->ranges;
    uint32_t *last = innermost(build, from);
    if (!last || array_reserve(&ranges->items, &ranges->capacity, ranges->count + 1, sizeof(struct open)))
        return error_no_memory(build->reader->err);
    struct open *items = ranges->items;
    items[ranges->count] = (struct open){name, *last};
    *last = (uint32_t)ranges->count++;
    return STATUS_OK;
}

/* The name of what ends, out of what is open; STRING_NONE if nobody knows. */
static int end_range(struct build *build, const struct ring_annotation *from, uint32_t *name)
{
    const struct open *items = build->ranges.items;
    uint32_t *last = innermost(build, from);
    *name = STRING_NONE;
    if (!last)
        return error_no_memory(build->reader->err);
    if (*last != NONE32) {
        *name = items[*last].name;
        *last = items[*last].outer;
    }
    return STATUS_OK;
}

/* The device of the thread's next event, as far as there is one. */
static uint16_t device_of(const struct build *build, uint32_t thread, size_t next)
{
    const struct ring_reader *reader = build->reader;
    const size_t end = next + 64 < reader->event_count ? next + 64 : reader->event_count;
    for (size_t i = next; i < end; i++)
        if (!thread || reader->events[i].slot.thread == thread)
            return reader->events[i].slot.device;
    for (uint16_t device = 0; device < RING_DEVICES; device++)
        if (reader->devices[device].head)
            return device;
    return 0;
}

static int add(struct build *build, const struct ring_annotation *from, size_t next)
{
    static const uint8_t stages[] = {[RING_RANGE_PUSH] = 0, [RING_RANGE_POP] = 1, [RING_RANGE_START] = 0,
                                     [RING_RANGE_END] = 1, [RING_INSTANT] = 2};
    uint64_t ticks = from->ticks;
    if (next < build->reader->event_count && ticks > build->reader->events[next].slot.ticks)
        ticks = build->reader->events[next].slot.ticks;
    struct annotation annotation = {.time = ring_build_time(build, ticks), .shape = SHAPE_OURS,
                                    .stage = stages[from->stage], .thread = from->thread,
                                    .device = device_of(build, from->thread, next)};
    int status = STATUS_OK;
    if (annotation.stage == 1) {
        status = end_range(build, from, &annotation.name);
        if (status || annotation.name == STRING_NONE)
            return status;
    } else {
        status = name_of(build, from, &annotation.name);
        if (!status && annotation.stage == 0)
            status = begin_range(build, from, annotation.name);
    }
    return status ? status : ring_add_annotation(build, &annotation);
}

/* What was overwritten in the ring, or found no place. */
int ring_annotations_setting(struct build *build)
{
    const struct ring_reader *reader = build->reader;
    uint64_t lost = reader->header.lost_annotations;
    if (reader->header.annotation_head > reader->annotation_count)
        lost += reader->header.annotation_head - reader->annotation_count;
    if (!lost || reader->living_only || lost > UINT64_C(1) << 58)
        return STATUS_OK;
    uint32_t key = snapshot_string(build->snapshot, "annotations_lost", strlen("annotations_lost"));
    return key == STRING_NONE || snapshot_add_setting(build->snapshot, key, value_make(VALUE_INT, lost)) == NONE32
               ? error_no_memory(build->reader->err) : STATUS_OK;
}

/* One that came when an event was the last one stands before all that are later. */
int ring_annotations_until(struct build *build, const struct ring_event *event)
{
    const struct ring_reader *reader = build->reader;
    size_t next = event ? (size_t)(event - reader->events) : reader->event_count;
    int status = STATUS_OK;
    while (build->ranges.next < reader->annotation_count && !status) {
        const struct ring_annotation *annotation = &reader->annotations[build->ranges.next];
        if (event && annotation->event >= event->slot.sequence)
            break;
        status = add(build, annotation, next);
        build->ranges.next++;
    }
    return status;
}

void ring_annotations_free(struct build *build)
{
    free(build->ranges.items);
    table_free(&build->ranges.by_thread);
    table_free(&build->ranges.by_number);
}
