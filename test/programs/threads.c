/* Several threads that allocate and free at the same time. */
#include <pthread.h>

#include "driver.h"

static unsigned pairs = 250;
static CUcontext shared;

static NOINLINE void *thread_work(void *argument)
{
    size_t bytes = ((size_t)argument + 1) * 4096;
    CHECK(cu.cuCtxSetCurrent(shared));
    for (unsigned i = 0; i < pairs; i++) {
        CUdeviceptr address;
        CHECK(cu.cuMemAlloc(&address, bytes));
        CHECK(cu.cuMemFree(address));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
    pthread_t threads[64];
    if (argc > 2)
        pairs = (unsigned)strtoul(argv[2], NULL, 10);
    if (count > 64)
        return 97;
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    CHECK(cu.cuInit(0));
    CHECK(cu.cuDevicePrimaryCtxRetain(&shared, 0));
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, thread_work, (void *)i))
            return 97;
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        done.bytes += (unsigned long long)pairs * (i + 1) * 4096;
    }
    done.allocations = done.frees = count * pairs;
    report("threads");
    return 0;
}
