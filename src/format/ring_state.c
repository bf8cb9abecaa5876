/*
 * What lives at the end of a ring file: the table of live memory, corrected by the events that are still in the ring.
 * The table may lag behind or run ahead by what threads were doing when the process was killed or looked at: the last
 * event of an address decides, so that trace and state do not contradict each other.  But an event may never have come
 * into the ring, where its slot was held by a thread that stalled for a whole round: then the table is right.
 */
#include "base/array.h"
#include "format/ring_reader.h"

#include <stdlib.h>
#include <string.h>

#define KEYS_AT_ONCE 4096u

static struct ring_item *find_item(struct ring_items *live, uint64_t key)
{
    uint32_t i = table_get(&live->index, key, NONE32);
    return i == NONE32 ? NULL : &live->items[i];
}

static int set_item(struct ring_reader *reader, const struct ring_item *item)
{
    struct ring_items *live = &reader->live;
    struct ring_item *old = find_item(live, item->key);
    if (old) {
        *old = *item;
        return STATUS_OK;
    }
    if (live->count >= NONE32 - 1 || array_reserve(&live->items, &live->capacity, live->count + 1, sizeof(*live->items)) ||
        table_set(&live->index, item->key, (uint32_t)live->count))
        return error_no_memory(reader->err);
    live->items[live->count++] = *item;
    return STATUS_OK;
}

static bool is_held(uint64_t key)
{
    return key && !(key & RING_LIVE_BUSY);
}

/* Part of a level: keys before and after the values, so that a place that changed meanwhile is left out. */
static int read_places(struct ring_reader *reader, uint64_t level, uint64_t keys, uint64_t first, uint64_t *before)
{
    uint64_t *after = before + KEYS_AT_ONCE;
    struct ring_live *values = (void *)(after + KEYS_AT_ONCE);
    uint64_t values_at = level + keys * sizeof(uint64_t) + first * sizeof(struct ring_live);
    bool any = false;
    int status = ring_read_at(reader, level + first * 8, before, KEYS_AT_ONCE * 8, "the table of live memory");
    for (size_t i = 0; i < KEYS_AT_ONCE && !any; i++)
        any = is_held(before[i]);
    if (status || !any)
        return status;
    status = ring_read_at(reader, values_at, values, KEYS_AT_ONCE * sizeof(*values), "the table of live memory");
    if (!status)
        status = ring_read_at(reader, level + first * 8, after, KEYS_AT_ONCE * 8, "the table of live memory");
    for (size_t i = 0; i < KEYS_AT_ONCE && !status; i++) {
        struct ring_item item = {before[i], values[i], NONE32, values[i].sequence, true};
        if (!is_held(before[i]) || before[i] != after[i])
            continue;
        if (item.record.device >= RING_DEVICES || (item.record.flags & RING_KIND_MASK) >= MEMORY_KIND_COUNT)
            return error_at(reader->err, STATUS_INPUT, values_at + i * sizeof(*values),
                            "has a piece of live memory that makes no sense");
        status = set_item(reader, &item);
    }
    return status;
}

int ring_read_live(struct ring_reader *reader)
{
    uint64_t *buffer = malloc(KEYS_AT_ONCE * (2 * sizeof(uint64_t) + sizeof(struct ring_live)));
    if (!buffer)
        return error_no_memory(reader->err);
    int status = STATUS_OK;
    for (unsigned level = 0; level < RING_LIVE_LEVELS && !status; level++) {
        uint64_t offset = reader->header.live[level], keys = (uint64_t)RING_LIVE_FIRST << level;
        for (uint64_t first = 0; offset && first < keys && !status; first += KEYS_AT_ONCE)
            status = read_places(reader, offset, keys, first, buffer);
    }
    free(buffer);
    return status;
}

/* --- memory that is mapped nowhere -------------------------------------------------------------------------------- */

static int compare_events(const void *a, const void *b)
{
    const struct ring_event *x = a, *y = b;
    return x->slot.sequence < y->slot.sequence ? -1 : x->slot.sequence > y->slot.sequence;
}

static struct ring_event event_of(const struct ring_live *record, uint64_t address)
{
    struct ring_event event = {.position = UINT64_MAX, .requested = record->requested, .pool = record->pool,
                               .context = CONTEXT_NONE, .life = NONE32, .refused = NONE32};
    event.slot = (struct ring_slot){
        .sequence = record->sequence, .ticks = record->ticks, .address = address, .size = record->size,
        .stream = record->stream, .thread = record->thread, .stack = record->stack,
        .python_stack = record->python_stack, .action = ACTION_SEGMENT_ALLOC, .flags = record->flags,
        .device = record->device, .call = record->call, .notes = record->notes};
    return event;
}

/* Older than what is shown: than the oldest event of a device whose ring lost some, or than a recording begun anew. */
static bool is_forgotten(const struct ring_reader *reader, const struct ring_live *record, size_t events)
{
    uint64_t lost = reader->devices[record->device].head - reader->shown[record->device];
    return record->sequence <= reader->header.forgotten ||
           (lost && events && record->sequence < reader->events[0].slot.sequence);
}

int ring_add_unmapped(struct ring_reader *reader)
{
    const size_t events = reader->event_count;
    for (size_t i = 0; i < reader->live.count && !reader->living_only; i++) {
        const struct ring_item *item = &reader->live.items[i];
        const struct ring_live *record = &item->record;
        if (!(record->notes & RING_UNMAPPED) || (item->key & RING_LIVE_BLOCK) || !record->sequence ||
            record->sequence > reader->header.sequence || is_forgotten(reader, record, events))
            continue;
        if (reader->event_count >= NONE32 - 1 ||
            array_reserve(&reader->events, &reader->event_capacity, reader->event_count + 1, sizeof(*reader->events)))
            return error_no_memory(reader->err);
        reader->events[reader->event_count++] = event_of(record, item->key & RING_LIVE_ADDRESS);
    }
    if (reader->event_count > events)
        qsort(reader->events, reader->event_count, sizeof(*reader->events), compare_events);
    return STATUS_OK;
}

