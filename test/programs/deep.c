/* One allocation, many calls deep. */
#include "driver.h"

static CUdeviceptr recurse_odd(unsigned depth);

static NOINLINE CUdeviceptr recurse_even(unsigned depth)
{
    return depth ? recurse_odd(depth - 1) : take(MIB);
}

static NOINLINE CUdeviceptr recurse_odd(unsigned depth)
{
    return depth ? recurse_even(depth - 1) : take(MIB);
}

int main(int argc, char **argv)
{
    unsigned depth = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 40;
    driver_ready();
    give(recurse_even(depth));
    report("deep");
    return 0;
}
