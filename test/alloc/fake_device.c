/* The device of the allocator's tests: see fake_device.h. */
#include "fake_device.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define SEGMENTS_FROM UINT64_C(0x700000000000)
#define RESERVATIONS_FROM UINT64_C(0x302200000) /* no multiple of 20 MiB: pages count from a reservation's start */

static void fault(struct fake_device *fake, const char *what)
{
    if (!fake->fault)
        fake->fault = what;
}

static void noted(struct fake_device *fake, uint64_t kind, uint64_t address, uint64_t size)
{
    fake->calls++;
    fake->sum = ((fake->sum ^ kind) * UINT64_C(0x9e3779b97f4a7c15) ^ address) * UINT64_C(0x9e3779b97f4a7c15) ^ size;
}

static bool refused(unsigned *countdown)
{
    return *countdown && --*countdown == 0;
}

static int fake_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct fake_device *fake = self;
    size_t place = 0;
    noted(fake, 1, (uint64_t)stream, size);
    if (refused(&fake->refuse_get))
        return fake->refusal;
    if (size > fake->capacity - fake->used)
        return MEMORY_DEVICE_FULL;
    uint64_t at = SEGMENTS_FROM, rounded = (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    for (; place < fake->range_count && fake->ranges[place].address - at < rounded; place++)
        at = fake->ranges[place].address + (fake->ranges[place].size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    if (fake->range_count == FAKE_RANGES)
        return MEMORY_DEVICE_FULL;
    memmove(&fake->ranges[place + 1], &fake->ranges[place], (fake->range_count++ - place) * sizeof(fake->ranges[0]));
    fake->ranges[place] = (struct fake_range){at, size};
    fake->used += size;
    fake->gets++;
    *address = at;
    return 0;
}

static void fake_release(void *self, uint64_t address, uint64_t size)
{
    struct fake_device *fake = self;
    noted(fake, 2, address, size);
    for (size_t i = 0; i < fake->range_count; i++)
        if (fake->ranges[i].address == address && fake->ranges[i].size == size) {
            memmove(&fake->ranges[i], &fake->ranges[i + 1], (--fake->range_count - i) * sizeof(fake->ranges[0]));
            fake->used -= size;
            fake->releases++;
            return;
        }
    fault(fake, "a segment was released that there is not");
}

static int fake_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct fake_device *fake = self;
    size_t place = 0;
    noted(fake, 3, 0, size);
    if (fake->reservation_count == FAKE_RESERVATIONS || size > FAKE_RESERVED_MIB * MIB)
        return MEMORY_DEVICE_FULL;
    uint64_t at = RESERVATIONS_FROM;
    for (; place < fake->reservation_count && fake->reservations[place].range.address - at < size; place++)
        at = fake->reservations[place].range.address + fake->reservations[place].range.size;
    memmove(&fake->reservations[place + 1], &fake->reservations[place],
            (fake->reservation_count++ - place) * sizeof(fake->reservations[0]));
    fake->reservations[place] = (struct fake_reservation){.range = {at, size}};
    *address = at;
    return 0;
}

static struct fake_reservation *reservation_of(struct fake_device *fake, uint64_t address, uint64_t size)
{
    for (size_t i = 0; i < fake->reservation_count; i++) {
        const struct fake_range *range = &fake->reservations[i].range;
        if (address >= range->address && address - range->address + size <= range->size)
            return &fake->reservations[i];
    }
    return NULL;
}

static void fake_unreserve(void *self, uint64_t address, uint64_t size)
{
    struct fake_device *fake = self;
    struct fake_reservation *there = reservation_of(fake, address, size);
    fake->calls++;
    fake->sum += (address * UINT64_C(0x9e3779b97f4a7c15) + size) | 1; /* the order among several is nobody's business */
    if (!there || there->range.address != address || there->range.size != size) {
        fault(fake, "address space was released that there is not");
        return;
    }
    if (memchr(there->mapped, 1, size / MIB))
        fault(fake, "address space was released that is mapped");
    size_t after = fake->reservation_count - (size_t)(there - fake->reservations) - 1;
    memmove(there, there + 1, after * sizeof(*there));
    fake->reservation_count--;
}

