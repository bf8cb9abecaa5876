/* The same little work for every way of finding the driver: 1, 2 and 3 MiB, the first two given back. */
#ifndef PROGRAMS_THREE_H
#define PROGRAMS_THREE_H

#include "driver.h"

static NOINLINE void allocate_three(CUdeviceptr addresses[3])
{
    for (size_t i = 0; i < 3; i++)
        addresses[i] = take((i + 1) * MIB);
}

static NOINLINE void release_two(const CUdeviceptr addresses[3])
{
    give(addresses[0]);
    give(addresses[1]);
}

static NOINLINE int three(const char *name)
{
    CUdeviceptr addresses[3];
    driver_use(0);
    allocate_three(addresses);
    release_two(addresses);
    report(name);
    return 0;
}

#endif
