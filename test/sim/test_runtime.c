/* Our CUDA runtime, linked statically, over the simulated driver found by dlopen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "sim/cudart.h"

#define MIB ((size_t)1 << 20)

static void devices_and_memory(void **state)
{
    int count = 0, device = -1;
    size_t available, total;
    void *a, *b;
    struct cudaDeviceProp properties;
    (void)state;
    assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
    assert_int_equal(count, 2);
    assert_int_equal(cudaMemGetInfo(&available, &total), cudaSuccess);
    assert_int_equal(total, 1024 * MIB);
    assert_int_equal(cudaMalloc(&a, 100 * MIB), cudaSuccess);
    assert_int_equal(cudaMalloc(&b, 1000 * MIB), cudaErrorMemoryAllocation);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_string_equal(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaGetDevice(&device), cudaSuccess);
    assert_int_equal(device, 1);
    assert_int_equal(cudaMalloc(&b, 1000 * MIB), cudaSuccess);
    assert_int_equal(cudaFree(b), cudaSuccess);
    assert_int_equal(cudaFree(b), cudaErrorInvalidValue);
    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaFree(a), cudaSuccess);
    assert_int_equal(cudaFree(NULL), cudaSuccess);
    assert_int_equal(cudaMalloc(&a, 0), cudaSuccess);
    assert_null(a);
    assert_int_equal(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
    assert_string_equal(properties.name, "Simulated device");
    assert_int_equal(properties.totalGlobalMem, 1024 * MIB);
    assert_int_equal(properties.major, 9);
    assert_int_equal(properties.multiProcessorCount, 132);
    cudaGetLastError();
}

static void pointers_and_copies(void **state)
{
    char there[1000], back[1000];
    void *device, *host, *managed, *pitched;
    size_t pitch;
    struct cudaPointerAttributes attributes;
    (void)state;
    for (size_t i = 0; i < sizeof there; i++)
        there[i] = (char)(i * 5);
    assert_int_equal(cudaMalloc(&device, 1000), cudaSuccess);
    assert_int_equal(cudaHostAlloc(&host, 1000, 0), cudaSuccess);
    assert_int_equal(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal), cudaSuccess);
    assert_int_equal(cudaMallocPitch(&pitched, &pitch, 100, 10), cudaSuccess);
    assert_int_equal(pitch, 512);
    assert_int_equal(cudaMemcpy(device, there, 1000, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(cudaMemcpy2D(pitched, pitch, device, 100, 100, 10, cudaMemcpyDefault), cudaSuccess);
    assert_int_equal(cudaMemcpy2D(managed, 100, pitched, pitch, 100, 10, cudaMemcpyDefault), cudaSuccess);
    assert_memory_equal(managed, there, 1000);
    assert_int_equal(cudaMemset(device, 6, 500), cudaSuccess);
    assert_int_equal(cudaMemcpy(back, device, 1000, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(back[499], 6);
    assert_memory_equal(back + 500, there + 500, 500);
    assert_int_equal(cudaPointerGetAttributes(&attributes, device), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal(cudaPointerGetAttributes(&attributes, host), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeHost);
    assert_int_equal(cudaPointerGetAttributes(&attributes, managed), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeManaged);
    assert_int_equal(cudaPointerGetAttributes(&attributes, there), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeUnregistered);
    assert_int_equal(cudaFree(pitched), cudaSuccess);
    assert_int_equal(cudaFree(managed), cudaSuccess);
    assert_int_equal(cudaFree(device), cudaSuccess);
    assert_int_equal(cudaFreeHost(host), cudaSuccess);
}

static char kernel_stub, variable_stub;
static int *managed_stub;

/* What nvcc's generated code does, by hand. */
static void registered_code_is_found(void **state)
{
    static struct {
        int magic, version;
        const void *data;
        void *names;
    } wrapper = {0x466243b1, 1, "code", NULL};
    void **handle = __cudaRegisterFatBinary(&wrapper);
    int there[4] = {1, 2, 3, 4}, back[4] = {0};
    size_t bytes;
    void *address;
    struct cudaFuncAttributes attributes;
    dim3 one = {1, 1, 1}, grid, block;
    size_t shared;
    cudaStream_t stream;
    cudaKernel_t kernel;
    (void)state;
    __cudaRegisterFunction(handle, &kernel_stub, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, &variable_stub, NULL, "variable", 0, sizeof there, 0, 0);
    __cudaRegisterManagedVar(handle, (void **)&managed_stub, NULL, "managed", 0, 40, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    assert_true(__cudaInitModule(handle));
    managed_stub[9] = 5;
    assert_int_equal(cudaMemcpyToSymbol(&variable_stub, there, sizeof there, 0, cudaMemcpyHostToDevice), 0);
    assert_int_equal(cudaMemcpyFromSymbol(back, &variable_stub, 8, 8, cudaMemcpyDeviceToHost), 0);
    assert_int_equal(back[0], 3);
    assert_int_equal(cudaMemcpyFromSymbol(back, &variable_stub, 16, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaGetSymbolSize(&bytes, &variable_stub), 0);
    assert_int_equal(bytes, sizeof there);
    assert_int_equal(cudaGetSymbolAddress(&address, &there), cudaErrorInvalidSymbol);
    assert_int_equal(__cudaPushCallConfiguration((dim3){2, 3, 4}, one, 77, NULL), 0);
    assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
    assert_int_equal(grid.y, 3);
    assert_int_equal(shared, 77);
    assert_int_equal(__cudaGetKernel(&kernel, &kernel_stub), 0);
    assert_int_equal(__cudaLaunchKernel(kernel, grid, block, NULL, 0, NULL), 0);
    assert_int_equal(cudaLaunchKernel(&kernel_stub, one, one, NULL, 0, NULL), 0);
    assert_int_equal(cudaLaunchKernel(&one, one, one, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
    assert_int_equal(cudaFuncGetAttributes(&attributes, &kernel_stub), 0);
    assert_int_equal(attributes.maxThreadsPerBlock, 1024);
    __cudaUnregisterFatBinary(handle);
    assert_int_equal(cudaGetSymbolSize(&bytes, &variable_stub), cudaErrorInvalidSymbol);
    cudaGetLastError();
}

static void streams_events_and_pools(void **state)
{
    cudaStream_t stream;
    cudaEvent_t start, end;
    cudaMemPool_t pool;
    void *a;
    float time = -1;
    unsigned long long reserved;
    (void)state;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
    assert_int_equal(cudaEventCreate(&start), 0);
    assert_int_equal(cudaEventCreate(&end), 0);
    assert_int_equal(cudaEventRecord(start, stream), 0);
    assert_int_equal(cudaMallocAsync(&a, MIB, stream), 0);
    assert_int_equal(cudaMemsetAsync(a, 1, MIB, stream), 0);
    assert_int_equal(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
    assert_int_equal(cudaMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved), 0);
    assert_int_equal(reserved, 32 * MIB);
    assert_int_equal(cudaFreeAsync(a, stream), 0);
    assert_int_equal(cudaEventRecord(end, stream), 0);
    assert_int_equal(cudaStreamSynchronize(stream), 0);
    assert_int_equal(cudaEventElapsedTime(&time, start, end), 0);
    assert_true(time >= 0);
    assert_int_equal(cudaMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved), 0);
    assert_int_equal(reserved, 0);
    assert_int_equal(cudaEventDestroy(start), 0);
    assert_int_equal(cudaEventDestroy(end), 0);
    assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void *other_thread(void *seen)
{
    void *a;
    int device;
    if (cudaGetDevice(&device) == 0 && device == 0 && cudaMalloc(&a, 100) == 0 && cudaFree(a) == 0)
        *(int *)seen = 1;
    return NULL;
}

static void another_thread_needs_no_set_up(void **state)
{
    pthread_t thread;
    int seen = 0;
    (void)state;
    assert_int_equal(cudaSetDevice(1), 0);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen, 1);
    assert_int_equal(cudaSetDevice(0), 0);
}

static void a_reset_starts_afresh(void **state)
{
    void *a;
    size_t available, total;
    (void)state;
    assert_int_equal(cudaMalloc(&a, 10 * MIB), 0);
    assert_int_equal(cudaDeviceReset(), 0);
    assert_int_equal(cudaMemGetInfo(&available, &total), 0);
    assert_int_equal(available, total);
    assert_int_equal(cudaFree(a), cudaErrorInvalidValue);
    cudaGetLastError();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_and_memory),
        cmocka_unit_test(pointers_and_copies),
        cmocka_unit_test(registered_code_is_found),
        cmocka_unit_test(streams_events_and_pools),
        cmocka_unit_test(another_thread_needs_no_set_up),
        cmocka_unit_test(a_reset_starts_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
