/* Many threads on one simulated device: run under the thread sanitizer, and the sums must come out. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/sim.h"

#define THREADS 4
#define ROUNDS 300
#define MIB (1ull << 20)

static struct sim *sim;
static struct sim_pool *pool;
static int calls[THREADS];

#define DEMAND(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static void count(void *data)
{
    ++*(int *)data;
}

static void *work(void *argument)
{
    size_t me = (size_t)argument;
    struct sim_stream *stream = sim_stream_new(sim, 0);
    struct sim_event *event = sim_event_new(sim);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t small, large, handle, range, async;
        unsigned char value = (unsigned char)(me * 50 + 1), seen = 0;
        DEMAND(sim_get(sim, 0, 1000 * (me + 1), SIM_PLAIN, &calls[me], &small) == CUDA_SUCCESS);
        DEMAND(sim_get(sim, 0, 3 * MIB, SIM_PLAIN, &calls[me], &large) == CUDA_SUCCESS);
        DEMAND(sim_fill(sim, small, value, 1, 1000) == CUDA_SUCCESS);
        DEMAND(sim_copy(sim, (uint64_t)(uintptr_t)&seen, small + 999, 1) == CUDA_SUCCESS);
        DEMAND(seen == value);
        DEMAND(sim_reserve(sim, 4 * MIB, 0, 0, &range) == CUDA_SUCCESS);
        DEMAND(sim_create(sim, 0, 2 * MIB, &handle) == CUDA_SUCCESS);
        DEMAND(sim_map(sim, range, 2 * MIB, 0, handle) == CUDA_SUCCESS);
        DEMAND(sim_drop(sim, handle) == CUDA_SUCCESS);
        DEMAND(sim_pool_get(pool, 4096, NULL, &async) == CUDA_SUCCESS);
        DEMAND(sim_stream_call(stream, count, &calls[me]) == CUDA_SUCCESS);
        DEMAND(sim_event_record(event, stream) == CUDA_SUCCESS);
        sim_event_finish(event);
        DEMAND(sim_event_done(event));
        DEMAND(sim_pool_put(sim, async) == CUDA_SUCCESS);
        DEMAND(sim_unmap(sim, range, 2 * MIB) == CUDA_SUCCESS);
        DEMAND(sim_unreserve(sim, range, 4 * MIB) == CUDA_SUCCESS);
        DEMAND(sim_release(sim, small) == CUDA_SUCCESS);
        if (i % 2)
            DEMAND(sim_release(sim, large) == CUDA_SUCCESS);
        else
            sim_release_owner(sim, &calls[me]);
    }
    sim_event_free(event);
    sim_stream_free(stream);
    return NULL;
}

int main(void)
{
    struct sim_config config = {.devices = 1, .bytes = {1024 * MIB}};
    uint64_t available, total;
    pthread_t threads[THREADS];
    sim = sim_new(&config);
    DEMAND(sim);
    pool = sim_pool_new(sim, 0, 0);
    DEMAND(pool);
    for (size_t i = 0; i < THREADS; i++)
        DEMAND(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        DEMAND(calls[i] == ROUNDS);
    sim_pool_settle(sim, 0);
    DEMAND(sim_info(sim, 0, &available, &total) == CUDA_SUCCESS && available == total);
    sim_free(sim);
    return 0;
}
