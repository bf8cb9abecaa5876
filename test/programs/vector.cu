// Built by nvcc, with either runtime: three vectors, copies there and back, a kernel that may do nothing.
#include <cstdio>
#include <vector>

__global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

__attribute__((noinline)) static float *make_vector(size_t bytes)
{
    float *p = nullptr;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    return p;
}

int main()
{
    const size_t bytes = 4 << 20, n = bytes / sizeof(float);
    std::vector<float> there(n), back(n);
    for (size_t i = 0; i < n; i++)
        there[i] = (float)i;
    float *a = make_vector(bytes), *b = make_vector(bytes), *c = make_vector(bytes);
    check(cudaMemcpy(a, there.data(), bytes, cudaMemcpyHostToDevice), "copy there");
    check(cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice), "copy across");
    check(cudaMemcpy(back.data(), b, bytes, cudaMemcpyDeviceToHost), "copy back");
    add<<<(unsigned)(n / 256), 256>>>(a, b, c, (int)n);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "synchronize");
    check(cudaFree(a), "cudaFree");
    check(cudaFree(b), "cudaFree");
    check(cudaFree(c), "cudaFree");
    if (back != there)
        return 2;
    std::printf("vector: allocations=3 frees=3 bytes=%zu\n", 3 * bytes);
    return 0;
}
