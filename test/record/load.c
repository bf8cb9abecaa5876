/*
 * load PROGRESS: four threads on two devices take and give memory of every kind, as fast as they can, and write down each
 * call that returned (progress.h).  Made to be killed.  A call makes one entry; the addresses of mappings do not touch.
 */
#include "../programs/driver.h"
#include "../programs/torch_hooks.h"
#include "progress.h"
#include "record/record.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define HELD 24
#define PAGE (2 * MIB)
#define BLOCK 1024

enum work { WORK_PLAIN, WORK_ASYNC, WORK_POOL, WORK_VIRTUAL, WORK_BLOCK, WORKS };

struct worker {
    struct progress_thread *log;
    CUcontext context;
    CUstream stream;
    CUmemoryPool pool;
    uint32_t device;
    uint64_t random;
    CUdeviceptr mappings; /* reserved */
    CUdeviceptr blocks;   /* a segment that is cut into blocks */
    struct {
        CUdeviceptr address;
        size_t size;
    } held[WORKS][HELD];
};

static unsigned long long draw(struct worker *worker, unsigned long long below)
{
    worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
    return (worker->random >> 33) % below;
}

static void returned(struct worker *worker, enum record_action action, CUdeviceptr address, size_t size)
{
    struct progress_thread *log = worker->log;
    if (log->count == PROGRESS_CALLS)
        exit(0);
    log->calls[log->count] = (struct progress_call){address, size, action, worker->device};
    __atomic_store_n(&log->count, log->count + 1, __ATOMIC_RELEASE);
}

static NOINLINE void load_take(struct worker *worker, enum work work, unsigned place)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)worker->device}};
    CUmemGenericAllocationHandle page;
    size_t size = (draw(worker, 64) + 1) * 512;
    CUdeviceptr address = 0;
    enum record_action action = RECORD_SEGMENT_ALLOC;
    switch (work) {
    case WORK_PLAIN:
        CHECK(cu.cuMemAlloc(&address, size));
        break;
    case WORK_ASYNC:
        CHECK(cu.cuMemAllocAsync(&address, size, worker->stream));
        break;
    case WORK_POOL:
        CHECK(cu.cuMemAllocFromPoolAsync(&address, size, worker->pool, worker->stream));
        break;
    case WORK_VIRTUAL:
        action = RECORD_SEGMENT_MAP;
        size = PAGE;
        address = worker->mappings + place * 2 * PAGE;
        CHECK(cu.cuMemCreate(&page, PAGE, &properties, 0));
        CHECK(cu.cuMemMap(address, PAGE, 0, page, 0));
        CHECK(cu.cuMemRelease(page));
        break;
    default:
        action = RECORD_ALLOC;
        size = BLOCK;
        address = worker->blocks + place * BLOCK;
        report_memory((void *)(uintptr_t)address, BLOCK, 0, 0, (struct torch_device){1, (int8_t)worker->device});
    }
    worker->held[work][place].address = address;
    worker->held[work][place].size = size;
    returned(worker, action, address, size);
}

static NOINLINE void load_give(struct worker *worker, enum work work, unsigned place)
{
    CUdeviceptr address = worker->held[work][place].address;
    enum record_action action = RECORD_SEGMENT_FREE;
    worker->held[work][place].address = 0;
    if (work == WORK_PLAIN) {
        CHECK(cu.cuMemFree(address));
    } else if (work == WORK_VIRTUAL) {
        action = RECORD_SEGMENT_UNMAP;
        CHECK(cu.cuMemUnmap(address, PAGE));
    } else if (work == WORK_BLOCK) {
        action = RECORD_FREE_REQUESTED;
        report_memory((void *)(uintptr_t)address, -BLOCK, 0, 0, (struct torch_device){1, (int8_t)worker->device});
    } else {
        CHECK(cu.cuMemFreeAsync(address, worker->stream));
    }
    returned(worker, action, address, worker->held[work][place].size);
}

static NOINLINE void load_refused(struct worker *worker)
{
    CUdeviceptr address;
    size_t size = (size_t)1 << 44;
    if (cu.cuMemAlloc(&address, size) != CUDA_ERROR_OUT_OF_MEMORY)
        die("a request that cannot be met", 0);
    returned(worker, RECORD_OOM, 0, size);
}

static NOINLINE void load_make(struct worker *worker)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)worker->device}};
    CHECK(cu.cuStreamCreate(&worker->stream, 0));
    CHECK(cu.cuMemPoolCreate(&worker->pool, &properties));
    CHECK(cu.cuMemAddressReserve(&worker->mappings, HELD * 2 * PAGE, 0, 0, 0));
    CHECK(cu.cuMemAlloc(&worker->blocks, HELD * BLOCK));
    returned(worker, RECORD_SEGMENT_ALLOC, worker->blocks, HELD * BLOCK);
    load_take(worker, WORK_BLOCK, 0); /* as allocators do: the first block comes right after its segment */
}

static NOINLINE void *load_work(void *argument)
{
    struct worker *worker = argument;
    worker->log->number = (uint32_t)syscall(SYS_gettid);
    CHECK(cu.cuDevicePrimaryCtxRetain(&worker->context, (CUdevice)worker->device));
    CHECK(cu.cuCtxSetCurrent(worker->context));
    load_make(worker);
    for (;;) {
        enum work work = (enum work)draw(worker, WORKS);
        unsigned place = (unsigned)draw(worker, HELD);
        if (worker->held[work][place].address)
            load_give(worker, work, place);
        else
            load_take(worker, work, place);
        if (draw(worker, 4096) == 0)
            load_refused(worker);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int file = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    struct progress *progress = file < 0 ? MAP_FAILED
                                         : mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    static struct worker workers[PROGRESS_THREADS];
    pthread_t threads[PROGRESS_THREADS];
    if (progress == MAP_FAILED)
        return 97;
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    CHECK(cu.cuInit(0));
    for (unsigned i = 0; i < PROGRESS_THREADS; i++) {
        workers[i].log = &progress->threads[i];
        workers[i].device = i % 2;
        workers[i].random = (unsigned)getpid() * 1000003u + i;
        if (pthread_create(&threads[i], NULL, load_work, &workers[i]))
            return 97;
    }
    for (unsigned i = 0; i < PROGRESS_THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
