/* The device of a replay.  May use src/snapshot, src/device, src/base. */
#include "analyze/replay_device.h"

#define CHUNK_END(address) (((address) + PLACEMENT_CHUNK - 1) / PLACEMENT_CHUNK * PLACEMENT_CHUNK)
#define USUAL_TOP (UINT64_C(0x7f0000000000))
#define RESERVE_BASE (UINT64_C(0x200000000000)) /* no cudaMalloc lands there */
#define RESERVE_ALIGN (UINT64_C(20) << 20)

/* The next entry of the recording that is an event of the allocator and not a note. */
static enum action next_action(struct replay_device *device, uint32_t *entry)
{
    while (device->at < device->count && device->entries->action[device->list[device->at]] == ACTION_SNAPSHOT)
        device->at++;
    if (device->at >= device->count)
        return ACTION_OTHER;
    *entry = device->list[device->at];
    return (enum action)device->entries->action[*entry];
}

static int recorded_get(struct replay_device *device, uint64_t *address)
{
    uint32_t entry;
    if (next_action(device, &entry) != ACTION_SEGMENT_ALLOC) {
        device->refused = true;
        return MEMORY_DEVICE_FULL;
    }
    *address = device->entries->address[entry];
    return 0;
}

static int segment_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct replay_device *device = self;
    (void)stream;
    if (device->follows)
        return recorded_get(device, address);
    uint64_t taken = placement_round(size);
    if (!taken || taken > device->total - device->used) {
        device->refused = true;
        return MEMORY_DEVICE_FULL;
    }
    size_t seed = device->seeds_used;
    if (seed < device->seed_count && device->seed_sizes[seed] == size &&
        placement_seed(device->placement, device->seeds[seed], taken, CHUNK_END(device->seeds[seed] + taken))) {
        *address = device->seeds[seed];
        device->seeds_used++;
    } else {
        *address = placement_get(device->placement, taken);
    }
    if (!*address)
        return MEMORY_DEVICE_FULL;
    device->used += taken;
    return 0;
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
    if (device->follows) { /* the mapping that comes next shows where */
        for (size_t i = device->at; i < device->count; i++)
            if (device->entries->action[device->list[i]] == ACTION_SEGMENT_MAP) {
                *address = device->entries->address[device->list[i]];
                return 0;
            }
        return MEMORY_DEVICE_FULL;
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
    if (device->follows ? next_action(device, &entry) != ACTION_SEGMENT_MAP || device->entries->address[entry] != address
                        : size > device->total - device->used) {
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

/* What the recording shows of where the driver began: the first segments lie in chunks of before; the first one outside
 * of these opens the space below. */
static uint64_t learn(struct replay_device *device)
{
    const struct entries *entries = device->entries;
    for (size_t i = 0; i < device->count; i++) {
        uint32_t entry = device->list[i];
        if (entries->action[entry] != ACTION_SEGMENT_ALLOC)
            continue;
        uint64_t address = entries->address[entry], end = CHUNK_END(address + entries->size[entry]);
        if (address > UINT64_MAX / 4 || entries->size[entry] > UINT64_MAX / 4)
            break;
        if (device->seed_count == REPLAY_SEEDS)
            return end;
        device->seeds[device->seed_count] = address;
        device->seed_sizes[device->seed_count++] = entries->size[entry];
    }
    uint64_t lowest = USUAL_TOP;
    for (size_t i = 0; i < device->seed_count; i++)
        if (device->seeds[i] / PLACEMENT_CHUNK * PLACEMENT_CHUNK < lowest)
            lowest = device->seeds[i] / PLACEMENT_CHUNK * PLACEMENT_CHUNK;
    return lowest;
}

int replay_device_start(struct replay_device *device)
{
    device->reserved_next = (RESERVE_BASE + RESERVE_ALIGN - 1) / RESERVE_ALIGN * RESERVE_ALIGN;
    if (device->follows)
        return STATUS_OK;
    uint64_t top = learn(device);
    device->placement = placement_new(top ? top : USUAL_TOP);
    return device->placement ? STATUS_OK : STATUS_NO_MEMORY;
}

void replay_device_end(struct replay_device *device)
{
    if (device->placement)
        placement_free(device->placement);
}

struct memory_device replay_device_table(struct replay_device *device)
{
    return (struct memory_device){.self = device, .segment_get = segment_get, .segment_release = segment_release,
                                  .address_reserve = address_reserve, .address_release = address_release, .map = map,
                                  .unmap = unmap, .memory_info = memory_info};
}
