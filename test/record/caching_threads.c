/*
 * The injected library's own code, linked into a program with a sanitizer in it: threads on several devices, memory of
 * every way, streams that come and go, and forks meanwhile.  The argument is the simulated driver's library.
 *
 *     caching_threads LIBRARY [THREADS [STEPS]]
 */
#include "device/cuda_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICES 2
#define BLOCKS 16

static __typeof__(&cuCtxSetCurrent) set_current;
static __typeof__(&cuStreamCreate) create_stream;
static CUcontext contexts[DEVICES];
static unsigned long steps = 300;
static atomic_bool over;

#define CHECK(call) \
    do { \
        int result_ = (int)(call); \
        if (result_) { \
            fprintf(stderr, "%s failed: %d\n", #call, result_); \
            exit(1); \
        } \
    } while (0)

struct block {
    CUdeviceptr address;
    size_t bytes;
};

static void look_at(const struct block *block)
{
    CUdeviceptr base = 0;
    size_t bytes = 0, available, total;
    unsigned long long id = 0;
    CHECK(cuMemGetAddressRange_v2(&base, &bytes, block->address + block->bytes - 1));
    if (base != block->address || bytes != block->bytes) {
        fprintf(stderr, "a block of %zu bytes seems to have %zu\n", block->bytes, bytes);
        exit(1);
    }
    CHECK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, block->address));
    CHECK(cuMemGetInfo_v2(&available, &total));
}

static void *work(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number + 1;
    struct block blocks[BLOCKS] = {{0, 0}};
    CUstream stream;
    CHECK(set_current(contexts[seed % DEVICES]));
    CHECK(create_stream(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned long i = 0; i < steps; i++) {
        struct block *block = &blocks[rand_r(&seed) % BLOCKS];
        unsigned how = (unsigned)rand_r(&seed) % 4;
        CUstream used = how == 1 ? CU_STREAM_LEGACY : how == 2 ? CU_STREAM_PER_THREAD : stream;
        if (!block->address) {
            block->bytes = 1 + (size_t)rand_r(&seed) % 3000000;
            CHECK(how ? cuMemAllocAsync(&block->address, block->bytes, used) : cuMemAlloc_v2(&block->address, block->bytes));
            look_at(block);
        } else {
            CHECK(how ? cuMemFreeAsync(block->address, used) : cuMemFree_v2(block->address));
            block->address = 0;
        }
        if (i % 50 == 49) {
            CHECK(cuStreamDestroy_v2(stream));
            CHECK(create_stream(&stream, CU_STREAM_DEFAULT));
        }
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].address)
            CHECK(cuMemFree_v2(blocks[i].address));
    return NULL;
}

/* A child finds no lock held, and a driver that is none of its own. */
static void *fork_meanwhile(void *unused)
{
    while (!atomic_load(&over)) {
        pid_t child = fork();
        if (child == 0) {
            CUdeviceptr address;
            _exit(cuMemAlloc_v2(&address, 1000) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status) {
            fprintf(stderr, "a child ended with %d\n", status);
            exit(1);
        }
        usleep(20000);
    }
    return unused;
}

static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof(address));
}

int main(int argc, char **argv)
{
    enum { MOST = 64 };
    pthread_t threads[MOST], forker;
    int count = argc > 2 ? atoi(argv[2]) : 16;
    if (argc > 3)
        steps = strtoul(argv[3], NULL, 10);
    setenv("CUDAMEM_SIM", "2:16GiB", 1);
    setenv("CUDAMEM_ALLOCATOR", "caching", 1);
    setenv("CUDAMEM_STACKS", "none", 1);
    void *library = argc > 1 && count <= MOST ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "no simulated driver\n");
        return 1;
    }
    find(library, "cuCtxSetCurrent", &set_current);
    find(library, "cuStreamCreate", &create_stream);
    CHECK(cuInit(0));
    for (int i = 0; i < DEVICES; i++)
        CHECK(cuDevicePrimaryCtxRetain(&contexts[i], i));
    CHECK(set_current(contexts[0]));
    pthread_create(&forker, NULL, fork_meanwhile, NULL);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&over, true);
    pthread_join(forker, NULL);
    CHECK(cuDevicePrimaryCtxReset_v2(1));
    printf("threads %d\n", count);
    return 0;
}
