/*
 * What lives at the end of a ring file, as the snapshot's state: every segment is one block, or, where a framework told
 * of its blocks, cut into them.  And the numbers of the devices then.  May use src/base and the snapshot.
 */
#include "format/ring_builder.h"

#include <stdlib.h>
#include <string.h>

#define OWN_TURNS 100 /* looks at what changes meanwhile */
#define SMALL_BLOCK (INT64_C(1) << 20)    /* at most: of the small pool */
#define SMALL_SEGMENT (UINT64_C(2) << 20)
#define LARGE_PAGE (INT64_C(20) << 20)    /* what the large pool maps */

static int compare_items(const void *a, const void *b)
{
    const struct ring_item *x = a, *y = b;
    if (x->record.device != y->record.device)
        return x->record.device < y->record.device ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static uint64_t address_of(const struct ring_item *item)
{
    return item->key & RING_LIVE_ADDRESS;
}

static uint64_t end_of(const struct ring_item *item)
{
    return address_of(item) + item->record.size;
}

static int item_context(struct build *build, const struct ring_item *item, uint32_t *context)
{
    if (item->event == NONE32)
        return ring_build_context(build, item->record.stack, item->record.python_stack, context);
    *context = build->reader->events[item->event].context;
    return STATUS_OK;
}

static int add_segment(struct build *build, const struct ring_item *item, uint64_t size, bool is_outside)
{
    const struct ring_live *record = &item->record;
    uint64_t small = build->reader->has_blocks ? SMALL_SEGMENT : RING_SMALL_LIMIT;
    struct segment segment = {.address = address_of(item), .total_size = size, .stream = record->stream,
                              .pool = ring_build_pool(build, record->pool), .device = record->device,
                              .is_large = record->size > small, .is_expandable = record->action == ACTION_SEGMENT_MAP,
                              .is_outside = is_outside, .kind = record->flags & RING_KIND_MASK};
    int status = item_context(build, item, &segment.context);
    if (status)
        return status;
    return segment.pool == NONE32 || state_add_segment(&build->snapshot->end, &segment)
               ? error_no_memory(build->reader->err) : STATUS_OK;
}

/* A living block of the last segment: all of an item, or what fits. */
static int add_block(struct build *build, const struct ring_item *item, uint64_t size)
{
    const struct ring_live *record = &item->record;
    struct state *state = &build->snapshot->end;
    struct segment *segment = &state->segments[state->segment_count - 1];
    struct block block = {.address = address_of(item), .size = size, .state = BLOCK_ACTIVE_ALLOCATED,
                          .requested = record->requested == UINT64_MAX ? size : record->requested};
    if (record->notes & RING_REQUESTED_UNKNOWN)
        block.flags |= BLOCK_REQUESTED_UNKNOWN;
    if (item->event == NONE32)
        block.flags |= BLOCK_BEFORE_RECORDING;
    int status = item_context(build, item, &block.context);
    if (status)
        return status;
    bool waits = record->notes & RING_FREE_TOLD;
    if (waits)
        block.state = BLOCK_ACTIVE_PENDING_FREE;
    segment->allocated_size += waits ? 0 : size;
    segment->active_size += size;
    segment->requested_size += block.requested;
    return state_add_block(state, &block) ? error_no_memory(build->reader->err) : STATUS_OK;
}

static int add_hole(struct build *build, uint64_t start, uint64_t end)
{
    struct block hole = {.address = start, .size = end - start, .context = CONTEXT_NONE, .state = BLOCK_INACTIVE,
                         .flags = BLOCK_REQUESTED_UNKNOWN};
    bool failed = start < end && state_add_block(&build->snapshot->end, &hole);
    return failed ? error_no_memory(build->reader->err) : STATUS_OK;
}

static int add_whole(struct build *build, const struct ring_item *item)
{
    int status = add_segment(build, item, item->record.size, build->reader->has_blocks);
    return status ? status : add_block(build, item, item->record.size);
}

/* --- segments and the blocks in them ------------------------------------------------------------------------------ */

struct row { /* of one device, by address */
    const struct ring_item *items;
    size_t count;
};

static bool holds_blocks(const struct build *build, const struct ring_item *segment)
{
    bool is_noted = segment->event == NONE32 && (segment->record.notes & RING_HOLDS_BLOCKS);
    return is_noted || ring_holds_blocks(build->reader, segment->key, segment->record.device);
}

/* Mappings side by side are one segment that grew, if one of them was cut. */
static size_t segment_parts(const struct build *build, const struct row *segments, bool *is_cut)
{
    const struct ring_item *first = segments->items;
    size_t count = 1;
    *is_cut = holds_blocks(build, first);
    for (; count < segments->count; count++) {
        const struct ring_item *last = &first[count - 1], *next = &first[count];
        if (last->record.action != ACTION_SEGMENT_MAP || next->record.action != ACTION_SEGMENT_MAP ||
            end_of(last) != next->key || last->record.stream != next->record.stream ||
            last->record.pool != next->record.pool ||
            (last->record.size > SMALL_SEGMENT) != (next->record.size > SMALL_SEGMENT))
            break;
        *is_cut = holds_blocks(build, next) || *is_cut;
    }
    return count;
}

static void step(struct row *row, size_t count)
{
    row->items += count;
    row->count -= count;
}

/* A block from *at on, with the hole before it; one that lies over another is left out. */
static int lay_block(struct build *build, const struct ring_item *item, uint64_t end, uint64_t *at)
{
    uint64_t address = address_of(item), size = item->record.size;
    if (address < *at || address >= end)
        return STATUS_OK;
    if (size > end - address)
        size = end - address;
    int status = add_hole(build, *at, address);
    *at = address + size;
    return status ? status : add_block(build, item, size);
}

static int lay_out(struct build *build, const struct ring_item *parts, size_t count, struct row *blocks)
{
    uint64_t at = parts[0].key, end = end_of(&parts[count - 1]);
    int status = add_segment(build, &parts[0], end - at, false);
    for (size_t i = 0; i < count && !status; i++) {
        if (!holds_blocks(build, &parts[i]))
            status = lay_block(build, &parts[i], end, &at);
        for (; blocks->count && address_of(blocks->items) < end_of(&parts[i]) && !status; step(blocks, 1))
            status = lay_block(build, blocks->items, end, &at);
    }
    return status ? status : add_hole(build, at, end);
}

/* Blocks before the next segment lie in none that we know: each gets one. */
static int house(struct build *build, struct row *blocks, uint64_t until)
{
    int status = STATUS_OK;
    for (; blocks->count && address_of(blocks->items) < until && !status; step(blocks, 1)) {
        uint64_t size = blocks->items->record.size, room = until - address_of(blocks->items);
        size = size > room ? room : size;
        status = add_segment(build, blocks->items, size, false);
        if (!status)
            status = add_block(build, blocks->items, size);
    }
    return status;
}

static int build_device_state(struct build *build, struct row segments, struct row blocks)
{
    int status = STATUS_OK;
    while (segments.count && !status) {
        bool is_cut = false;
        size_t parts = build->reader->has_blocks ? segment_parts(build, &segments, &is_cut) : 1;
        status = house(build, &blocks, segments.items->key);
        if (!status && is_cut)
            status = lay_out(build, segments.items, parts, &blocks);
        for (size_t i = 0; i < parts && !status && !is_cut; i++)
            status = add_whole(build, &segments.items[i]);
        step(&segments, parts);
    }
    return status ? status : house(build, &blocks, UINT64_MAX);
}

/* --- the numbers of a device -------------------------------------------------------------------------------------- */

/* What moves with a block, and with a segment. */
static const enum memory_stat_kind block_counts[] = {MEMORY_STAT_ALLOCATION, MEMORY_STAT_ACTIVE};
static const enum memory_stat_kind block_bytes[] = {MEMORY_STAT_ALLOCATED_BYTES, MEMORY_STAT_ACTIVE_BYTES,
                                                    MEMORY_STAT_REQUESTED_BYTES};

typedef void mover(struct memory_stats *stats, enum memory_stat_kind kind, enum memory_pool_class pool, int64_t amount);

static void move_block(struct memory_stats *stats, mover *move, enum memory_pool_class pool, int64_t size)
{
    for (size_t i = 0; i < sizeof(block_counts) / sizeof(*block_counts); i++)
        move(stats, block_counts[i], pool, 1);
    for (size_t i = 0; i < sizeof(block_bytes) / sizeof(*block_bytes); i++)
        move(stats, block_bytes[i], pool, size);
}

static bool is_counted(uint8_t kind)
{
    return kind != MEMORY_HOST && kind != MEMORY_IMPORTED;
}

static void count_entry(struct memory_stats *changes, const struct entry *entry)
{
    int64_t size = entry->size > INT64_MAX / 4 ? 0 : (int64_t)entry->size;
    bool is_map = entry->action == ACTION_SEGMENT_MAP || entry->action == ACTION_SEGMENT_UNMAP;
    bool is_large = entry->action == ACTION_SEGMENT_UNMAP ? size % LARGE_PAGE == 0 : size > (int64_t)SMALL_SEGMENT;
    bool grows = entry->action == ACTION_ALLOC || entry->action == ACTION_SEGMENT_ALLOC ||
                 entry->action == ACTION_SEGMENT_MAP || (entry->flags & ENTRY_FAILED);
    mover *move = grows ? memory_stats_increase : memory_stats_decrease;
    if (entry->action == ACTION_ALLOC || entry->action == ACTION_FREE_REQUESTED)
        move_block(changes, move, size > SMALL_BLOCK ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL, size);
    if (entry->action < ACTION_SEGMENT_ALLOC || entry->action > ACTION_SEGMENT_UNMAP)
        return;
    move(changes, MEMORY_STAT_RESERVED_BYTES, is_large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL, size);
    if (!is_map)
        move(changes, MEMORY_STAT_SEGMENT, is_large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL, 1);
}

static void count_segment(struct memory_stats *now, const struct state *state, const struct segment *segment)
{
    enum memory_pool_class pool = segment->is_large ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL;
    memory_stats_increase(now, MEMORY_STAT_RESERVED_BYTES, pool, (int64_t)segment->total_size);
    if (!segment->is_expandable)
        memory_stats_increase(now, MEMORY_STAT_SEGMENT, pool, 1);
    for (uint32_t b = 0; b < segment->block_count; b++) {
        const struct block *block = &state->blocks[segment->first_block + b];
        int64_t size = (int64_t)block->size;
        if (block->state == BLOCK_ACTIVE_ALLOCATED) {
            move_block(now, memory_stats_increase, size > SMALL_BLOCK ? MEMORY_POOL_LARGE : MEMORY_POOL_SMALL, size);
        } else if (segment->block_count > 1 && !segment->is_expandable) {
            memory_stats_increase(now, MEMORY_STAT_INACTIVE_SPLIT, pool, 1);
            memory_stats_increase(now, MEMORY_STAT_INACTIVE_SPLIT_BYTES, pool, size);
        }
    }
}

/* Of what the recorder did not count: requested bytes and free blocks in split segments, from the entries back from the
 * end; what the ring forgot makes peaks and sums too low. */
static void count_entries(const struct build *build, struct device *device)
{
    const struct snapshot *snapshot = build->snapshot;
    struct memory_stats changes, now;
    memory_stats_init(&changes);
    memory_stats_init(&now);
    for (size_t i = 0; i < snapshot->entries.count; i++) {
        struct entry entry = snapshot_entry(snapshot, i);
        if (entry.device == device->ordinal && is_counted(entry.kind) && !(entry.flags & ENTRY_OUTSIDE))
            count_entry(&changes, &entry);
    }
    for (size_t s = 0; s < snapshot->end.segment_count; s++) {
        const struct segment *segment = &snapshot->end.segments[s];
        if (segment->device == device->ordinal && is_counted(segment->kind) && !segment->is_outside)
            count_segment(&now, &snapshot->end, segment);
    }
    for (int kind = 0; kind < MEMORY_STAT_KINDS; kind++) {
        for (int pool = 0; pool < MEMORY_POOL_CLASSES; pool++) {
            struct memory_stat change = changes.kinds[kind][pool];
            int64_t current = now.kinds[kind][pool].current, before = current - change.current;
            change.peak += before > 0 ? before : 0;
            change.current = current;
            change.peak = change.peak < current ? current : change.peak;
            device->stats.kinds[kind][pool] = change;
        }
    }
}

static struct memory_stat stat_of(const struct ring_stat *from)
{
    return (struct memory_stat){from->current, from->peak, from->allocated, from->freed};
}

/* Our own allocator's, as it kept them.  False: it serves no memory of this device, or they are torn. */
static int own_numbers(const struct build *build, const struct ring_device *from, struct memory_stats *stats, bool *own)
{
    struct ring_allocator numbers;
    *own = false;
    if (!from->allocator)
        return STATUS_OK;
    for (int turns = 0; turns < OWN_TURNS && !*own; turns++) {
        uint64_t turn = 0;
        int status = ring_read_at(build->reader, from->allocator, &numbers, sizeof(numbers), "an allocator's numbers");
        if (!status)
            status = ring_read_at(build->reader, from->allocator, &turn, sizeof(turn), "an allocator's numbers");
        if (status)
            return status;
        *own = turn == numbers.turn;
        memcpy(stats, numbers.values[numbers.turn & 1], sizeof(*stats));
    }
    return STATUS_OK;
}

/* Where an allocator tells of its blocks, its numbers are the device's: those of its blocks and of the segments that
 * it cut into such. */
static int count_device(const struct build *build, struct device *device)
{
    const struct ring_device *from = &build->reader->devices[device->ordinal];
    struct memory_stats *stats = &device->stats;
    bool own;
    int status = own_numbers(build, from, stats, &own);
    if (status || own)
        return status;
    device->stats_exact = device->stats_exact && !from->allocator;
    count_entries(build, device);
    for (int class = 0; class < RING_CLASSES; class++) {
        stats->kinds[MEMORY_STAT_ALLOCATION][class] = stats->kinds[MEMORY_STAT_ACTIVE][class] =
            stat_of(&from->blocks[RING_BLOCK_COUNT][class]);
        stats->kinds[MEMORY_STAT_ALLOCATED_BYTES][class] = stats->kinds[MEMORY_STAT_ACTIVE_BYTES][class] =
            stat_of(&from->blocks[RING_BLOCK_BYTES][class]);
        stats->kinds[MEMORY_STAT_RESERVED_BYTES][class] = stat_of(&from->held[RING_HELD_BYTES][class]);
        stats->kinds[MEMORY_STAT_SEGMENT][class] = stat_of(&from->held[RING_HELD_SEGMENTS][class]);
    }
    stats->num_device_alloc = from->held[RING_HELD_CALLS][RING_ALL].allocated;
    stats->num_device_free = from->held[RING_HELD_CALLS][RING_ALL].freed;
    stats->num_ooms = from->block_ooms;
    stats->num_alloc_retries = build->reader->retries[device->ordinal];
    return STATUS_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* What lives goes to the front, by device and address, a device's segments before its blocks. */
static int keep_living(struct build *build, size_t *count)
{
    struct ring_items *live = &build->reader->live;
    *count = 0;
    for (size_t i = 0; i < live->count; i++) {
        const struct ring_item *item = &live->items[i];
        if (!item->alive || item->record.sequence > build->reader->header.sequence)
            continue;
        if (item->record.size > UINT64_MAX - address_of(item))
            return error_set(build->reader->err, STATUS_INPUT, "has live memory that ends beyond the address space");
        live->items[(*count)++] = *item;
    }
    if (*count)
        qsort(live->items, *count, sizeof(*live->items), compare_items);
    return STATUS_OK;
}

/* The items from *at on that are of this device, and blocks or not. */
static struct row take_row(const struct ring_item *items, size_t count, size_t *at, uint16_t device, bool are_blocks)
{
    struct row row = {.items = items + *at};
    for (; *at < count && items[*at].record.device == device; ++*at, row.count++)
        if (((items[*at].key & RING_LIVE_BLOCK) != 0) != are_blocks)
            break;
    return row;
}

int ring_build_state(struct build *build)
{
    const struct ring_item *items = build->reader->live.items;
    struct state *state = &build->snapshot->end;
    size_t count = 0;
    int status = keep_living(build, &count);
    for (size_t i = 0; i < count && !status;) {
        uint16_t device = items[i].record.device;
        struct row segments = take_row(items, count, &i, device, false);
        struct row blocks = take_row(items, count, &i, device, true);
        status = build_device_state(build, segments, blocks);
    }
    for (size_t i = 0; i < build->snapshot->device_count && build->reader->has_blocks && !status; i++)
        status = count_device(build, &build->snapshot->devices[i]);
    state->moment = build->snapshot->entries.count;
    state->exact = true;
    return status;
}
