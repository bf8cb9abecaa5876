/* contexts: memory that goes with its context: two blocks of a context of its own, three of the primary one. */
#include "driver_open.h"

int main(void)
{
    CUcontext own, primary;
    CUdeviceptr address;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR shape = {32, 32, CU_AD_FORMAT_FLOAT, 1};
    CHECK(DRIVER(cuInit)(0));
    CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&primary, 0));
    CHECK(DRIVER(cuCtxCreate_v2)(&own, 0, 0));
    CHECK(DRIVER(cuMemAlloc_v2)(&address, 1 << 20));
    CHECK(DRIVER(cuMemAllocManaged)(&address, 2 << 20, CU_MEM_ATTACH_GLOBAL));
    CHECK(DRIVER(cuCtxSetCurrent)(primary));
    CHECK(DRIVER(cuMemAlloc_v2)(&address, 3 << 20));
    CHECK(DRIVER(cuMemAllocManaged)(&address, 4 << 20, CU_MEM_ATTACH_GLOBAL));
    CHECK(DRIVER(cuArrayCreate_v2)(&array, &shape));
    CHECK(DRIVER(cuCtxDestroy_v2)(own));
    CHECK(DRIVER(cuDevicePrimaryCtxReset_v2)(0));
    printf("done\n");
    return 0;
}
