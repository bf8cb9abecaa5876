// runtime: memory by the runtime, for the static and the shared one; a kernel whose result is checked.  Prints what it
// did, a line a call, for the checks.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        printf("%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

__global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

static void work(int n)
{
    size_t bytes = n * sizeof(float);
    std::vector<float> host(n, 1.5f);
    float *pointers[3];
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMalloc(&pointers[i], bytes));
        printf("alloc %zu\n", bytes);
    }
    for (int i = 0; i < 2; i++)
        CHECK(cudaMemcpy(pointers[i], host.data(), bytes, cudaMemcpyHostToDevice));
    add<<<(n + 255) / 256, 256>>>(pointers[0], pointers[1], pointers[2], n);
    CHECK(cudaMemcpy(host.data(), pointers[2], bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (host[i] != 3.0f) {
            printf("wrong result at %d\n", i);
            exit(1);
        }
    for (int i = 0; i < 3; i++) {
        CHECK(cudaFree(pointers[i]));
        printf("free %zu\n", bytes);
    }
}

static void others()
{
    void *pointer;
    size_t pitch = 0;
    CHECK(cudaMallocPitch(&pointer, &pitch, 500, 64));
    printf("alloc %zu\n", pitch * 64);
    CHECK(cudaFree(pointer));
    printf("free %zu\n", pitch * 64);
    CHECK(cudaMallocManaged(&pointer, 1234567));
    printf("alloc 1234567\n");
    CHECK(cudaFree(pointer));
    printf("free 1234567\n");
    CHECK(cudaMallocAsync(&pointer, 7654321, 0));
    printf("alloc 7654321\n");
    CHECK(cudaFreeAsync(pointer, 0));
    printf("free 7654321\n");
    CHECK(cudaMalloc(&pointer, 3333333)); // stays
    printf("alloc 3333333\n");
    cudaError_t error = cudaMalloc(&pointer, (size_t)1 << 44);
    printf("refused: %s\n", cudaGetErrorName(error));
}

int main()
{
    work(1 << 20);
    work(12345);
    others();
    CHECK(cudaDeviceSynchronize());
    return 5;
}
