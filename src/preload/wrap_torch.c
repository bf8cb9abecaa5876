/*
 * PyTorch's blocks: its caching allocator reports each one that it hands out or takes back to a profiler, through two
 * functions of libc10.so.  Ours come first, record, and call the next ones.  May use record, the hooks and the linker.
 *
 * They run with the allocator's lock held, mostly without Python's: nothing is taken or looked up here that another
 * thread could hold while it waits for that lock.  The size is the block's; the one asked for, the stream, and when a
 * free that waits for another stream ends, are not told.
 */
#include "preload/hook.h"
#include "preload/linker.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TORCH_CUDA 1 /* of c10::DeviceType */

struct torch_device { /* c10::Device, passed in one register */
    int8_t type, index;
};

typedef void report_memory(void *address, int64_t size, size_t allocated, size_t reserved, struct torch_device device);
typedef void report_oom(int64_t size, size_t allocated, size_t reserved, struct torch_device device);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED report_memory _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE;
EXPORTED report_oom _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE;

/* The next definition, found at the first call; the library that has it is one that is never unloaded. */
static void *next_of(_Atomic(void *) *known, const char *name)
{
    void *next = atomic_load_explicit(known, memory_order_acquire);
    if (!next && (next = linker_next_definition(name)))
        atomic_store_explicit(known, next, memory_order_release);
    return next;
}

static bool is_recorded(struct torch_device device)
{
    return device.type == TORCH_CUDA && device.index >= 0;
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *address, int64_t size, size_t allocated,
                                                           size_t reserved, struct torch_device device)
{
    static _Atomic(void *) known;
    const void *caller = __builtin_return_address(0);
    if (is_recorded(device) && size > 0)
        hook_block_allocated(caller, (uint16_t)device.index, (uintptr_t)address, (uint64_t)size);
    else if (is_recorded(device) && size < 0)
        hook_block_freed(caller, (uintptr_t)address);
    report_memory *next = (report_memory *)next_of(&known, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    if (next)
        next(address, size, allocated, reserved, device);
}

void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t size, size_t allocated, size_t reserved,
                                                         struct torch_device device)
{
    static _Atomic(void *) known;
    if (is_recorded(device) && size > 0)
        hook_block_refused(__builtin_return_address(0), (uint16_t)device.index, (uint64_t)size);
    report_oom *next = (report_oom *)next_of(&known, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
    if (next)
        next(size, allocated, reserved, device);
}
