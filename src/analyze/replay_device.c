/* The device of a replay.  May use src/snapshot, src/device, src/base. */
#include "analyze/replay_device.h"

#include "base/array.h"

#include <stdlib.h>


#define CHUNK_END(address) (((address) + PLACEMENT_CHUNK - 1) / PLACEMENT_CHUNK * PLACEMENT_CHUNK)
#define MOST_AHEAD 100000 /* entries looked at for the end of a hole */
#define MOST_GUESSES 32   /* at what others hold, for one segment */
#define USUAL_TOP (UINT64_C(0x7f0000000000))
#define RESERVE_BASE (UINT64_C(0x200000000000)) /* no cudaMalloc lands there */
#define RESERVE_ALIGN (UINT64_C(20) << 20)

size_t replay_device_next(struct replay_device *device)
{
    const struct replay_plan *plan = device->plan;
    while (device->at < plan->count && replay_action(plan, device->at) == ACTION_SNAPSHOT)
        device->at++;
    return device->at;
}

static enum action next_action(struct replay_device *device, uint32_t *entry)
{
    size_t at = replay_device_next(device);
    if (at >= device->plan->count)
        return ACTION_OTHER;
    *entry = device->plan->list[at];
    return replay_action(device->plan, at);
}

static int recorded_get(struct replay_device *device, uint64_t *address)
{
    uint32_t entry;
    enum action action = next_action(device, &entry);
    if (action != ACTION_SEGMENT_ALLOC) {
        device->refused = true;
        device->unforced |= device->knows_limit && is_release(action) &&
                            device->plan->snapshot->entries.context[entry] == CONTEXT_NONE;
        return MEMORY_DEVICE_FULL;
    }
    *address = device->plan->snapshot->entries.address[entry];
    return 0;
}

static bool learn_foreign(struct replay_device *device, struct replay_foreign foreign)
{
    struct replay_foreigners *learned = &device->learned;
    if (array_reserve(&learned->items, &learned->capacity, learned->count + 1, sizeof(*learned->items)))
        return false;
    learned->items[learned->count++] = foreign;
    return true;
}

/* A hole begins here of which nothing was known; segments that follow in it show how far it goes. */
static bool learn_hole(struct replay_device *device, uint64_t address, uint64_t taken)
{
    const struct entries *entries = &device->plan->snapshot->entries;
    uint64_t end = address + taken;
    size_t last = device->at + MOST_AHEAD < device->plan->count ? device->at + MOST_AHEAD : device->plan->count;
    for (size_t i = device->at; i < last; i++) {
        uint32_t entry = device->plan->list[i];
        if (replay_action(device->plan, i) == ACTION_SEGMENT_ALLOC && entries->address[entry] == end)
            end += placement_round(entries->size[entry]);
    }
    return placement_hole(device->placement, address, end) &&
           learn_foreign(device, (struct replay_foreign){.at = (uint32_t)device->at - 1, .kind = REPLAY_FOREIGN_HOLE,
                                                              .address = address, .size = end - address});
}

static bool learn_taken(struct replay_device *device, uint64_t address, uint64_t size)
{
    return placement_take(device->placement, address, size) &&
           learn_foreign(device, (struct replay_foreign){.at = (uint32_t)device->at - 1, .kind = REPLAY_FOREIGN_TAKES,
                                                              .address = address, .size = size});
}

/* In the open space: others have what lies above the segment's chunk, and what lies before it in the chunk. */
static bool learn_below(struct replay_device *device, uint64_t address, uint64_t taken)
{
    uint64_t low = placement_low(device->placement), end = CHUNK_END(address + taken);
    uint64_t start = address / PLACEMENT_CHUNK * PLACEMENT_CHUNK;
    if (address >= low || (end >= low && start == address))
        return false;
    return (end >= low || learn_taken(device, end, low - end)) &&
           (start == address || learn_taken(device, start, address - start));
}

/* A hole that was found and passed over for one in a chunk that is known: its own chunk is older, then. */
static bool learn_age(struct replay_device *device, uint64_t ours)
{
    for (size_t i = 0; i < device->learned.count; i++) {
        struct replay_foreign *foreign = &device->learned.items[i];
        if (foreign->kind != REPLAY_FOREIGN_HOLE || foreign->is_old || ours < foreign->address ||
            ours - foreign->address >= foreign->size)
            continue;
        foreign->is_old = true;
        return placement_age(device->placement, ours);
    }
    return false;
}

