/*
 * One event, from the call to the published slot.  Order: stack first (no lock is held while frames are taken), then
 * under the header's lock the sequence number, the time and the statistics, which so agree with each other, then the
 * slot, then the table of live memory; a process that is killed in between leaves no entry that contradicts the state.
 */
#include "record/internal.h"

#include <errno.h>
#include <string.h>

#define HOT __attribute__((hot))

struct recorder recorder;

#define self recorder_self

/* Changes of a device's numbers by one event: for the classes small and large. */
struct change {
    int64_t amount[2][RING_MEASURES];
    bool any[2];
};

static bool counts(uint8_t flags)
{
    unsigned kind = flags & RING_KIND_MASK;
    return kind != RECORD_HOST && kind != RECORD_IMPORTED; /* not memory that this process took from the device */
}

static void change_by(struct change *change, const struct ring_live *record)
{
    if (!counts(record->flags))
        return;
    int large = record->size > RING_SMALL_LIMIT;
    change->any[large] = true;
    change->amount[large][RING_COUNT] += 1;
    change->amount[large][RING_BYTES] += (int64_t)record->size;
    change->amount[large][RING_REQUESTED] +=
        (int64_t)(record->requested == RECORD_UNKNOWN ? record->size : record->requested);
}

static inline __attribute__((always_inline)) void apply(struct ring_device *device, const struct change *change,
                                                        void (*move)(struct ring_stat *, int64_t))
{
    for (int large = 0; large < 2; large++) {
        if (!change->any[large])
            continue;
        for (int measure = 0; measure < RING_MEASURES; measure++)
            move(&device->stats[measure][RING_SMALL + large], change->amount[large][measure]);
    }
    for (int measure = 0; measure < RING_MEASURES; measure++)
        move(&device->stats[measure][RING_ALL], change->amount[0][measure] + change->amount[1][measure]);
}

static bool is_change(const struct change *change)
{
    return change->any[0] || change->any[1];
}

enum effect { EFFECT_NONE, EFFECT_ADD, EFFECT_REMOVE, EFFECT_RESTORE, EFFECT_WAIT };

/* A block goes when its free is requested: when that completes, nobody may tell, but for our own allocator. */
static enum effect effect_of(const struct record_event *event)
{
    switch (event->action) {
    case RECORD_ALLOC:
    case RECORD_SEGMENT_ALLOC:
    case RECORD_SEGMENT_MAP:
        return EFFECT_ADD;
    case RECORD_FREE_COMPLETED:
        return event->is_cached ? EFFECT_REMOVE : EFFECT_NONE;
    case RECORD_FREE_REQUESTED:
        if (event->is_cached)
            return EFFECT_WAIT;
        __attribute__((fallthrough));
    case RECORD_SEGMENT_FREE:
    case RECORD_SEGMENT_UNMAP:
        return event->result ? EFFECT_RESTORE : EFFECT_REMOVE;
    default:
        return EFFECT_NONE;
    }
}

/* Everything an event is on its way. */
struct passage {
    const struct record_event *event;
    enum effect effect;
    uint64_t key;
    unsigned device;
    uint64_t size;
    uint64_t sequence, ticks, slot;
    uint32_t stack, python_stack;
    bool found, placed;     /* placed: the slot is ours */
    bool paused;
    bool recorded;          /* of a free: an entry tells of the memory, or of a part of it */
    struct ring_slot *ring;
    struct change change;
    struct held_change held;
    struct ring_live fresh; /* of an allocation: what goes into the table */
    struct ring_live old;   /* of a free: the first record removed; of an allocation: one thought live there */
    struct live_place place;
};