/* The bytes of a range that is to change, all of which must be `now`; NULL with the fault noted. */
static uint8_t *pages_of(struct fake_device *fake, uint64_t address, uint64_t size, uint64_t page, uint8_t now)
{
    struct fake_reservation *there = reservation_of(fake, address, size);
    if (!there || !size || (address - there->range.address) % page || size % page) {
        fault(fake, "a range is mapped or unmapped that is not made of pages");
        return NULL;
    }
    uint8_t *first = &there->mapped[(address - there->range.address) / MIB];
    for (uint64_t i = 0; i < size / MIB; i++)
        if (first[i] != now) {
            fault(fake, now ? "a range is unmapped that is not mapped" : "a range is mapped twice");
            return NULL;
        }
    return first;
}

static int fake_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct fake_device *fake = self;
    noted(fake, 5, address, size ^ page);
    if (refused(&fake->refuse_map))
        return fake->refusal;
    if (size > fake->capacity - fake->used)
        return MEMORY_DEVICE_FULL;
    uint8_t *pages = pages_of(fake, address, size, page, 0);
    if (pages)
        memset(pages, 1, size / MIB);
    fake->used += size;
    fake->maps++;
    return 0;
}

static void fake_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct fake_device *fake = self;
    uint8_t *pages = pages_of(fake, address, size, page, 1);
    noted(fake, 6, address, size ^ page);
    if (pages)
        memset(pages, 0, size / MIB);
    fake->used -= size;
    fake->unmaps++;
}

static unsigned stream_number(struct fake_device *fake, int64_t stream)
{
    unsigned i = 0;
    while (i < FAKE_STREAMS - 1 && fake->recorded[i] && fake->streams[i] != stream)
        i++;
    fake->streams[i] = stream;
    return i;
}

/* An event is its stream's number and its place among that stream's events: the order between streams is no matter. */
static int fake_event(void *self, int64_t stream, uint64_t *event)
{
    struct fake_device *fake = self;
    unsigned number = stream_number(fake, stream);
    *event = (uint64_t)number << 32 | ++fake->recorded[number];
    return 0;
}

static bool fake_done(void *self, uint64_t event)
{
    const struct fake_device *fake = self;
    return (event & UINT32_MAX) <= fake->done[event >> 32];
}

static void fake_wait(void *self, uint64_t event)
{
    struct fake_device *fake = self;
    if ((event & UINT32_MAX) > fake->done[event >> 32])
        fake->done[event >> 32] = event & UINT32_MAX;
}

static void fake_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const struct fake_device *fake = self;
    *free_bytes = fake->capacity - fake->used;
    *total_bytes = fake->capacity;
}

struct memory_device fake_device_init(struct fake_device *fake, uint64_t capacity, bool events)
{
    memset(fake, 0, sizeof(*fake));
    fake->capacity = capacity;
    fake->refusal = MEMORY_DEVICE_FULL;
    return (struct memory_device){
        .self = fake,
        .segment_get = fake_get,
        .segment_release = fake_release,
        .address_reserve = fake_reserve,
        .address_release = fake_unreserve,
        .map = fake_map,
        .unmap = fake_unmap,
        .event_record = events ? fake_event : NULL,
        .event_done = events ? fake_done : NULL,
        .event_wait = events ? fake_wait : NULL,
        .memory_info = fake_info,
    };
}

void fake_device_progress(struct fake_device *fake, int64_t stream, uint64_t events)
{
    for (unsigned i = 0; i < FAKE_STREAMS; i++) {
        uint64_t left = fake->recorded[i] - fake->done[i];
        if (fake->streams[i] == stream)
            fake->done[i] += events < left ? events : left;
    }
}
