/*
 * What a program gets when it asks for a driver function: the answers of dlsym, of cuGetProcAddress, and of the stubs
 * that carry the driver's names in this library.
 *
 * The rule: ask the real one first and swap its answer only if it is the export that we wrap.  Names that are not ours
 * never get past the first comparison.
 */
#include "preload/lookup.h"

#include "preload/driver.h"
#include "preload/linker.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>

struct lookup {
    void *answer; /* or NULL: */
    void *handle; /* ask the next dlsym with this one */
};

/* Called by the assembly of dlsym. */
extern struct lookup preload_dlsym(void *handle, const char *name);
/* Called by the stubs at their first use. */
extern void *stub_resolve(unsigned number);
extern _Atomic(void *) stub_slots[];

/* A handle that has no function of the driver, so that the next dlsym answers as it would without us. */
static void *handle_without_driver(void)
{
    static _Atomic(void *) library;
    void *handle = atomic_load(&library);
    if (!handle) {
        handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        atomic_store(&library, handle);
    }
    return handle;
}

/* The forwarding object has the functions of every driver; those that this one lacks are not there. */
static bool is_forwarded_in_vain(const char *name)
{
    if (!linker_forwarder() || name[2] < 'A' || name[2] > 'Z')
        return false;
    void *found = linker_symbol(RTLD_DEFAULT, name);
    if (!found || linker_object_of(found, NULL, NULL) != LINKER_FORWARD)
        return false;
    return !driver_locate() || !linker_symbol(driver_handle(), name);
}

__attribute__((visibility("hidden"))) struct lookup preload_dlsym(void *handle, const char *name)
{
    linker_start();
    struct lookup next = {NULL, handle};
    if (!name)
        return next;
    /* our forwarding object answers for the real driver: also in what that one lacks */
    if (handle && handle == linker_forwarder() && driver_locate())
        next.handle = handle = driver_handle();
    if (name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT)
        return next;
    enum driver_call call = driver_call_number(name);
    if (call == CALL_NONE) {
        if (handle == RTLD_DEFAULT && is_forwarded_in_vain(name))
            next.handle = handle_without_driver();
        return next;
    }
    void *found = handle == RTLD_DEFAULT ? NULL : linker_symbol(handle, name);
    if (!found && handle != RTLD_DEFAULT)
        return next;
    void *library = NULL;
    switch (found ? linker_object_of(found, &library, NULL) : LINKER_OURS) {
    case LINKER_OURS: /* by the global scope: our stub is right if there is such a function behind it */
        if (!driver_locate() || !driver_real_of(call))
            next.handle = handle_without_driver();
        break;
    case LINKER_DRIVER:
        if (driver_use(library) && preload_enabled())
            next.answer = driver_wrapper(found);
        break;
    case LINKER_FORWARD:
    case LINKER_OTHER:
        break;
    }
    return next;
}

static CUresult no_driver(void)
{
    return CUDA_ERROR_NO_DEVICE;
}

static CUresult no_function(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

/* Another library behind us may interpose the same name: it is whom the program would have called. */
static void *interposed_behind(const char *name)
{
    void *found = linker_symbol(RTLD_NEXT, name);
    dlerror();
    return found && linker_object_of(found, NULL, NULL) == LINKER_OTHER ? found : NULL;
}

__attribute__((visibility("hidden"))) void *stub_resolve(unsigned number)
{
    enum driver_call call = (enum driver_call)(number + 1);
    linker_start();
    void *target = interposed_behind(driver_call_names[call]);
    if (!target) {
        if (!driver_locate())
            return (void *)no_driver;
        target = preload_enabled() ? driver_wrapper_of(call) : driver_real_of(call);
        if (!target)
            return (void *)no_function;
    }
    atomic_store_explicit(&stub_slots[number], target, memory_order_release);
    return target;
}

static atomic_uint lookup_requests, lookup_swapped;

/* The driver's answer to a request for a function; NULL results are legal, and so is asking for the status alone. */
static CUresult answered(CUresult result, void **function)
{
    preload_saw_call();
    atomic_fetch_add_explicit(&lookup_requests, 1, memory_order_relaxed);
    void *wrapper = result == CUDA_SUCCESS && function ? driver_wrapper(*function) : NULL;
    if (wrapper) {
        *function = wrapper;
        atomic_fetch_add_explicit(&lookup_swapped, 1, memory_order_relaxed);
    }
    return result;
}

void lookup_report(void)
{
    preload_debug("%u requests through cuGetProcAddress, %u of them answered with a wrapper",
                  atomic_load(&lookup_requests), atomic_load(&lookup_swapped));
}

CUresult wrap_cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    return answered(driver.cuGetProcAddress(name, function, version, flags), function);
}

CUresult wrap_cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status)
{
    return answered(driver.cuGetProcAddress_v2(name, function, version, flags, status), function);
}

CUresult wrap_cuInit(unsigned int flags)
{
    preload_saw_call();
    return driver.cuInit(flags);
}
