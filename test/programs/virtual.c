/* Virtual memory: 64 MiB reserved, two mappings of 20 MiB, one of them taken back. */
#include "driver.h"

#define PART (20 * MIB)

int main(void)
{
    CUdeviceptr base;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    driver_ready();
    CHECK(cu.cuMemAddressReserve(&base, 64 * MIB, 0, 0, 0));
    for (size_t i = 0; i < 2; i++) {
        CUmemGenericAllocationHandle handle;
        CHECK(cu.cuMemCreate(&handle, PART, &properties, 0));
        CHECK(cu.cuMemMap(base + i * PART, PART, 0, handle, 0));
        CHECK(cu.cuMemRelease(handle));
        done.allocations++;
        done.bytes += PART;
    }
    CHECK(cu.cuMemSetAccess(base, 2 * PART, &access, 1));
    CHECK(cu.cuMemUnmap(base + PART, PART));
    done.frees++;
    report("virtual");
    return 0;
}
