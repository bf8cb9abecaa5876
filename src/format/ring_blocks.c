/*
 * Which segments of a ring file a framework cut into blocks.  Some memory is a framework's, which tells of every block
 * in it; the rest belongs to others and is one block each, so that a recording shows both.  Decided for each segment:
 * it is cut if it held a block at some time of its life, by the ring's events, by the blocks that still live, or by the
 * note that the recorder made at its first block, which the ring may have forgotten.  May use src/base and the
 * snapshot.
 */
#include "base/array.h"
#include "format/ring_reader.h"

#include <stdlib.h>
#include <string.h>

/* The first open life that starts after the address. */
static size_t open_after(const struct ring_reader *reader, uint64_t address)
{
    size_t low = 0, high = reader->open_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reader->lives[reader->open[middle]].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The place among the open ones of the life that starts here; open_count: none. */
static size_t open_at(const struct ring_reader *reader, uint64_t start)
{
    size_t after = open_after(reader, start);
    return after && reader->lives[reader->open[after - 1]].start == start ? after - 1 : reader->open_count;
}

static void close_life(struct ring_reader *reader, size_t place)
{
    memmove(&reader->open[place], &reader->open[place + 1], (--reader->open_count - place) * sizeof(*reader->open));
}

static int open_life(struct ring_reader *reader, uint32_t life)
{
    size_t place = open_at(reader, reader->lives[life].start);
    if (place < reader->open_count) { /* the end of the one before was never seen */
        reader->open[place] = life;
        return STATUS_OK;
    }
    if (array_reserve(&reader->open, &reader->open_capacity, reader->open_count + 1, sizeof(*reader->open)))
        return error_no_memory(reader->err);
    place = open_after(reader, reader->lives[life].start);
    memmove(&reader->open[place + 1], &reader->open[place], (reader->open_count++ - place) * sizeof(*reader->open));
    reader->open[place] = life;
    return STATUS_OK;
}

static int begin_life(struct ring_reader *reader, uint64_t start, uint64_t size, uint16_t device, bool holds_blocks,
                      uint32_t *number)
{
    if (reader->life_count >= NONE32 - 1 ||
        array_reserve(&reader->lives, &reader->life_capacity, reader->life_count + 1, sizeof(*reader->lives)))
        return error_no_memory(reader->err);
    uint32_t life = (uint32_t)reader->life_count++;
    reader->lives[life] = (struct ring_life){start, size, NONE32, device, holds_blocks};
    if (number)
        *number = life;
    return open_life(reader, life);
}

/* A block may lie over several mappings, one behind the other. */
static void mark(struct ring_reader *reader, uint64_t address, uint64_t size, uint16_t device)
{
    size_t place = open_after(reader, address);
    if (!place)
        return;
    struct ring_life *life = &reader->lives[reader->open[place - 1]];
    if (life->device != device || address - life->start >= life->size)
        return;
    life->holds_blocks = true;
    uint64_t end = address > UINT64_MAX - size ? UINT64_MAX : address + size, at = life->start + life->size;
    for (; place < reader->open_count && at < end; place++) {
        life = &reader->lives[reader->open[place]];
        if (life->start != at || life->device != device)
            return;
        life->holds_blocks = true;
        at += life->size;
    }
}

/* --- what was there before the ring's first event ----------------------------------------------------------------- */

static bool makes_segment(const struct ring_slot *slot)
{
    return slot->action == ACTION_SEGMENT_ALLOC || slot->action == ACTION_SEGMENT_MAP;
}

static bool ends_segment(const struct ring_slot *slot)
{
    return slot->action == ACTION_SEGMENT_FREE || slot->action == ACTION_SEGMENT_UNMAP;
}

static int begin_with_what_lives(struct ring_reader *reader, struct table *seen)
{
    for (size_t i = 0; i < reader->live.count; i++) {
        const struct ring_item *item = &reader->live.items[i];
        if (!item->alive || item->event != NONE32 || (item->key & RING_LIVE_BLOCK) ||
            item->record.sequence > reader->header.sequence)
            continue;
        if (table_set(seen, item->key, 1))
            return error_no_memory(reader->err);
        int status = begin_life(reader, item->key, item->record.size, item->record.device,
                                item->record.notes & RING_HOLDS_BLOCKS, NULL);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static int begin_with_what_ends(struct ring_reader *reader, struct table *seen)
{
    for (size_t i = 0; i < reader->event_count; i++) {
        const struct ring_slot *slot = &reader->events[i].slot;
        if (!makes_segment(slot) && !ends_segment(slot))
            continue;
        uint32_t *known = table_at(seen, slot->address, 0);
        if (!known)
            return error_no_memory(reader->err);
        bool is_new = !*known;
        *known = 1;
        if (!is_new || makes_segment(slot) || slot->result || (slot->flags & RING_SIZE_UNKNOWN))
            continue;
        int status = begin_life(reader, slot->address, slot->size, slot->device, slot->notes & RING_HOLDS_BLOCKS, NULL);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/* --- one event after the other ------------------------------------------------------------------------------------ */

static void end_lives(struct ring_reader *reader, struct ring_event *event)
{
    const struct ring_slot *slot = &event->slot;
    bool is_range = slot->action == ACTION_SEGMENT_UNMAP && !(slot->flags & RING_SIZE_UNKNOWN);
    uint64_t end = slot->address + slot->size, at = slot->address;
    uint32_t *link = &event->life;
    for (size_t place; (place = open_at(reader, at)) < reader->open_count;) {
        struct ring_life *life = &reader->lives[*link = reader->open[place]];
        life->holds_blocks = life->holds_blocks || (slot->notes & RING_HOLDS_BLOCKS);
        life->next = NONE32;
        link = &life->next;
        close_life(reader, place);
        uint64_t next = at + life->size;
        if (!is_range || next <= at || next >= end)
            break;
        at = next;
    }
}

static int follow_event(struct ring_reader *reader, struct ring_event *event, struct table *ended)
{
    const struct ring_slot *slot = &event->slot;
    uint64_t size = slot->flags & RING_SIZE_UNKNOWN ? 0 : slot->size;
    if (makes_segment(slot))
        return begin_life(reader, slot->address, size, slot->device, slot->notes & RING_HOLDS_BLOCKS, &event->life);
    if (ring_is_block_action(slot->action))
        mark(reader, slot->address, size, slot->device);
    if (!ends_segment(slot))
        return STATUS_OK;
    if (!slot->result) {
        end_lives(reader, event);
        return event->life == NONE32 || !table_set(ended, slot->address, event->life) ? STATUS_OK
                                                                                      : error_no_memory(reader->err);
    }
    event->life = table_get(ended, slot->address, NONE32); /* the free failed: it lives on */
    table_remove(ended, slot->address);
    return event->life == NONE32 ? STATUS_OK : open_life(reader, event->life);
}

static bool has_blocks(const struct ring_reader *reader)
{
    for (size_t i = 0; i < RING_DEVICES; i++)
        if (reader->devices[i].allocator)
            return true;
    for (size_t i = 0; i < reader->event_count; i++) {
        const struct ring_slot *slot = &reader->events[i].slot;
        bool is_refusal = slot->action == ACTION_OOM && !slot->call && reader->header.call_count > 1;
        if (ring_is_block_action(slot->action) || is_refusal)
            return true;
    }
    for (size_t i = 0; i < reader->live.count; i++)
        if (reader->live.items[i].alive && (reader->live.items[i].key & RING_LIVE_BLOCK))
            return true;
    return false;
}

/* --- refusals ------------------------------------------------------------------------------------------------------ */

/* An allocator whose blocks are told says itself when it has none to give; the driver's refusals before are steps on its
 * way to that, or to a block that was there in the end. */
static void take_steps(struct ring_reader *reader, uint32_t last, uint16_t device)
{
    if (last != NONE32 && device < RING_DEVICES)
        reader->retries[device]++;
    for (; last != NONE32; last = reader->events[last].refused)
        reader->events[last].is_step = true;
}

static int find_steps(struct ring_reader *reader)
{
    struct table waiting = {0}; /* thread -> its last refusal */
    int status = STATUS_OK;
    for (size_t i = 0; i < reader->event_count && !status; i++) {
        struct ring_event *event = &reader->events[i];
        const struct ring_slot *slot = &event->slot;
        bool is_oom = slot->action == ACTION_OOM, is_refusal = is_oom && slot->call && !(slot->notes & RING_HOLDS_BLOCKS);
        if (!is_oom && !ring_is_block_action(slot->action))
            continue;
        uint32_t last = table_get(&waiting, slot->thread + UINT64_C(1), NONE32);
        if (is_refusal) {
            event->refused = last;
            status = table_set(&waiting, slot->thread + UINT64_C(1), (uint32_t)i);
            continue;
        }
        if (is_oom || slot->action == ACTION_ALLOC)
            take_steps(reader, last, slot->device);
        table_remove(&waiting, slot->thread + UINT64_C(1));
    }
    table_free(&waiting);
    return status ? error_no_memory(reader->err) : STATUS_OK;
}

int ring_find_blocks(struct ring_reader *reader)
{
    reader->has_blocks = has_blocks(reader);
    if (!reader->has_blocks)
        return STATUS_OK;
    struct table seen = {0}, ended = {0};
    int status = begin_with_what_lives(reader, &seen);
    if (!status)
        status = begin_with_what_ends(reader, &seen);
    for (size_t i = 0; i < reader->event_count && !status; i++)
        status = follow_event(reader, &reader->events[i], &ended);
    for (size_t i = 0; i < reader->live.count && !status; i++) {
        const struct ring_item *item = &reader->live.items[i];
        if (item->alive && (item->key & RING_LIVE_BLOCK))
            mark(reader, item->key & RING_LIVE_ADDRESS, item->record.size, item->record.device);
    }
    table_free(&seen);
    table_free(&ended);
    return status ? status : find_steps(reader);
}

bool ring_holds_blocks(const struct ring_reader *reader, uint64_t start, uint16_t device)
{
    size_t place = open_at(reader, start);
    return place < reader->open_count && reader->lives[reader->open[place]].device == device &&
           reader->lives[reader->open[place]].holds_blocks;
}
