/* A CUDA driver as a memory device.  Uses src/base and the C library; the driver comes by dlopen(). */
#include "device/driver_memory.h"

#include "base/array.h"
#include "device/cuda_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_FUNCTIONS(F)                                                                                      \
    F(cuInit)                                                                                                    \
    F(cuDeviceGet)                                                                                               \
    F(cuDevicePrimaryCtxRetain)                                                                                  \
    F(cuDevicePrimaryCtxRelease_v2)                                                                              \
    F(cuCtxPushCurrent_v2)                                                                                       \
    F(cuCtxPopCurrent_v2)                                                                                        \
    F(cuThreadExchangeStreamCaptureMode)                                                                         \
    F(cuMemAlloc_v2)                                                                                             \
    F(cuMemFree_v2)                                                                                              \
    F(cuMemGetInfo_v2)                                                                                           \
    F(cuMemAddressReserve)                                                                                       \
    F(cuMemAddressFree)                                                                                          \
    F(cuMemCreate)                                                                                               \
    F(cuMemRelease)                                                                                              \
    F(cuMemMap)                                                                                                  \
    F(cuMemUnmap)                                                                                                \
    F(cuMemSetAccess)                                                                                            \
    F(cuEventCreate)                                                                                             \
    F(cuEventDestroy_v2)                                                                                         \
    F(cuEventRecord)                                                                                             \
    F(cuEventQuery)                                                                                              \
    F(cuEventSynchronize)                                                                                        \
    F(cuStreamSynchronize)

struct driver_memory {
    void *library;
    CUdevice device;
    CUcontext context;
    CUevent *idle; /* events to be used again */
    size_t idle_count, idle_capacity;
#define DRIVER_MEMBER(name) __typeof__(&name) name;
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

static int look_up(struct driver_memory *memory, struct error *err)
{
    static const char *const names[] = {
#define DRIVER_NAME(name) #name,
        DRIVER_FUNCTIONS(DRIVER_NAME)
#undef DRIVER_NAME
    };
    void *functions[sizeof(names) / sizeof(names[0])];
    size_t i = 0;
    for (; i < sizeof(names) / sizeof(names[0]); i++) {
        functions[i] = dlsym(memory->library, names[i]);
        if (!functions[i])
            return error_set(err, STATUS_NOT_FOUND, "the CUDA driver has no %s: a newer one is needed", names[i]);
    }
    i = 0;
#define DRIVER_COPY(name) memcpy(&memory->name, &functions[i++], sizeof(functions[0]));
    DRIVER_FUNCTIONS(DRIVER_COPY)
#undef DRIVER_COPY
    return STATUS_OK;
}

static int start(struct driver_memory *memory, int ordinal, struct error *err)
{
    CUresult result = memory->cuInit(0);
    if (result)
        return error_set(err, STATUS_NOT_FOUND, "the CUDA driver does not start: error %d", (int)result);
    if (memory->cuDeviceGet(&memory->device, ordinal))
        return error_set(err, STATUS_NOT_FOUND, "there is no device %d", ordinal);
    result = memory->cuDevicePrimaryCtxRetain(&memory->context, memory->device);
    if (result)
        return error_set(err, STATUS_NOT_FOUND, "device %d gives no context: error %d", ordinal, (int)result);
    return STATUS_OK;
}

int driver_memory_open(const char *library, int ordinal, struct driver_memory **result, struct error *err)
{
    struct driver_memory *memory = *result = calloc(1, sizeof(*memory));
    if (!memory)
        return error_no_memory(err);
    memory->library = dlopen(library ? library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* drivers do not go */
    int status = memory->library ? look_up(memory, err)
                                 : error_set(err, STATUS_NOT_FOUND, "no CUDA driver: %s", dlerror());
    if (!status)
        status = start(memory, ordinal, err);
    if (status) {
        driver_memory_close(memory);
        *result = NULL;
    }
    return status;
}

void driver_memory_close(struct driver_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->idle_count; i++)
        memory->cuEventDestroy_v2(memory->idle[i]);
    if (memory->context)
        memory->cuDevicePrimaryCtxRelease_v2(memory->device);
    if (memory->library)
        dlclose(memory->library);
    free(memory->idle);
    free(memory);
}

static int enter(struct driver_memory *memory)
{
    return (int)memory->cuCtxPushCurrent_v2(memory->context);
}

static void leave(struct driver_memory *memory)
{
    CUcontext own;
    memory->cuCtxPopCurrent_v2(&own);
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
    memory->cuThreadExchangeStreamCaptureMode(&mode);
    status = (int)memory->cuMemAlloc_v2(&got, size);
    memory->cuThreadExchangeStreamCaptureMode(&mode);
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
    memory->cuMemFree_v2(address);
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
    status = (int)memory->cuMemAddressReserve(&got, size, 0, 0, 0);
    leave(memory);
    *address = got;
    return status;
}

static void address_release(void *self, uint64_t address, uint64_t size)
{
    struct driver_memory *memory = self;
    if (enter(memory))
        return;
    memory->cuMemAddressFree(address, size);
    leave(memory);
}

/* One page backed; the handle may go, the mapping keeps the memory. */
static int map_page(struct driver_memory *memory, uint64_t address, uint64_t page)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = memory->device}};
    CUmemGenericAllocationHandle handle;
    int status = (int)memory->cuMemCreate(&handle, page, &properties, 0);
    if (status)
        return status;
    status = (int)memory->cuMemMap(address, page, 0, handle, 0);
    memory->cuMemRelease(handle);
    return status;
}

static int map_pages(struct driver_memory *memory, uint64_t address, uint64_t size, uint64_t page)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = memory->device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t done = 0;
    int status = 0;
    while (done < size && !status) {
        status = map_page(memory, address + done, page);
        done += status ? 0 : page;
    }
    if (!status)
        status = (int)memory->cuMemSetAccess(address, size, &access, 1);
    if (status && done)
        memory->cuMemUnmap(address, done);
    return status;
}

static int map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct driver_memory *memory = self;
    int status = enter(memory);
    if (status)
        return status;
    status = map_pages(memory, address, size, page);
    leave(memory);
    return status;
}

static void unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct driver_memory *memory = self;
    (void)page;
    if (enter(memory))
        return;
    memory->cuMemUnmap(address, size);
    leave(memory);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

static void event_rest(struct driver_memory *memory, CUevent event)
{
    if (array_reserve(&memory->idle, &memory->idle_capacity, memory->idle_count + 1, sizeof(*memory->idle)))
        memory->cuEventDestroy_v2(event);
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
        status = (int)memory->cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
    if (!status) {
        status = (int)memory->cuEventRecord(made, stream_of(stream));
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
    bool done = memory->cuEventQuery(asked) == CUDA_SUCCESS;
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
    memory->cuEventSynchronize(asked);
    leave(memory);
    event_rest(memory, asked);
}

static void stream_wait(void *self, int64_t stream)
{
    struct driver_memory *memory = self;
    if (enter(memory))
        return;
    memory->cuStreamSynchronize(stream_of(stream));
    leave(memory);
}

static void memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct driver_memory *memory = self;
    size_t available = 0, total = 0;
    if (!enter(memory)) {
        memory->cuMemGetInfo_v2(&available, &total);
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
