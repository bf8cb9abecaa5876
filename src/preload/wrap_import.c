/*
 * Memory of other processes and other interfaces, mapped here: recorded as imported, because who made it counts it.
 */
#include "preload/caching.h"
#include "preload/capture.h"
#include "preload/hook.h"
#include "preload/wrappers.h"

#define CALLER __builtin_return_address(0)

/* How much a handle of another process opened: only the driver knows. */
static void imported(struct hook *hook, CUresult result, const CUdeviceptr *address)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    if (result != CUDA_SUCCESS || !address || !hook->records)
        return;
    if (capture_any() || !driver.cuMemGetAddressRange_v2 ||
        driver.cuMemGetAddressRange_v2(&base, &bytes, *address) != CUDA_SUCCESS)
        bytes = 0;
    hook_allocated(hook, RECORD_IMPORTED, *address, bytes, RECORD_UNKNOWN);
}

typedef __typeof__(cuIpcOpenMemHandle) ipc_open;

static CUresult open_handle(struct hook *hook, ipc_open *open, CUdeviceptr *address, const CUipcMemHandle *handle,
                            unsigned flags)
{
    CUresult result;
    uint64_t size = 0;
    if (!caching_import(address, handle, flags, &size, &result)) {
        result = open(address, *handle, flags);
        imported(hook, result, address);
    } else if (result == CUDA_SUCCESS) {
        hook_allocated(hook, RECORD_IMPORTED, *address, size, RECORD_UNKNOWN);
    }
    hook_end(hook);
    return result;
}

CUresult wrap_cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuIpcOpenMemHandle, CALLER);
    return open_handle(&hook, driver.cuIpcOpenMemHandle, address, &handle, flags);
}

CUresult wrap_cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuIpcOpenMemHandle_v2, CALLER);
    return open_handle(&hook, driver.cuIpcOpenMemHandle_v2, address, &handle, flags);
}

CUresult wrap_cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuIpcCloseMemHandle, CALLER);
    hook_free(&hook, address);
    CUresult result = driver.cuIpcCloseMemHandle(caching_import_ends(address));
    hook_free_result(&hook, result);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                              const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *part)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuExternalMemoryGetMappedBuffer, CALLER);
    CUresult result = driver.cuExternalMemoryGetMappedBuffer(address, memory, part);
    if (result == CUDA_SUCCESS && address && part)
        hook_allocated(&hook, RECORD_IMPORTED, *address, part->size, RECORD_UNKNOWN);
    hook_end(&hook);
    return result;
}

CUresult wrap_cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    struct hook hook;
    hook_begin(&hook, CALL_cuMemPoolImportPointer, CALLER);
    CUresult result = driver.cuMemPoolImportPointer(address, pool, data);
    imported(&hook, result, address);
    hook_end(&hook);
    return result;
}
