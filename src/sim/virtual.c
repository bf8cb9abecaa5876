/*
 * The simulated device's virtual memory: address ranges reserved, physical
 * memory by handle, mappings.  May use: base.
 *
 * Seen on driver 580: sizes must be multiples of 2 MiB; a mapping covers its
 * handle from offset 0 to the end (parts are not supported); unmapping takes
 * whole mappings and ignores what is not mapped; memory lives until its handle
 * is released and nothing maps it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/sim_private.h"

#define VIRTUAL_BASE 0x200000000000ull /* above the devices' own */
#define VIRTUAL_END 0x300000000000ull

static bool pages(uint64_t bytes)
{
    return bytes && bytes % SIM_PAGE == 0 && bytes < VIRTUAL_END - VIRTUAL_BASE;
}

static struct physical *physical_find(struct sim *sim, uint64_t handle)
{
    for (size_t i = 0; i < sim->physical_count; i++)
        if (sim->physicals[i].handle == handle)
            return &sim->physicals[i];
    return NULL;
}

static void physical_drop(struct sim *sim, struct physical *p)
{
    if (--p->references)
        return;
    if (p->data)
        munmap(p->data, p->bytes);
    sim->devices[p->device].used -= p->bytes;
    *p = sim->physicals[--sim->physical_count];
}

static struct reservation *reservation_holding(struct sim *sim, uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < sim->reservation_count; i++) {
        struct reservation *r = &sim->reservations[i];
        if (address >= r->address && address - r->address <= r->bytes && bytes <= r->bytes - (address - r->address))
            return r;
    }
    return NULL;
}

static bool free_at(const struct sim *sim, uint64_t address, uint64_t bytes)
{
    if (address < VIRTUAL_BASE || address > VIRTUAL_END - bytes)
        return false;
    for (size_t i = 0; i < sim->reservation_count; i++)
        if (sim->reservations[i].address < address + bytes &&
            address < sim->reservations[i].address + sim->reservations[i].bytes)
            return false;
    return true;
}

static uint64_t find_space(const struct sim *sim, uint64_t bytes, uint64_t alignment, uint64_t wanted)
{
    if (wanted && wanted % alignment == 0 && free_at(sim, wanted, bytes))
        return wanted;
    uint64_t at = VIRTUAL_BASE;
    for (size_t i = 0; i <= sim->reservation_count; i++) { /* in address order: the first place that is large enough */
        at = (at + alignment - 1) / alignment * alignment;
        uint64_t end = i < sim->reservation_count ? sim->reservations[i].address : VIRTUAL_END;
        if (at <= end && bytes <= end - at)
            return at;
        if (i < sim->reservation_count)
            at = sim->reservations[i].address + sim->reservations[i].bytes;
    }
    return 0;
}

