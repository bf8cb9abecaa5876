/*
 * Our CUDA runtime: finding the driver, contexts, errors.  May use: the C
 * library; the driver by dlopen.
 */
#include "sim/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define DEVICES_MAX 64

struct runtime runtime;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t start_error;
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[DEVICES_MAX];
static __thread int thread_device;
static __thread cudaError_t last_error;

/* The driver's functions that we call, and where their addresses go. */
static const struct {
    const char *name;
    int version;
    size_t place;
} wanted[] = {
#define WANTED(name, version, export) {#name, version, offsetof(struct runtime, name)},
    RUNTIME_DRIVER(WANTED)
#undef WANTED
};

/* NULL where the driver is too old for it. */
static void *find(const char *name, int version)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    if (runtime.look_up(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) ||
        status != CU_GET_PROC_ADDRESS_SUCCESS)
        return NULL;
    return function;
}

static void load(void)
{
    start_error = cudaErrorInsufficientDriver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *look_up = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (!look_up)
        return;
    memcpy(&runtime.look_up, &look_up, sizeof look_up);
    void *function;
    bool all = true;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        function = find(wanted[i].name, wanted[i].version);
        all = all && function;
        memcpy((char *)&runtime + wanted[i].place, &function, sizeof function);
    }
    function = find("cudamemSimControlVariable", RUNTIME_VERSION);
    memcpy(&runtime.variable, &function, sizeof function);
    if (all)
        start_error = (cudaError_t)runtime.cuInit(0);
}

cudaError_t runtime_start(void)
{
    pthread_once(&once, load);
    return start_error;
}

static cudaError_t make_current(int device)
{
    if (device < 0 || device >= DEVICES_MAX)
        return cudaErrorInvalidDevice;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&context_lock);
    if (!primary[device])
        result = runtime.cuDevicePrimaryCtxRetain(&primary[device], device);
    CUcontext context = primary[device];
    pthread_mutex_unlock(&context_lock);
    return (cudaError_t)(result ? result : runtime.cuCtxSetCurrent(context));
}

cudaError_t runtime_enter(void)
{
    CUcontext context = NULL;
    cudaError_t error = runtime_start();
    if (error)
        return error;
    if (runtime.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        return cudaSuccess;
    return make_current(thread_device);
}

cudaError_t runtime_done(cudaError_t error)
{
    if (error && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

int runtime_device(void)
{
    return thread_device;
}

cudaError_t cudaSetDevice(int device)
{
    int count;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (!error && (device < 0 || device >= count))
        error = cudaErrorInvalidDevice;
    if (!error)
        error = make_current(device);
    if (!error)
        thread_device = device;
    return runtime_done(error);
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags;
    (void)flags;
    cudaError_t error = runtime_start();
    CUcontext context = NULL;
    if (!error)
        error = (cudaError_t)runtime.cuDevicePrimaryCtxRetain(&context, device);
    return runtime_done(error);
}

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t error = device ? runtime_start() : cudaErrorInvalidValue;
    if (!error)
        *device = thread_device;
    return runtime_done(error);
}

cudaError_t cudaDeviceReset(void)
{
    cudaError_t error = runtime_start();
    if (error)
        return runtime_done(error);
    pthread_mutex_lock(&context_lock);
    primary[thread_device] = NULL;
    pthread_mutex_unlock(&context_lock);
    error = (cudaError_t)runtime.cuDevicePrimaryCtxReset(thread_device);
    runtime.cuCtxSetCurrent(NULL);
    return runtime_done(error);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {{cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "no usable CUDA driver (libcuda.so.1) was found"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {201, "cudaErrorDeviceUninitialized", "invalid device context"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {802, "cudaErrorSystemNotReady", "system not yet initialized"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"}};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unrecognized error code";
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
    unsigned long long flags, int *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    cudaError_t error = runtime_start();
    if (!error)
        error = (cudaError_t)runtime.look_up(name, function, (int)version, flags, &found);
    if (!error && status)
        *status = (int)found;
    return runtime_done(error);
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(name, function, RUNTIME_VERSION, flags, status);
}

cudaError_t cudaProfilerStart(void)
{
    RUNTIME_CALL(runtime.cuProfilerStart());
}

cudaError_t cudaProfilerStop(void)
{
    RUNTIME_CALL(runtime.cuProfilerStop());
}