/* A free: what it removes.  An unmapping may cover several mappings, each of them whole. */
static void look_up(struct passage *passage)
{
    const struct record_event *event = passage->event;
    passage->found = live_find(passage->key, &passage->old, &passage->place);
    if (!passage->found) {
        recorder_count(&recorder.header->unknown_frees);
        return;
    }
    if (passage->size == RECORD_UNKNOWN)
        passage->size = passage->old.size;
    passage->device = passage->old.device;
    struct recorder_thread_block *block = self.block;
    uint64_t key = passage->key, end = key + passage->size;
    struct ring_live record = passage->old;
    struct live_place place;
    for (bool more = true; more; more = event->action == RECORD_SEGMENT_UNMAP && key < end &&
                                        live_find(key, &record, &place)) {
        if (!live_is_block(event->action)) {
            change_by(&passage->change, &record);
            held_change_by(&passage->held, &record);
        }
        passage->recorded |= !(record.notes & RING_WHILE_PAUSED);
        if (block && block->removed_count < RECORDER_REMOVED) {
            block->removed_keys[block->removed_count] = key;
            block->removed[block->removed_count++] = record;
        }
        if (!record.size)
            break;
        key += record.size;
    }
}

static void remove_live(const struct passage *passage)
{
    if (!passage->found)
        return;
    live_remove(passage->key, passage->place);
    uint64_t end = passage->key + passage->size, key = passage->key + passage->old.size;
    struct ring_live record;
    struct live_place place;
    while (passage->event->action == RECORD_SEGMENT_UNMAP && passage->old.size && key < end &&
           live_find(key, &record, &place)) {
        live_remove(key, place);
        if (!record.size)
            break;
        key += record.size;
    }
}

/* A free that failed after it was recorded: what it removed is there again. */
static void look_up_removed(struct passage *passage)
{
    const struct recorder_thread_block *block = self.block;
    if (!block || block->freed_address != passage->key)
        return;
    for (uint32_t i = 0; i < block->removed_count; i++) {
        change_by(&passage->change, &block->removed[i]);
        held_change_by(&passage->held, &block->removed[i]);
    }
    if (block->removed_count) {
        passage->device = block->removed[0].device;
        if (passage->size == RECORD_UNKNOWN)
            passage->size = block->removed[0].size;
    }
}

static void restore_live(const struct passage *passage)
{
    struct recorder_thread_block *block = self.block;
    if (!block || block->freed_address != passage->key)
        return;
    for (uint32_t i = 0; i < block->removed_count; i++)
        if (!live_insert(block->removed_keys[i], &block->removed[i]))
            recorder_count(&recorder.header->lost_live);
    block->removed_count = 0;
    block->freed_address = 0;
}

/* A block's free is of the stream that it was taken for, if that is known. */
static bool goes_with_block(const struct passage *passage)
{
    return passage->effect == EFFECT_REMOVE && passage->found && live_is_block(passage->event->action) &&
           !(passage->old.flags & RING_STREAM_UNKNOWN);
}

static uint8_t flags_of(const struct passage *passage)
{
    const struct record_event *event = passage->event;
    uint8_t flags = event->kind & RING_KIND_MASK;
    if (event->stream_unknown && !goes_with_block(passage))
        flags |= RING_STREAM_UNKNOWN;
    if (passage->size == RECORD_UNKNOWN)
        flags |= RING_SIZE_UNKNOWN;
    return flags;
}

static void fill_fresh(struct passage *passage)
{
    const struct record_event *event = passage->event;
    struct ring_live *fresh = &passage->fresh;
    fresh->size = passage->size == RECORD_UNKNOWN ? 0 : passage->size;
    fresh->requested = event->requested;
    fresh->pool = event->pool;
    fresh->stream = event->stream;
    fresh->stack = passage->stack;
    fresh->python_stack = passage->python_stack;
    fresh->thread = self.number;
    fresh->device = (uint16_t)passage->device;
    fresh->call = event->call;
    fresh->action = event->action;
    fresh->flags = flags_of(passage);
    fresh->notes = (event->requested_unknown ? RING_REQUESTED_UNKNOWN : 0) | (event->unmapped ? RING_UNMAPPED : 0);
    if (passage->paused && !event->unmapped)
        fresh->notes |= RING_WHILE_PAUSED;
    if (event->is_cached && !live_is_block(event->action))
        fresh->notes |= RING_HOLDS_BLOCKS;
    memset(fresh->spare, 0, sizeof(fresh->spare));
}

static void add_live(struct passage *passage)
{
    if (!passage->key)
        return;
    passage->fresh.sequence = passage->sequence;
    passage->fresh.ticks = passage->ticks;
    if (passage->found) { /* its free was never seen */
        live_remove(passage->key, passage->place);
        recorder_count(&recorder.header->replaced);
    }
    if (!live_insert(passage->key, &passage->fresh))
        recorder_count(&recorder.header->lost_live);
}