/* Not where the rule says: what must have happened for it to be there? */
static void learn_place(struct replay_device *device, uint64_t ours, uint64_t address, uint64_t taken)
{
    for (int attempt = 0; attempt < MOST_GUESSES && ours && ours != address; attempt++) {
        placement_put(device->placement, ours);
        uint64_t between = ours < address && address - ours < taken ? address - ours : taken;
        if (!learn_hole(device, address, taken) && !learn_below(device, address, taken) && !learn_age(device, ours) &&
            !learn_taken(device, ours, between)) /* somebody else has the place where the rule would have put it */
            break;
        ours = placement_get(device->placement, taken);
    }
    if (ours == address)
        return;
    if (ours)
        placement_put(device->placement, ours);
    placement_take(device->placement, address, taken);
}

/* One of the first segments, in a chunk of before: a hole was there from the start.  It is in a chunk older than the
 * others, unless the segment would have fitted into one of these. */
static bool learn_seed(struct replay_device *device, bool is_old, uint64_t address, uint64_t taken)
{
    uint64_t low = placement_low(device->placement), end = CHUNK_END(address + taken);
    if (device->learned.count >= REPLAY_SEEDS || address % PLACEMENT_CHUNK == 0 || address < low ||
        !placement_hole(device->placement, address, end))
        return false;
    if (is_old)
        placement_age(device->placement, address);
    return learn_foreign(device, (struct replay_foreign){.kind = REPLAY_FOREIGN_HOLE, .is_old = is_old, .address = address,
                                                         .size = end - address}) &&
           placement_take(device->placement, address, taken);
}

/* Following: others' memory lies where it is recorded. */
static void let_others_follow(struct replay_device *device)
{
    const struct replay_plan *plan = device->plan;
    for (; device->other_next < plan->other_count && plan->others[device->other_next].at < device->at;
         device->other_next++) {
        const struct replay_other *other = &plan->others[device->other_next];
        if (other->begins != NONE32) {
            placement_put(device->placement, other->address);
            continue;
        }
        uint64_t ours = placement_get(device->placement, other->size);
        if (ours != other->address)
            learn_place(device, ours, other->address, other->size);
    }
}

/* Where they were, if that is free: what else decided is not known. */
static uint64_t others_place(struct replay_device *device, const struct replay_other *other)
{
    if (other->size > device->total - device->used)
        return 0;
    return placement_take(device->placement, other->address, other->size) ? other->address
                                                                          : placement_get(device->placement, other->size);
}

/* Otherwise they ask as in the recording. */
static void let_others_ask(struct replay_device *device)
{
    const struct replay_plan *plan = device->plan;
    for (; device->other_next < plan->other_count && plan->others[device->other_next].at <= device->request;
         device->other_next++) {
        const struct replay_other *other = &plan->others[device->other_next];
        uint64_t *place = &device->other_places[other->begins == NONE32 ? device->other_next : other->begins];
        if (other->begins == NONE32) {
            *place = others_place(device, other);
            device->used += *place ? other->size : 0;
        } else if (*place) {
            placement_put(device->placement, *place);
            device->used -= plan->others[other->begins].size;
            *place = 0;
        }
    }
}

void replay_device_takes(struct replay_device *device, uint64_t address, uint64_t size)
{
    let_others_follow(device);
    uint64_t taken = placement_round(size), low = placement_low(device->placement);
    uint64_t ours = placement_get(device->placement, taken);
    bool opens = ours && ours < low; /* a chunk of its own, below all others */
    device->has_begun |= device->at > device->begins;
    if (device->has_begun) {
        device->placements++;
        device->explained += ours == address;
    } else if (ours != address) {
        placement_put(device->placement, ours);
        if (learn_seed(device, opens, address, taken))
            return;
        ours = placement_get(device->placement, taken);
    }
    if (ours != address)
        learn_place(device, ours, address, taken);
}

static void find_hole(struct replay_device *device, const struct replay_foreign *foreign)
{
    if (placement_hole(device->placement, foreign->address, foreign->address + foreign->size) && foreign->is_old)
        placement_age(device->placement, foreign->address);
}

/* What others did by now in the recording, they do here. */
static void let_foreigners_act(struct replay_device *device)
{
    const struct replay_foreigners *all = &device->plan->foreigners;
    if (device->plan->has_start) /* what they did is not known well enough */
        return;
    while (device->foreign_next < all->count && all->items[device->foreign_next].at <= device->request) {
        const struct replay_foreign *foreign = &all->items[device->foreign_next++];
        if (foreign->kind == REPLAY_FOREIGN_HOLE)
            find_hole(device, foreign);
        else if (!placement_take(device->placement, foreign->address, foreign->size))
            placement_get(device->placement, foreign->size);
    }
}

static bool exceeds_bound(const struct replay_device *device, uint64_t more)
{
    return device->bound != UINT64_MAX && (device->used > device->bound || more > device->bound - device->used);
}

