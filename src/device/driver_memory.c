/* A CUDA driver as a memory device.  Uses src/base and the C library; the driver comes by dlopen(). */
#include "device/driver_memory.h"

#include "base/array.h"
#include "device/cuda_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uint64_t address, size;
};

struct driver_memory {
    struct driver_memory_functions call;
    void *library;    /* NULL: the functions are the caller's */
    CUdevice device;
    CUcontext context;
    bool is_attached; /* to a context of the caller's */
    CUevent *idle;    /* events to be used again */
    size_t idle_count, idle_capacity;
    CUmemAccessDesc *access; /* of what is mapped: this device, then others */
    size_t access_count, access_capacity;
    struct range *mapped;
    size_t mapped_count, mapped_capacity;
};

int driver_memory_look_up(struct driver_memory_functions *functions, void *(*find)(void *self, const char *name),
                          void *self, struct error *err)
{
    static const char *const names[] = {
#define DRIVER_NAME(name) #name,
        DRIVER_MEMORY_FUNCTIONS(DRIVER_NAME)
#undef DRIVER_NAME
    };
    void *found[sizeof(names) / sizeof(names[0])];
    size_t i = 0;
    for (; i < sizeof(names) / sizeof(names[0]); i++) {
        found[i] = find(self, names[i]);
        if (!found[i])
            return error_set(err, STATUS_NOT_FOUND, "the CUDA driver has no %s: a newer one is needed", names[i]);
    }
    i = 0;
#define DRIVER_COPY(name) memcpy(&functions->name, &found[i++], sizeof(found[0]));
    DRIVER_MEMORY_FUNCTIONS(DRIVER_COPY)
#undef DRIVER_COPY
    return STATUS_OK;
}

static int may_access(struct driver_memory *memory, CUdevice device)
{
    if (array_reserve(&memory->access, &memory->access_capacity, memory->access_count + 1, sizeof(*memory->access)))
        return STATUS_NO_MEMORY;
    memory->access[memory->access_count++] = (CUmemAccessDesc){
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return STATUS_OK;
}

static int start(struct driver_memory *memory, int ordinal, struct error *err)
{
    CUresult result = memory->call.cuInit(0);
    if (result)
        return error_set(err, STATUS_NOT_FOUND, "the CUDA driver does not start: error %d", (int)result);
    if (memory->call.cuDeviceGet(&memory->device, ordinal))
        return error_set(err, STATUS_NOT_FOUND, "there is no device %d", ordinal);
    result = memory->call.cuDevicePrimaryCtxRetain(&memory->context, memory->device);
    if (result)
        return error_set(err, STATUS_NOT_FOUND, "device %d gives no context: error %d", ordinal, (int)result);
    return may_access(memory, memory->device) ? error_no_memory(err) : STATUS_OK;
}

static void *find_in_library(void *self, const char *name)
{
    return dlsym(self, name);
}

int driver_memory_open(const char *library, int ordinal, struct driver_memory **result, struct error *err)
{
    struct driver_memory *memory = *result = calloc(1, sizeof(*memory));
    if (!memory)
        return error_no_memory(err);
    memory->library = dlopen(library ? library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* drivers do not go */
    int status = memory->library ? driver_memory_look_up(&memory->call, find_in_library, memory->library, err)
                                 : error_set(err, STATUS_NOT_FOUND, "no CUDA driver: %s", dlerror());
    if (!status)
        status = start(memory, ordinal, err);
    if (status) {
        driver_memory_close(memory);
        *result = NULL;
    }
    return status;
}

int driver_memory_attach(const struct driver_memory_functions *functions, CUdevice device, CUcontext context,
                         struct driver_memory **result, struct error *err)
{
    struct driver_memory *memory = *result = calloc(1, sizeof(*memory));
    if (!memory)
        return error_no_memory(err);
    memory->call = *functions;
    memory->device = device;
    memory->context = context;
    memory->is_attached = true;
    if (!may_access(memory, device))
        return STATUS_OK;
    driver_memory_forget(memory);
    *result = NULL;
    return error_no_memory(err);
}

void driver_memory_forget(struct driver_memory *memory)
{
    if (!memory)
        return;
    free(memory->idle);
    free(memory->access);
    free(memory->mapped);
    free(memory);
}

void driver_memory_close(struct driver_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->idle_count; i++)
        memory->call.cuEventDestroy_v2(memory->idle[i]);
    if (memory->context && !memory->is_attached)
        memory->call.cuDevicePrimaryCtxRelease_v2(memory->device);
    if (memory->library)
        dlclose(memory->library);
    driver_memory_forget(memory);
}

static int enter(struct driver_memory *memory)
{
    return (int)memory->call.cuCtxPushCurrent_v2(memory->context);
}

static void leave(struct driver_memory *memory)
{
    CUcontext own;
    memory->call.cuCtxPopCurrent_v2(&own);
}

static CUstream stream_of(int64_t stream)
{
    return (CUstream)(uintptr_t)stream;
}

/* --- segments --------------------------------------------------------------------------------------------------- */

static int segment_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct driver_memory *memory = self;
    CUdeviceptr got = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)stream;
    int status = enter(memory);
    if (status)
        return status;
    memory->call.cuThreadExchangeStreamCaptureMode(&mode);
    status = (int)memory->call.cuMemAlloc_v2(&got, size);
    memory->call.cuThreadExchangeStreamCaptureMode(&mode);
    leave(memory);
    *address = got;
    return status;
}