/* What must be known before the event gets its place in the order. */
static void prepare(struct passage *passage)
{
    struct recorder_thread_block *block = self.block;
    if (passage->effect == EFFECT_ADD) {
        if (passage->key)
            passage->found = live_find(passage->key, &passage->old, &passage->place);
        fill_fresh(passage);
        if (!live_is_block(passage->event->action)) {
            change_by(&passage->change, &passage->fresh);
            held_change_by(&passage->held, &passage->fresh);
        }
    } else if (passage->effect == EFFECT_REMOVE) {
        if (block) {
            block->freed_address = passage->key;
            block->removed_count = 0;
        }
        look_up(passage);
        if (block)
            block->free_skipped = passage->paused && !passage->recorded;
    } else if (passage->effect == EFFECT_RESTORE) {
        look_up_removed(passage);
    } else if (passage->effect == EFFECT_WAIT) {
        passage->found = live_find(passage->key, &passage->old, &passage->place);
        passage->recorded = passage->found && !(passage->old.notes & RING_WHILE_PAUSED);
    }
}

/* As with segments: one that is thought live where another comes went unseen. */
static void move_block(const struct passage *passage)
{
    struct ring_device *device = &recorder.devices[passage->device];
    if (passage->found && passage->old.device < RING_DEVICES &&
        (passage->effect == EFFECT_ADD || passage->effect == EFFECT_REMOVE))
        block_move(&recorder.devices[passage->old.device], passage->old.size, stat_subtract);
    if (passage->effect == EFFECT_ADD)
        block_move(device, passage->fresh.size, stat_add);
    else if (passage->effect == EFFECT_RESTORE && passage->size != RECORD_UNKNOWN)
        block_move(device, passage->size, stat_restore);
}

static void move_statistics(struct passage *passage)
{
    struct ring_device *device = &recorder.devices[passage->device];
    uint8_t action = passage->event->action;
    if (action == RECORD_OOM) {
        device->ooms++;
        device->block_ooms += passage->event->call == 0;
    }
    if (live_is_block(action)) {
        move_block(passage);
        return;
    }
    if (passage->effect == EFFECT_ADD) {
        if (passage->found && passage->old.device < RING_DEVICES) {
            struct change replaced = {0};
            struct held_change held = {.any = false};
            change_by(&replaced, &passage->old);
            held_change_by(&held, &passage->old);
            apply(&recorder.devices[passage->old.device], &replaced, stat_subtract);
            held_move(&recorder.devices[passage->old.device], &held, stat_subtract);
        }
        apply(device, &passage->change, stat_add);
        held_move(device, &passage->held, stat_add);
        device->device_allocs += is_change(&passage->change);
    } else if (passage->effect == EFFECT_REMOVE && passage->event->unmapped && is_change(&passage->change)) {
        apply(device, &passage->change, stat_undo); /* it goes on as a mapping, or was never used */
        device->device_allocs--;
    } else if (passage->effect == EFFECT_REMOVE && is_change(&passage->change)) {
        apply(device, &passage->change, stat_subtract);
        held_move(device, &passage->held, stat_subtract);
        device->device_frees++;
    } else if (passage->effect == EFFECT_RESTORE && is_change(&passage->change)) {
        apply(device, &passage->change, stat_restore);
        held_move(device, &passage->held, stat_restore);
        device->device_frees--;
    }
}

/* A slot still held by a writer that stalled for a whole round is left alone. */
static void take_slot(struct passage *passage)
{
    passage->slot = recorder.devices[passage->device].head;
    __atomic_store_n(&recorder.devices[passage->device].head, passage->slot + 1, __ATOMIC_RELAXED);
    struct ring_slot *slot = &passage->ring[passage->slot & (recorder.slots - 1)];
    passage->placed = !(__atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) & RING_BUSY);
    if (passage->placed)
        __atomic_store_n(&slot->sequence, passage->sequence | RING_BUSY, __ATOMIC_RELAXED);
}

