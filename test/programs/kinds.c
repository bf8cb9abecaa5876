/* One of each kind of memory, all released. */
#include "driver.h"

static void count(size_t bytes)
{
    done.allocations++;
    done.bytes += bytes;
}

int main(void)
{
    CUdeviceptr plain, pitched, managed;
    size_t pitch;
    void *host, *locked, *own = aligned_alloc(4096, 65536);
    CUarray flat, deep;
    CUmipmappedArray mipmap;
    CUDA_ARRAY_DESCRIPTOR flat_shape = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR deep_shape = {16, 16, 4, CU_AD_FORMAT_FLOAT, 1, 0};
    driver_ready();
    plain = take(MIB);
    CHECK(cu.cuMemAllocPitch(&pitched, &pitch, 1000, 64, 4));
    count(1000 * 64);
    CHECK(cu.cuMemAllocManaged(&managed, 2 * MIB, CU_MEM_ATTACH_GLOBAL));
    count(2 * MIB);
    CHECK(cu.cuMemHostAlloc(&host, 3 * MIB, CU_MEMHOSTALLOC_PORTABLE));
    count(3 * MIB);
    CHECK(cu.cuMemAllocHost(&locked, MIB));
    count(MIB);
    CHECK(cu.cuMemHostRegister(own, 65536, 0));
    count(65536);
    CHECK(cu.cuArrayCreate(&flat, &flat_shape));
    count(64 * 64 * 4);
    CHECK(cu.cuArray3DCreate(&deep, &deep_shape));
    count(16 * 16 * 4 * 4);
    CHECK(cu.cuMipmappedArrayCreate(&mipmap, &deep_shape, 3));
    count(16 * 16 * 4 * 4);

    CHECK(cu.cuMipmappedArrayDestroy(mipmap));
    CHECK(cu.cuArrayDestroy(deep));
    CHECK(cu.cuArrayDestroy(flat));
    CHECK(cu.cuMemHostUnregister(own));
    CHECK(cu.cuMemFreeHost(locked));
    CHECK(cu.cuMemFreeHost(host));
    done.frees += 6;
    give(managed);
    give(pitched);
    give(plain);
    free(own);
    report("kinds");
    return 0;
}
