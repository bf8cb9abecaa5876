/*
 * Work on many streams with memory of every way, checked: whoever else writes into a block while it is ours is seen.
 *
 *     caching_random [SEED [STEPS [THREADS]]]
 *
 * Blocks are filled and read back in the order of a stream and freed while that may still be to come: by a plain free,
 * which waits for it, or in the order of the stream or of another one that waits for the first.  On the simulated driver
 * streams stand still, and go on by chance.  What is printed does not depend on who serves the memory.
 */
#include "driver.h"

#include <pthread.h>
#include <stdint.h>

#define STREAMS 6 /* of a thread: the legacy one, the thread's own, two of each kind */
#define BLOCKS 40
#define SAMPLE 64

#define MORE(X) \
    X(cuMemsetD8Async) X(cuMemcpyDtoHAsync_v2) X(cuEventCreate) X(cuEventRecord) X(cuEventDestroy_v2) X(cuStreamWaitEvent) \
    X(cuMemAllocAsync_ptsz) X(cuMemFreeAsync_ptsz)
static struct {
#define MEMBER(name) __typeof__(&name) name;
    MORE(MEMBER)
#undef MEMBER
} more;
static void (*set_manual)(int manual);
static unsigned long long (*complete)(CUstream stream, unsigned long long count);

struct check { /* a copy that may still be under way */
    unsigned char bytes[SAMPLE];
    unsigned char wanted;
    int stream; /* NONE: this place is free */
};
#define CHECKS 512
enum { NONE = -1 };

struct block {
    CUdeviceptr address;
    size_t bytes;
    int stream; /* that it was last used on */
    unsigned char fill;
    bool async;
};

struct worker {
    pthread_t thread;
    uint64_t random;
    unsigned long steps, allocations, frees, mismatches, checked;
    CUstream streams[STREAMS];
    struct block blocks[BLOCKS];
    struct check checks[CHECKS];
    CUcontext context;
};

static uint64_t chance(struct worker *worker, uint64_t below)
{
    worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
    return (worker->random >> 33) % below;
}

static void verify(struct worker *worker, int stream)
{
    for (int i = 0; i < CHECKS; i++) {
        struct check *check = &worker->checks[i];
        if (check->stream == NONE || (stream != NONE && check->stream != stream))
            continue;
        for (int b = 0; b < SAMPLE; b++)
            worker->mismatches += check->bytes[b] != check->wanted;
        worker->checked++;
        check->stream = NONE;
    }
}

static void wait_for(struct worker *worker, int stream)
{
    CHECK(cu.cuStreamSynchronize(worker->streams[stream]));
    verify(worker, stream);
}

