/* Stands for PyTorch's libc10.so: the two functions that its allocator reports to, counting how often they came. */
#include "torch_hooks.h"

static struct torch_reports reports;

void report_memory(void *address, int64_t size, size_t allocated, size_t reserved, struct torch_device device)
{
    (void)address;
    reports.taken += size > 0;
    reports.given += size < 0;
    reports.bytes += size;
    reports.last = (long long)(allocated + reserved) + device.type * 100 + device.index;
}

void report_oom(int64_t size, size_t allocated, size_t reserved, struct torch_device device)
{
    (void)size, (void)allocated, (void)reserved, (void)device;
    reports.refused++;
}

struct torch_reports torch_reported(void)
{
    return reports;
}

/* PyTorch's own look-up of the thread's current stream. */
static _Thread_local long long current;

void torch_use_stream(long long stream)
{
    current = stream;
}

struct torch_stream current_stream(int8_t device)
{
    return (struct torch_stream){{1, device}, current * 2};
}

void *stream_handle(const struct torch_stream *stream)
{
    return (void *)(intptr_t)(stream->id / 2);
}