static void order(struct passage *passage)
{
    struct ring_header *header = recorder.header;
    lock_header();
    passage->sequence = header->sequence + 1;
    __atomic_store_n(&header->sequence, passage->sequence, __ATOMIC_RELAXED);
    passage->placed = false;
    if (!passage->event->unmapped)
        take_slot(passage);
    if (passage->ticks < header->last_ticks) /* times never run against the order */
        passage->ticks = header->last_ticks;
    header->last_ticks = passage->ticks;
    move_statistics(passage);
    __atomic_store_n(&header->lock, 0, __ATOMIC_RELEASE);
}

/* The end of memory that came while recording was paused tells of that, for no other entry does. */
static bool ends_unrecorded(const struct passage *passage)
{
    return passage->effect == EFFECT_REMOVE && passage->found && (passage->old.notes & RING_WHILE_PAUSED) &&
           (passage->event->action != RECORD_SEGMENT_UNMAP || passage->size <= passage->old.size);
}

/* While the slot is ours, so is the extension at its place. */
static uint8_t extend(const struct passage *passage, uint64_t position)
{
    const struct record_event *event = passage->event;
    bool unrecorded = ends_unrecorded(passage);
    if (!unrecorded && !event->pool && (event->requested == RECORD_UNKNOWN || event->requested == passage->size))
        return 0;
    uint64_t a_chunk = recorder.slots / RING_EXTENSION_CHUNKS;
    struct ring_extension *extensions =
        __atomic_load_n(&recorder.extensions[passage->device][position / a_chunk], __ATOMIC_ACQUIRE);
    if (!extensions && !(extensions = recorder_open_extensions(passage->device, position / a_chunk)))
        return 0;
    struct ring_extension *extension = &extensions[position % a_chunk];
    *extension = (struct ring_extension){passage->sequence, event->requested, event->pool, 0};
    if (unrecorded)
        *extension = (struct ring_extension){passage->sequence, passage->old.requested, passage->old.pool,
                                             passage->old.ticks};
    return RING_EXTENDED;
}

/* The end of a segment says whether it held blocks. */
static uint32_t notes_of(const struct passage *passage)
{
    uint32_t notes = passage->event->requested_unknown ? RING_REQUESTED_UNKNOWN : 0;
    if (passage->effect == EFFECT_REMOVE && passage->found)
        notes |= passage->old.notes & (RING_HOLDS_BLOCKS | RING_WHILE_PAUSED);
    if (passage->event->same_call)
        notes |= RING_SAME_CALL;
    if (passage->effect == EFFECT_WAIT)
        notes |= RING_FREE_TOLD;
    if (passage->event->is_cached && !live_is_block(passage->event->action))
        notes |= RING_HOLDS_BLOCKS;
    return notes;
}

static void publish(const struct passage *passage)
{
    const struct record_event *event = passage->event;
    uint64_t position = passage->slot & (recorder.slots - 1);
    struct ring_slot *slot = &passage->ring[position];
#ifndef __SANITIZE_THREAD__
    __atomic_thread_fence(__ATOMIC_RELEASE); /* the busy mark is seen before what follows */
#endif
    slot->ticks = passage->ticks;
    slot->address = event->address;
    slot->size = passage->size;
    slot->stream = event->stream_unknown && goes_with_block(passage) ? passage->old.stream : event->stream;
    slot->thread = self.number;
    slot->stack = passage->stack;
    slot->python_stack = passage->python_stack;
    slot->action = event->action;
    slot->flags = flags_of(passage) | extend(passage, position);
    slot->device = (uint16_t)passage->device;
    slot->call = event->call;
    slot->notes = notes_of(passage);
    slot->result = event->result < 0 || event->result > UINT16_MAX ? UINT16_MAX : (uint16_t)event->result;
    __atomic_store_n(&slot->sequence, passage->sequence, __ATOMIC_RELEASE);
    __builtin_prefetch(&passage->ring[(position + 8) & (recorder.slots - 1)], 1);
    if (position % RECORDER_AHEAD == RECORDER_AHEAD / 2)
        recorder_touch_ahead(passage->ring, position + RECORDER_AHEAD / 2);
}

/* While recording is paused, entries tell only of the end of memory of which they told already, so that they never
 * contradict what lives, and of failures. */
