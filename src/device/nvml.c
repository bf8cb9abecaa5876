/* NVML through dlopen().  The few types and values of its public interface that we need are declared here. */
#include "device/nvml.h"

#include "base/array.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVML_SUCCESS = 0, NVML_INSUFFICIENT_SIZE = 7 };

struct nvml_memory_v1 {
    unsigned long long total, free, used;
};
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 (sizeof(struct nvml_memory_v2) | 2u << 24)

struct nvml_process_info { /* of the _v2 and _v3 calls */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

typedef int (*nvml_processes_call)(void *device, unsigned *count, struct nvml_process_info *infos);

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int result);
    int (*driver_version)(char *text, unsigned size);
    int (*device_count)(unsigned *count);
    int (*device_handle)(unsigned index, void **device);
    int (*device_name)(void *device, char *text, unsigned size);
    int (*device_uuid)(void *device, char *text, unsigned size);
    int (*memory_v1)(void *device, struct nvml_memory_v1 *memory);
    int (*memory_v2)(void *device, struct nvml_memory_v2 *memory);
    nvml_processes_call compute, graphics;
    int (*process_name)(unsigned pid, char *text, unsigned size);
    bool started;
    char driver[96];
};

static void *nvml_symbol(struct nvml *nvml, const char *first, const char *second)
{
    void *symbol = dlsym(nvml->library, first);
    return symbol || !second ? symbol : dlsym(nvml->library, second);
}

#define NVML_LOOK(member, first, second)                                                                         \
    do {                                                                                                         \
        void *symbol = nvml_symbol(nvml, first, second);                                                         \
        memcpy(&nvml->member, &symbol, sizeof(symbol));                                                          \
    } while (0)

static void nvml_look_up(struct nvml *nvml)
{
    NVML_LOOK(init, "nvmlInit_v2", "nvmlInit");
    NVML_LOOK(shutdown, "nvmlShutdown", NULL);
    NVML_LOOK(error_text, "nvmlErrorString", NULL);
    NVML_LOOK(driver_version, "nvmlSystemGetDriverVersion", NULL);
    NVML_LOOK(device_count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
    NVML_LOOK(device_handle, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
    NVML_LOOK(device_name, "nvmlDeviceGetName", NULL);
    NVML_LOOK(device_uuid, "nvmlDeviceGetUUID", NULL);
    NVML_LOOK(memory_v1, "nvmlDeviceGetMemoryInfo", NULL);
    NVML_LOOK(memory_v2, "nvmlDeviceGetMemoryInfo_v2", NULL);
    NVML_LOOK(compute, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2");
    NVML_LOOK(graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2");
    NVML_LOOK(process_name, "nvmlSystemGetProcessName", NULL);
}

static int nvml_failed(const struct nvml *nvml, const char *what, int result, struct error *err)
{
    const char *text = nvml->error_text ? nvml->error_text(result) : NULL;
    return error_set(err, STATUS_NOT_FOUND, "the NVIDIA management library cannot %s: %s (error %d)", what,
                     text ? text : "no reason given", result);
}

int nvml_open(struct nvml **result, struct error *err)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"};
    *result = NULL;
    struct nvml *nvml = calloc(1, sizeof(*nvml));
    if (!nvml)
        return error_no_memory(err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !nvml->library; i++)
        nvml->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        nvml_close(nvml);
        return error_set(err, STATUS_NOT_FOUND,
                         "no NVIDIA driver here: libnvidia-ml.so.1 was not found; install the driver or, in a container, "
                         "run it with access to the GPU");
    }
    nvml_look_up(nvml);
    if (!nvml->init || !nvml->shutdown || !nvml->device_count || !nvml->device_handle) {
        nvml_close(nvml);
        return error_set(err, STATUS_NOT_FOUND, "libnvidia-ml.so.1 lacks the calls that we need; update the driver");
    }
    int code = nvml->init();
    if (code != NVML_SUCCESS) {
        int status = nvml_failed(nvml, "start", code, err);
        nvml_close(nvml);
        return status;
    }
    nvml->started = true;
    if (!nvml->driver_version || nvml->driver_version(nvml->driver, sizeof(nvml->driver)) != NVML_SUCCESS)
        nvml->driver[0] = '\0';
    nvml->driver[sizeof(nvml->driver) - 1] = '\0';
    *result = nvml;
    return STATUS_OK;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->started)
        nvml->shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    free(nvml);
}

const char *nvml_driver(const struct nvml *nvml)
{
    return nvml->driver;
}

static void nvml_memory(struct nvml *nvml, void *handle, struct nvml_device *device)
{
    struct nvml_memory_v2 two = {.version = NVML_MEMORY_V2};
    struct nvml_memory_v1 one;
    if (nvml->memory_v2 && nvml->memory_v2(handle, &two) == NVML_SUCCESS) {
        device->total = two.total;
        device->free = two.free;
        device->used = two.used;
        device->has_memory = true;
    } else if (nvml->memory_v1 && nvml->memory_v1(handle, &one) == NVML_SUCCESS) {
        device->total = one.total;
        device->free = one.free;
        device->used = one.used;
        device->has_memory = true;
    }
}

int nvml_devices(struct nvml *nvml, struct nvml_device **devices, size_t *count, struct error *err)
{
    unsigned there = 0;
    int code = nvml->device_count(&there);
    *devices = NULL;
    *count = 0;
    if (code != NVML_SUCCESS)
        return nvml_failed(nvml, "count the devices", code, err);
    struct nvml_device *list = calloc(there ? there : 1, sizeof(*list));
    if (!list)
        return error_no_memory(err);
    for (unsigned i = 0; i < there; i++) {
        void *handle;
        list[i].index = i;
        if (nvml->device_handle(i, &handle) != NVML_SUCCESS)
            continue; /* not ours to see: it is listed without facts */
        if (!nvml->device_name || nvml->device_name(handle, list[i].name, sizeof(list[i].name)) != NVML_SUCCESS)
            list[i].name[0] = '\0';
        if (!nvml->device_uuid || nvml->device_uuid(handle, list[i].uuid, sizeof(list[i].uuid)) != NVML_SUCCESS)
            list[i].uuid[0] = '\0';
        list[i].name[sizeof(list[i].name) - 1] = list[i].uuid[sizeof(list[i].uuid) - 1] = '\0';
        nvml_memory(nvml, handle, &list[i]);
    }
    *devices = list;
    *count = there;
    return STATUS_OK;
}

/* The system's own name of a process; NVML's where /proc does not show it (another namespace). */
static void nvml_process_name(struct nvml *nvml, struct nvml_process *process)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/cmdline", process->pid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(process->name, 1, sizeof(process->name) - 1, file) : 0;
    process->name[got] = '\0'; /* ends at the first argument anyway */
    if (file)
        fclose(file);
    if (!process->name[0] && nvml->process_name &&
        nvml->process_name(process->pid, process->name, sizeof(process->name)) != NVML_SUCCESS)
        process->name[0] = '\0';
    process->name[sizeof(process->name) - 1] = '\0';
}