/* From now on the block is used on another stream, behind what was on the one before. */
static void move(struct worker *worker, struct block *block, int stream)
{
    CUevent event;
    if (block->stream == stream)
        return;
    CHECK(more.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(more.cuEventRecord(event, worker->streams[block->stream]));
    CHECK(more.cuStreamWaitEvent(worker->streams[stream], event, 0));
    CHECK(more.cuEventDestroy_v2(event));
    block->stream = stream;
}

static void use(struct worker *worker, struct block *block)
{
    CUstream stream = worker->streams[block->stream];
    struct check *check = NULL;
    for (int i = 0; i < CHECKS && !check; i++)
        if (worker->checks[i].stream == NONE)
            check = &worker->checks[i];
    if (!check) {
        CHECK(cu.cuCtxSynchronize());
        verify(worker, NONE);
        check = &worker->checks[0];
    }
    if (chance(worker, 2)) {
        block->fill = (unsigned char)chance(worker, 256);
        CHECK(more.cuMemsetD8Async(block->address, block->fill, block->bytes, stream));
    }
    size_t sample = block->bytes < SAMPLE ? block->bytes : SAMPLE;
    check->stream = block->stream;
    check->wanted = block->fill;
    memset(check->bytes, block->fill, SAMPLE);
    memset(check->bytes, ~block->fill, sample);
    CHECK(more.cuMemcpyDtoHAsync_v2(check->bytes, block->address + chance(worker, block->bytes - sample + 1), sample, stream));
}

static size_t any_size(struct worker *worker)
{
    static const size_t most[] = {700, 9000, 1500000, 3000000, 14000000};
    return 1 + (size_t)chance(worker, most[chance(worker, 5)]);
}

static void begin(struct worker *worker, struct block *block, size_t bytes)
{
    *block = (struct block){.bytes = bytes, .stream = (int)chance(worker, STREAMS), .async = chance(worker, 3)};
    if (!block->async)
        CHECK(cu.cuMemAlloc(&block->address, block->bytes));
    else if (block->stream == 1 && chance(worker, 2))
        CHECK(more.cuMemAllocAsync_ptsz(&block->address, block->bytes, NULL));
    else
        CHECK(cu.cuMemAllocAsync(&block->address, block->bytes, worker->streams[block->stream]));
    worker->allocations++;
    block->fill = (unsigned char)chance(worker, 256);
    CHECK(more.cuMemsetD8Async(block->address, block->fill, block->bytes, worker->streams[block->stream]));
}

static void end(struct worker *worker, struct block *block)
{
    uint64_t how = chance(worker, 4);
    if (how == 1)
        move(worker, block, (int)chance(worker, STREAMS));
    use(worker, block);
    if (how == 0 && !block->async) {
        CHECK(cu.cuMemFree(block->address));
        verify(worker, block->stream); /* it has waited */
    } else if (block->stream == 1) {
        CHECK(more.cuMemFreeAsync_ptsz(block->address, NULL));
    } else {
        CHECK(cu.cuMemFreeAsync(block->address, worker->streams[block->stream]));
    }
    worker->frees++;
    block->address = 0;
}

/* Another block of that size at once, on a stream that gets on with it: was it handed out too early? */
static void end_and_begin(struct worker *worker, struct block *block)
{
    size_t bytes = block->bytes;
    end(worker, block);
    if (!chance(worker, 2))
        return;
    begin(worker, block, bytes);
    if (complete)
        complete(worker->streams[block->stream], 1000);
}

/* A stream goes, perhaps with work to come, and a new one comes. */
static void renew(struct worker *worker, int stream)
{
    for (int i = 0; i < BLOCKS; i++)
        if (worker->blocks[i].address && worker->blocks[i].stream == stream)
            move(worker, &worker->blocks[i], 0);
    CHECK(cu.cuStreamDestroy(worker->streams[stream]));
    CHECK(cu.cuStreamCreate(&worker->streams[stream], stream % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    for (int i = 0; i < CHECKS; i++) /* they are done when everything is */
        if (worker->checks[i].stream == stream)
            worker->checks[i].stream = STREAMS;
}

static void step(struct worker *worker)
{
    struct block *block = &worker->blocks[chance(worker, BLOCKS)];
    uint64_t what = chance(worker, 20);
    if (what < 2)
        wait_for(worker, (int)chance(worker, STREAMS));
    else if (what < 6 && complete)
        complete(worker->streams[chance(worker, STREAMS)], chance(worker, 6));
    else if (what == 6 && chance(worker, 8) == 0)
        renew(worker, 2 + (int)chance(worker, STREAMS - 2));
    else if (!block->address)
        begin(worker, block, any_size(worker));
    else if (what < 13)
        end_and_begin(worker, block);
    else if (what < 15)
        move(worker, block, (int)chance(worker, STREAMS));
    else
        use(worker, block);
}

static void *work(void *self)
{
    struct worker *worker = self;
    CHECK(cu.cuCtxSetCurrent(worker->context));
    worker->streams[0] = CU_STREAM_LEGACY;
    worker->streams[1] = CU_STREAM_PER_THREAD;
    for (int i = 2; i < STREAMS; i++)
        CHECK(cu.cuStreamCreate(&worker->streams[i], i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    for (int i = 0; i < CHECKS; i++)
        worker->checks[i].stream = NONE;
    for (unsigned long i = 0; i < worker->steps; i++)
        step(worker);
    for (int i = 0; i < BLOCKS; i++)
        if (worker->blocks[i].address)
            end(worker, &worker->blocks[i]);
    CHECK(cu.cuCtxSynchronize());
    verify(worker, NONE);
    for (int i = 2; i < STREAMS; i++)
        CHECK(cu.cuStreamDestroy(worker->streams[i]));
    return NULL;
}

static void find_more(void)
{
    void *address;
#define FIND(name) \
    if (!(address = dlsym(driver_library, #name))) \
        die("finding " #name, 0); \
    memcpy(&more.name, &address, sizeof(address));
    MORE(FIND)
#undef FIND
    if (driver_look_up("cudamemSimControlManual", &address, 0, 0, NULL) == CUDA_SUCCESS && address)
        memcpy(&set_manual, &address, sizeof(address));
    if (driver_look_up("cudamemSimControlComplete", &address, 0, 0, NULL) == CUDA_SUCCESS && address)
        memcpy(&complete, &address, sizeof(address));
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned long steps = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000, mismatches = 0, checked = 0;
    int count = argc > 3 ? atoi(argv[3]) : 1, devices = 0;
    CUcontext contexts[8];
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    find_more();
    CHECK(cu.cuInit(0));
    CHECK(cu.cuDeviceGetCount(&devices));
    for (int i = 0; i < devices && i < 8; i++)
        CHECK(cu.cuDevicePrimaryCtxRetain(&contexts[i], i));
    if (set_manual)
        set_manual(1);
    struct worker *workers = calloc((size_t)count, sizeof(*workers));
    if (!workers)
        die("memory", 0);
    for (int i = 0; i < count; i++) {
        workers[i].random = seed * 1000003 + (uint64_t)i;
        workers[i].steps = steps;
        workers[i].context = contexts[i % (devices < 8 ? devices : 8)];
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            die("a thread", 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        mismatches += workers[i].mismatches;
        checked += workers[i].checked;
        done.allocations += workers[i].allocations;
        done.frees += workers[i].frees;
    }
    free(workers);
    printf("mismatches=%lu checked=%lu ", mismatches, checked);
    report("caching_random");
    return mismatches != 0;
}
