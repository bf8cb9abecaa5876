/* Linked with -lcuda: the functions are found by the dynamic linker. */
#include "three.h"

int main(void)
{
    cu.cuInit = cuInit;
    cu.cuDevicePrimaryCtxRetain = cuDevicePrimaryCtxRetain;
    cu.cuCtxSetCurrent = cuCtxSetCurrent;
    cu.cuMemAlloc = cuMemAlloc_v2;
    cu.cuMemFree = cuMemFree_v2;
    return three("driver_linked");
}
