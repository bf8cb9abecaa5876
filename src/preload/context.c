/*
 * Contexts take their memory with them.  Uses the driver table, places, measures and the recorder's table of live memory.
 */
#include "preload/context.h"

#include "preload/caching.h"
#include "preload/capture.h"
#include "preload/graph_memory.h"
#include "preload/hook.h"
#include "preload/measure.h"
#include "preload/places.h"
#include "preload/preload.h"
#include "preload/spin.h"
#include "preload/unplaced.h"
#include "preload/wrappers.h"

#include <stdatomic.h>

#define CALLER __builtin_return_address(0)
#define CONTEXT_BATCH 64

static struct places context_made;   /* contexts of the program's own */
static struct places context_memory; /* address -> other: the context it was made in, if that is one of those */
static atomic_uint context_count;
static atomic_flag context_lock = ATOMIC_FLAG_INIT;

void context_after_fork(void)
{
    spin_unlock(&context_lock);
}

void context_allocated(uint64_t address)
{
    CUcontext current = NULL;
    if (atomic_load_explicit(&context_count, memory_order_relaxed) == 0 || capture_any() || !driver.cuCtxGetCurrent ||
        driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
        return;
    spin_lock(&context_lock);
    struct place *memory = places_find(&context_made, (uintptr_t)current) ? places_add(&context_memory, address) : NULL;
    if (memory)
        memory->other = (uintptr_t)current;
    spin_unlock(&context_lock);
}

bool context_is_own(CUcontext context)
{
    if (atomic_load_explicit(&context_count, memory_order_relaxed) == 0)
        return false;
    spin_lock(&context_lock);
    bool own = places_find(&context_made, (uintptr_t)context) != NULL;
    spin_unlock(&context_lock);
    return own;
}

void context_freed(uint64_t address)
{
    if (atomic_load_explicit(&context_count, memory_order_relaxed) == 0)
        return;
    spin_lock(&context_lock);
    places_remove(&context_memory, address);
    spin_unlock(&context_lock);
}

/* --- making one --------------------------------------------------------------------------------------------------- */

/* What a context takes is measured if another one of the same device is current: before a device's first context nobody
 * can be asked. */
static struct measure begin(struct hook *hook, enum driver_call call, const void *caller, CUdevice device)
{
    hook_begin(hook, call, caller);
    struct measure before = hook->records ? measure_begin() : (struct measure){0};
    before.valid = before.valid && before.device == device;
    return before;
}

static void takes(struct hook *hook, const struct measure *before, CUresult result)
{
    uint64_t size = measure_end(before);
    if (result == CUDA_SUCCESS && size)
        hook_allocated(hook, RECORD_CONTEXT, unplaced_address(size), size, RECORD_UNKNOWN);
    else if (result != CUDA_SUCCESS)
        hook_failed(hook, result, RECORD_CONTEXT, 0);
}

static CUresult made(struct hook *hook, const struct measure *before, CUresult result, const CUcontext *context)
{
    if (result == CUDA_SUCCESS && context && *context) {
        spin_lock(&context_lock);
        struct place *place = places_add(&context_made, (uintptr_t)*context);
        if (place)
            place->references = 1;
        atomic_store(&context_count, (unsigned)context_made.count);
        spin_unlock(&context_lock);
    }
    takes(hook, before, result); /* the new one is current: it takes this with it, too */
    hook_end(hook);
    return result;
}

#define MADE(name, call) \
    struct hook hook; \
    struct measure before = begin(&hook, CALL_##name, CALLER, device); \
    return made(&hook, &before, driver.name call, context)

CUresult wrap_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    MADE(cuCtxCreate, (context, flags, device));
}

CUresult wrap_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    MADE(cuCtxCreate_v2, (context, flags, device));
}

CUresult wrap_cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned int flags,
                             CUdevice device)
{
    MADE(cuCtxCreate_v3, (context, affinity, count, flags, device));
}

CUresult wrap_cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
    MADE(cuCtxCreate_v4, (context, parameters, flags, device));
}

/* Only the driver knows whether it is there already, or still. */
static bool primary_is_active(CUdevice device)
{
    unsigned flags = 0;
    int active = 1;
    return !driver.cuDevicePrimaryCtxGetState ||
           driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active;
}

CUresult wrap_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuDevicePrimaryCtxRetain, CALLER);
    struct measure before = {0};
    if (hook.records && !capture_any() && !primary_is_active(device))
        before = measure_begin();
    before.valid = before.valid && before.device == device;
    CUresult result = driver.cuDevicePrimaryCtxRetain(context, device);
    uint64_t size = measure_end(&before), address = size ? unplaced_address(size) : 0;
    if (result == CUDA_SUCCESS && size)
        hook_allocated(&hook, RECORD_CONTEXT, address, size, RECORD_UNKNOWN);
    else if (result != CUDA_SUCCESS)
        hook_failed(&hook, result, RECORD_CONTEXT, 0);
    context_freed(address); /* it is the primary one's, not the current one's */
    hook_end(&hook);
    return result;
}