/* All processes of one kind on a device; more may appear between asking for the number and for the list. */
static int nvml_ask(nvml_processes_call call, void *handle, struct nvml_process_info **infos, unsigned *count)
{
    unsigned room = 64;
    *infos = NULL;
    for (int attempt = 0; attempt < 8; attempt++) {
        struct nvml_process_info *more = realloc(*infos, room * sizeof(**infos));
        if (!more)
            break;
        *infos = more;
        *count = room;
        int code = call(handle, count, *infos);
        if (code == NVML_SUCCESS && *count <= room)
            return STATUS_OK;
        if (code != NVML_INSUFFICIENT_SIZE || *count > 1u << 20)
            break;
        room = *count + 16;
    }
    free(*infos);
    *infos = NULL;
    *count = 0;
    return STATUS_NOT_FOUND;
}

struct nvml_list {
    struct nvml_process *items;
    size_t count, capacity;
};

static int nvml_add(struct nvml *nvml, struct nvml_list *list, unsigned device, bool graphics, void *handle)
{
    struct nvml_process_info *infos;
    unsigned count;
    nvml_processes_call call = graphics ? nvml->graphics : nvml->compute;
    if (!call || nvml_ask(call, handle, &infos, &count))
        return STATUS_OK;
    int status = array_reserve(&list->items, &list->capacity, list->count + count, sizeof(*list->items));
    for (unsigned i = 0; !status && i < count; i++) {
        bool listed = false;
        for (size_t j = 0; j < list->count && !listed; j++)
            listed = list->items[j].device == device && list->items[j].pid == infos[i].pid;
        if (listed)
            continue;
        struct nvml_process *process = &list->items[list->count++];
        memset(process, 0, sizeof(*process));
        process->device = device;
        process->pid = infos[i].pid;
        process->graphics = graphics;
        process->has_used = infos[i].used != ~0ULL;
        process->used = process->has_used ? infos[i].used : 0;
        nvml_process_name(nvml, process);
    }
    free(infos);
    return status;
}

int nvml_processes(struct nvml *nvml, struct nvml_process **processes, size_t *count, struct error *err)
{
    struct nvml_list list = {0};
    unsigned there = 0;
    int code = nvml->device_count(&there);
    *processes = NULL;
    *count = 0;
    if (code != NVML_SUCCESS)
        return nvml_failed(nvml, "count the devices", code, err);
    for (unsigned i = 0; i < there; i++) {
        void *handle;
        if (nvml->device_handle(i, &handle) != NVML_SUCCESS)
            continue;
        if (nvml_add(nvml, &list, i, false, handle) || nvml_add(nvml, &list, i, true, handle)) {
            free(list.items);
            return error_no_memory(err);
        }
    }
    *processes = list.items;
    *count = list.count;
    return STATUS_OK;
}
