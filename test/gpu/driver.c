/*
 * driver: memory by the driver interface alone, linked with -lcuda or (with -DBY_NAME) through cuGetProcAddress.  Prints
 * what it did, a line a call, for the checks: "alloc BYTES" and "free BYTES".
 */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>

static void check(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        printf("%s: %d\n", what, (int)result);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static void plain(void)
{
    CUdeviceptr pointers[3];
    for (int i = 0; i < 3; i++) {
        CHECK(cuMemAlloc(&pointers[i], (size_t)(i + 1) * 3000000));
        printf("alloc %d\n", (i + 1) * 3000000);
    }
    CHECK(cuMemFree(pointers[1]));
    printf("free 6000000\n");
}

static void managed_and_pitched(void)
{
    CUdeviceptr managed, pitched;
    size_t pitch = 0;
    CHECK(cuMemAllocManaged(&managed, 5000000, CU_MEM_ATTACH_GLOBAL));
    printf("alloc 5000000\n");
    CHECK(cuMemAllocPitch(&pitched, &pitch, 1000, 100, 4));
    printf("alloc %zu\n", pitch * 100);
    CHECK(cuMemFree(managed));
    printf("free 5000000\n");
    CHECK(cuMemFree(pitched));
    printf("free %zu\n", pitch * 100);
}

static void in_stream_order(void)
{
    CUstream stream;
    CUdeviceptr pointer;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 4; i++) {
        CHECK(cuMemAllocAsync(&pointer, 1000000, stream));
        printf("alloc 1000000\n");
        CHECK(cuMemFreeAsync(pointer, stream));
        printf("free 1000000\n");
    }
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamDestroy(stream));
}

static void mapped(CUdevice device)
{
    CUmemAllocationProp properties = {0};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t grain = 0;
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    CHECK(cuMemGetAllocationGranularity(&grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&address, 10 * grain, 0, 0, 0));
    CHECK(cuMemCreate(&handle, 10 * grain, &properties, 0));
    CHECK(cuMemMap(address, 10 * grain, 0, handle, 0));
    printf("alloc %zu\n", 10 * grain);
    CHECK(cuMemRelease(handle));
    CHECK(cuMemUnmap(address, 10 * grain));
    printf("free %zu\n", 10 * grain);
    CHECK(cuMemAddressFree(address, 10 * grain));
}

static void array(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    CUarray handle;
    CHECK(cuArrayCreate(&handle, &shape));
    printf("alloc %d\n", 64 * 64 * 4);
    CHECK(cuArrayDestroy(handle));
    printf("free %d\n", 64 * 64 * 4);
}

static void too_much(void)
{
    CUdeviceptr pointer;
    CUresult result = cuMemAlloc(&pointer, (size_t)1 << 44);
    printf("refused: %d\n", (int)result);
}

static void captured(void)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr pointer;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuMemAllocAsync(&pointer, 2000000, stream));
    CHECK(cuMemFreeAsync(pointer, stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamDestroy(stream));
    printf("captured\n");
}

int main(void)
{
    CUdevice device;
    CUcontext context;
    size_t before = 0, after = 0, total = 0;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemGetInfo(&before, &total));
    plain();
    managed_and_pitched();
    in_stream_order();
    mapped(device);
    array();
    too_much();
    captured();
    CHECK(cuMemGetInfo(&after, &total));
    printf("total %zu\n", total);
    return 7;
}
