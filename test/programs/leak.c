/* Three of five allocations are never freed. */
#include "driver.h"

static NOINLINE void leak_some(CUdeviceptr addresses[5])
{
    for (int i = 0; i < 5; i++)
        addresses[i] = take(3 * MIB);
}

int main(void)
{
    CUdeviceptr addresses[5];
    driver_ready();
    leak_some(addresses);
    give(addresses[0]);
    give(addresses[3]);
    report("leak");
    return 0;
}
