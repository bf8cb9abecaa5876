/* Memory in stream order: the device's pool, and one of our own. */
#include "driver.h"

int main(void)
{
    CUstream streams[2];
    CUmemoryPool pool;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUdeviceptr addresses[4];
    driver_ready();
    CHECK(cu.cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
    CHECK(cu.cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
    CHECK(cu.cuMemPoolCreate(&pool, &properties));
    for (size_t i = 0; i < 3; i++)
        CHECK(cu.cuMemAllocAsync(&addresses[i], MIB, streams[i % 2]));
    CHECK(cu.cuMemAllocFromPoolAsync(&addresses[3], MIB, pool, streams[1]));
    done.allocations = 4;
    done.bytes = 4 * MIB;
    for (size_t i = 4; i-- > 0;)
        CHECK(cu.cuMemFreeAsync(addresses[i], streams[i % 2]));
    done.frees = 4;
    CHECK(cu.cuStreamSynchronize(streams[0]));
    CHECK(cu.cuStreamSynchronize(streams[1]));
    CHECK(cu.cuMemPoolTrimTo(pool, 0));
    CHECK(cu.cuMemPoolDestroy(pool));
    CHECK(cu.cuStreamDestroy(streams[0]));
    CHECK(cu.cuStreamDestroy(streams[1]));
    report("async");
    return 0;
}
