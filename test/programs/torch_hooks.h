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

struct torch_stream { /* c10::cuda::CUDAStream */
    struct torch_device device;
    int64_t id;
};
struct torch_stream current_stream(int8_t device) __asm__("_ZN3c104cuda20getCurrentCUDAStreamEa");
void *stream_handle(const struct torch_stream *stream) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
void torch_use_stream(long long stream); /* what current_stream() leads to, in this thread */

struct torch_reports {
    unsigned taken, given, refused;
    long long bytes, last;
};
struct torch_reports torch_reported(void);
int use_torch(void); /* of torch_user.so */

#pragma GCC visibility pop

#endif
