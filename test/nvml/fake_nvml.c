/* A management library without devices behind it: what `cudamem ps` and `mem` ask for, with made-up answers.
 * FAKE_NVML_INIT=N makes the start fail with that result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, DEVICES = 2, PROCESSES = 70 };

struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static int devices[DEVICES];

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int result);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned size);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned size);
EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned size);
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *list);
EXPORT int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size);

int nvmlInit_v2(void)
{
    const char *result = getenv("FAKE_NVML_INIT");
    return result ? atoi(result) : SUCCESS;
}

int nvmlShutdown(void)
{
    return SUCCESS;
}

const char *nvmlErrorString(int result)
{
    return result == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "580.00");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = DEVICES;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    if (index >= DEVICES)
        return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}

static int device_index(const void *device)
{
    return (int)((const int *)device - devices);
}

int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    snprintf(text, size, device_index(device) ? "Fake \033[31mB" : "Fake A");
    return SUCCESS;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    snprintf(text, size, "GPU-%08d", device_index(device));
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory)
{
    if (memory->version != (sizeof(*memory) | 2u << 24))
        return INVALID_ARGUMENT;
    if (device_index(device))
        return NOT_SUPPORTED;
    memory->total = 85899345920ULL;
    memory->reserved = 1ULL << 29;
    memory->used = 3ULL << 30;
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}

/* More processes than a first guess has room for, on the first device. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list)
{
    unsigned there = device_index(device) ? 0 : PROCESSES, room = *count;
    *count = there;
    if (room < there)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < there; i++)
        list[i] = (struct process){4000000000u + i, i == 1 ? ~0ULL : (unsigned long long)(i + 1) << 20, 0, 0};
    return SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *list)
{
    unsigned first = device_index(device) ? 4000000100u : 4000000000u;
    if (*count < 1)
        return INSUFFICIENT_SIZE;
    *count = 1;
    list[0] = (struct process){first, 1 << 30, 0, 0};
    return SUCCESS;
}

int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size)
{
    snprintf(text, size, "program-%u", pid - 4000000000u);
    return SUCCESS;
}
