/* meminfo: what cuMemGetInfo says on every device, before, between and after allocations. */
#include "driver_open.h"

static void say(void)
{
    size_t available = 1, total = 1;
    CHECK(DRIVER(cuMemGetInfo_v2)(&available, &total));
    printf("free %zu total %zu\n", available, total);
}

int main(void)
{
    int count = 0;
    CHECK(DRIVER(cuInit)(0));
    CHECK(DRIVER(cuDeviceGetCount)(&count));
    for (int device = 0; device < count; device++) {
        CUcontext context;
        CUdeviceptr first, second;
        CHECK(DRIVER(cuCtxCreate_v2)(&context, 0, device));
        say();
        CHECK(DRIVER(cuMemAlloc_v2)(&first, 10 << 20));
        CHECK(DRIVER(cuMemAlloc_v2)(&second, 1000));
        say();
        CHECK(DRIVER(cuMemFree_v2)(first));
        CHECK(DRIVER(cuMemFree_v2)(second));
        say();
        printf("null pointers: %d\n", (int)DRIVER(cuMemGetInfo_v2)(NULL, NULL));
        CHECK(DRIVER(cuCtxDestroy_v2)(context));
    }
    return 0;
}
