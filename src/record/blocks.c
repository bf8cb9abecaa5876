/*
 * An allocator's blocks: their numbers, and which segments it cut into such.  The ring forgets entries; these numbers it
 * does not, so that peaks stay exact however long a program runs.  Uses the table of live memory.
 */
#include "record/internal.h"

#include "base/memory_stats.h"

#include <errno.h>
#include <string.h>

static const struct held_change held_none;

void held_change_by(struct held_change *change, const struct ring_live *segment)
{
    if (!(segment->notes & RING_HOLDS_BLOCKS))
        return;
    if (!change->any)
        *change = held_none;
    int64_t *amount = change->amount[segment->size > RING_SMALL_HELD];
    change->any = true;
    amount[RING_HELD_CALLS] += 1;
    amount[RING_HELD_BYTES] += (int64_t)segment->size;
    amount[RING_HELD_SEGMENTS] += segment->action == RECORD_SEGMENT_ALLOC;
}

void held_move(struct ring_device *device, const struct held_change *change, stat_mover *move)
{
    if (!change->any)
        return;
    for (int measure = 0; measure < RING_HELD_MEASURES; measure++) {
        int64_t small = change->amount[0][measure], large = change->amount[1][measure];
        move(&device->held[measure][RING_SMALL], small);
        move(&device->held[measure][RING_LARGE], large);
        move(&device->held[measure][RING_ALL], small + large);
    }
}

void block_move(struct ring_device *device, uint64_t size, stat_mover *move)
{
    enum ring_class class = size > RING_SMALL_LIMIT ? RING_LARGE : RING_SMALL;
    move(&device->blocks[RING_BLOCK_COUNT][class], 1);
    move(&device->blocks[RING_BLOCK_COUNT][RING_ALL], 1);
    move(&device->blocks[RING_BLOCK_BYTES][class], (int64_t)size);
    move(&device->blocks[RING_BLOCK_BYTES][RING_ALL], (int64_t)size);
}

/* The first block in it: from now on the segment counts among those of the allocator. */
static void note_segment(uint64_t key, struct live_place place, struct ring_live *record)
{
    if (!live_note(key, place, RING_HOLDS_BLOCKS) || record->device >= RING_DEVICES)
        return;
    struct held_change change = {.any = false};
    record->notes |= RING_HOLDS_BLOCKS;
    held_change_by(&change, record);
    lock_header();
    held_move(&recorder.devices[record->device], &change, stat_add);
    __atomic_store_n(&recorder.header->lock, 0, __ATOMIC_RELEASE);
}

static void note_segments(uint64_t from, uint64_t address, uint64_t end)
{
    struct ring_live record;
    struct live_place place;
    while (from && from < end && live_find(from, &record, &place)) {
        if (record.size > UINT64_MAX - from)
            return;
        if (from + record.size > address)
            note_segment(from, place, &record);
        if (!record.size)
            return;
        from += record.size;
    }
}

void recorder_holds_block(uint64_t from, uint64_t address, uint64_t end)
{
    if (!recorder.state || recorder_state() != RECORDER_READY || recorder_self.inside)
        return;
    recorder_self.inside = 1; /* a signal handler's event would wait for the lock */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    note_segments(from & RING_LIVE_ADDRESS, address, end);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    recorder_self.inside = 0;
}

/* --- our own allocator -------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct memory_stats) == RING_ALLOCATOR_VALUES * sizeof(int64_t), "values only");

/* Appended to the file at the first call of a device: offset in the device's facts, NULL: no room. */
static struct ring_allocator *allocator_of(uint16_t ordinal)
{
    static struct ring_allocator *made[RING_DEVICES];
    static uint32_t generations[RING_DEVICES];
    if (made[ordinal] && generations[ordinal] == recorder.generation)
        return made[ordinal];
    uint64_t offset = 0;
    struct ring_allocator *numbers = ring_file_append(sizeof(*numbers), &offset);
    if (!numbers)
        return NULL;
    made[ordinal] = numbers;
    generations[ordinal] = recorder.generation;
    __atomic_store_n(&recorder.devices[ordinal].allocator, offset, __ATOMIC_RELEASE);
    return numbers;
}

void recorder_allocator(uint16_t ordinal, const struct memory_stats *stats)
{
    if (ordinal >= RING_DEVICES || !recorder.state || recorder_state() != RECORDER_READY || recorder_self.inside)
        return;
    int error = errno;
    recorder_self.inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct ring_allocator *numbers = allocator_of(ordinal);
    if (numbers) {
        uint64_t turn = __atomic_load_n(&numbers->turn, __ATOMIC_RELAXED) + 1;
        memcpy(numbers->values[turn & 1], stats, sizeof(numbers->values[0]));
        __atomic_store_n(&numbers->turn, turn, __ATOMIC_RELEASE);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    recorder_self.inside = 0;
    errno = error;
}