/* --- the ring's word ---------------------------------------------------------------------------------------------- */

static uint64_t key_of(const struct ring_slot *slot)
{
    uint64_t address = slot->address & RING_LIVE_ADDRESS;
    return address ? address | (ring_is_block_action(slot->action) ? RING_LIVE_BLOCK : 0) : 0;
}

/* The table knows of a later allocation there. */
static bool is_outlived(const struct ring_reader *reader, const struct ring_item *item, const struct ring_slot *slot)
{
    return item && item->tabled > slot->sequence && item->tabled <= reader->header.sequence;
}

static int event_makes(struct ring_reader *reader, uint32_t number)
{
    const struct ring_event *event = &reader->events[number];
    const struct ring_slot *slot = &event->slot;
    const struct ring_item *old = find_item(&reader->live, key_of(slot));
    struct ring_item item = {.key = key_of(slot), .event = number, .tabled = old ? old->tabled : 0, .alive = true};
    if (is_outlived(reader, old, slot))
        return STATUS_OK;
    item.record = (struct ring_live){
        .sequence = slot->sequence, .ticks = slot->ticks,
        .size = slot->flags & RING_SIZE_UNKNOWN ? 0 : slot->size, .requested = event->requested,
        .pool = event->pool, .stream = slot->stream, .stack = slot->stack,
        .python_stack = slot->python_stack, .thread = slot->thread, .device = slot->device, .call = slot->call, .action = slot->action, .flags = slot->flags,
        .notes = (uint8_t)slot->notes};
    return item.key ? set_item(reader, &item) : STATUS_OK;
}

/* A free, or a correcting entry that takes one back.  An unmapping covers one mapping after the other, each of which was
 * there; one that failed gave back as many as the recorder remembers. */
static void event_takes(struct ring_reader *reader, const struct ring_slot *slot, bool revive)
{
    uint64_t key = key_of(slot), end = key + slot->size;
    bool is_range = slot->action == ACTION_SEGMENT_UNMAP && !(slot->flags & RING_SIZE_UNKNOWN);
    struct ring_item *item = key ? find_item(&reader->live, key) : NULL;
    for (uint32_t count = 0; item && item->record.sequence < slot->sequence && item->alive != revive; count++) {
        if (revive && count == RING_REMOVED)
            break;
        item->alive = revive;
        uint64_t next = item->key + item->record.size;
        if (!is_range || !item->record.size || next < item->key || next >= end)
            break;
        item = find_item(&reader->live, next);
    }
}

/* A free whose end will be told: the block waits for it. */
static void event_waits(struct ring_reader *reader, const struct ring_slot *slot)
{
    struct ring_item *item = find_item(&reader->live, key_of(slot));
    if (item && item->record.sequence < slot->sequence)
        item->record.notes |= RING_FREE_TOLD;
}

/* The last event of each thread that was there before the table was read. */
static int last_events(const struct ring_reader *reader, struct table *last)
{
    for (size_t i = 0; i < reader->event_count; i++) {
        const struct ring_slot *slot = &reader->events[i].slot;
        if (slot->sequence <= reader->sequence_at_first && table_set(last, slot->thread + UINT64_C(1), (uint32_t)i))
            return error_no_memory(reader->err);
    }
    return STATUS_OK;
}

/* What a thread allocated was in the table when its next event came.  If it was not there then, and no event ends it,
 * its end is one that did not come into the ring. */
static int end_unseen(struct ring_reader *reader)
{
    struct table last = {0};
    int status = reader->header.lost_live ? STATUS_OK : last_events(reader, &last);
    for (size_t i = 0; i < reader->live.count && !status && last.count; i++) {
        struct ring_item *item = &reader->live.items[i];
        uint16_t device = item->record.device;
        if (!item->alive || item->event == NONE32 || item->tabled == item->record.sequence ||
            device >= RING_DEVICES || !reader->devices[device].dropped)
            continue;
        uint32_t after = table_get(&last, item->record.thread + UINT64_C(1), NONE32);
        item->alive = after == NONE32 || after <= item->event;
    }
    table_free(&last);
    return status;
}

static int follow_events(struct ring_reader *reader)
{
    for (size_t i = 0; i < reader->event_count; i++) {
        const struct ring_slot *slot = &reader->events[i].slot;
        int status = STATUS_OK;
        switch (slot->action) {
        case ACTION_ALLOC:
        case ACTION_SEGMENT_ALLOC:
        case ACTION_SEGMENT_MAP:
            status = event_makes(reader, (uint32_t)i);
            break;
        case ACTION_FREE_REQUESTED: /* when it completes, nobody tells, or it is told */
            if (slot->notes & RING_FREE_TOLD) {
                event_waits(reader, slot);
                break;
            }
            event_takes(reader, slot, slot->result != 0);
            break;
        case ACTION_FREE_COMPLETED:
        case ACTION_SEGMENT_FREE:
        case ACTION_SEGMENT_UNMAP:
            event_takes(reader, slot, slot->result != 0);
            break;
        default:
            break;
        }
        if (status)
            return status;
    }
    return STATUS_OK;
}

int ring_settle_live(struct ring_reader *reader)
{
    int status = follow_events(reader);
    return status ? status : end_unseen(reader);
}
