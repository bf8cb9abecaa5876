/*
 * Virtual memory.  The tables are under a spin lock that is held for a few probes and never while the driver runs.
 */
#include "preload/virtual.h"

#include "preload/caching.h"
#include "preload/hook.h"
#include "preload/places.h"
#include "preload/preload.h"
#include "preload/spin.h"
#include "preload/unplaced.h"
#include "preload/wrappers.h"

#include <stdatomic.h>

#define CALLER __builtin_return_address(0)

static struct places virtual_physical; /* serial number -> size, device, kind; other: the address counted, or 0;
                                          held: the one of nothing, while it is mapped nowhere */
static struct places virtual_handles;  /* handle -> other: serial number */
static struct places virtual_mappings; /* address -> size; other: serial number */
static uint64_t virtual_serial;
static atomic_flag virtual_lock = ATOMIC_FLAG_INIT;

void virtual_after_fork(void)
{
    spin_unlock(&virtual_lock);
}

static void forget_if_gone(struct place *physical)
{
    if (physical->references == 0 && physical->mapped == 0)
        places_remove(&virtual_physical, physical->key);
}

/* Memory of the device that is mapped nowhere. */
static uint64_t hold(struct place *physical)
{
    if (physical->kind != RECORD_VIRTUAL)
        return 0;
    return physical->held = unplaced_address(physical->size);
}

/* Where it is held until it is mapped, 0: not. */
static uint64_t remember_handle(uint64_t handle, uint64_t size, uint16_t device, uint8_t kind)
{
    uint64_t held = 0;
    spin_lock(&virtual_lock);
    struct place *named = places_add(&virtual_handles, handle);
    struct place *physical = named ? places_find(&virtual_physical, named->other) : NULL;
    if (named && !physical) {
        named->other = ++virtual_serial;
        physical = places_add(&virtual_physical, named->other);
        if (physical) {
            physical->size = size;
            physical->device = device;
            physical->kind = kind;
            held = hold(physical);
        }
    }
    if (physical)
        physical->references++;
    spin_unlock(&virtual_lock);
    return held;
}

/* One reference less; `before` is what it was of, to be put back if the driver refuses.  Taken before the driver takes it:
 * afterwards another thread may be given the same handle for other memory. */
static bool forget_handle(uint64_t handle, struct place *before)
{
    spin_lock(&virtual_lock);
    struct place *named = places_find(&virtual_handles, handle);
    struct place *physical = named ? places_find(&virtual_physical, named->other) : NULL;
    bool known = physical && physical->references > 0;
    if (known) {
        *before = *physical;
        if (--physical->references == 0) {
            places_remove(&virtual_handles, handle);
            forget_if_gone(physical);
        }
    }
    spin_unlock(&virtual_lock);
    return known;
}

static void restore_handle(uint64_t handle, const struct place *before)
{
    spin_lock(&virtual_lock);
    struct place *named = places_add(&virtual_handles, handle);
    struct place *physical = named ? places_find(&virtual_physical, before->key) : NULL;
    if (named && !physical && (physical = places_add(&virtual_physical, before->key))) {
        *physical = *before;
        physical->references = 0;
    }
    if (physical) {
        named->other = before->key;
        physical->references++;
    }
    spin_unlock(&virtual_lock);
}

CUresult wrap_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                          unsigned long long flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemCreate, CALLER);
    CUresult result = driver.cuMemCreate(handle, size, properties, flags);
    if (caching_makes_room(&hook, result))
        result = driver.cuMemCreate(handle, size, properties, flags);
    if (hook.records && (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) && properties) {
        bool on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        uint8_t kind = on_device ? RECORD_VIRTUAL : RECORD_HOST;
        hook.device_known = on_device && properties->location.id >= 0;
        hook.device = hook.device_known ? (uint16_t)properties->location.id : 0;
        if (result == CUDA_SUCCESS && handle)
            hook_unmapped(&hook, hook.device, remember_handle(*handle, size, hook.device, kind), size, true);
        else if (on_device || preload_records_host())
            hook_failed(&hook, result, kind, size);
    }
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                             CUmemAllocationHandleType type)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemImportFromShareableHandle, CALLER);
    CUresult result = driver.cuMemImportFromShareableHandle(handle, shareable, type);
    if (result == CUDA_SUCCESS && handle && hook.records)
        remember_handle(*handle, 0, hook_device(), RECORD_IMPORTED);
    hook_end(&hook);
    return result;
}

/* Another reference to what is mapped at an address. */
CUresult wrap_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    preload_saw_call();
    CUresult result = driver.cuMemRetainAllocationHandle(handle, address);
    if (result != CUDA_SUCCESS || !handle)
        return result;
    spin_lock(&virtual_lock);
    struct place *mapping = places_find(&virtual_mappings, (uintptr_t)address);
    struct place *named = places_find(&virtual_handles, *handle);
    uint64_t serial = named ? named->other : mapping ? mapping->other : 0;
    struct place *physical = places_find(&virtual_physical, serial);
    if (physical && !named && (named = places_add(&virtual_handles, *handle)))
        named->other = serial;
    if (physical && named)
        physical->references++;
    spin_unlock(&virtual_lock);
    return result;
}

