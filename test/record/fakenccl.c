/* libfakenccl.so: a library that takes device memory for itself. */
#include "driver_open.h"

void fakenccl_begin(void);

__attribute__((noinline)) static void fakenccl_take_buffers(void)
{
    CUdeviceptr address;
    CHECK(DRIVER(cuMemAlloc_v2)(&address, (size_t)300 << 20));
}

__attribute__((visibility("default"))) void fakenccl_begin(void)
{
    fakenccl_take_buffers();
}
