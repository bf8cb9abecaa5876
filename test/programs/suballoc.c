/* Pools for itself: one segment from the driver, pieces told of where somebody listens. */
#include "driver.h"

__attribute__((weak)) int cudamem_suballoc(const void *pointer, size_t size, int device, void *stream, void *error);
__attribute__((weak)) int cudamem_subfree(const void *pointer, void *error);

static NOINLINE void piece_taken(CUdeviceptr address, size_t size)
{
    if (cudamem_suballoc && cudamem_suballoc((void *)(uintptr_t)address, size, -1, NULL, NULL))
        printf("a piece was refused\n");
}

static NOINLINE void piece_given(CUdeviceptr address)
{
    if (cudamem_subfree && cudamem_subfree((void *)(uintptr_t)address, NULL))
        printf("no such piece\n");
}

int main(void)
{
    driver_ready();
    CUdeviceptr pool = take(8 * MIB);
    piece_taken(pool, MIB);
    piece_taken(pool + 4 * MIB, 2 * MIB);
    piece_given(pool);
    piece_taken(pool + MIB, MIB / 2);
    report("suballoc");
    return 0;
}