static void segment_release(void *self, uint64_t address, uint64_t size)
{
    struct driver_memory *memory = self;
    (void)size;
    if (enter(memory))
        return;
    memory->call.cuMemFree_v2(address);
    leave(memory);
}

/* --- virtual memory --------------------------------------------------------------------------------------------- */

static int address_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct driver_memory *memory = self;
    CUdeviceptr got = 0;
    int status = enter(memory);
    if (status)
        return status;
    status = (int)memory->call.cuMemAddressReserve(&got, size, 0, 0, 0);
    leave(memory);
    *address = got;
    return status;
}

static void address_release(void *self, uint64_t address, uint64_t size)
{
    struct driver_memory *memory = self;
    if (enter(memory))
        return;
    memory->call.cuMemAddressFree(address, size);
    leave(memory);
}

/* One page backed; the handle may go, the mapping keeps the memory. */
static int map_page(struct driver_memory *memory, uint64_t address, uint64_t page)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = memory->device}};
    CUmemGenericAllocationHandle handle;
    int status = (int)memory->call.cuMemCreate(&handle, page, &properties, 0);
    if (status)
        return status;
    status = (int)memory->call.cuMemMap(address, page, 0, handle, 0);
    memory->call.cuMemRelease(handle);
    return status;
}

static int map_pages(struct driver_memory *memory, uint64_t address, uint64_t size, uint64_t page)
{
    uint64_t done = 0;
    int status = 0;
    while (done < size && !status) {
        status = map_page(memory, address + done, page);
        done += status ? 0 : page;
    }
    if (!status)
        status = (int)memory->call.cuMemSetAccess(address, size, memory->access, memory->access_count);
    if (status && done)
        memory->call.cuMemUnmap(address, done);
    return status;
}

static int map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct driver_memory *memory = self;
    if (array_reserve(&memory->mapped, &memory->mapped_capacity, memory->mapped_count + 1, sizeof(*memory->mapped)))
        return STATUS_NO_MEMORY;
    int status = enter(memory);
    if (status)
        return status;
    status = map_pages(memory, address, size, page);
    leave(memory);
    if (!status)
        memory->mapped[memory->mapped_count++] = (struct range){address, size};
    return status;
}

/* What remains of the mappings when a range is gone.  There was room for one more: a mapping is cut in two at most, and
 * then no other one is touched. */
