/*
 * Modules and libraries of code.  Uses the driver table, places, measures and hooks.
 */
#include "preload/module.h"

#include "preload/places.h"
#include "preload/preload.h"
#include "preload/spin.h"
#include "preload/unplaced.h"
#include "preload/wrappers.h"

#include <stdatomic.h>

#define CALLER __builtin_return_address(0)
#define MODULE_KERNELS 32768u /* launched ones that are remembered */
#define MODULE_LOOK 16u       /* places that one may be in */
#define MODULE_UNLOADING (UINT64_C(1) << 63) /* of an owner: being unloaded by one thread */

static struct places module_memory; /* address -> other: the module or library that it goes with */
static struct places module_of;     /* a library's module, a kernel or a function -> other: what it was loaded with */
static uint64_t module_serial;
static atomic_flag module_lock = ATOMIC_FLAG_INIT;

void module_after_fork(void)
{
    spin_unlock(&module_lock);
}

static uint64_t owner_of(uint64_t handle)
{
    struct place *part = places_find(&module_of, handle);
    return part ? part->other : handle;
}

/* One that was loaded for itself, though another thing may have had its number. */
static void is_whole(const void *handle)
{
    spin_lock(&module_lock);
    places_remove(&module_of, (uintptr_t)handle);
    spin_unlock(&module_lock);
}

static void is_part(const void *handle, const void *of)
{
    spin_lock(&module_lock);
    uint64_t owner = owner_of((uintptr_t)of);
    struct place *part = places_add(&module_of, (uintptr_t)handle);
    if (part)
        part->other = owner;
    spin_unlock(&module_lock);
}

void module_begin(struct hook *hook, struct measure *before, enum driver_call call, const void *caller)
{
    hook_begin(hook, call, caller);
    *before = hook->records ? measure_begin() : (struct measure){0};
}

/* The call is done: what grew belongs to `handle`. */
CUresult module_grown(struct hook *hook, const struct measure *before, CUresult result, const void *handle)
{
    uint64_t size = measure_end(before);
    if (result == CUDA_SUCCESS && size && handle && hook->records) {
        uint64_t address = unplaced_address(size);
        spin_lock(&module_lock);
        struct place *memory = places_add(&module_memory, address);
        if (memory)
            memory->other = owner_of((uintptr_t)handle);
        spin_unlock(&module_lock);
        hook_allocated(hook, RECORD_MODULE, address, size, RECORD_UNKNOWN);
    } else if (result != CUDA_SUCCESS) {
        hook_failed(hook, result, RECORD_MODULE, 0);
    }
    hook_end(hook);
    return result;
}

static CUresult loaded(struct hook *hook, const struct measure *before, CUresult result, void *const *handle)
{
    const void *made = result == CUDA_SUCCESS && handle ? *handle : NULL;
    if (made && hook->records)
        is_whole(made);
    return module_grown(hook, before, result, made);
}

#define LOADED(name, call, handle) \
    struct hook hook; \
    struct measure before; \
    module_begin(&hook, &before, CALL_##name, CALLER); \
    CUresult result = driver.name call; \
    return loaded(&hook, &before, result, (void *const *)(handle))

CUresult wrap_cuModuleLoad(CUmodule *module, const char *path)
{
    LOADED(cuModuleLoad, (module, path), module);
}

CUresult wrap_cuModuleLoadData(CUmodule *module, const void *image)
{
    LOADED(cuModuleLoadData, (module, image), module);
}

CUresult wrap_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                 void **values)
{
    LOADED(cuModuleLoadDataEx, (module, image, count, options, values), module);
}

CUresult wrap_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    LOADED(cuModuleLoadFatBinary, (module, image), module);
}

CUresult wrap_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
                                unsigned int count, CUlibraryOption *library_options, void **library_values,
                                unsigned int library_count)
{
    LOADED(cuLibraryLoadData, (library, image, options, values, count, library_options, library_values, library_count),
           library);
}

CUresult wrap_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
                                    unsigned int count, CUlibraryOption *library_options, void **library_values,
                                    unsigned int library_count)
{
    LOADED(cuLibraryLoadFromFile,
           (library, path, options, values, count, library_options, library_values, library_count), library);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static CUresult part_of(struct hook *hook, const struct measure *before, CUresult result, void *const *part,
                        const void *whole)
{
    if (result == CUDA_SUCCESS && part && *part && hook->records)
        is_part(*part, whole);
    return module_grown(hook, before, result, whole);
}

#define PART(name, call, part, whole) \
    struct hook hook; \
    struct measure before; \
    module_begin(&hook, &before, CALL_##name, CALLER); \
    CUresult result = driver.name call; \
    return part_of(&hook, &before, result, (void *const *)(part), whole)

CUresult wrap_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    PART(cuModuleGetFunction, (function, module, name), function, module);
}

CUresult wrap_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    PART(cuModuleGetGlobal_v2, (address, bytes, module, name), NULL, module);
}

