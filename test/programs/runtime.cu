// Built by nvcc: the runtime's whole set of memory calls; every copy is checked.
#include <cstdio>
#include <cstring>

__device__ int device_variable[64];
__constant__ int constant_variable[16];
__managed__ int managed_variable[32];

__global__ void nothing(int *p)
{
    (void)p;
}

#define CHECK(call) \
    do { \
        cudaError_t error_ = (call); \
        if (error_ != cudaSuccess) { \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_)); \
            return __LINE__ % 200 + 1; \
        } \
    } while (0)
#define DEMAND(condition) \
    do { \
        if (!(condition)) { \
            std::fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
            return __LINE__ % 200 + 1; \
        } \
    } while (0)

static int symbols()
{
    int there[64], back[64] = {0};
    size_t bytes;
    for (int i = 0; i < 64; i++)
        there[i] = i * 3;
    CHECK(cudaMemcpyToSymbol(device_variable, there, sizeof there));
    CHECK(cudaMemcpyFromSymbol(back, device_variable, sizeof back));
    DEMAND(std::memcmp(there, back, sizeof back) == 0);
    CHECK(cudaGetSymbolSize(&bytes, constant_variable));
    DEMAND(bytes == sizeof constant_variable);
    managed_variable[5] = 42;
    CHECK(cudaDeviceSynchronize());
    DEMAND(managed_variable[5] == 42);
    return 0;
}

static int shapes()
{
    char there[64 * 100], back[64 * 100];
    for (size_t i = 0; i < sizeof there; i++)
        there[i] = (char)(i * 7);
    void *pitched;
    size_t pitch;
    CHECK(cudaMallocPitch(&pitched, &pitch, 100, 64));
    CHECK(cudaMemcpy2D(pitched, pitch, there, 100, 100, 64, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2D(back, 100, pitched, pitch, 100, 64, cudaMemcpyDeviceToHost));
    DEMAND(std::memcmp(there, back, sizeof there) == 0);
    CHECK(cudaFree(pitched));
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, 25, 64));
    std::memset(back, 0, sizeof back);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, there, 100, 100, 64, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DFromArray(back, 100, array, 0, 0, 100, 64, cudaMemcpyDeviceToHost));
    DEMAND(std::memcmp(there, back, sizeof there) == 0);
    CHECK(cudaFreeArray(array));
    cudaPitchedPtr box;
    CHECK(cudaMalloc3D(&box, make_cudaExtent(100, 8, 4)));
    CHECK(cudaFree(box.ptr));
    return 0;
}

static int host_memory()
{
    void *host, *managed, *device, *own = std::malloc(65536);
    cudaPointerAttributes attributes;
    CHECK(cudaHostAlloc(&host, 1 << 20, cudaHostAllocDefault));
    CHECK(cudaMallocManaged(&managed, 1 << 20));
    CHECK(cudaMalloc(&device, 1 << 20));
    std::memset(host, 9, 1 << 20);
    CHECK(cudaMemcpy(device, host, 1 << 20, cudaMemcpyDefault));
    CHECK(cudaMemcpy(managed, device, 1 << 20, cudaMemcpyDefault));
    CHECK(cudaDeviceSynchronize());
    DEMAND(((char *)managed)[12345] == 9);
    CHECK(cudaPointerGetAttributes(&attributes, device));
    DEMAND(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    CHECK(cudaPointerGetAttributes(&attributes, host));
    DEMAND(attributes.type == cudaMemoryTypeHost);
    CHECK(cudaPointerGetAttributes(&attributes, managed));
    DEMAND(attributes.type == cudaMemoryTypeManaged);
    CHECK(cudaHostRegister(own, 65536, 0));
    CHECK(cudaHostUnregister(own));
    CHECK(cudaFree(device));
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(host));
    std::free(own);
    return 0;
}

static int streams()
{
    cudaStream_t stream;
    cudaEvent_t start, end;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *p, *q;
    float milliseconds;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(start, stream));
    CHECK(cudaMallocAsync(&p, 1 << 20, stream));
    CHECK(cudaMemsetAsync(p, 1, 1 << 20, stream));
    nothing<<<1, 1, 0, stream>>>(p);
    CHECK(cudaFreeAsync(p, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    DEMAND(milliseconds >= 0);
    CHECK(cudaMalloc(&q, 4096));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(q, 5, 4096, stream));
    nothing<<<1, 1, 0, stream>>>(q);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    int first;
    CHECK(cudaMemcpy(&first, q, sizeof first, cudaMemcpyDeviceToHost));
    DEMAND(first == 0x05050505);
    CHECK(cudaFree(q));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}

static int device()
{
    cudaDeviceProp properties;
    size_t available, total;
    void *too_much;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaMemGetInfo(&available, &total));
    DEMAND(properties.totalGlobalMem == total && available <= total && properties.warpSize == 32);
    DEMAND(cudaMalloc(&too_much, total + 1) == cudaErrorMemoryAllocation);
    DEMAND(cudaGetLastError() == cudaErrorMemoryAllocation);
    DEMAND(cudaGetLastError() == cudaSuccess);
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, nothing));
    DEMAND(attributes.maxThreadsPerBlock > 0);
    return 0;
}

int main()
{
    int (*parts[])() = {symbols, shapes, host_memory, streams, device};
    for (auto part : parts)
        if (int status = part())
            return status;
    std::printf("runtime: ok\n");
    return 0;
}
