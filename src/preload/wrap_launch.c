/*
 * Launches of kernels: the first one of each may load its code, all others are passed through at once.
 */
#include "preload/capture.h"
#include "preload/module.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#define CALLER __builtin_return_address(0)

/* Not in a capture: nothing is launched then. */
static bool is_first(const void *function)
{
    return !module_is_launched(function) && !capture_any() && preload_recording() && module_launches(function);
}

#define LAUNCH(name, function, call) \
    if (__builtin_expect(!is_first(function), 1)) \
        return driver.name call; \
    struct hook hook; \
    struct measure before; \
    module_begin(&hook, &before, CALL_##name, CALLER); \
    return module_grown(&hook, &before, driver.name call, function)

CUresult wrap_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                             unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                             CUstream stream, void **parameters, void **extra)
{
    LAUNCH(cuLaunchKernel, function, (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                                      parameters, extra));
}

CUresult wrap_cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                  unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                  unsigned int shared, CUstream stream, void **parameters, void **extra)
{
    LAUNCH(cuLaunchKernel_ptsz, function, (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                                           parameters, extra));
}

CUresult wrap_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    LAUNCH(cuLaunchKernelEx, function, (config, function, parameters, extra));
}

CUresult wrap_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    LAUNCH(cuLaunchKernelEx_ptsz, function, (config, function, parameters, extra));
}

CUresult wrap_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared, CUstream stream, void **parameters)
{
    LAUNCH(cuLaunchCooperativeKernel, function, (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                                 stream, parameters));
}

CUresult wrap_cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                             unsigned int block_z, unsigned int shared, CUstream stream,
                                             void **parameters)
{
    LAUNCH(cuLaunchCooperativeKernel_ptsz, function, (function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                      shared, stream, parameters));
}