static int segment_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct replay_device *device = self;
    (void)stream;
    if (device->follows)
        return recorded_get(device, address);
    uint64_t taken = placement_round(size);
    if (!taken || taken > device->total - device->used || exceeds_bound(device, taken)) {
        device->refused = true;
        return MEMORY_DEVICE_FULL;
    }
    let_foreigners_act(device);
    let_others_ask(device);
    *address = placement_get(device->placement, taken);
    if (!*address)
        return MEMORY_DEVICE_FULL;
    device->used += taken;
    return 0;
}

void replay_device_gives_back(struct replay_device *device, uint64_t address)
{
    placement_put(device->placement, address);
}

void replay_device_holds(struct replay_device *device, uint64_t size)
{
    uint64_t taken = placement_round(size);
    device->used += taken && taken <= device->total - device->used ? taken : 0;
}

static void segment_release(void *self, uint64_t address, uint64_t size)
{
    struct replay_device *device = self;
    if (device->follows)
        return;
    placement_put(device->placement, address);
    device->used -= placement_round(size);
}

static int address_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct replay_device *device = self;
    uint32_t entry;
    if (device->follows) { /* the mapping that comes next shows where */
        if (next_action(device, &entry) != ACTION_SEGMENT_MAP)
            return MEMORY_DEVICE_FULL;
        *address = device->plan->snapshot->entries.address[entry];
        return 0;
    }
    *address = device->reserved_next;
    device->reserved_next += (size + RESERVE_ALIGN - 1) / RESERVE_ALIGN * RESERVE_ALIGN;
    return 0;
}

static void address_release(void *self, uint64_t address, uint64_t size)
{
    (void)self, (void)address, (void)size;
}

static int map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct replay_device *device = self;
    uint32_t entry;
    (void)page;
    if (device->follows && device->knows_limit) /* the limit refused before, the device did not */
        return 0;
    if (device->follows ? next_action(device, &entry) != ACTION_SEGMENT_MAP || device->plan->snapshot->entries.address[entry] != address
                        : size > device->total - device->used || exceeds_bound(device, size)) {
        device->refused = true;
        return MEMORY_DEVICE_FULL;
    }
    device->used += device->follows ? 0 : size;
    return 0;
}

static void unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct replay_device *device = self;
    (void)address, (void)page;
    device->used -= device->follows ? 0 : size;
}

static void memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const struct replay_device *device = self;
    *total_bytes = device->total;
    *free_bytes = device->total - device->used;
}

/* What the recording shows of where the driver began: the first segments lie in chunks of before.  The first one that
 * begins a chunk below all of these opens the space there; without one, it ends at the lowest. */
static uint64_t find_top(struct replay_device *device)
{
    const struct entries *entries = &device->plan->snapshot->entries;
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < device->plan->count; i++) {
        uint32_t entry = device->plan->list[i];
        uint64_t address = entries->address[entry];
        if (replay_action(device->plan, i) != ACTION_SEGMENT_ALLOC || address > UINT64_MAX / 4 ||
            entries->size[entry] > UINT64_MAX / 4)
            continue;
        uint64_t end = CHUNK_END(address + entries->size[entry]);
        device->begins = i;
        if (address % PLACEMENT_CHUNK == 0 && end <= lowest)
            return end;
        if (address / PLACEMENT_CHUNK * PLACEMENT_CHUNK < lowest)
            lowest = address / PLACEMENT_CHUNK * PLACEMENT_CHUNK;
    }
    device->begins = device->plan->count;
    return lowest == UINT64_MAX ? USUAL_TOP : lowest;
}

/* Nothing new may fall among what was there before. */
static uint64_t below_start(const struct replay_plan *plan, uint64_t top)
{
    for (size_t i = 0; plan->has_start && i < plan->start.segment_count; i++) {
        uint64_t address = plan->start.segments[i].address / PLACEMENT_CHUNK * PLACEMENT_CHUNK;
        if (replay_is_our_segment(plan, &plan->start.segments[i]) && address < top)
            top = address;
    }
    return top;
}

int replay_device_start(struct replay_device *device)
{
    device->reserved_next = (RESERVE_BASE + RESERVE_ALIGN - 1) / RESERVE_ALIGN * RESERVE_ALIGN;
    uint64_t top = below_start(device->plan, find_top(device));
    device->placement = placement_new(top ? top : USUAL_TOP);
    device->other_places = calloc(device->plan->other_count + 1, sizeof(*device->other_places));
    return device->placement && device->other_places ? STATUS_OK : STATUS_NO_MEMORY;
}

void replay_device_end(struct replay_device *device)
{
    free(device->learned.items);
    free(device->learned.ooms);
    free(device->other_places);
    if (device->placement)
        placement_free(device->placement);
}

struct memory_device replay_device_table(struct replay_device *device)
{
    return (struct memory_device){.self = device, .segment_get = segment_get, .segment_release = segment_release,
                                  .address_reserve = address_reserve, .address_release = address_release, .map = map,
                                  .unmap = unmap, .memory_info = memory_info};
}
