/*
 * Memory that came while recording was paused.  No event made it: the table of live memory knows it while it lives, and
 * its end tells of it.  Between the ring's events it gets one of our own, without a stack, so that what lived at every
 * moment comes out right.  What was there before the first event is older than the recording and needs none.  May use
 * src/base.
 */
#include "base/array.h"
#include "format/ring_reader.h"

#include <stdlib.h>
#include <string.h>

/* The last event's sequence when the clock stood there; 0: before the first event. */
static uint64_t sequence_at(const struct ring_reader *reader, size_t count, uint64_t ticks)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reader->events[middle].slot.ticks <= ticks)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? reader->events[low - 1].slot.sequence : 0;
}

static int add_event(struct ring_reader *reader, const struct ring_event *event)
{
    if (reader->event_count >= NONE32 - 1 ||
        array_reserve(&reader->events, &reader->event_capacity, reader->event_count + 1, sizeof(*reader->events)))
        return error_no_memory(reader->err);
    reader->events[reader->event_count++] = *event;
    return STATUS_OK;
}

static int add_living(struct ring_reader *reader, uint64_t first)
{
    for (size_t i = 0; i < reader->live.count; i++) {
        const struct ring_item *item = &reader->live.items[i];
        const struct ring_live *record = &item->record;
        if (!(record->notes & RING_WHILE_PAUSED) || record->sequence < first || record->sequence > reader->header.sequence)
            continue;
        struct ring_event event = {.requested = record->requested, .pool = record->pool, .context = CONTEXT_NONE,
                                   .life = NONE32, .refused = NONE32, .is_unrecorded = true};
        event.slot = (struct ring_slot){.sequence = record->sequence, .ticks = record->ticks,
                                        .address = item->key & RING_LIVE_ADDRESS, .size = record->size,
                                        .stream = record->stream, .thread = record->thread, .action = record->action,
                                        .flags = record->flags, .device = record->device, .call = record->call,
                                        .notes = record->notes};
        if (add_event(reader, &event))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static uint8_t beginning_of(uint8_t end)
{
    return end == ACTION_SEGMENT_UNMAP ? ACTION_SEGMENT_MAP : end == ACTION_SEGMENT_FREE ? ACTION_SEGMENT_ALLOC
                                                                                        : ACTION_ALLOC;
}

static int add_ended(struct ring_reader *reader, size_t count, uint64_t first)
{
    for (size_t i = 0; i < count; i++) {
        struct ring_event *end = &reader->events[i];
        if (!(end->slot.notes & RING_WHILE_PAUSED) || !end->came)
            continue;
        struct ring_event event = *end;
        event.slot.sequence = sequence_at(reader, count, end->came);
        event.slot.ticks = end->came;
        event.slot.action = beginning_of(end->slot.action);
        event.slot.result = 0;
        event.slot.stack = RING_STACK_NONE;
        event.slot.python_stack = RING_STACK_NONE;
        event.came = 0;
        event.is_unrecorded = true;
        end->requested = UINT64_MAX;
        end->pool = 0;
        if (event.slot.sequence >= end->slot.sequence)
            event.slot.sequence = end->slot.sequence - 1;
        if (event.slot.sequence >= first && add_event(reader, &event))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static int compare_events(const void *a, const void *b)
{
    const struct ring_slot *x = &((const struct ring_event *)a)->slot, *y = &((const struct ring_event *)b)->slot;
    bool unrecorded = ((const struct ring_event *)a)->is_unrecorded;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (unrecorded != ((const struct ring_event *)b)->is_unrecorded)
        return unrecorded ? 1 : -1;
    if (x->ticks != y->ticks)
        return x->ticks < y->ticks ? -1 : 1;
    if (ring_is_block_action(x->action) != ring_is_block_action(y->action)) /* a segment before the blocks in it */
        return ring_is_block_action(x->action) ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Memory that ended while the file was read was found both ways. */
static void drop_doubles(struct ring_reader *reader)
{
    size_t kept = 0;
    for (size_t i = 0; i < reader->event_count; i++) {
        const struct ring_event *event = &reader->events[i], *last = kept ? &reader->events[kept - 1] : NULL;
        if (last && last->is_unrecorded && event->is_unrecorded && compare_events(last, event) == 0)
            continue;
        reader->events[kept++] = *event;
    }
    reader->event_count = kept;
}

int ring_add_unrecorded(struct ring_reader *reader)
{
    size_t count = reader->event_count;
    if (!count || !reader->header.skipped_paused)
        return STATUS_OK;
    uint64_t first = reader->events[0].slot.sequence;
    int status = add_living(reader, first);
    if (!status)
        status = add_ended(reader, count, first);
    if (status || reader->event_count == count)
        return status;
    qsort(reader->events, reader->event_count, sizeof(*reader->events), compare_events);
    drop_doubles(reader);
    return STATUS_OK;
}
