/* What the programs torch_*.c share: PyTorch's two functions under their C++ names, and the stand-in's counts. */
#ifndef PROGRAMS_TORCH_HOOKS_H
#define PROGRAMS_TORCH_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct torch_device { /* c10::Device */
    int8_t type, index;
};

void report_memory(void *address, int64_t size, size_t allocated, size_t reserved, struct torch_device device)
    __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void report_oom(int64_t size, size_t allocated, size_t reserved, struct torch_device device)
    __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

struct torch_reports {
    unsigned taken, given, refused;
    long long bytes, last;
};
struct torch_reports torch_reported(void);
int use_torch(void); /* of torch_user.so */

#pragma GCC visibility pop

#endif