CUresult wrap_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    PART(cuLibraryGetModule, (module, library), module, library);
}

/* Loads nothing yet. */
CUresult wrap_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    preload_saw_call();
    CUresult result = driver.cuLibraryGetKernel(kernel, library, name);
    if (result == CUDA_SUCCESS && kernel && *kernel && preload_recording())
        is_part(*kernel, library);
    return result;
}

CUresult wrap_cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    PART(cuLibraryGetGlobal, (address, bytes, library, name), NULL, library);
}

CUresult wrap_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    PART(cuKernelGetFunction, (function, kernel), function, kernel);
}

CUresult wrap_cuFuncLoad(CUfunction function)
{
    PART(cuFuncLoad, (function), NULL, function);
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static _Atomic(uintptr_t) module_launched[MODULE_KERNELS];

static size_t home_of(const void *function)
{
    return (size_t)(((uintptr_t)function * 0x9e3779b97f4a7c15u) >> 32) % MODULE_KERNELS;
}

bool module_is_launched(const void *function)
{
    size_t at = home_of(function);
    for (unsigned i = 0; i < MODULE_LOOK; i++, at = (at + 1) % MODULE_KERNELS) {
        uintptr_t here = atomic_load_explicit(&module_launched[at], memory_order_relaxed);
        if (here == (uintptr_t)function)
            return true;
        if (!here)
            return false;
    }
    return true;
}

bool module_launches(const void *function)
{
    size_t at = home_of(function);
    for (unsigned i = 0; i < MODULE_LOOK; i++, at = (at + 1) % MODULE_KERNELS) {
        uintptr_t here = 0;
        if (atomic_compare_exchange_strong(&module_launched[at], &here, (uintptr_t)function))
            return true;
        if (here == (uintptr_t)function)
            return false;
    }
    return false;
}

/* Kernels of what was unloaded may come again as others: they are found out about anew, all of them. */
static void forget_launches(void)
{
    for (size_t i = 0; i < MODULE_KERNELS; i++)
        if (atomic_load_explicit(&module_launched[i], memory_order_relaxed))
            atomic_store_explicit(&module_launched[i], 0, memory_order_relaxed);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* All memory of one owner goes to another; and one piece of it, taken out of the table. */
static void hand_over(uint64_t from, uint64_t to)
{
    size_t at = 0;
    spin_lock(&module_lock);
    for (struct place *memory; (memory = places_next(&module_memory, &at));)
        if (memory->other == from)
            memory->other = to;
    spin_unlock(&module_lock);
}

static uint64_t take(uint64_t owner)
{
    uint64_t address = 0;
    size_t at = 0;
    spin_lock(&module_lock);
    for (struct place *memory; !address && (memory = places_next(&module_memory, &at));)
        if (memory->other == owner)
            address = memory->key;
    places_remove(&module_memory, address);
    spin_unlock(&module_lock);
    return address;
}

/* The handle is somebody else's as soon as the driver has it back: its memory gets another owner first. */
static uint64_t will_unload(const void *handle)
{
    spin_lock(&module_lock);
    uint64_t token = MODULE_UNLOADING | ++module_serial;
    spin_unlock(&module_lock);
    hand_over((uintptr_t)handle, token);
    return token;
}

static CUresult unloaded(struct hook *hook, CUresult result, const void *handle, uint64_t token)
{
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED)
        hand_over(token, (uintptr_t)handle);
    else
        for (uint64_t address; (address = take(token));)
            hook_gone(hook, address);
    forget_launches();
    hook_end(hook);
    return result;
}

CUresult wrap_cuModuleUnload(CUmodule module)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuModuleUnload, CALLER);
    uint64_t token = will_unload(module);
    return unloaded(&hook, driver.cuModuleUnload(module), module, token);
}

CUresult wrap_cuLibraryUnload(CUlibrary library)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuLibraryUnload, CALLER);
    uint64_t token = will_unload(library);
    return unloaded(&hook, driver.cuLibraryUnload(library), library, token);
}
