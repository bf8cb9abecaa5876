/* A pool of its own for a part of the program, and its snapshot.
 *
 *     cc pools.c $(pkg-config --cflags --libs cudamem)
 */
#include <cudamem/cudamem.h>

#include <stdio.h>

static int failed(const cudamem_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

int main(void)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    cudamem_pool_options options = {.struct_size = sizeof(options)};
    cudamem_snapshot *snapshot;
    cudamem_pool *pool;
    void *inside, *outside;
    int count;

    if (cudamem_pool_create(&options, 0, &pool, &error))
        return failed(&error);
    if (cudamem_pool_begin(pool, 0, &error) || cudamem_alloc(5 << 20, 0, NULL, &inside, &error) ||
        cudamem_pool_use_count(pool, &count, &error) || cudamem_pool_end(pool, 0, &error))
        return failed(&error);
    if (cudamem_alloc(7 << 20, 0, NULL, &outside, &error))
        return failed(&error);
    printf("used by %d\n", count);

    if (cudamem_pool_snapshot(pool, 0, &snapshot, &error))
        return failed(&error);
    printf("%zu segment in the pool\n", cudamem_snapshot_segment_count(snapshot));
    cudamem_snapshot_close(snapshot);

    cudamem_free(inside, NULL);
    cudamem_free(outside, NULL);
    return cudamem_pool_destroy(pool, &error) ? failed(&error) : 0;
}
