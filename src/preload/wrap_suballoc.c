/*
 * Pieces of memory that a program hands out itself and tells of by libcudamem's cudamem_suballoc() and cudamem_subfree()
 * (include/cudamem/suballoc.h).  Ours come first, record them as blocks, and call the library's, if it is there: what is
 * recorded here may lie in memory that it knows nothing of.  May use record, the hooks and the linker.
 */
#include "preload/caching.h"
#include "preload/driver.h"
#include "preload/hook.h"
#include "preload/linker.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct cudamem_error;
typedef int suballoc(const void *pointer, size_t size, int device, void *stream, struct cudamem_error *error);
typedef int subfree(const void *pointer, struct cudamem_error *error);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED suballoc cudamem_suballoc;
EXPORTED subfree cudamem_subfree;

/* The next definition, looked for until there is one: the library may be loaded later. */
static void *next_of(_Atomic(void *) *known, const char *name)
{
    void *next = atomic_load_explicit(known, memory_order_acquire);
    if (!next && (next = linker_next_definition(name)))
        atomic_store_explicit(known, next, memory_order_release);
    return next;
}

static int current_device(void)
{
    CUdevice device = 0;
    return driver.cuCtxGetDevice && !driver.cuCtxGetDevice(&device) ? (int)device : 0;
}

int cudamem_suballoc(const void *pointer, size_t size, int device, void *stream, struct cudamem_error *error)
{
    static _Atomic(void *) known;
    const int64_t handle = (int64_t)(intptr_t)stream;
    int ordinal = device == -1 ? current_device() : device;
    bool is_recorded = pointer && size && ordinal >= 0 && !caching_is_on(); /* else it lies in a block of ours */
    if (is_recorded)
        hook_block_allocated(__builtin_return_address(0), (uint16_t)ordinal, (uintptr_t)pointer, size, &handle);
    suballoc *next = (suballoc *)next_of(&known, "cudamem_suballoc");
    int status = next ? next(pointer, size, device, stream, error) : 0;
    return is_recorded ? 0 : status;
}

int cudamem_subfree(const void *pointer, struct cudamem_error *error)
{
    static _Atomic(void *) known;
    bool is_recorded = pointer && !caching_is_on();
    if (is_recorded)
        hook_block_freed(__builtin_return_address(0), (uintptr_t)pointer);
    subfree *next = (subfree *)next_of(&known, "cudamem_subfree");
    int status = next ? next(pointer, error) : 0;
    return is_recorded ? 0 : status;
}