static bool is_skipped(const struct passage *passage)
{
    if (passage->event->unmapped)
        return false; /* it never is an entry */
    switch (passage->effect) {
    case EFFECT_ADD:
        return passage->paused;
    case EFFECT_REMOVE:
    case EFFECT_WAIT:
        return passage->paused && !passage->recorded;
    case EFFECT_RESTORE: /* as the free was */
        return self.block && self.block->freed_address == passage->key && self.block->free_skipped;
    default:
        return passage->paused && passage->event->action != RECORD_OOM;
    }
}

/* No entry, but what lives and the statistics follow. */
static RECORDER_COLD void skip(struct passage *passage)
{
    struct ring_header *header = recorder.header;
    lock_header();
    passage->sequence = header->sequence;
    __atomic_store_n(&header->skipped_paused, header->skipped_paused + 1, __ATOMIC_RELAXED);
    if (passage->ticks < header->last_ticks)
        passage->ticks = header->last_ticks;
    header->last_ticks = passage->ticks;
    move_statistics(passage);
    __atomic_store_n(&header->lock, 0, __ATOMIC_RELEASE);
}

/* The slot in the ring of its device.  False: there is no room for that one. */
static inline bool enter_ring(struct passage *passage)
{
    passage->ring = __atomic_load_n(&recorder.rings[passage->device], __ATOMIC_ACQUIRE);
    if (!passage->ring && !(passage->ring = recorder_open_ring(passage->device))) {
        recorder_count(&recorder.devices[passage->device].ring_failed);
        return false;
    }
    order(passage);
    if (passage->placed)
        publish(passage);
    else if (!passage->event->unmapped)
        recorder_count(&recorder.devices[passage->device].dropped);
    return true;
}

static HOT uint64_t record(const struct record_event *event)
{
    struct passage passage;
    passage.event = event;
    passage.device = event->device;
    passage.size = event->size;
    passage.effect = effect_of(event);
    passage.key = live_key(event->address, event->action);
    passage.ticks = ticks_now();
    passage.stack = passage.python_stack = RING_STACK_NONE;
    passage.found = false;
    passage.change = (struct change){0};
    passage.held.any = false;
    passage.paused = __atomic_load_n(&recorder.header->paused, __ATOMIC_RELAXED);
    passage.recorded = false;
    if ((recorder.stacks || recorder.python) && self.block && (!passage.paused || event->action == RECORD_OOM))
        stack_capture(self.block, event->skip, passage.ticks, &passage.stack, &passage.python_stack);
    prepare(&passage);
    if (passage.device >= RING_DEVICES) {
        recorder_count(&recorder.header->dropped_device);
        return 0;
    }
    if (__builtin_expect(is_skipped(&passage), 0))
        skip(&passage);
    else if (!enter_ring(&passage))
        return 0;
    if (passage.effect == EFFECT_ADD)
        add_live(&passage);
    else if (passage.effect == EFFECT_REMOVE)
        remove_live(&passage);
    else if (passage.effect == EFFECT_RESTORE)
        restore_live(&passage);
    else if (passage.effect == EFFECT_WAIT && passage.found)
        live_note(passage.key, passage.place, RING_FREE_TOLD);
    if (__builtin_expect(passage.ticks >= __atomic_load_n(&recorder.next_calibration, __ATOMIC_RELAXED), 0))
        ticks_calibrate(passage.ticks);
    return passage.sequence + !passage.sequence;
}

static RECORDER_COLD void turn_away(void)
{
    /* The file may be being made by the very thread that was interrupted. */
    recorder_count(recorder_state() == RECORDER_READY ? &recorder.header->dropped_nested : &recorder.dropped_nested);
}

HOT uint64_t recorder_event(const struct record_event *event)
{
    if (!recorder.state)
        return 0;
    uint32_t state = recorder_state();
    if (state == RECORDER_OFF)
        return 0;
    if (self.inside) {
        turn_away();
        return 0;
    }
    int error = errno;
    uint64_t sequence = 0;
    self.inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (state == RECORDER_READY || recorder_open_file(event->device)) {
        if (__builtin_expect(self.generation != recorder.generation, 0))
            recorder_enter_thread();
        sequence = record(event);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.inside = 0;
    errno = error;
    return sequence;
}
