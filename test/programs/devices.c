/* One allocation on every device. */
#include "driver.h"

int main(void)
{
    int count;
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    CHECK(cu.cuInit(0));
    CHECK(cu.cuDeviceGetCount(&count));
    for (int i = 0; i < count; i++) {
        driver_use(i);
        take((size_t)(i + 1) * MIB);
    }
    report("devices");
    return 0;
}
