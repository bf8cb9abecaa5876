/* How long a flame graph of 100,000 stacks takes, and how much memory: one line.  flamegraph.pl took 13.7 s and 901 MB
 * for as many.  usage: flame_bench [STACKS [DEPTH]] */
#include "render/svg_flame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Distinct stacks over 5,000 functions, the inner halves different, one block each. */
static struct snapshot *make_snapshot(unsigned stacks, unsigned depth)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    uint32_t frames[5000], file = snapshot_shared_string(snapshot, "/srv/model/layers/model.py", 26);
    for (unsigned i = 0; i < 5000; i++) {
        char name[64];
        snprintf(name, sizeof(name), "transformer_block_%u_forward", i);
        struct frame frame = {.name = snapshot_shared_string(snapshot, name, strlen(name)),
                              .filename = file,
                              .line = i,
                              .module = NONE32};
        frames[i] = snapshot_add_frame(snapshot, &frame);
    }
    struct segment segment = {
        .address = 4096, .context = CONTEXT_NONE, .pool = NONE32, .total_size = UINT64_C(1) << 40};
    state_add_segment(&snapshot->end, &segment);
    uint64_t address = 4096;
    for (unsigned i = 0; i < stacks; i++) {
        uint32_t stack = STACK_EMPTY;
        uint64_t random = i;
        for (unsigned d = 0; d < depth; d++) {
            random = d < depth / 2 ? hash_mix(i / 64 + 1) >> (d & 31) : hash_mix(d == depth / 2 ? i : random + d);
            stack = snapshot_push_frame(snapshot, stack, frames[random % 5000]);
        }
        struct block block = {.address = address,
                              .size = 512 * (1 + hash_mix(i) % 4000),
                              .state = BLOCK_ACTIVE_ALLOCATED,
                              .context = snapshot_add_context(snapshot, stack)};
        block.requested = block.size - 12;
        state_add_block(&snapshot->end, &block);
        address += block.size;
    }
    return snapshot;
}

int main(int argc, char **argv)
{
    unsigned stacks = argc > 1 ? (unsigned)atoi(argv[1]) : 100000, depth = argc > 2 ? (unsigned)atoi(argv[2]) : 30;
    struct svg_flame_options options = {"bench", NULL};
    struct snapshot *snapshot = make_snapshot(stacks, depth);
    struct flame_tree tree;
    struct output *output;
    struct error err = {0};
    unsigned char *bytes;
    size_t length;
    long before = peak_kib();
    double start = now();
    if (flame_tree_build(snapshot, &snapshot->end, FLAME_MEMORY, NULL, &tree, &err) ||
        output_to_memory(&bytes, &length, &output, &err))
        return 1;
    double built = now();
    if (svg_flame(&tree, &options, output, &err) || output_commit(output, &err))
        return 1;
    double drawn = now();
    printf(
        "%u stacks of %u frames: tree of %zu boxes %.0f ms of CPU, picture %.0f ms, %zu bytes, %ld MiB above the snapshot\n",
        stacks, depth, tree.count, (built - start) * 1e3, (drawn - built) * 1e3, length, (peak_kib() - before) / 1024);
    flame_tree_free(&tree);
    free(bytes);
    snapshot_free(snapshot);
    return 0;
}
