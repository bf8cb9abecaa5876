/* A plugin with a CUDA runtime of its own, statically linked. */
#include <stdio.h>

#include "sim/cudart.h"

__attribute__((visibility("default"))) int plugin_run(void);

int plugin_run(void)
{
    void *first = NULL, *second = NULL;
    if (cudaMalloc(&first, 4u << 20) || cudaMalloc(&second, 5u << 20) || cudaFree(first))
        return 1;
    printf("plugin_host: allocations=2 frees=1 bytes=%u\n", 9u << 20);
    fflush(stdout);
    return 0;
}
