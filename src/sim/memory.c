/*
 * The simulated device's memory: segments and slabs, host memory, the table of
 * address ranges, and contents.  May use: device (placement), base.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/sim_private.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

static void *host_memory(uint64_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

/* The table of ranges. */

static size_t entry_index(const struct sim *sim, uint64_t address) /* of the first that begins at or after */
{
    size_t low = 0, high = sim->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sim->entries[middle].range.address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct entry *sim_entry_at(struct sim *sim, uint64_t address)
{
    size_t i = entry_index(sim, address);
    return i < sim->entry_count && sim->entries[i].range.address == address ? &sim->entries[i] : NULL;
}

struct entry *sim_entry_holding(struct sim *sim, uint64_t address)
{
    size_t i = entry_index(sim, address);
    if (i < sim->entry_count && sim->entries[i].range.address == address)
        return &sim->entries[i];
    if (i == 0)
        return NULL;
    struct entry *entry = &sim->entries[i - 1];
    return address - entry->range.address < entry->range.bytes ? entry : NULL;
}

CUresult sim_entry_add(struct sim *sim, const struct entry *entry)
{
    if (!sim_grow((void **)&sim->entries, &sim->entry_room, sim->entry_count + 1, sizeof *sim->entries))
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t i = entry_index(sim, entry->range.address);
    memmove(sim->entries + i + 1, sim->entries + i, (sim->entry_count - i) * sizeof *sim->entries);
    sim->entries[i] = *entry;
    sim->entries[i].range.id = sim->next_id++;
    sim->entry_count++;
    return CUDA_SUCCESS;
}

void sim_entry_remove(struct sim *sim, struct entry *entry)
{
    if (entry->own_data && entry->data)
        munmap(entry->data, entry->data_bytes);
    size_t i = (size_t)(entry - sim->entries);
    sim->entry_count--;
    memmove(entry, entry + 1, (sim->entry_count - i) * sizeof *entry);
}

void *sim_entry_data(struct sim *sim, struct entry *entry)
{
    if (entry->range.kind == SIM_MAPPED) {
        for (size_t i = 0; i < sim->physical_count; i++) {
            struct physical *p = &sim->physicals[i];
            if (p->handle != entry->range.handle)
                continue;
            if (!p->data)
                p->data = host_memory(p->bytes);
            return p->data ? (char *)p->data + entry->data_offset : NULL;
        }
        return NULL;
    }
    if (!entry->data) {
        entry->data = host_memory(entry->range.bytes);
        entry->data_bytes = entry->range.bytes;
        entry->own_data = entry->data != NULL;
    }
    return entry->data ? (char *)entry->data + entry->data_offset : NULL;
}

/* Segments and slabs. */

CUresult sim_device_take(struct sim *sim, unsigned device, uint64_t bytes, uint64_t *address)
{
    struct device *d = &sim->devices[device];
    uint64_t size = placement_round(bytes);
    if (size == 0 || size > d->bytes - d->used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = placement_get(d->placement, size);
    if (*address == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->used += size;
    return CUDA_SUCCESS;
}

void sim_device_put(struct sim *sim, unsigned device, uint64_t address, uint64_t bytes)
{
    struct device *d = &sim->devices[device];
    if (placement_put(d->placement, address))
        d->used -= placement_round(bytes);
}

static bool slab_bit(const struct slab *slab, uint32_t unit)
{
    return slab->map[unit / 64] >> (unit % 64) & 1;
}

static void slab_mark(struct slab *slab, uint32_t first, uint32_t units, bool used)
{
    for (uint32_t i = first; i < first + units; i++) {
        uint64_t bit = 1ull << (i % 64);
        slab->map[i / 64] = used ? slab->map[i / 64] | bit : slab->map[i / 64] & ~bit;
    }
    slab->used = used ? slab->used + units : slab->used - units;
}

static bool slab_find(const struct slab *slab, uint32_t units, uint32_t *first)
{
    uint32_t run = 0;
    if (units > SIM_SLAB_UNITS - slab->used)
        return false;
    for (uint32_t i = 0; i < SIM_SLAB_UNITS; i++) {
        run = slab_bit(slab, i) ? 0 : run + 1;
        if (run == units) {
            *first = i + 1 - units;
            return true;
        }
    }
    return false;
}

static uint32_t slab_units(uint64_t bytes)
{
    return (uint32_t)((bytes + SIM_UNIT - 1) / SIM_UNIT);
}

static CUresult small_take(struct sim *sim, unsigned device, uint64_t bytes, uint64_t *address)
{
    struct device *d = &sim->devices[device];
    uint32_t units = slab_units(bytes), first = 0;
    struct slab *slab = NULL;
    for (size_t i = 0; i < d->slab_count && !slab; i++)
        if (slab_find(d->slabs[i], units, &first))
            slab = d->slabs[i];
    if (!slab) {
        if (!sim_grow((void **)&d->slabs, &d->slab_room, d->slab_count + 1, sizeof(struct slab *)))
            return CUDA_ERROR_OUT_OF_MEMORY;
        slab = calloc(1, sizeof *slab);
        CUresult result = slab ? sim_device_take(sim, device, SIM_PAGE, &slab->address) : CUDA_ERROR_OUT_OF_MEMORY;
        if (result) {
            free(slab);
            return result;
        }
        d->slabs[d->slab_count++] = slab;
        first = 0;
    }
    slab_mark(slab, first, units, true);
    *address = slab->address + (uint64_t)first * SIM_UNIT;
    return CUDA_SUCCESS;
}

static void small_put(struct sim *sim, unsigned device, uint64_t address, uint64_t bytes)
{
    struct device *d = &sim->devices[device];
    for (size_t i = 0; i < d->slab_count; i++) {
        struct slab *slab = d->slabs[i];
        if (address < slab->address || address >= slab->address + SIM_PAGE)
            continue;
        slab_mark(slab, (uint32_t)((address - slab->address) / SIM_UNIT), slab_units(bytes), false);
        if (slab->used)
            return;
        sim_device_put(sim, device, slab->address, SIM_PAGE);
        free(slab);
        memmove(d->slabs + i, d->slabs + i + 1, (--d->slab_count - i) * sizeof(struct slab *));
        return;
    }
}

CUresult sim_get(struct sim *sim, unsigned device, uint64_t bytes, enum sim_kind kind, void *owner, uint64_t *address)
{
    if (bytes == 0 || device >= sim->config.devices)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim->lock);
    CUresult result = sim_entered(sim, "get");
    if (!result)
        result = sim->devices[device].lost ? CUDA_ERROR_UNKNOWN
               : bytes <= SIM_SMALL        ? small_take(sim, device, bytes, address)
                                           : sim_device_take(sim, device, bytes, address);
    if (!result) {
        struct entry entry = {.range = {.address = *address, .bytes = bytes, .kind = kind, .device = device,
                                  .owner = owner}};
        result = sim_entry_add(sim, &entry);
        if (result && bytes <= SIM_SMALL)
            small_put(sim, device, *address, bytes);
        else if (result)
            sim_device_put(sim, device, *address, bytes);
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

static void entry_release(struct sim *sim, struct entry *entry)
{
    struct sim_range range = entry->range;
    sim_entry_remove(sim, entry);
    switch (range.kind) {
    case SIM_PLAIN:
    case SIM_PITCHED:
    case SIM_ARRAY:
    case SIM_MODULE:
        if (range.bytes <= SIM_SMALL)
            small_put(sim, range.device, range.address, range.bytes);
        else
            sim_device_put(sim, range.device, range.address, range.bytes);
        break;
    default:
        break;
    }
}

CUresult sim_release(struct sim *sim, uint64_t address)
{
    pthread_mutex_lock(&sim->lock);
    CUresult result = sim_entered(sim, "release");
    struct entry *entry = result ? NULL : sim_entry_at(sim, address);
    if (!result && (!entry || entry->range.kind == SIM_MAPPED || entry->range.kind == SIM_ASYNC))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!result && entry->range.kind <= SIM_ARRAY && sim->devices[entry->range.device].lost)
        result = CUDA_ERROR_UNKNOWN;
    if (!result)
        entry_release(sim, entry);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

void sim_release_owner(struct sim *sim, const void *owner)
{
    pthread_mutex_lock(&sim->lock);
    for (size_t i = sim->entry_count; i-- > 0;)
        if (sim->entries[i].range.owner == owner && sim->entries[i].range.kind != SIM_MAPPED &&
            sim->entries[i].range.kind != SIM_ASYNC)
            entry_release(sim, &sim->entries[i]);
    pthread_mutex_unlock(&sim->lock);
}

CUresult sim_info(struct sim *sim, unsigned device, uint64_t *available, uint64_t *total)
{
    if (device >= sim->config.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&sim->lock);
    struct device *d = &sim->devices[device];
    *available = d->bytes - d->used;
    *total = d->bytes;
    pthread_mutex_unlock(&sim->lock);
    return CUDA_SUCCESS;
}

CUresult sim_charge(struct sim *sim, unsigned device, uint64_t bytes)
{
    pthread_mutex_lock(&sim->lock);
    struct device *d = &sim->devices[device];
    CUresult result = bytes > d->bytes - d->used ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    if (!result)
        d->used += bytes;
    pthread_mutex_unlock(&sim->lock);
    return result;
}

void sim_discharge(struct sim *sim, unsigned device, uint64_t bytes)
{
    pthread_mutex_lock(&sim->lock);
    sim->devices[device].used -= bytes;
    pthread_mutex_unlock(&sim->lock);
}

bool sim_find(struct sim *sim, uint64_t address, struct sim_range *range)
{
    pthread_mutex_lock(&sim->lock);
    struct entry *entry = sim_entry_holding(sim, address);
    if (entry)
        *range = entry->range;
    pthread_mutex_unlock(&sim->lock);
    return entry != NULL;
}

/* Host memory. */

CUresult sim_host_add(struct sim *sim, uint64_t address, uint64_t bytes, enum sim_kind kind, unsigned device,
    void *owner, unsigned flags)
{
    if (bytes == 0 || address == 0 || address + bytes < address)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim->lock);
    size_t next = entry_index(sim, address);
    bool overlaps = sim_entry_holding(sim, address) ||
                    (next < sim->entry_count && sim->entries[next].range.address - address < bytes);
    struct entry entry = {.range = {.address = address, .bytes = bytes, .kind = kind, .device = device,
                              .owner = owner, .flags = flags},
        .data = (void *)(uintptr_t)address, .data_bytes = bytes, .own_data = kind != SIM_REGISTERED};
    CUresult result = overlaps ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : sim_entry_add(sim, &entry);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_host_get(struct sim *sim, uint64_t bytes, enum sim_kind kind, unsigned device, void *owner,
    unsigned flags, uint64_t *address)
{
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *data = host_memory(bytes);
    if (!data)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (uint64_t)(uintptr_t)data;
    CUresult result = sim_host_add(sim, *address, bytes, kind, device, owner, flags);
    if (result)
        munmap(data, bytes);
    return result;
}

/* Contents. */

/* Where the bytes from address on are, and how many of the `bytes` lie there in one piece. */
static CUresult contents(struct sim *sim, uint64_t address, uint64_t bytes, void **data, uint64_t *piece)
{
    struct entry *entry = sim_entry_holding(sim, address);
    *piece = bytes;
    if (!entry) {
        size_t next = entry_index(sim, address);
        if (address >= 0x100000000000ull && address < 0x500000000000ull)
            return CUDA_ERROR_INVALID_VALUE; /* of a device, and not allocated */
        if (next < sim->entry_count && sim->entries[next].range.address - address < bytes)
            *piece = sim->entries[next].range.address - address;
        *data = (void *)(uintptr_t)address;
        return CUDA_SUCCESS;
    }
    if (entry->range.kind == SIM_MAPPED && !entry->range.access)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t offset = address - entry->range.address, rest = entry->range.bytes - offset;
    char *start = sim_entry_data(sim, entry);
    if (!start)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (rest < bytes)
        *piece = rest;
    *data = start + offset;
    return CUDA_SUCCESS;
}

CUresult sim_copy(struct sim *sim, uint64_t target, uint64_t source, uint64_t bytes)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&sim->lock);
    while (bytes && !result) {
        void *to, *from;
        uint64_t piece_to, piece_from;
        result = contents(sim, target, bytes, &to, &piece_to);
        if (!result)
            result = contents(sim, source, bytes, &from, &piece_from);
        if (result)
            break;
        uint64_t piece = piece_to < piece_from ? piece_to : piece_from;
        memmove(to, from, piece);
        target += piece;
        source += piece;
        bytes -= piece;
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_fill(struct sim *sim, uint64_t target, uint32_t pattern, unsigned size, uint64_t count)
{
    CUresult result = CUDA_SUCCESS;
    if (size == 0 || size > 4 || count > UINT64_MAX / size || target % size)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t bytes = count * size;
    pthread_mutex_lock(&sim->lock);
    while (bytes) {
        void *to;
        uint64_t piece;
        result = contents(sim, target, bytes, &to, &piece);
        if (result)
            break;
        piece -= piece % size;
        if (piece == 0) {
            result = CUDA_ERROR_INVALID_VALUE;
            break;
        }
        if (size == 1)
            memset(to, (int)(pattern & 0xff), piece);
        else
            for (uint64_t i = 0; i < piece; i += size)
                memcpy((char *)to + i, &pattern, size); /* little-endian: the low bytes come first */
        target += piece;
        bytes -= piece;
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}
