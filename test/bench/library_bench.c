/*
 * A cached allocation and its free through the public library, with the simulated driver or a real one (LD_LIBRARY_PATH
 * says which): nanoseconds a pair, seen by one thread and by several at once on one device.
 *
 * usage: library_bench [THREADS] [PAIRS] [SIZE]
 */
#include <cudamem/cudamem.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static size_t pairs = 2000000, size = 4096;
static pthread_barrier_t barrier;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *run(void *argument)
{
    void *pointer, *own;
    double *ns = argument;
    if (cudamem_alloc(size, 0, NULL, &own, NULL) || cudamem_free(own, NULL)) /* from now on there is a block for it */
        exit(1);
    pthread_barrier_wait(&barrier);
    double begun = now();
    for (size_t i = 0; i < pairs; i++)
        if (cudamem_alloc(size, 0, NULL, &pointer, NULL) || cudamem_free(pointer, NULL))
            exit(1);
    *ns = now() - begun;
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1;
    if (argc > 2)
        pairs = (size_t)atoll(argv[2]);
    if (argc > 3)
        size = (size_t)atoll(argv[3]);
    if (count < 1 || count > 1024 || !pairs || !size) {
        fprintf(stderr, "usage: library_bench [THREADS] [PAIRS] [SIZE]\n");
        return 2;
    }
    pthread_t threads[1024];
    double ns[1024], longest = 0;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    void *pointer;
    if (cudamem_alloc(size, 0, NULL, &pointer, &error)) {
        fprintf(stderr, "library_bench: %s\n", error.message);
        return 1;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, &ns[i]))
            return 1;
    for (long i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        longest = ns[i] > longest ? ns[i] : longest;
    }
    printf("threads=%ld size=%zu pairs_each=%zu ns_a_pair=%.1f ns_a_pair_in_all=%.1f\n", count, size, pairs,
           longest / (double)pairs, longest / (double)pairs / (double)count);
    return 0;
}
