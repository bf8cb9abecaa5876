/* A program that pools for itself tells which pieces of its block are in use.
 *
 *     cc suballoc.c $(pkg-config --cflags --libs cudamem)
 *     cudamem record ./a.out       # the recorder hears of them, too
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
    cudamem_snapshot *snapshot;
    void *pool;

    if (cudamem_alloc(16 << 20, 0, NULL, &pool, &error))
        return failed(&error);
    char *keys = pool, *values = keys + (1 << 20);
    if (cudamem_suballoc(keys, 1 << 20, 0, NULL, &error) || cudamem_suballoc(values, 2 << 20, 0, NULL, &error))
        return failed(&error);

    if (cudamem_memory_snapshot(NULL, &snapshot, &error))
        return failed(&error);
    printf("%zu blocks\n", cudamem_snapshot_block_count(snapshot)); /* two in use, and the rest */
    cudamem_snapshot_close(snapshot);

    if (cudamem_subfree(keys, &error) || cudamem_subfree(values, &error) || cudamem_free(pool, &error))
        return failed(&error);
    return 0;
}
