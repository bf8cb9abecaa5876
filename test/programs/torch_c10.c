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
