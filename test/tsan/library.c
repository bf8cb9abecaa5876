/*
 * 16 threads, 4 streams on each of 2 devices: random calls of the public library, blocks that are freed by other
 * threads than asked for them, pools, watchers, history, settings, statistics, all at once.  The library, the allocator
 * and the simulated driver are built with the thread sanitizer; and once more without it, then with stacks.  In the end
 * every count must come out, and nothing is held.
 */
#include "device/cuda_abi.h"

#include <cudamem/cudamem.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 16, DEVICES = 2, STREAMS = 4, ROUNDS = 4000, SLOTS = 256, OWNED = 1 << 20 };

static CUstream streams[DEVICES][STREAMS];
static _Atomic(void *) slots[SLOTS];      /* blocks that any thread may free */
static _Atomic(uintptr_t) owned[OWNED];   /* addresses that are handed out, by hash */
static atomic_llong allocations, frees, traced_allocs, traced_frees;
static cudamem_pool *pools[THREADS];
static bool with_stacks; /* not under the thread sanitizer, which unwinders and their threads' ends do not survive */

static void fail(const char *what, const cudamem_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->message);
    _exit(3);
}
#define CHECK(call)                               \
    do {                                          \
        cudamem_error error = CUDAMEM_ERROR_INIT; \
        if (call)                                 \
            fail(#call, &error);                  \
    } while (0)

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % below;
}

/* No order between threads comes from these: what is handed out twice at a time is seen, races are not hidden. */
static void claim(void *pointer)
{
    uintptr_t none = 0, address = (uintptr_t)pointer;
    if (!atomic_compare_exchange_strong_explicit(&owned[address / 512 % OWNED], &none, address, memory_order_relaxed,
                                                 memory_order_relaxed) &&
        none == address)
        fail("a block was handed out twice", &(cudamem_error)CUDAMEM_ERROR_INIT);
}

static void unclaim(void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    atomic_compare_exchange_strong_explicit(&owned[address / 512 % OWNED], &address, 0, memory_order_relaxed,
                                            memory_order_relaxed);
}

static void *take(uint64_t *random)
{
    static const size_t limits[] = {5000, 1 << 20, 12 << 20};
    int device = (int)draw(random, DEVICES);
    void *pointer = NULL;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    size_t size = 1 + draw(random, (uint32_t)limits[draw(random, 16) / 7]);
    int status = cudamem_alloc(size, device, streams[device][draw(random, STREAMS)], &pointer, &error);
    if (status && status != CUDAMEM_ERROR_OUT_OF_MEMORY)
        fail("alloc", &error);
    if (pointer) {
        claim(pointer);
        atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    }
    return pointer;
}

static void give(void *pointer)
{
    if (!pointer)
        return;
    unclaim(pointer);
    CHECK(cudamem_free(pointer, &error));
    atomic_fetch_add_explicit(&frees, 1, memory_order_relaxed);
}

static void track(void *self, const cudamem_trace_event *event)
{
    (void)self;
    if (event->action == CUDAMEM_ACTION_ALLOC)
        atomic_fetch_add_explicit(&traced_allocs, 1, memory_order_relaxed);
    if (event->action == CUDAMEM_ACTION_FREE_COMPLETED)
        atomic_fetch_add_explicit(&traced_frees, 1, memory_order_relaxed);
}

static void observe(void *self, int device, size_t size, size_t total, size_t free_bytes)
{
    (void)self, (void)device, (void)size, (void)total, (void)free_bytes;
}

static void look(uint64_t *random)
{
    int device = (int)draw(random, DEVICES);
    cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
    char *text;
    CHECK(cudamem_get_memory_stats(device, &stats, &error));
    if (stats.allocation.all.allocated - stats.allocation.all.freed != stats.allocation.all.current)
        fail("the sums do not come to the current value", &(cudamem_error)CUDAMEM_ERROR_INIT);
    CHECK(cudamem_memory_summary(device, 1, &text, &error));
    cudamem_text_free(text);
}