CUresult wrap_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct hook hook;
    struct place before;
    hook_begin(&hook, CALL_cuMemRelease, CALLER);
    bool known = forget_handle(handle, &before);
    CUresult result = driver.cuMemRelease(handle);
    if (result != CUDA_SUCCESS && known)
        restore_handle(handle, &before);
    else if (known && before.references == 1 && before.mapped == 0)
        hook_unmapped(&hook, before.device, before.held, before.size, false);
    hook_end(&hook);
    return result;
}

/* What an event is to say, decided under the lock and recorded after it. */
struct counted {
    bool counts;
    uint8_t kind;
    uint16_t device;
    uint64_t address, size;
    uint64_t held, held_size; /* it stops, or begins, to be mapped nowhere */
};

static void count(struct counted *what, struct place *physical, uint64_t address, uint64_t size)
{
    what->counts = physical->kind != RECORD_HOST || preload_records_host();
    what->kind = physical->kind;
    what->device = physical->device;
    what->address = address;
    what->size = size;
}

static struct counted add_mapping(uint64_t address, uint64_t size, uint64_t handle)
{
    struct counted what = {0};
    spin_lock(&virtual_lock);
    struct place *named = places_find(&virtual_handles, handle);
    struct place *physical = named ? places_find(&virtual_physical, named->other) : NULL;
    struct place *mapping = physical ? places_add(&virtual_mappings, address) : NULL;
    if (mapping) {
        mapping->size = size;
        mapping->other = physical->key;
        physical->mapped++;
        what.held = physical->held;
        what.held_size = physical->size;
        physical->held = 0;
        if (!physical->other) {
            physical->other = address;
            count(&what, physical, address, size);
        }
    }
    spin_unlock(&virtual_lock);
    return what;
}

CUresult wrap_cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemMap, CALLER);
    CUresult result = driver.cuMemMap(address, size, offset, handle, flags);
    if (result == CUDA_SUCCESS && hook.records) {
        struct counted what = add_mapping(address, size, handle);
        if (what.counts) {
            hook_device(); /* its name and size are learnt now */
            hook_unmapped(&hook, what.device, what.held, what.held_size, false);
            hook_mapped(&hook, what.kind, what.device, what.address, what.size, true);
        }
    }
    hook_end(&hook);
    return result;
}

/* The same memory, mapped elsewhere as well, goes on to be counted there. */
static struct counted move_to_other_mapping(struct place *physical)
{
    struct counted what = {0};
    size_t at = 0;
    for (struct place *other; (other = places_next(&virtual_mappings, &at));) {
        if (other->other != physical->key)
            continue;
        physical->other = other->key;
        count(&what, physical, other->key, other->size);
        break;
    }
    return what;
}

/* Take the mapping at address out; its size, or 0 if it is none of ours. */
static uint64_t remove_mapping(uint64_t address, struct counted *gone, struct counted *moved)
{
    *gone = *moved = (struct counted){0};
    spin_lock(&virtual_lock);
    struct place *mapping = places_find(&virtual_mappings, address);
    uint64_t size = mapping ? mapping->size : 0;
    struct place *physical = mapping ? places_find(&virtual_physical, mapping->other) : NULL;
    if (mapping)
        places_remove(&virtual_mappings, address);
    if (physical) {
        physical->mapped--;
        if (physical->other == address) {
            count(gone, physical, address, size);
            physical->other = 0;
            if (physical->mapped > 0)
                *moved = move_to_other_mapping(physical);
            else if (physical->references > 0)
                gone->held = hold(physical);
            gone->held_size = physical->size;
        }
        forget_if_gone(physical);
    }
    spin_unlock(&virtual_lock);
    return size;
}

/* Unmapping comes first and is told afterwards: until then the addresses belong to the program's reservation and cannot
 * be given to anybody else. */
CUresult wrap_cuMemUnmap(CUdeviceptr address, size_t size)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemUnmap, CALLER);
    CUresult result = driver.cuMemUnmap(address, size);
    if (result == CUDA_SUCCESS && hook.records) {
        uint64_t done = 0, length;
        struct counted gone, moved;
        while (done < size && (length = remove_mapping(address + done, &gone, &moved)) > 0) {
            if (gone.counts)
                hook_mapped(&hook, gone.kind, gone.device, gone.address, gone.size, false);
            if (moved.counts)
                hook_mapped(&hook, moved.kind, moved.device, moved.address, moved.size, true);
            hook_unmapped(&hook, gone.device, gone.held, gone.held_size, true);
            done += length;
        }
    }
    hook_end(&hook);
    return result;
}
