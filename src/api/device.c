/* What the devices say: free memory, and who is on them (include/cudamem/device.h).  Uses src/device. */
#include "api/library.h"
#include "api/report.h"
#include "base/text.h"
#include "device/nvml.h"

#include <cudamem/device.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- memory ---------------------------------------------------------------------------------------------------------- */

static int memory_info(int ordinal, size_t *available, size_t *total, struct error *err)
{
    struct library_device *device;
    int status = library_device(ordinal, &device, err);
    if (!status)
        status = library_push_context(device, err);
    if (status)
        return status;
    CUresult result = library_driver(err)->cuMemGetInfo_v2(available, total);
    library_pop_context();
    return library_driver_status((int)result, "asking for the device's free memory", err);
}

EXPORT int cudamem_mem_get_info(int device, uint64_t *free_bytes, uint64_t *total_bytes, cudamem_error *error)
{
    struct error err = {0};
    size_t available = 0, total = 0;
    int status = library_check_outside(&err);
    if (!status)
        status = memory_info(device, &available, &total, &err);
    if (free_bytes)
        *free_bytes = status ? 0 : available;
    if (total_bytes)
        *total_bytes = status ? 0 : total;
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* --- processes ------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER; /* the management library is asked by one at a time */

struct processes {
    struct nvml_process *items;
    size_t count;
    unsigned gpu;  /* the device's number for the management library */
    bool has_nvml; /* which there is */
};

/* The device of the machine that a word of CUDA_VISIBLE_DEVICES names: its number, or the beginning of its identity. */
static int gpu_of_word(const char *word, size_t length, const struct nvml_device *devices, size_t count, unsigned *gpu)
{
    char *end;
    unsigned long number = strtoul(word, &end, 10);
    if (length && end == word + length && *word != '-' && *word != '+') {
        *gpu = (unsigned)number;
        return number < count ? CUDAMEM_OK : CUDAMEM_ERROR_NOT_FOUND;
    }
    for (size_t i = 0; length && i < count; i++)
        if (!strncmp(devices[i].uuid, word, length)) {
            *gpu = devices[i].index;
            return CUDAMEM_OK;
        }
    return CUDAMEM_ERROR_NOT_FOUND;
}

/* As for the driver the list ends at the first word that makes no sense. */
static int find_gpu(int ordinal, const struct nvml_device *devices, size_t count, unsigned *gpu, struct error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int at = 0;
    *gpu = (unsigned)ordinal;
    if (!visible && (size_t)ordinal < count)
        return CUDAMEM_OK;
    for (const char *word = visible; word; at++) {
        while (*word == ' ')
            word++;
        size_t length = strcspn(word, ", ");
        if (gpu_of_word(word, length, devices, count, gpu))
            break;
        if (at == ordinal)
            return CUDAMEM_OK;
        word = strchr(word, ',');
        word = word ? word + 1 : NULL;
    }
    return error_set(err, CUDAMEM_ERROR_NOT_FOUND, "the management library shows no device %d", ordinal);
}

/* The current device, without opening one. */
static int ordinal_of(int device, int *ordinal, struct error *err)
{
    CUdevice current = 0;
    *ordinal = device < 0 ? 0 : device;
    if (device < -1)
        return error_set(err, CUDAMEM_ERROR_USAGE, "there is no device %d", device);
    const struct library_driver *call = device == -1 ? library_driver(NULL) : NULL;
    if (call && !call->cuCtxGetDevice(&current))
        *ordinal = (int)current;
    return CUDAMEM_OK;
}

static int read_processes(int ordinal, struct processes *processes, struct error *err)
{
    struct nvml *nvml;
    struct nvml_device *devices = NULL;
    size_t count = 0;
    int status = nvml_open(&nvml, err);
    if (status)
        return status;
    processes->has_nvml = true;
    status = nvml_devices(nvml, &devices, &count, err);
    if (!status)
        status = find_gpu(ordinal, devices, count, &processes->gpu, err);
    if (!status)
        status = nvml_processes(nvml, &processes->items, &processes->count, err);
    free(devices);
    nvml_close(nvml);
    return status;
}

static int list(int device, struct processes *processes, struct error *err)
{
    int ordinal, status = library_check_outside(err);
    *processes = (struct processes){.items = NULL};
    if (!status)
        status = ordinal_of(device, &ordinal, err);
    if (status)
        return status;
    pthread_mutex_lock(&nvml_lock);
    status = read_processes(ordinal, processes, err);
    pthread_mutex_unlock(&nvml_lock);
    return status;
}

static bool is_shown(const struct processes *processes, size_t i)
{
    return processes->items[i].device == processes->gpu && !processes->items[i].graphics;
}

EXPORT int cudamem_visit_gpu_processes(int device, int (*visit)(void *self, const cudamem_gpu_process *process), void *self,
                                       cudamem_error *error)
{
    struct error err = {0};
    struct processes processes;
    if (!visit)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no function to visit with was given"));
    int status = list(device, &processes, &err);
    if (status)
        return api_report(error, &err, status);
    for (size_t i = 0; i < processes.count && !status; i++) {
        const struct nvml_process *from = &processes.items[i];
        const cudamem_gpu_process process = {sizeof(process), from->pid, from->has_used ? from->used : 0, from->has_used,
                                             from->device, from->name};
        if (is_shown(&processes, i))
            status = visit(self, &process);
    }
    free(processes.items);
    return status;
}

static void write_process(const struct nvml_process *process, struct text *text)
{
    text_printf(text, "\nprocess %10" PRIu32 " uses ", process->pid);
    if (process->has_used)
        text_printf(text, "%12.3f MB GPU memory", (double)process->used / (1024 * 1024));
    else
        text_printf(text, "%12s MB GPU memory", "?");
}

static void write_processes(const struct processes *processes, struct text *text)
{
    size_t shown = 0;
    text_printf(text, "GPU:%u", processes->gpu);
    for (size_t i = 0; i < processes->count; i++)
        shown += is_shown(processes, i);
    if (!shown)
        text_add(text, "\nno processes are running");
    for (size_t i = 0; i < processes->count; i++)
        if (is_shown(processes, i))
            write_process(&processes->items[i], text);
}

EXPORT int cudamem_list_gpu_processes(int device, char **result, cudamem_error *error)
{
    struct error err = {0};
    struct processes processes;
    struct text text = {0};
    if (!result)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the text was given"));
    *result = NULL;
    int status = list(device, &processes, &err);
    if (!status)
        write_processes(&processes, &text);
    else if (status == CUDAMEM_ERROR_NOT_FOUND && !processes.has_nvml)
        text_add(&text, "cuda driver can't be loaded, is cuda enabled?");
    else
        return api_report(error, &err, status);
    free(processes.items);
    if (text_failed(&text)) {
        text_free(&text);
        return api_report(error, &err, error_no_memory(&err));
    }
    *result = text.bytes;
    return CUDAMEM_OK;
}
