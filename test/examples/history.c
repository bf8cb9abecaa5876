/* Record what the allocator does, and save it: for cudamem, for pytorch.org/memory_viz, as a picture.
 *
 *     cc -g history.c $(pkg-config --cflags --libs cudamem)
 */
#include <cudamem/cudamem.h>

#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 40

static int failed(const cudamem_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

static void *take(size_t size, void *stream)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    void *pointer;
    if (cudamem_alloc(size, 0, stream, &pointer, &error))
        exit(failed(&error));
    return pointer;
}

/* A little of everything: sizes of both pools, cache flushes, memory that stays. */
static void work(void)
{
    void *held[BLOCKS] = {NULL};
    uint32_t random = 12345;
    for (int i = 0; i < 600; i++) {
        random = random * 1664525 + 1013904223;
        int place = (int)(random >> 16) % BLOCKS;
        size_t size = (size_t)(random >> 8) % (i % 5 ? 900000 : 30000000) + 1;
        cudamem_free(held[place], NULL);
        held[place] = take(size, NULL);
        if (i % 150 == 149)
            cudamem_empty_cache(NULL);
    }
    for (int i = 0; i < BLOCKS; i += 2)
        cudamem_free(held[i], NULL);
}

int main(int argc, char **argv)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    cudamem_history_options options = {.struct_size = sizeof(options), .max_entries = 100000, .annotations = 1};
    char *summary;

    if (argc > 1 && cudamem_set_allocator_settings(argv[1], &error))
        return failed(&error);
    if (cudamem_record_memory_history(&options, &error))
        return failed(&error);
    cudamem_annotation_begin("work", 0, NULL);
    work();
    cudamem_annotation_end("work", 0, NULL);

    if (cudamem_memory_summary(0, 0, &summary, &error))
        return failed(&error);
    printf("%s", summary);
    cudamem_text_free(summary);

    if (cudamem_dump_snapshot("history.pickle", &error) || cudamem_dump_snapshot("history.bin", &error) ||
        cudamem_save_segment_usage("history.svg", NULL, &error))
        return failed(&error);
    return 0;
}
