/*
 * The object that stands where libcuda.so.1 is looked for: every export of the real one is a stub (make_stubs.awk) that
 * finds the real function at its first use.  It asks through the public dlsym, which is ours: so a function that is
 * recorded leads to its wrapper, and without the recorder this object is a plain pass-through.
 *
 * The real library is the one that CUDAMEM_DRIVER names, or what the dynamic linker would have found.  Uses the C
 * library and device/driver_find.
 */
#include "device/driver_find.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

extern void *stub_resolve(unsigned number);
extern const char *const stub_names[];
extern _Atomic(void *) stub_slots[];

static int no_driver(void)
{
    return 100; /* CUDA_ERROR_NO_DEVICE */
}

static int no_function(void)
{
    return 500; /* CUDA_ERROR_NOT_FOUND */
}

static void *forward_library(void)
{
    static _Atomic(void *) library;
    void *handle = atomic_load(&library);
    if (handle)
        return handle;
    const char *path = secure_getenv("CUDAMEM_DRIVER");
    if (path && path[0] == '/')
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    char found[PATH_MAX];
    if (!handle && driver_find(secure_getenv("LD_LIBRARY_PATH"), found, sizeof(found), NULL) == 0)
        handle = dlopen(found, RTLD_LAZY | RTLD_LOCAL);
    if (handle)
        atomic_store(&library, handle);
    return handle;
}

__attribute__((visibility("hidden"))) void *stub_resolve(unsigned number)
{
    void *library = forward_library();
    if (!library)
        return (void *)no_driver;
    void *target = dlsym(library, stub_names[number]);
    if (!target)
        return (void *)no_function;
    atomic_store_explicit(&stub_slots[number], target, memory_order_release);
    return target;
}
