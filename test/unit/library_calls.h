/* Short forms of the public calls for tests: what fails says why, what must fail must have a sentence. */
#ifndef TEST_LIBRARY_CALLS_H
#define TEST_LIBRARY_CALLS_H

#include "library_world.h"

static char message[480]; /* of the last call that had to fail */

#define OK(call)                                          \
    do {                                                  \
        cudamem_error error = CUDAMEM_ERROR_INIT;         \
        int status_ = (call);                             \
        if (status_)                                      \
            fail_msg("%s: %d %s", #call, status_, error.message); \
    } while (0)
#define FAILS(expected, call)                     \
    do {                                          \
        cudamem_error error = CUDAMEM_ERROR_INIT; \
        assert_int_equal((call), (expected));     \
        assert_int_equal(error.status, (expected)); \
        assert_true(strlen(error.message) > 5);   \
        strcpy(message, error.message);           \
    } while (0)

static inline void *get(size_t size, int device, CUstream stream)
{
    void *pointer = NULL;
    OK(cudamem_alloc(size, device, stream, &pointer, &error));
    return pointer;
}

static inline void put(void *pointer)
{
    OK(cudamem_free(pointer, &error));
}

static inline cudamem_memory_stats stats_of(int device)
{
    cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
    OK(cudamem_get_memory_stats(device, &stats, &error));
    return stats;
}

/* A stream of a device's primary context; device 0's is the current one afterwards. */
static inline CUstream stream_on(int device)
{
    CUcontext contexts[2];
    for (int d = 0; d < 2; d++)
        if (world.retain(&contexts[d], d))
            fail_msg("device %d gives no context", d);
    world.set_current(contexts[device]);
    CUstream stream = world_stream();
    world.set_current(contexts[0]);
    return stream;
}

static inline void start_afresh(void)
{
    message[0] = '\0';
    world.manual(0);
    OK(cudamem_set_allocator_settings("expandable_segments:False,release_lock_on_cudamalloc:False", &error));
    OK(cudamem_set_caching(1, &error));
    for (int d = 0; d < 2; d++)
        OK(cudamem_set_memory_fraction(1, d, &error));
    OK(cudamem_empty_cache(&error));
    for (int d = 0; d < 2; d++) {
        OK(cudamem_reset_accumulated_memory_stats(d, &error));
        OK(cudamem_reset_peak_memory_stats(d, &error));
        assert_int_equal(stats_of(d).reserved_bytes.all.current, 0);
    }
}

#endif