/* The old count of a context's users: as many detach as attached, and who made it. */
static bool has_other_user(CUcontext context)
{
    spin_lock(&context_lock);
    struct place *place = places_find(&context_made, (uintptr_t)context);
    bool other = place && place->references > 1;
    if (other)
        place->references--;
    spin_unlock(&context_lock);
    return other;
}

CUresult wrap_cuCtxAttach(CUcontext *context, unsigned int flags)
{
    preload_saw_call();
    CUresult result = driver.cuCtxAttach(context, flags);
    if (result != CUDA_SUCCESS || !context)
        return result;
    spin_lock(&context_lock);
    struct place *place = places_find(&context_made, (uintptr_t)*context);
    if (place)
        place->references++;
    spin_unlock(&context_lock);
    return result;
}

/* --- its end ------------------------------------------------------------------------------------------------------ */

/* One address of a context, taken out of the table. */
static uint64_t take_memory(uint64_t context)
{
    uint64_t address = 0;
    size_t at = 0;
    spin_lock(&context_lock);
    for (struct place *memory; !address && (memory = places_next(&context_memory, &at));)
        if (memory->other == context)
            address = memory->key;
    places_remove(&context_memory, address);
    spin_unlock(&context_lock);
    return address;
}

static void will_destroy(struct hook *hook, CUcontext context)
{
    spin_lock(&context_lock);
    bool ours = places_find(&context_made, (uintptr_t)context) != NULL;
    spin_unlock(&context_lock);
    if (!ours || !hook->records)
        return;
    for (uint64_t address; (address = take_memory((uintptr_t)context));)
        hook_gone(hook, address);
    spin_lock(&context_lock);
    places_remove(&context_made, (uintptr_t)context);
    atomic_store(&context_count, (unsigned)context_made.count);
    spin_unlock(&context_lock);
}

CUresult wrap_cuCtxDestroy(CUcontext context)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuCtxDestroy, CALLER);
    will_destroy(&hook, context);
    CUresult result = driver.cuCtxDestroy(context);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuCtxDestroy_v2(CUcontext context)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuCtxDestroy_v2, CALLER);
    will_destroy(&hook, context);
    CUresult result = driver.cuCtxDestroy_v2(context);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuCtxDetach(CUcontext context)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuCtxDetach, CALLER);
    if (!has_other_user(context))
        will_destroy(&hook, context);
    CUresult result = driver.cuCtxDetach(context);
    hook_end(&hook);
    return result;
}

/* The live memory of a device's primary context, some at a time: the recorder's table must not change while it is
 * walked. */
struct batch {
    uint16_t device;
    unsigned count;
    uint64_t addresses[CONTEXT_BATCH];
};

static bool collect(uint64_t address, uint16_t device, uint8_t kind, void *context)
{
    struct batch *batch = context;
    bool in_context = kind == RECORD_PLAIN || kind == RECORD_PITCHED || kind == RECORD_MANAGED ||
                      kind == RECORD_ARRAY || kind == RECORD_MIPMAPPED || kind == RECORD_HOST ||
                      kind == RECORD_MODULE || kind == RECORD_CONTEXT;
    if (device != batch->device || !in_context)
        return true;
    spin_lock(&context_lock);
    bool elsewhere = places_find(&context_memory, address) != NULL;
    spin_unlock(&context_lock);
    if (!elsewhere)
        batch->addresses[batch->count++] = address;
    return batch->count < CONTEXT_BATCH;
}

static void primary_is_gone(struct hook *hook, CUdevice device)
{
    struct batch batch = {.count = 0};
    uint64_t first;
    caching_context_gone(hook, device);
    if (!hook->records || device < 0 || device > UINT16_MAX)
        return;
    do {
        first = batch.addresses[0];
        batch.device = (uint16_t)device;
        batch.count = 0;
        recorder_each_segment(collect, &batch);
        for (unsigned i = 0; i < batch.count; i++)
            hook_gone(hook, batch.addresses[i]);
    } while (batch.count == CONTEXT_BATCH && batch.addresses[0] != first); /* the same again: events are turned away */
    graph_memory_device_is_gone(hook, (unsigned)device);
}

CUresult wrap_cuDevicePrimaryCtxReset(CUdevice device)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuDevicePrimaryCtxReset, CALLER);
    CUresult result = driver.cuDevicePrimaryCtxReset(device);
    if (result == CUDA_SUCCESS)
        primary_is_gone(&hook, device);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuDevicePrimaryCtxReset_v2, CALLER);
    CUresult result = driver.cuDevicePrimaryCtxReset_v2(device);
    if (result == CUDA_SUCCESS)
        primary_is_gone(&hook, device);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuDevicePrimaryCtxRelease(CUdevice device)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuDevicePrimaryCtxRelease, CALLER);
    CUresult result = driver.cuDevicePrimaryCtxRelease(device);
    if (result == CUDA_SUCCESS && !primary_is_active(device))
        primary_is_gone(&hook, device);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuDevicePrimaryCtxRelease_v2, CALLER);
    CUresult result = driver.cuDevicePrimaryCtxRelease_v2(device);
    if (result == CUDA_SUCCESS && !primary_is_active(device))
        primary_is_gone(&hook, device);
    hook_end(&hook);
    return result;
}
