/*
 * The quickstart's workload: a little training job as far as memory goes.
 * Weights are loaded, batches come and go in phases of growing size, a cache
 * grows, one request is too large and is made smaller, and a checkpoint keeps
 * buffers that it should have freed.  It uses the CUDA runtime's calls only,
 * over whatever driver it finds.
 */
#include <stdio.h>
#include <string.h>

#include "sim/cudart.h"

#define MIB ((size_t)1 << 20)
#define NOINLINE __attribute__((noinline))
#define LAYERS 12
#define CACHE 24

static size_t live, peak;

static NOINLINE void *get(size_t bytes)
{
    void *address = NULL;
    if (cudaMalloc(&address, bytes)) {
        cudaGetLastError();
        return NULL;
    }
    live += bytes;
    peak = live > peak ? live : peak;
    return address;
}

static NOINLINE void put(void *address, size_t bytes)
{
    if (!address)
        return;
    cudaFree(address);
    live -= bytes;
}

struct model {
    void *weights[LAYERS], *gradients[LAYERS], *moments[LAYERS];
    size_t bytes[LAYERS];
};

static NOINLINE int load_weights(struct model *model)
{
    static unsigned char host[65536];
    for (int i = 0; i < LAYERS; i++) {
        model->bytes[i] = (size_t)(8 + 4 * (i % 3)) * MIB;
        model->weights[i] = get(model->bytes[i]);
        if (!model->weights[i])
            return -1;
        memset(host, i + 1, sizeof host);
        if (cudaMemcpy(model->weights[i], host, sizeof host, cudaMemcpyHostToDevice))
            return -1;
    }
    return 0;
}

static NOINLINE void make_optimizer(struct model *model)
{
    for (int i = 0; i < LAYERS; i++) {
        model->gradients[i] = get(model->bytes[i]);
        model->moments[i] = get(2 * model->bytes[i]);
    }
}

static NOINLINE void forward(void *activations[LAYERS], size_t batch)
{
    for (int i = 0; i < LAYERS; i++) {
        void *scratch = get(batch / 2);
        activations[i] = get(batch);
        put(scratch, batch / 2);
    }
}

static NOINLINE void backward(void *activations[LAYERS], size_t batch)
{
    for (int i = LAYERS; i-- > 0;) {
        void *gradient = get(batch);
        put(activations[i], batch);
        put(gradient, batch);
    }
}

static NOINLINE void train(int steps, size_t batch)
{
    for (int step = 0; step < steps; step++) {
        void *activations[LAYERS];
        forward(activations, batch);
        backward(activations, batch);
    }
    cudaDeviceSynchronize();
}

/* Keeps three staging buffers that nobody frees: the leak to be found. */
static NOINLINE void load_checkpoint(void)
{
    void *staging[5];
    for (int i = 0; i < 5; i++)
        staging[i] = get(6 * MIB);
    put(staging[0], 6 * MIB);
    put(staging[1], 6 * MIB);
}

static NOINLINE void evaluate(void)
{
    void *cache[CACHE];
    size_t bytes[CACHE];
    for (int i = 0; i < CACHE; i++) {
        bytes[i] = (size_t)(1 + i / 2) * MIB;
        cache[i] = get(bytes[i]);
    }
    for (int i = 0; i < CACHE; i += 2)
        put(cache[i], bytes[i]);
    for (int i = 1; i < CACHE; i += 2)
        put(cache[i], bytes[i]);
}

/* Asks for more than there is, and makes do with a hundredth. */
static NOINLINE size_t reserve_workspace(size_t total)
{
    void *workspace = get(total);
    if (workspace)
        return put(workspace, total), total;
    size_t smaller = total / 100;
    workspace = get(smaller);
    put(workspace, smaller);
    return smaller;
}

static NOINLINE void free_model(struct model *model)
{
    for (int i = 0; i < LAYERS; i++) {
        put(model->weights[i], model->bytes[i]);
        put(model->gradients[i], model->bytes[i]);
        put(model->moments[i], 2 * model->bytes[i]);
    }
}

int main(void)
{
    struct model model = {0};
    size_t available, total;
    if (cudaMemGetInfo(&available, &total)) {
        fprintf(stderr, "example: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    printf("device 0: %zu MiB\n", total / MIB);
    if (load_weights(&model)) {
        fprintf(stderr, "example: the weights do not fit\n");
        return 1;
    }
    printf("weights loaded: %zu MiB\n", live / MIB);
    make_optimizer(&model);
    for (int phase = 1; phase <= 3; phase++) {
        train(4, (size_t)phase * 10 * MIB);
        printf("phase %d: batches of %d MiB a layer, %zu MiB at the peak\n", phase, phase * 10, peak / MIB);
    }
    load_checkpoint();
    evaluate();
    printf("workspace: wanted %zu MiB, got %zu MiB\n", total / MIB, reserve_workspace(total) / MIB);
    free_model(&model);
    printf("done: %zu MiB never freed\n", live / MIB);
    return 0;
}