CUresult sim_reserve(struct sim *sim, uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address)
{
    if (!pages(bytes) || (alignment & (alignment - 1)) || alignment > VIRTUAL_BASE)
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < SIM_PAGE)
        alignment = SIM_PAGE;
    pthread_mutex_lock(&sim->lock);
    CUresult result = sim_entered(sim, "reserve");
    uint64_t at = result ? 0 : find_space(sim, bytes, alignment, wanted);
    if (!result && (!at || !sim_grow((void **)&sim->reservations, &sim->reservation_room, sim->reservation_count + 1,
                               sizeof *sim->reservations)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        size_t i = sim->reservation_count++;
        for (; i > 0 && sim->reservations[i - 1].address > at; i--)
            sim->reservations[i] = sim->reservations[i - 1];
        sim->reservations[i] = (struct reservation){at, bytes};
        *address = at;
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

static bool mapped_within(struct sim *sim, uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < sim->entry_count; i++) {
        const struct sim_range *range = &sim->entries[i].range;
        if (range->kind == SIM_MAPPED && range->address < address + bytes && address < range->address + range->bytes)
            return true;
    }
    return false;
}

CUresult sim_unreserve(struct sim *sim, uint64_t address, uint64_t bytes)
{
    pthread_mutex_lock(&sim->lock);
    CUresult result = sim_entered(sim, "unreserve");
    struct reservation *r = result ? NULL : reservation_holding(sim, address, bytes);
    if (!result && (!r || r->address != address || r->bytes != bytes || mapped_within(sim, address, bytes)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        size_t i = (size_t)(r - sim->reservations);
        memmove(r, r + 1, (--sim->reservation_count - i) * sizeof *r);
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_create(struct sim *sim, unsigned device, uint64_t bytes, uint64_t *handle)
{
    if (!pages(bytes) || device >= sim->config.devices)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim->lock);
    struct device *d = &sim->devices[device];
    CUresult result = sim_entered(sim, "create");
    if (!result && d->lost)
        result = CUDA_ERROR_UNKNOWN;
    if (!result && (bytes > d->bytes - d->used || !sim_grow((void **)&sim->physicals, &sim->physical_room,
                                                      sim->physical_count + 1, sizeof *sim->physicals)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        d->used += bytes;
        *handle = sim->next_handle++;
        sim->physicals[sim->physical_count++] =
            (struct physical){.handle = *handle, .bytes = bytes, .references = 1, .handles = 1, .device = device};
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_retain(struct sim *sim, uint64_t handle)
{
    pthread_mutex_lock(&sim->lock);
    struct physical *p = physical_find(sim, handle);
    if (p) {
        p->references++;
        p->handles++;
    }
    pthread_mutex_unlock(&sim->lock);
    return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_drop(struct sim *sim, uint64_t handle)
{
    pthread_mutex_lock(&sim->lock);
    struct physical *p = physical_find(sim, handle);
    CUresult result = p && p->handles ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        p->handles--;
        physical_drop(sim, p);
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_handle(struct sim *sim, uint64_t handle, unsigned *device, uint64_t *bytes)
{
    pthread_mutex_lock(&sim->lock);
    struct physical *p = physical_find(sim, handle);
    if (p) {
        *device = p->device;
        *bytes = p->bytes;
    }
    pthread_mutex_unlock(&sim->lock);
    return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_map(struct sim *sim, uint64_t address, uint64_t bytes, uint64_t offset, uint64_t handle)
{
    if (bytes == 0 || address % SIM_PAGE || offset)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim->lock);
    struct physical *p = physical_find(sim, handle);
    CUresult result = sim_entered(sim, "map");
    if (!result && (!p || !p->handles || !reservation_holding(sim, address, bytes) ||
                       mapped_within(sim, address, bytes) || bytes > p->bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!result && bytes != p->bytes)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (!result) {
        struct entry entry = {.range = {.address = address, .bytes = bytes, .kind = SIM_MAPPED, .device = p->device,
                                  .handle = handle}};
        result = sim_entry_add(sim, &entry);
        if (!result)
            p->references++;
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_unmap(struct sim *sim, uint64_t address, uint64_t bytes)
{
    pthread_mutex_lock(&sim->lock);
    CUresult result = sim_entered(sim, "unmap");
    if (!result && (!pages(bytes) || !reservation_holding(sim, address, bytes)))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !result && i < sim->entry_count; i++) { /* no part of a mapping */
        const struct sim_range *range = &sim->entries[i].range;
        if (range->kind == SIM_MAPPED && range->address < address + bytes &&
            address < range->address + range->bytes &&
            (range->address < address || range->address + range->bytes > address + bytes))
            result = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = sim->entry_count; !result && i-- > 0;) {
        struct entry *entry = &sim->entries[i];
        if (entry->range.kind != SIM_MAPPED || entry->range.address < address ||
            entry->range.address >= address + bytes)
            continue;
        struct physical *p = physical_find(sim, entry->range.handle);
        sim_entry_remove(sim, entry);
        physical_drop(sim, p);
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_allow(struct sim *sim, uint64_t address, uint64_t bytes, bool access)
{
    uint64_t covered = 0;
    pthread_mutex_lock(&sim->lock);
    for (size_t i = 0; i < sim->entry_count; i++) {
        const struct sim_range *range = &sim->entries[i].range;
        if (range->kind == SIM_MAPPED && range->address >= address && range->address < address + bytes)
            covered += range->bytes;
    }
    CUresult result = bytes && covered == bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !result && i < sim->entry_count; i++) {
        struct sim_range *range = &sim->entries[i].range;
        if (range->kind == SIM_MAPPED && range->address >= address && range->address < address + bytes)
            range->access = access;
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}
