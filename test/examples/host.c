/* Pinned host memory, kept and used again; a stream's work is waited for without waiting.
 *
 *     cc host.c $(pkg-config --cflags --libs cudamem) -lcuda
 */
#include <cudamem/cudamem.h>

#include <stdio.h>
#include <string.h>

#include "cuda_few.h"

static int failed(const cudamem_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

int main(void)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    cudamem_host_memory_stats stats = {.struct_size = sizeof(stats)};
    void *staging, *again, *device, *stream, *context;
    char *json;

    /* The runtime library would do this by itself. */
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;

    if (cudamem_host_alloc(3000000, &staging, &error) || cudamem_alloc(3000000, 0, NULL, &device, &error))
        return failed(&error);
    memset(staging, 1, 3000000);
    if (cuStreamCreate(&stream, 1) || cuMemcpyHtoDAsync_v2((uintptr_t)device, staging, 3000000, stream))
        return 1;

    /* The copy may still run: whoever gets the block next gets it after that. */
    if (cudamem_host_record_stream(staging, stream, &error) || cudamem_host_free(staging, &error))
        return failed(&error);
    cuStreamSynchronize(stream);
    if (cudamem_host_alloc(2500000, &again, &error))
        return failed(&error);
    printf("the same block: %s\n", again == staging ? "yes" : "no");

    if (cudamem_get_host_memory_stats(&stats, &error) || cudamem_host_memory_stats_json(0, &json, &error))
        return failed(&error);
    printf("%lld bytes in use, %lld calls of the driver\n", (long long)stats.active_bytes.current,
           (long long)stats.num_host_alloc);
    cudamem_text_free(json);

    cudamem_host_free(again, NULL);
    cudamem_free(device, NULL);
    cuStreamDestroy_v2(stream);
    return cudamem_host_empty_cache(&error) ? failed(&error) : 0;
}
