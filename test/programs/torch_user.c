/* What a Python module does: memory and blocks of it, in a library that is not in the global scope. */
#include "driver.h"
#include "torch_hooks.h"

int use_torch(void)
{
    driver_ready();
    CUdeviceptr segment = take(2 * MIB);
    report_memory((void *)(uintptr_t)segment, 1536, 1536, 2 * MIB, (struct torch_device){1, 0});
    struct torch_reports reports = torch_reported();
    printf("reported: %u %lld\n", reports.taken, reports.bytes);
    report("torch_user");
    return 0;
}
