/*
 * What every wrapper does.  Uses record and the driver table.
 */
#include "preload/hook.h"

#include "preload/capture.h"
#include "preload/context.h"
#include "preload/measure.h"
#include "preload/preload.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define HOOK_DEVICES 64
#define SEGMENT_START (UINT64_C(1) << 20) /* segments that an allocator cuts begin at multiples of it */

static __thread struct {
    unsigned inside;
    bool has_device;
    uint16_t device;
    uint16_t refused_device;
    uint64_t refused;             /* bytes that the driver refused, with an entry; 0: it gave since */
    uint64_t refused_free;        /* bytes that it said it had then */
    uint64_t fresh, fresh_end;    /* memory that came since this thread's last block */
} hook_thread;

static atomic_bool hook_known[HOOK_DEVICES];
static atomic_bool hook_driver_told;
static atomic_bool hook_has_blocks; /* an allocator tells of its blocks: an out of memory is what it says is one */

void hook_begin(struct hook *hook, enum driver_call call, const void *caller)
{
    memset(hook, 0, sizeof(*hook));
    hook->caller = caller;
    hook->call = (uint16_t)call;
    hook->stream_unknown = true;
    preload_saw_call();
    hook->records = hook_thread.inside++ == 0 && preload_recording();
}

bool hook_is_outermost(void)
{
    return hook_thread.inside == 1;
}

void hook_end(struct hook *hook)
{
    (void)hook;
    hook_thread.inside--;
}

/* Facts that the driver tells of itself; asked once, and only when no capture could mind. */
static void learn_device(uint16_t ordinal)
{
    char name[128] = "";
    CUuuid uuid;
    size_t total = 0;
    if (ordinal >= HOOK_DEVICES || atomic_exchange(&hook_known[ordinal], true))
        return;
    memset(&uuid, 0, sizeof(uuid));
    if (driver.cuDeviceGetName)
        driver.cuDeviceGetName(name, sizeof(name) - 1, ordinal);
    if (driver.cuDeviceGetUuid_v2)
        driver.cuDeviceGetUuid_v2(&uuid, ordinal);
    else if (driver.cuDeviceGetUuid)
        driver.cuDeviceGetUuid(&uuid, ordinal);
    if (driver.cuDeviceTotalMem_v2)
        driver.cuDeviceTotalMem_v2(&total, ordinal);
    uint8_t bytes[16];
    memcpy(bytes, uuid.bytes, sizeof(bytes));
    recorder_device(ordinal, name, bytes, total);
    if (atomic_exchange(&hook_driver_told, true))
        return;
    int version = 0;
    if (driver.cuDriverGetVersion)
        driver.cuDriverGetVersion(&version);
    recorder_driver(version, driver.path);
}

uint16_t hook_device(void)
{
    bool asked = !capture_any() || !hook_thread.has_device;
    CUdevice device = 0;
    if (asked && driver.cuCtxGetDevice && driver.cuCtxGetDevice(&device) == CUDA_SUCCESS && device >= 0 &&
        device <= UINT16_MAX) {
        hook_thread.device = (uint16_t)device;
        hook_thread.has_device = true;
    }
    if (!capture_any())
        learn_device(hook_thread.device);
    return hook_thread.device;
}

static void set_device(struct hook *hook)
{
    uint16_t current = hook_device();
    if (!hook->device_known)
        hook->device = current;
    else if (!capture_any())
        learn_device(hook->device);
}

static void record(const struct record_event *event)
{
    int saved = errno;
    preload_recorded(recorder_event(event) != 0);
    errno = saved;
}

static struct record_event event_of(const struct hook *hook, uint8_t action, uint8_t kind)
{
    struct record_event event;
    memset(&event, 0, sizeof(event));
    event.action = action;
    event.kind = kind;
    event.device = hook->device;
    event.call = hook->call;
    event.requested = RECORD_UNKNOWN;
    event.pool = hook->pool;
    event.stream = hook->stream;
    event.stream_unknown = hook->stream_unknown;
    event.skip = hook->caller;
    return event;
}

void hook_record(const struct record_event *event)
{
    record(event);
}

/* The first block of new memory is told by the thread that got the memory: a large block may take several mappings. */
static void is_fresh(uint64_t address, uint64_t size)
{
    hook_thread.refused = 0;
    if (hook_thread.fresh_end != address)
        hook_thread.fresh = address;
    hook_thread.fresh_end = address + size;
}

void hook_allocated(struct hook *hook, uint8_t kind, uint64_t address, uint64_t size, uint64_t requested)
{
    if (!hook->records || address == 0)
        return;
    set_device(hook);
    struct record_event event = event_of(hook, RECORD_SEGMENT_ALLOC, kind);
    event.address = address;
    event.size = size;
    event.requested = requested;
    record(&event);
    is_fresh(address, size);
    context_allocated(address);
    if (hook->device == hook_thread.device)
        measure_event(hook->device);
}

