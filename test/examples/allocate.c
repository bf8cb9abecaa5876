/* Allocate and free, look at the numbers, live with a limit.
 *
 *     cc allocate.c $(pkg-config --cflags --libs cudamem)
 */
#include <cudamem/cudamem.h>

#include <stdio.h>

static int print_line(void *self, const char *key, int64_t value)
{
    (void)self;
    if (value)
        printf("%s %lld\n", key, (long long)value);
    return 0;
}

static int failed(const cudamem_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

static void out_of_memory(void *self, int device, size_t size, size_t total, size_t free_bytes)
{
    (void)self, (void)total, (void)free_bytes;
    printf("observer: device %d had no room for %zu bytes\n", device, size);
}

int main(void)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    void *weights, *batch, *too_much;
    char *summary;

    /* Settings as in PYTORCH_CUDA_ALLOC_CONF; a device is opened by its first use. */
    if (cudamem_set_allocator_settings("max_split_size_mb:200", &error))
        return failed(&error);
    if (cudamem_alloc(64 << 20, 0, NULL, &weights, &error) || cudamem_alloc(1000000, 0, NULL, &batch, &error))
        return failed(&error);

    /* A freed block is kept for the next request; the driver is not asked again. */
    if (cudamem_free(batch, &error) || cudamem_alloc(900000, 0, NULL, &batch, &error))
        return failed(&error);

    /* A request that finds no room says so, with the figures; observers hear of it. */
    if (cudamem_attach_oom_observer(out_of_memory, NULL, NULL, &error) || cudamem_set_memory_fraction(0.25, 0, &error))
        return failed(&error);
    if (cudamem_alloc((size_t)8 << 30, 0, NULL, &too_much, &error) == CUDAMEM_ERROR_OUT_OF_MEMORY)
        printf("as expected: %.13s\n", error.message);

    /* What torch.cuda.memory_stats() and torch.cuda.memory_summary() say. */
    if (cudamem_visit_memory_stats(0, print_line, NULL, &error) || cudamem_memory_summary(0, 1, &summary, &error))
        return failed(&error);
    printf("%s", summary);
    cudamem_text_free(summary);

    if (cudamem_free(weights, &error) || cudamem_free(batch, &error) || cudamem_empty_cache(&error))
        return failed(&error);
    return 0;
}
