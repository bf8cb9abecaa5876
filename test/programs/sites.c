/* Allocated in one function, freed in another. */
#include "driver.h"

static NOINLINE CUdeviceptr site_alloc(void)
{
    return take(3 * MIB);
}

static NOINLINE void site_free(CUdeviceptr address)
{
    give(address);
}

int main(void)
{
    driver_ready();
    site_free(site_alloc());
    report("sites");
    return 0;
}
