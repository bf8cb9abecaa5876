/* The CUDA driver, loaded when first needed.  Uses src/base and src/device. */
#include "api/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct library_driver driver;
static struct driver_memory_functions memory_functions;
static atomic_bool driver_is_there;
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

static void *find(void *library, const char *name)
{
    return dlsym(library, name);
}

static int look_up(void *library, struct error *err)
{
    static const char *const names[] = {
#define DRIVER_NAME(name) #name,
        LIBRARY_DRIVER_FUNCTIONS(DRIVER_NAME)
#undef DRIVER_NAME
    };
    void *found[sizeof(names) / sizeof(names[0])];
    size_t i = 0;
    for (; i < sizeof(names) / sizeof(names[0]); i++) {
        found[i] = dlsym(library, names[i]);
        if (!found[i])
            return error_set(err, CUDAMEM_ERROR_NOT_FOUND, "the CUDA driver has no %s: a newer one is needed", names[i]);
    }
    i = 0;
#define DRIVER_COPY(name) memcpy(&driver.name, &found[i++], sizeof(found[0]));
    LIBRARY_DRIVER_FUNCTIONS(DRIVER_COPY)
#undef DRIVER_COPY
    return driver_memory_look_up(&memory_functions, find, library, err);
}

static int load(struct error *err)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* drivers do not go */
    if (!library)
        return error_set(err, CUDAMEM_ERROR_NOT_FOUND, "no CUDA driver: %s", dlerror());
    int status = look_up(library, err), result = status ? 0 : (int)driver.cuInit(0);
    if (result)
        status = error_set(err, CUDAMEM_ERROR_NOT_FOUND, "the CUDA driver does not start: %s (%d)",
                           library_driver_word(result), result);
    if (status)
        dlclose(library);
    return status;
}

const struct library_driver *library_driver(struct error *err)
{
    if (atomic_load_explicit(&driver_is_there, memory_order_acquire))
        return &driver;
    pthread_mutex_lock(&driver_lock);
    bool there = atomic_load(&driver_is_there) || !load(err);
    atomic_store(&driver_is_there, there);
    pthread_mutex_unlock(&driver_lock);
    return there ? &driver : NULL;
}

const struct driver_memory_functions *library_memory_functions(void)
{
    return &memory_functions;
}

const char *library_driver_word(int result)
{
    const char *word = NULL;
    if (!driver.cuGetErrorName || driver.cuGetErrorName((CUresult)result, &word) || !word)
        return "an error that it has no word for";
    return word;
}

int library_driver_status(int result, const char *what, struct error *err)
{
    int status = result == CUDA_ERROR_OUT_OF_MEMORY   ? CUDAMEM_ERROR_OUT_OF_MEMORY
                 : result == CUDA_ERROR_DEINITIALIZED ? CUDAMEM_ERROR_SHUT_DOWN
                                                      : CUDAMEM_ERROR_DRIVER;
    return result ? error_set(err, status, "%s: %s (%d)", what, library_driver_word(result), result) : CUDAMEM_OK;
}

int library_device_count(int *count, struct error *err)
{
    *count = 0;
    const struct library_driver *call = library_driver(err);
    if (!call)
        return CUDAMEM_ERROR_NOT_FOUND;
    return library_driver_status((int)call->cuDeviceGetCount(count), "counting the devices", err);
}

int library_push_context(struct library_device *device, struct error *err)
{
    return library_driver_status((int)driver.cuCtxPushCurrent_v2(device->context), "making the context current", err);
}

void library_pop_context(void)
{
    CUcontext own;
    driver.cuCtxPopCurrent_v2(&own);
}
