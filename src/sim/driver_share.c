/*
 * The simulated driver: memory shared with other processes and interfaces.
 * May use: the simulated device.
 *
 * Another process has other devices here, so what it exports opens as memory
 * of the same size with contents of its own; handles carry size and device.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/driver.h"

#define IPC_MARK 0x306d69732d616475ull

struct ipc {
    uint64_t mark, pid, address, bytes, device;
};

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    struct sim_range range;
    ENTER(cuIpcGetMemHandle, NEED_CONTEXT);
    if (!handle || !sim_find(driver.sim, address, &range) || range.kind != SIM_PLAIN)
        return CUDA_ERROR_INVALID_VALUE;
    struct ipc ipc = {IPC_MARK, (uint64_t)getpid(), range.address, range.bytes, range.device};
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &ipc, sizeof ipc);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    struct ipc ipc;
    uint64_t where;
    ENTER(cuIpcOpenMemHandle_v2, NEED_CONTEXT);
    memcpy(&ipc, handle.reserved, sizeof ipc);
    if (!address || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || ipc.mark != IPC_MARK)
        return CUDA_ERROR_INVALID_VALUE;
    if (ipc.pid == (uint64_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* one's own memory is not opened */
    CUcontext context = driver_current();
    CUresult result = sim_host_get(driver.sim, ipc.bytes, SIM_IMPORTED, context->device, context, 0, &where);
    if (!result)
        *address = where;
    return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct sim_range range;
    ENTER(cuIpcCloseMemHandle, NEED_CONTEXT);
    if (!sim_find(driver.sim, address, &range) || range.kind != SIM_IMPORTED || range.address != address)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_release(driver.sim, address);
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    ENTER(cuIpcGetEventHandle, NEED_CONTEXT);
    if (!handle || !event || event->magic != MAGIC_EVENT || !(event->flags & CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_VALUE;
    memset(handle, 0, sizeof *handle);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    (void)handle;
    return cuEventCreate(event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
}

/* Handles of physical memory as file descriptors: the descriptor carries what is needed to make its like. */
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType type, unsigned long long flags)
{
    unsigned device;
    uint64_t bytes;
    ENTER(cuMemExportToShareableHandle, NEED_INIT);
    if (!shareable || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = sim_handle(driver.sim, handle, &device, &bytes);
    if (result)
        return result;
    struct ipc ipc = {IPC_MARK, (uint64_t)getpid(), 0, bytes, device};
    int fd = memfd_create("cudamem-sim", MFD_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (pwrite(fd, &ipc, sizeof ipc, 0) != (ssize_t)sizeof ipc) {
        close(fd);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *(int *)shareable = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
    CUmemAllocationHandleType type)
{
    struct ipc ipc;
    uint64_t made;
    ENTER(cuMemImportFromShareableHandle, NEED_INIT);
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (pread((int)(intptr_t)shareable, &ipc, sizeof ipc, 0) != (ssize_t)sizeof ipc || ipc.mark != IPC_MARK ||
        ipc.device >= SIM_DEVICES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_create(driver.sim, (unsigned)ipc.device, ipc.bytes, &made);
    if (!result)
        *handle = made;
    return result;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t size, CUmemRangeHandleType type,
    unsigned long long flags)
{
    (void)handle;
    (void)address;
    (void)size;
    (void)type;
    (void)flags;
    ENTER(cuMemGetHandleForAddressRange, NEED_INIT);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* External memory: a descriptor, mapped for real. */

struct CUextMemory_st {
    enum magic magic;
    int fd;
    uint64_t bytes;
};

CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *what)
{
    ENTER(cuImportExternalMemory, NEED_CONTEXT);
    if (!memory || !what || what->size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (what->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUexternalMemory fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *fresh = (struct CUextMemory_st){MAGIC_EXTERNAL, what->handle.fd, what->size}; /* the descriptor is now ours */
    *memory = fresh;
    return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *part)
{
    ENTER(cuExternalMemoryGetMappedBuffer, NEED_CONTEXT);
    if (!memory || memory->magic != MAGIC_EXTERNAL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!address || !part || part->size == 0 || part->flags || part->offset > memory->bytes ||
        part->size > memory->bytes - part->offset)
        return CUDA_ERROR_INVALID_VALUE;
    void *data = mmap(NULL, part->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, (off_t)part->offset);
    if (data == MAP_FAILED)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext context = driver_current();
    CUresult result = sim_host_add(driver.sim, (uint64_t)(uintptr_t)data, part->size, SIM_IMPORTED, context->device,
        context, 1);
    if (result)
        munmap(data, part->size);
    else
        *address = (CUdeviceptr)(uintptr_t)data;
    return result;
}

CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array, CUexternalMemory memory,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *part)
{
    ENTER(cuExternalMemoryGetMappedMipmappedArray, NEED_CONTEXT);
    if (!memory || memory->magic != MAGIC_EXTERNAL)
        return CUDA_ERROR_INVALID_HANDLE;
    return part ? cuMipmappedArrayCreate(array, &part->arrayDesc, part->numLevels) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    ENTER(cuDestroyExternalMemory, NEED_CONTEXT);
    if (!memory || memory->magic != MAGIC_EXTERNAL)
        return CUDA_ERROR_INVALID_HANDLE;
    close(memory->fd);
    memory->magic = 0;
    free(memory);
    return CUDA_SUCCESS;
}

/* Multicast objects: no simulated device has them. */

#define NO_MULTICAST(name, ...) \
    CUresult name(__VA_ARGS__) \
    { \
        ENTER(name, NEED_INIT); \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }
#define UNUSED __attribute__((unused))
NO_MULTICAST(cuMulticastCreate, UNUSED CUmemGenericAllocationHandle *handle, UNUSED const CUmulticastObjectProp *p)
NO_MULTICAST(cuMulticastAddDevice, UNUSED CUmemGenericAllocationHandle handle, UNUSED CUdevice device)
NO_MULTICAST(cuMulticastBindMem, UNUSED CUmemGenericAllocationHandle multicast, UNUSED size_t offset,
    UNUSED CUmemGenericAllocationHandle memory, UNUSED size_t memory_offset, UNUSED size_t bytes,
    UNUSED unsigned long long flags)
NO_MULTICAST(cuMulticastBindAddr, UNUSED CUmemGenericAllocationHandle multicast, UNUSED size_t offset,
    UNUSED CUdeviceptr address, UNUSED size_t bytes, UNUSED unsigned long long flags)
NO_MULTICAST(cuMulticastUnbind, UNUSED CUmemGenericAllocationHandle multicast, UNUSED CUdevice device,
    UNUSED size_t offset, UNUSED size_t bytes)
NO_MULTICAST(cuMulticastGetGranularity, UNUSED size_t *granularity, UNUSED const CUmulticastObjectProp *properties,
    UNUSED CUmulticastGranularity_flags option)