static void forget_mapped(struct driver_memory *memory, uint64_t address, uint64_t size)
{
    uint64_t end = address + size;
    size_t kept = 0, count = memory->mapped_count;
    struct range behind = {0, 0};
    for (size_t i = 0; i < count; i++) {
        struct range range = memory->mapped[i];
        uint64_t range_end = range.address + range.size;
        if (range.address >= end || range_end <= address) {
            memory->mapped[kept++] = range;
            continue;
        }
        if (range_end > end)
            behind = (struct range){end, range_end - end};
        if (range.address < address)
            memory->mapped[kept++] = (struct range){range.address, address - range.address};
    }
    if (behind.size)
        memory->mapped[kept++] = behind;
    memory->mapped_count = kept;
}

int driver_memory_share(struct driver_memory *memory, CUdevice device)
{
    for (size_t i = 0; i < memory->access_count; i++)
        if (memory->access[i].location.id == device)
            return STATUS_OK;
    int status = may_access(memory, device);
    if (!status)
        status = enter(memory);
    if (status)
        return status;
    for (size_t i = 0; i < memory->mapped_count && !status; i++)
        status = (int)memory->call.cuMemSetAccess(memory->mapped[i].address, memory->mapped[i].size,
                                                  &memory->access[memory->access_count - 1], 1);
    leave(memory);
    if (status)
        memory->access_count--;
    return status;
}

static void unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct driver_memory *memory = self;
    (void)page;
    if (enter(memory))
        return;
    memory->call.cuMemUnmap(address, size);
    leave(memory);
    if (!array_reserve(&memory->mapped, &memory->mapped_capacity, memory->mapped_count + 1, sizeof(*memory->mapped)))
        forget_mapped(memory, address, size);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

static void event_rest(struct driver_memory *memory, CUevent event)
{
    if (array_reserve(&memory->idle, &memory->idle_capacity, memory->idle_count + 1, sizeof(*memory->idle)))
        memory->call.cuEventDestroy_v2(event);
    else
        memory->idle[memory->idle_count++] = event;
}

static int event_record(void *self, int64_t stream, uint64_t *event)
{
    struct driver_memory *memory = self;
    CUevent made = memory->idle_count ? memory->idle[--memory->idle_count] : NULL;
    int status = enter(memory);
    if (status)
        return status;
    if (!made)
        status = (int)memory->call.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
    if (!status) {
        status = (int)memory->call.cuEventRecord(made, stream_of(stream));
        if (status)
            event_rest(memory, made);
    }
    leave(memory);
    *event = (uint64_t)(uintptr_t)made;
    return status;
}

static bool event_done(void *self, uint64_t event)
{
    struct driver_memory *memory = self;
    CUevent asked = (CUevent)(uintptr_t)event;
    if (enter(memory))
        return false;
    bool done = memory->call.cuEventQuery(asked) == CUDA_SUCCESS;
    leave(memory);
    if (done)
        event_rest(memory, asked);
    return done;
}

static void event_wait(void *self, uint64_t event)
{
    struct driver_memory *memory = self;
    CUevent asked = (CUevent)(uintptr_t)event;
    if (enter(memory))
        return;
    memory->call.cuEventSynchronize(asked);
    leave(memory);
    event_rest(memory, asked);
}

static void stream_wait(void *self, int64_t stream)
{
    struct driver_memory *memory = self;
    if (enter(memory))
        return;
    memory->call.cuStreamSynchronize(stream_of(stream));
    leave(memory);
}

static void memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct driver_memory *memory = self;
    size_t available = 0, total = 0;
    if (!enter(memory)) {
        memory->call.cuMemGetInfo_v2(&available, &total);
        leave(memory);
    }
    *free_bytes = available;
    *total_bytes = total;
}

struct memory_device driver_memory_table(struct driver_memory *memory)
{
    return (struct memory_device){
        .self = memory, .segment_get = segment_get, .segment_release = segment_release,
        .address_reserve = address_reserve, .address_release = address_release, .map = map, .unmap = unmap,
        .event_record = event_record, .event_done = event_done, .event_wait = event_wait, .stream_wait = stream_wait,
        .memory_info = memory_info};
}
