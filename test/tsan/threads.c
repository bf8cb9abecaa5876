/*
 * 64 threads on 4 devices take and give memory of every kind through the wrappers, while others read the ring file.  All of
 * it is built with the thread sanitizer: the wrappers, the recorder and the simulated driver.  The wrappers are part of
 * this program, which so stands where the preloaded library would; dlsym alone is the real one.
 */
#include "device/cuda_abi.h"
#include "format/format.h"
#include "record/ring.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 64
#define DEVICES 4
#define ROUNDS 60
#define PAGE ((size_t)2 << 20)

struct device_argument { /* c10::Device */
    int8_t type, index;
};
void report_memory(void *address, int64_t size, size_t allocated, size_t reserved, struct device_argument device)
    __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

static unsigned finished;
static CUmemoryPool pools[DEVICES];

static void check(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    _exit(3);
}
#define CHECK(call) check(call, #call)

static void take_and_give(CUstream stream, CUmemoryPool pool, int device)
{
    CUdeviceptr plain, managed, async, pooled;
    CHECK(cuMemAlloc_v2(&plain, 8192));
    CHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemAllocAsync(&async, 1024, stream));
    CHECK(cuMemAllocFromPoolAsync(&pooled, 2048, pool, stream));
    report_memory((void *)(uintptr_t)plain, 512, 0, 0, (struct device_argument){1, (int8_t)device});
    report_memory((void *)(uintptr_t)plain, -512, 0, 0, (struct device_argument){1, (int8_t)device});
    CHECK(cuMemFreeAsync(pooled, stream));
    CHECK(cuMemFreeAsync(async, stream));
    CHECK(cuMemFree_v2(managed));
    CHECK(cuMemFree_v2(plain));
}

static void map_and_unmap(CUdeviceptr address, int device)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle page;
    CHECK(cuMemCreate(&page, PAGE, &properties, 0));
    CHECK(cuMemMap(address, PAGE, 0, page, 0));
    CHECK(cuMemRelease(page));
    CHECK(cuMemUnmap(address, PAGE));
}

static void *work(void *argument)
{
    int device = (int)(uintptr_t)argument % DEVICES;
    CUcontext context;
    CUstream stream;
    CUdeviceptr reserved, stays;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, 0));
    CHECK(cuMemAddressReserve(&reserved, PAGE, 0, 0, 0));
    for (int i = 0; i < ROUNDS; i++) {
        take_and_give(stream, pools[device], device);
        map_and_unmap(reserved, device);
    }
    CHECK(cuMemAlloc_v2(&stays, 4096));
    __atomic_fetch_add(&finished, 1, __ATOMIC_ACQ_REL);
    for (;;) /* libunwind's end of a thread comes after the thread sanitizer's, and does not survive it */
        pause();
    return NULL;
}

/* The ring file in the folder; false: not yet there. */
static bool find_ring(char *path, size_t size)
{
    const char *folder = getenv("CUDAMEM_RING_FOLDER");
    DIR *list = folder ? opendir(folder) : NULL;
    bool found = false;
    for (struct dirent *entry; list && !found && (entry = readdir(list));) {
        size_t length = strlen(entry->d_name);
        found = length > 5 && strcmp(entry->d_name + length - 5, ".ring") == 0;
        if (found)
            snprintf(path, size, "%s/%s", folder, entry->d_name);
    }
    if (list)
        closedir(list);
    return found;
}

static struct snapshot *read_now(void)
{
    char path[4600];
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    if (find_ring(path, sizeof(path)) && format_read(path, NULL, &snapshot, &err)) {
        fprintf(stderr, "%s\n", err.message);
        _exit(4);
    }
    return snapshot;
}

static void *read_again_and_again(void *argument)
{
    while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < THREADS)
        snapshot_free(read_now());
    return argument;
}

static bool read_part(const char *path, void *part, size_t size, uint64_t offset)
{
    FILE *file = fopen(path, "r");
    bool read = file && fseek(file, (long)offset, SEEK_SET) == 0 && fread(part, size, 1, file) == 1;
    if (file)
        fclose(file);
    return read;
}

/* Every call of every thread is an event, by the file's own numbers. */
static int check_numbers(void)
{
    static struct ring_header header;
    static struct ring_device devices[DEVICES];
    char path[4600];
    int status = 0;
    if (!find_ring(path, sizeof(path)) || !read_part(path, &header, sizeof(header), 0) ||
        !read_part(path, devices, sizeof(devices), header.devices))
        return printf("no ring file\n");
    for (int d = 0; d < DEVICES; d++) {
        uint64_t events = devices[d].head, came = (uint64_t)devices[d].stats[RING_COUNT][RING_ALL].allocated;
        if (events != THREADS / DEVICES * (ROUNDS * 12 + 1) || came != THREADS / DEVICES * (ROUNDS * 5 + 1))
            status = printf("device %d: %" PRIu64 " events, %" PRIu64 " pieces of memory\n", d, events, came);
    }
    if (header.state & RING_STATS_INEXACT || header.dropped_nested || header.unknown_frees || header.replaced)
        status = printf("state %u, %" PRIu64 " nested, %" PRIu64 " unknown, %" PRIu64 " replaced\n", header.state,
                        header.dropped_nested, header.unknown_frees, header.replaced);
    return status != 0;
}

static int check_end(void)
{
    struct snapshot *snapshot = read_now();
    size_t live = snapshot ? snapshot->end.segment_count : 0;
    snapshot_free(snapshot);
    return check_numbers() || (live != THREADS && printf("%zu segments live\n", live));
}

int main(void)
{
    pthread_t threads[THREADS], reader;
    CHECK(cuInit(0));
    for (int d = 0; d < DEVICES; d++) {
        CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d}};
        CHECK(cuMemPoolCreate(&pools[d], &properties));
    }
    if (pthread_create(&reader, NULL, read_again_and_again, NULL))
        return 97;
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 97;
    pthread_join(reader, NULL);
    int status = check_end();
    fflush(NULL);
    _exit(status);
}