/* The history changes while others record, and is looked at. */
static void record(uint64_t *random)
{
    const cudamem_history_options options = {.struct_size = sizeof(options), .max_entries = 100 + draw(random, 400),
                                             .enabled = (int32_t)draw(random, 3), .stacks = CUDAMEM_STACKS_ALL,
                                             .context = with_stacks ? (int32_t)draw(random, 4) : CUDAMEM_CONTEXT_NONE};
    cudamem_snapshot *snapshot;
    CHECK(cudamem_record_memory_history(&options, &error));
    CHECK(cudamem_memory_snapshot(NULL, &snapshot, &error));
    cudamem_snapshot_close(snapshot);
}

static void rare(uint64_t *random, int thread)
{
    uint64_t id;
    int device = (int)draw(random, DEVICES);
    switch (draw(random, 7)) {
    case 0:
        CHECK(cudamem_empty_cache(&error));
        break;
    case 1:
        CHECK(cudamem_set_allocator_settings(draw(random, 2) ? "expandable_segments:True,release_lock_on_cudamalloc:True"
                                                             : "expandable_segments:False,max_split_size_mb:40", &error));
        break;
    case 2:
        CHECK(cudamem_free_mutex_lock(&error));
        give(take(random));
        CHECK(cudamem_free_mutex_unlock(&error));
        break;
    case 3:
        CHECK(cudamem_attach_oom_observer(observe, NULL, &id, &error));
        CHECK(cudamem_detach(id, &error));
        break;
    case 4:
        CHECK(cudamem_pool_begin(pools[thread], device, &error));
        give(take(random));
        CHECK(cudamem_pool_end(pools[thread], device, &error));
        break;
    case 5:
        record(random);
        break;
    default:
        look(random);
    }
}

static void *work(void *argument)
{
    int thread = (int)(uintptr_t)argument;
    uint64_t random = (uint64_t)thread * 7919 + 1;
    for (int i = 0; i < ROUNDS; i++) {
        void *block = take(&random);
        if (block && draw(&random, 8) == 0) { /* one of either device: the right one takes it */
            int device = (int)draw(&random, DEVICES);
            cudamem_record_stream(block, streams[device][draw(&random, STREAMS)], NULL);
        }
        if (draw(&random, 3))
            give(block);
        else
            give(atomic_exchange_explicit(&slots[draw(&random, SLOTS)], block, memory_order_acq_rel));
        if (draw(&random, 50) == 0)
            rare(&random, thread);
    }
    return NULL;
}

static void begin(void)
{
    cuInit(0);
    for (int d = 0; d < DEVICES; d++) {
        CUcontext context;
        if (cuDevicePrimaryCtxRetain(&context, d) || cuCtxSetCurrent(context))
            exit(97);
        for (int s = 0; s < STREAMS; s++)
            if (cuStreamCreate(&streams[d][s], 1))
                exit(97);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(cudamem_pool_create(NULL, i % DEVICES, &pools[i], &error));
}

static int nothing_is_left(void)
{
    int wrong = 0;
    long long allocated = 0, freed = 0;
    for (int i = 0; i < SLOTS; i++)
        give(slots[i]);
    for (int i = 0; i < THREADS; i++)
        CHECK(cudamem_pool_destroy(pools[i], &error));
    CHECK(cudamem_empty_cache(&error));
    for (int d = 0; d < DEVICES; d++) {
        cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
        CHECK(cudamem_get_memory_stats(d, &stats, &error));
        allocated += stats.allocation.all.allocated;
        freed += stats.active.all.freed;
        wrong += stats.allocation.all.current || stats.active.all.current || stats.reserved_bytes.all.current;
    }
    if (wrong || allocated != allocations || freed != frees || traced_allocs != allocations || traced_frees != frees)
        wrong = printf("%d devices hold something; allocations %lld, counted %lld, traced %lld; "
                       "frees %lld, %lld, %lld\n", wrong, allocations, allocated, traced_allocs, frees, freed, traced_frees);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uint64_t id;
    with_stacks = argc > 1 && strcmp(argv[1], "stacks") == 0;
    begin();
    CHECK(cudamem_attach_trace_tracker(track, NULL, &id, &error));
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 97;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int status = nothing_is_left();
    fflush(NULL);
    _exit(status);
}