void hook_failed(struct hook *hook, CUresult result, uint8_t kind, uint64_t requested)
{
    if (!hook->records || result != CUDA_ERROR_OUT_OF_MEMORY)
        return;
    set_device(hook);
    struct record_event event = event_of(hook, RECORD_OOM, kind);
    size_t free = 0, total = 0;
    event.address = RECORD_UNKNOWN;
    /* the driver answers for the current context's device */
    if (!capture_any() && hook->device == hook_thread.device && driver.cuMemGetInfo_v2 &&
        driver.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS) {
        event.address = free;
        measure_seen(hook->device, free);
    }
    event.size = requested;
    event.result = (int32_t)result;
    record(&event);
    hook_thread.refused = requested;
    hook_thread.refused_free = event.address;
    hook_thread.refused_device = hook->device;
    if (!atomic_load_explicit(&hook_has_blocks, memory_order_relaxed))
        recorder_keep_oom();
}

void hook_free(struct hook *hook, uint64_t address)
{
    if (!hook->records || address == 0 || !recorder_find_segment(address, &hook->size, &hook->device, &hook->kind))
        return; /* memory that we never counted */
    hook->address = address;
    hook->undoable = true;
    context_freed(address);
    struct record_event event = event_of(hook, RECORD_SEGMENT_FREE, hook->kind);
    event.address = address;
    event.size = hook->size;
    record(&event);
}

void hook_free_result(struct hook *hook, CUresult result)
{
    if (!hook->undoable || result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED)
        return;
    struct record_event event = event_of(hook, RECORD_SEGMENT_FREE, hook->kind);
    event.address = hook->address;
    event.size = hook->size;
    event.result = (int32_t)result;
    record(&event);
    context_allocated(hook->address);
}

void hook_gone(struct hook *hook, uint64_t address)
{
    hook_free(hook, address);
    hook->undoable = false;
}

void hook_mapped(struct hook *hook, uint8_t kind, uint16_t device, uint64_t address, uint64_t size, bool mapped)
{
    if (!hook->records)
        return;
    hook->device = device;
    struct record_event event = event_of(hook, mapped ? RECORD_SEGMENT_MAP : RECORD_SEGMENT_UNMAP, kind);
    event.address = address;
    event.size = size;
    record(&event);
    if (!mapped)
        return;
    is_fresh(address, size);
    if (hook_thread.has_device && device == hook_thread.device)
        measure_event(device);
}

void hook_unmapped(struct hook *hook, uint16_t device, uint64_t address, uint64_t size, bool exists)
{
    uint64_t known;
    if (!hook->records || !address || (!exists && !recorder_find(address, &known, &device)))
        return;
    hook->device = device;
    struct record_event event = event_of(hook, exists ? RECORD_SEGMENT_ALLOC : RECORD_SEGMENT_FREE, RECORD_VIRTUAL);
    event.address = address;
    event.size = size;
    event.unmapped = true;
    record(&event);
}

/* --- an allocator's blocks ---------------------------------------------------------------------------------------- */

static struct record_event block_event(const void *caller, uint8_t action, uint16_t device)
{
    struct record_event event;
    memset(&event, 0, sizeof(event));
    event.action = action;
    event.kind = RECORD_PLAIN;
    event.device = device;
    event.requested = RECORD_UNKNOWN;
    event.requested_unknown = action != RECORD_OOM;
    event.stream_unknown = true;
    event.skip = caller;
    return event;
}

void hook_block_allocated(const void *caller, uint16_t device, uint64_t address, uint64_t size,
                          const int64_t *stream)
{
    if (hook_thread.inside || !address || !preload_is_recording())
        return;
    hook_thread.refused = 0;
    if (!atomic_load_explicit(&hook_has_blocks, memory_order_relaxed))
        atomic_store_explicit(&hook_has_blocks, true, memory_order_relaxed);
    struct record_event event = block_event(caller, RECORD_ALLOC, device);
    event.address = address;
    event.size = size;
    event.stream = stream ? *stream : 0;
    event.stream_unknown = !stream;
    record(&event);
    if (address < hook_thread.fresh_end && hook_thread.fresh < address + size)
        recorder_holds_block(hook_thread.fresh, address, address + size);
    else if (address % SEGMENT_START == 0) /* perhaps the first one of a segment that another thread got */
        recorder_holds_block(address, address, address + size);
    hook_thread.fresh = hook_thread.fresh_end = 0;
}

void hook_block_freed(const void *caller, uint64_t address)
{
    struct record_event event = block_event(caller, RECORD_FREE_REQUESTED, 0);
    if (hook_thread.inside || !preload_is_recording() || !recorder_find_block(address, &event.size, &event.device))
        return;
    event.address = address;
    record(&event);
}

void hook_block_refused(const void *caller, uint16_t device, uint64_t size)
{
    bool asked = hook_thread.refused && hook_thread.refused_device == device;
    hook_thread.refused = 0;
    if (hook_thread.inside || !preload_is_recording())
        return;
    struct record_event event = block_event(caller, RECORD_OOM, device);
    event.address = asked ? hook_thread.refused_free : RECORD_UNKNOWN;
    event.size = size;
    event.result = CUDA_ERROR_OUT_OF_MEMORY;
    record(&event);
    recorder_keep_oom();
}
