/* N allocations, of which only the newest few live. */
#include "driver.h"

static NOINLINE CUdeviceptr loop_take(size_t bytes)
{
    return take(bytes);
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1500;
    size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : MIB;
    unsigned long most = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
    if (most == 0)
        most = 1;
    CUdeviceptr *live = calloc(most, sizeof *live);
    if (!live)
        return 97;
    driver_ready();
    for (unsigned long i = 0; i < count; i++) {
        if (live[i % most])
            give(live[i % most]);
        live[i % most] = loop_take(bytes);
    }
    for (unsigned long i = count; i < count + most; i++) /* the oldest first */
        if (live[i % most])
            give(live[i % most]);
    free(live);
#ifdef SILENT
    return 0;
#else
    report("loop");
    return 0;
#endif
}
