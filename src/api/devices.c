/*
 * Devices: opened when first used; what their allocators stand on.  Uses src/base, src/alloc and src/device.
 *
 * The memory of a device is driver_memory's, but for this: a failure of the driver leaves the allocator's numbers alone and
 * is kept for the message; a segment may be asked for without the lock (release_lock_on_cudamalloc); what pools with
 * callbacks have to give back goes back before more is asked for; and an event that cannot be recorded is
 * replaced by waiting, so that no block is lost.
 */
#include "api/library.h"

#include <inttypes.h>

/* --- the memory under an allocator -------------------------------------------------------------------------------- */

/* The driver's results must not be mistaken for the allocator's own statuses. */
static int device_status(struct library_device *device, int result)
{
    if (result <= 0 || result == MEMORY_DEVICE_FULL)
        return result;
    device->driver_error = result;
    return LIBRARY_DRIVER_STATUS + result;
}

static int segment_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct library_device *device = self;
    bool unlocks = device->unlocks_for_segments;
    if (unlocks)
        library_pause(device);
    int result = device->under.segment_get(device->under.self, size, stream, address);
    if (unlocks)
        library_resume(device);
    return device_status(device, result);
}

static void segment_release(void *self, uint64_t address, uint64_t size)
{
    struct library_device *device = self;
    device->under.segment_release(device->under.self, address, size);
}

static int address_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct library_device *device = self;
    return device_status(device, device->under.address_reserve(device->under.self, size, address));
}

static void address_release(void *self, uint64_t address, uint64_t size)
{
    struct library_device *device = self;
    device->under.address_release(device->under.self, address, size);
}

static int map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct library_device *device = self;
    return device_status(device, device->under.map(device->under.self, address, size, page));
}

static void unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct library_device *device = self;
    device->under.unmap(device->under.self, address, size, page);
}

#define NO_EVENT 0 /* all that it stood for is over */

static void wait_for_everything(struct library_device *device)
{
    const struct library_driver *call = library_driver(NULL);
    if (library_push_context(device, NULL))
        return;
    call->cuCtxSynchronize();
    library_pop_context();
}

static int event_record(void *self, int64_t stream, uint64_t *event)
{
    struct library_device *device = self;
    if (!device_status(device, device->under.event_record(device->under.self, stream, event)))
        return 0;
    wait_for_everything(device); /* the stream may be gone, and with it what it had to do */
    *event = NO_EVENT;
    return 0;
}

static bool event_done(void *self, uint64_t event)
{
    struct library_device *device = self;
    return event == NO_EVENT || device->under.event_done(device->under.self, event);
}

static void event_wait(void *self, uint64_t event)
{
    struct library_device *device = self;
    if (event != NO_EVENT)
        device->under.event_wait(device->under.self, event);
}

static void stream_wait(void *self, int64_t stream)
{
    struct library_device *device = self;
    device->under.stream_wait(device->under.self, stream);
}

static void memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct library_device *device = self;
    device->under.memory_info(device->under.self, free_bytes, total_bytes);
}

static void settle(void *self)
{
    struct library_device *device = self;
    if (!device->returned)
        return;
    library_pause(device);
    library_give_back(device);
    library_resume(device);
}

