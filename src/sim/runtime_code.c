/*
 * Our CUDA runtime: what nvcc's generated code registers, and kernels.  May
 * use: the driver.
 *
 * A fat binary becomes a library of the driver when something of it is first
 * needed; what was registered is found by the host's address.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sim/runtime.h"

struct wrapper { /* what nvcc hands to __cudaRegisterFatBinary */
    int magic, version;
    const void *data;
    void *names;
};

struct binary {
    const struct wrapper *wrapper;
    CUlibrary library; /* NULL: not yet */
    struct binary *next;
};

enum what { FUNCTION, VARIABLE, MANAGED };

struct registered {
    enum what what;
    const void *host; /* MANAGED: where its pointer is kept */
    const char *name;
    size_t bytes;
    struct binary *binary;
    CUkernel kernel;
    struct registered *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct binary *binaries;
static struct registered *registered;

void **__cudaRegisterFatBinary(void *image)
{
    struct binary *binary = calloc(1, sizeof *binary);
    if (!binary)
        return NULL;
    binary->wrapper = image;
    pthread_mutex_lock(&lock);
    binary->next = binaries;
    binaries = binary;
    pthread_mutex_unlock(&lock);
    return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    struct binary *binary = (struct binary *)handle;
    if (!binary)
        return;
    pthread_mutex_lock(&lock);
    for (struct registered **at = &registered; *at;) {
        struct registered *r = *at;
        if (r->binary == binary) {
            *at = r->next;
            free(r);
        } else {
            at = &r->next;
        }
    }
    for (struct binary **at = &binaries; *at; at = &(*at)->next)
        if (*at == binary) {
            *at = binary->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (binary->library)
        runtime.cuLibraryUnload(binary->library);
    free(binary);
}

static void add(void **handle, enum what what, const void *host, const char *name, size_t bytes)
{
    struct registered *r = calloc(1, sizeof *r);
    if (!r || !handle) {
        free(r);
        return;
    }
    *r = (struct registered){.what = what, .host = host, .name = name, .bytes = bytes,
        .binary = (struct binary *)handle};
    pthread_mutex_lock(&lock);
    r->next = registered;
    registered = r;
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *thread,
    void *block_index, dim3 *block, dim3 *grid, int *warp)
{
    (void)device;
    (void)limit;
    (void)thread;
    (void)block_index;
    (void)block;
    (void)grid;
    (void)warp;
    add(handle, FUNCTION, host, name, 0);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
    int constant, int global)
{
    (void)device;
    (void)external;
    (void)constant;
    (void)global;
    add(handle, VARIABLE, host, name, bytes);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
    size_t bytes, int constant, int global)
{
    (void)device;
    (void)external;
    (void)constant;
    (void)global;
    add(handle, MANAGED, host, name, bytes);
}

/* Hand the binary to the driver; a simulated one is told what the code would say of its variables. */
static CUresult load_binary(struct binary *binary)
{
    if (binary->library)
        return CUDA_SUCCESS;
    CUresult result = runtime.cuLibraryLoadData(&binary->library, binary->wrapper->data, NULL, NULL, 0, NULL, NULL, 0);
    for (struct registered *r = registered; !result && runtime.variable && r; r = r->next)
        if (r->binary == binary && r->what != FUNCTION)
            result = runtime.variable((CUmodule)(void *)binary->library, r->name, r->bytes, r->what == MANAGED);
    return result;
}

char __cudaInitModule(void **handle)
{
    struct binary *binary = (struct binary *)handle;
    if (!binary || runtime_enter())
        return 0;
    pthread_mutex_lock(&lock);
    CUresult result = load_binary(binary);
    for (struct registered *r = registered; !result && r; r = r->next) {
        CUdeviceptr address;
        size_t bytes;
        if (r->binary != binary || r->what != MANAGED)
            continue;
        result = runtime.cuLibraryGetManaged(&address, &bytes, binary->library, r->name);
        if (!result)
            *(void **)(uintptr_t)r->host = (void *)(uintptr_t)address;
    }
    pthread_mutex_unlock(&lock);
    return result == CUDA_SUCCESS;
}

cudaError_t runtime_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
    cudaError_t error = cudaErrorInvalidSymbol;
    pthread_mutex_lock(&lock);
    for (struct registered *r = registered; r; r = r->next) {
        bool managed = r->what == MANAGED;
        if (r->what == FUNCTION || (managed ? *(void *const *)r->host : r->host) != symbol)
            continue;
        CUresult result = load_binary(r->binary);
        if (!result)
            result = (managed ? runtime.cuLibraryGetManaged : runtime.cuLibraryGetGlobal)(address, bytes,
                r->binary->library, r->name);
        error = (cudaError_t)result;
        break;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Kernels: by the host's stub, or the handle that __cudaGetKernel gave. */
static cudaError_t kernel_of(const void *host, CUkernel *kernel, const char **name)
{
    cudaError_t error = cudaErrorInvalidDeviceFunction;
    pthread_mutex_lock(&lock);
    for (struct registered *r = registered; r; r = r->next) {
        if (r->what != FUNCTION || (r->host != host && (!r->kernel || (const void *)r->kernel != host)))
            continue;
        CUresult result = load_binary(r->binary);
        if (!result && !r->kernel)
            result = runtime.cuLibraryGetKernel(&r->kernel, r->binary->library, r->name);
        error = (cudaError_t)result;
        *kernel = r->kernel;
        if (name)
            *name = r->name;
        break;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *kernel)
{
    cudaError_t error = runtime_enter();
    return runtime_done(error ? error : kernel_of(kernel, handle, NULL));
}

cudaError_t cudaGetKernel(cudaKernel_t *handle, const void *kernel)
{
    return __cudaGetKernel(handle, kernel);
}

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed[8];
static __thread unsigned pushed_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    if (pushed_count == 8)
        return cudaErrorUnknown;
    pushed[pushed_count].grid = grid;
    pushed[pushed_count].block = block;
    pushed[pushed_count].shared = shared;
    pushed[pushed_count++].stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!pushed_count)
        return cudaErrorUnknown;
    pushed_count--;
    *grid = pushed[pushed_count].grid;
    *block = pushed[pushed_count].block;
    *shared = pushed[pushed_count].shared;
    *(cudaStream_t *)stream = pushed[pushed_count].stream;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
    cudaStream_t stream)
{
    RUNTIME_CALL(runtime.cuLaunchKernel((CUfunction)(void *)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
        (unsigned)shared, stream, arguments, NULL));
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
    cudaStream_t stream)
{
    CUkernel found;
    cudaError_t error = runtime_enter();
    if (!error)
        error = kernel_of(kernel, &found, NULL);
    return error ? runtime_done(error) : __cudaLaunchKernel(found, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
    cudaStream_t stream)
{
    CUkernel found;
    cudaError_t error = runtime_enter();
    if (!error)
        error = kernel_of(kernel, &found, NULL);
    if (!error)
        error = (cudaError_t)runtime.cuLaunchCooperativeKernel((CUfunction)(void *)found, grid.x, grid.y, grid.z,
            block.x, block.y, block.z, (unsigned)shared, stream, arguments);
    return runtime_done(error);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments)
{
    CUkernel found;
    cudaError_t error = config ? runtime_enter() : cudaErrorInvalidValue;
    if (!error)
        error = kernel_of(kernel, &found, NULL);
    if (error)
        return runtime_done(error);
    CUlaunchConfig driver = {config->gridDim.x, config->gridDim.y, config->gridDim.z, config->blockDim.x,
        config->blockDim.y, config->blockDim.z, (unsigned)config->dynamicSmemBytes, config->stream, config->attrs,
        config->numAttrs};
    return runtime_done(
        (cudaError_t)runtime.cuLaunchKernelEx(&driver, (CUfunction)(void *)found, arguments, NULL));
}

static cudaError_t function_of(const void *kernel, CUfunction *function)
{
    CUkernel found;
    cudaError_t error = runtime_enter();
    if (!error)
        error = kernel_of(kernel, &found, NULL);
    return error ? error : (cudaError_t)runtime.cuKernelGetFunction(function, found);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *kernel)
{
    return runtime_done(function ? function_of(kernel, function) : cudaErrorInvalidValue);
}

cudaError_t cudaFuncGetName(const char **name, const void *kernel)
{
    CUkernel found;
    cudaError_t error = name ? runtime_enter() : cudaErrorInvalidValue;
    return runtime_done(error ? error : kernel_of(kernel, &found, name));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    CUfunction function;
    cudaError_t error = attributes ? function_of(kernel, &function) : cudaErrorInvalidValue;
    if (error)
        return runtime_done(error);
    int values[CU_FUNC_ATTRIBUTE_MAX] = {0};
    for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++)
        runtime.cuFuncGetAttribute(&values[i], (CUfunction_attribute)i, function);
    memset(attributes, 0, sizeof *attributes);
    attributes->sharedSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    attributes->constSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES];
    attributes->localSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES];
    attributes->maxThreadsPerBlock = values[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
    attributes->numRegs = values[CU_FUNC_ATTRIBUTE_NUM_REGS];
    attributes->ptxVersion = values[CU_FUNC_ATTRIBUTE_PTX_VERSION];
    attributes->binaryVersion = values[CU_FUNC_ATTRIBUTE_BINARY_VERSION];
    attributes->maxDynamicSharedSizeBytes = values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    return runtime_done(cudaSuccess);
}

cudaError_t cudaFuncSetAttribute(const void *kernel, int attribute, int value)
{
    CUfunction function;
    cudaError_t error = function_of(kernel, &function);
    if (!error)
        error = (cudaError_t)runtime.cuFuncSetAttribute(function, (CUfunction_attribute)attribute, value);
    return runtime_done(error);
}

cudaError_t cudaFuncSetCacheConfig(const void *kernel, int preference)
{
    CUfunction function;
    cudaError_t error = function_of(kernel, &function);
    return runtime_done(error ? error : (cudaError_t)runtime.cuFuncSetCacheConfig(function, (CUfunc_cache)preference));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel, int block,
    size_t dynamic, unsigned flags)
{
    CUfunction function;
    cudaError_t error = function_of(kernel, &function);
    if (!error)
        error = (cudaError_t)runtime.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block,
            dynamic, flags);
    return runtime_done(error);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int block, size_t dynamic)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block, dynamic, 0);
}
