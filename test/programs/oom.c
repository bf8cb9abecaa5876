/* A request that is refused, and that the program shrugs off. */
#include "driver.h"

static NOINLINE int ask_too_much(size_t bytes)
{
    CUdeviceptr address = 0;
    int result = (int)cu.cuMemAlloc(&address, bytes);
    if (result == 0) {
        done.allocations++;
        done.bytes += bytes;
        give(address);
    }
    return result;
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 5 * 1024 * MIB;
    driver_ready();
    CUdeviceptr address = take(2 * MIB);
    printf("request of %zu: result %d\n", bytes, ask_too_much(bytes));
    give(address);
    report("oom");
    return 0;
}