static struct memory_device device_memory(struct library_device *device)
{
    return (struct memory_device){
        .self = device, .segment_get = segment_get, .segment_release = segment_release,
        .address_reserve = address_reserve, .address_release = address_release, .map = map, .unmap = unmap,
        .event_record = event_record, .event_done = event_done, .event_wait = event_wait, .stream_wait = stream_wait,
        .memory_info = memory_info, .settle = settle};
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static int open_allocator(struct library_device *device, struct error *err)
{
    struct allocator_options options = {.device = device_memory(device), .limit = ALLOCATOR_NO_LIMIT};
    uint64_t free_bytes = 0;
    device->under.memory_info(device->under.self, &free_bytes, &device->total_bytes);
    if (!device->total_bytes)
        return error_set(err, CUDAMEM_ERROR_DRIVER, "device %d does not tell how much memory it has", device->ordinal);
    library_settings(&options.settings, NULL, 0);
    device->fraction = options.settings.per_process_memory_fraction;
    if (device->fraction < 1)
        options.limit = (uint64_t)(device->fraction * (double)device->total_bytes);
    device->unlocks_for_segments = options.settings.release_lock_on_device_malloc;
    device->allocator = allocator_new(&options);
    return device->allocator ? CUDAMEM_OK : error_no_memory(err);
}

/* Under the settings' lock. */
static int open_device(int ordinal, struct library_device *device, struct error *err)
{
    CUdevice handle;
    const struct library_driver *call = library_driver(err);
    if (!call)
        return CUDAMEM_ERROR_NOT_FOUND;
    if (call->cuDeviceGet(&handle, ordinal))
        return error_set(err, CUDAMEM_ERROR_NOT_FOUND, "there is no device %d", ordinal);
    if (!device->context) {
        int result = (int)call->cuDevicePrimaryCtxRetain(&device->context, handle);
        if (result) {
            device->context = NULL;
            return library_driver_status(result, "opening the device's primary context", err);
        }
    }
    device->ordinal = ordinal;
    int status = device->memory ? CUDAMEM_OK
                                : driver_memory_attach(library_memory_functions(), handle, device->context,
                                                       &device->memory, err);
    if (status)
        return status;
    device->under = driver_memory_table(device->memory);
    status = open_allocator(device, err);
    if (status)
        return status;
    library_set_trace(device);
    atomic_store_explicit(&device->ready, true, memory_order_release);
    return CUDAMEM_OK;
}

static int current_ordinal(int *ordinal, struct error *err)
{
    CUdevice device = 0;
    const struct library_driver *call = library_driver(err);
    if (!call)
        return CUDAMEM_ERROR_NOT_FOUND;
    int result = (int)call->cuCtxGetDevice(&device);
    if (result && result != CUDA_ERROR_INVALID_CONTEXT)
        return library_driver_status(result, "asking for the current device", err);
    *ordinal = result ? 0 : device;
    return CUDAMEM_OK;
}

/* -1 becomes the current device; what lies outside of the table cannot be one. */
static int find_ordinal(int *ordinal, struct error *err)
{
    if (*ordinal == -1)
        return current_ordinal(ordinal, err);
    return *ordinal < 0 || *ordinal >= LIBRARY_DEVICES
               ? error_set(err, CUDAMEM_ERROR_NOT_FOUND, "there is no device %d", *ordinal)
               : CUDAMEM_OK;
}

static bool is_ready(const struct library_device *device)
{
    return atomic_load_explicit(&device->ready, memory_order_acquire);
}

int library_device(int ordinal, struct library_device **device, struct error *err)
{
    *device = NULL;
    int status = find_ordinal(&ordinal, err);
    if (status)
        return status;
    struct library_device *asked = &library_devices[ordinal];
    if (!is_ready(asked)) {
        library_begin();
        status = library_settings_check(err);
        if (!status)
            status = library_settings_enter(err);
        if (status)
            return status;
        if (!is_ready(asked))
            status = open_device(ordinal, asked, err);
        library_settings_leave();
    }
    *device = status ? NULL : asked;
    return status;
}

int library_device_if_used(int ordinal, struct library_device **device, struct error *err)
{
    int count = 0;
    *device = NULL;
    if (ordinal == -1 && !library_is_used())
        return CUDAMEM_OK;
    int status = find_ordinal(&ordinal, err);
    if (status)
        return status;
    if (is_ready(&library_devices[ordinal])) {
        *device = &library_devices[ordinal];
        return CUDAMEM_OK;
    }
    if (!library_is_used())
        return CUDAMEM_OK;
    status = library_device_count(&count, err);
    return status || ordinal < count ? status : error_set(err, CUDAMEM_ERROR_NOT_FOUND, "there is no device %d", ordinal);
}

struct library_device *library_next_device(int ordinal)
{
    for (; ordinal < LIBRARY_DEVICES; ordinal++)
        if (is_ready(&library_devices[ordinal]))
            return &library_devices[ordinal];
    return NULL;
}

bool library_is_used(void)
{
    return library_next_device(0) != NULL;
}

int library_enter_owner(uint64_t address, struct library_device **device, struct error *err)
{
    for (struct library_device *d = library_next_device(0); d; d = library_next_device(d->ordinal + 1)) {
        int status = library_enter(d, err);
        if (status)
            return status;
        if (allocator_has(d->allocator, address)) {
            *device = d;
            return CUDAMEM_OK;
        }
        library_leave(d);
    }
    return error_set(err, CUDAMEM_ERROR_INVALID, "%#" PRIx64 " is not a block of this allocator", address);
}

int library_status(struct library_device *device, int status, struct error *err)
{
    (void)device;
    if (status >= LIBRARY_DRIVER_STATUS)
        return library_driver_status(status - LIBRARY_DRIVER_STATUS, "the CUDA driver failed", err);
    if (status == ALLOCATOR_OUT_OF_MEMORY)
        return error_set(err, CUDAMEM_ERROR_OUT_OF_MEMORY, "out of memory");
    if (status == ALLOCATOR_INVALID)
        return error_set(err, CUDAMEM_ERROR_INVALID, "not a block of this allocator");
    return status == STATUS_NO_MEMORY ? error_no_memory(err) : status;
}
