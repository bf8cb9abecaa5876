/*
 * PyTorch's blocks: its caching allocator reports each one that it hands out or takes back to a profiler, through two
 * functions of libc10.so.  Ours come first, record, and call the next ones.  May use record, the hooks and the linker.
 *
 * They run with the allocator's lock held, mostly without Python's: nothing is taken or looked up here that another
 * thread could hold while it waits for that lock.  The size is the block's; the one asked for, and when a free that
 * waits for another stream ends, are not told.  The stream is the thread's current one, for which PyTorch has functions.
 */
#include "preload/caching.h"
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

/* c10::cuda::CUDAStream, which is returned in two registers. */
struct torch_stream {
    struct torch_device device;
    int64_t id;
};
typedef struct torch_stream current_stream(int8_t device);
typedef void *stream_handle(const struct torch_stream *stream);

struct stream_functions {
    current_stream *current;
    stream_handle *handle;
};

/* Where PyTorch keeps the thread's current stream: looked for at the first block, when its libraries are all there. */
static const struct stream_functions *find_streams(void)
{
    static struct stream_functions found;
    static atomic_int state; /* 0 unknown, 1 being looked for, 2 there, 3 not there */
    int before = 0;
    if (atomic_load_explicit(&state, memory_order_acquire) == 0 && atomic_compare_exchange_strong(&state, &before, 1)) {
        found.current = (current_stream *)linker_next_definition("_ZN3c104cuda20getCurrentCUDAStreamEa");
        found.handle = (stream_handle *)linker_next_definition("_ZNK3c104cuda10CUDAStream6streamEv");
        atomic_store_explicit(&state, found.current && found.handle ? 2 : 3, memory_order_release);
    }
    return atomic_load_explicit(&state, memory_order_acquire) == 2 ? &found : NULL;
}

/* The stream that a block is taken for; false: not known. */
static bool find_stream(int8_t device, int64_t *stream)
{
    const struct stream_functions *functions = find_streams();
    if (!functions)
        return false;
    struct torch_stream current = functions->current(device);
    *stream = (int64_t)(intptr_t)functions->handle(&current);
    return true;
}

static bool is_recorded(struct torch_device device)
{
    return device.type == TORCH_CUDA && device.index >= 0 && !caching_is_on(); /* else its segments are blocks of ours */
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *address, int64_t size, size_t allocated,
                                                           size_t reserved, struct torch_device device)
{
    static _Atomic(void *) known;
    const void *caller = __builtin_return_address(0);
    int64_t stream = 0;
    if (is_recorded(device) && size > 0)
        hook_block_allocated(caller, (uint16_t)device.index, (uintptr_t)address, (uint64_t)size,
                             find_stream(device.index, &stream) ? &stream : NULL);
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
