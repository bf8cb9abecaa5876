/*
 * What an event costs: `record_bench FRAMES EVENTS` records EVENTS events from a stack of FRAMES frames (0: no stacks)
 * and prints one line of key=value (the best of many short runs); `record_bench malloc FRAMES PAIRS` does malloc and
 * free from the same stack, to be run under heaptrack for comparison; `record_bench threads COUNT EVENTS` records from
 * several threads at once.  record_bench.sh runs them all.
 */
#include "record/internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct job {
    unsigned long events;
    void (*leaf)(unsigned long events);
    unsigned long warm; /* events before: they meet a file that was never touched */
    double seconds, first_seconds;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

#define BATCH 8192 /* events: about a millisecond, so that the best ones were not interrupted */

static __attribute__((noinline)) void record_pair(uint64_t address, const void *skip)
{
    struct record_event event = {.action = RECORD_SEGMENT_ALLOC, .address = address, .size = 4096,
                                 .requested = RECORD_UNKNOWN, .skip = skip};
    recorder_event(&event);
    event.action = RECORD_SEGMENT_FREE;
    event.size = RECORD_UNKNOWN;
    recorder_event(&event);
}

static void record_leaf(unsigned long events)
{
    for (unsigned long i = 0; i < events / 2; i++)
        record_pair(0x700000000000 + (i & 1023) * 4096, NULL);
}

static void malloc_leaf(unsigned long pairs)
{
    for (unsigned long i = 0; i < pairs; i++) {
        void *volatile memory = malloc(64 + (i & 63));
        free(memory);
    }
}

static __attribute__((noinline)) void descend(struct job *job, unsigned depth)
{
    if (depth > 0) {
        descend(job, depth - 1);
    } else {
        double first = now();
        job->leaf(job->warm);
        job->first_seconds = now() - first;
        job->seconds = 1e9;
        for (unsigned long done = 0; done < job->events; done += BATCH) { /* other programs run here, too */
            double start = now();
            job->leaf(BATCH);
            double seconds = now() - start;
            job->seconds = seconds < job->seconds ? seconds : job->seconds;
        }
    }
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static unsigned frames_of_last_event(void)
{
    const struct ring_slot *slot = &recorder.rings[0][(recorder.devices[0].head - 1) & (recorder.slots - 1)];
    unsigned count = 0;
    for (uint32_t node = slot->stack; node >= RING_STACK_FIRST; count++)
        node = ((const struct ring_node *)ring_table_at(RING_NODES, node - RING_STACK_FIRST))->parent;
    return count;
}

static void start_recorder(unsigned frames)
{
    char message[256];
    struct recorder_options options = {.native_stacks = frames > 0, .depth = 128};
    if (recorder_start(&options, message, sizeof(message)) || message[0]) {
        fprintf(stderr, "record_bench: %s\n", message);
        exit(1);
    }
}

static int record_mode(unsigned frames, unsigned long events)
{
    start_recorder(frames);
    struct job job = {.events = events, .warm = RING_DEFAULT_ENTRIES, .leaf = record_leaf};
    /* Already there: recorder_event, record_pair, record_leaf, descend, record_mode, main and two of the C library. */
    descend(&job, frames > 10 ? frames - 10 : 0);
    struct stat status;
    if (stat(recorder.path, &status))
        return 1;
    printf("frames=%u ns_an_event=%.1f first_round_ns=%.1f bytes_an_event=%.1f\n", frames_of_last_event(),
           job.seconds * 1e9 / BATCH, job.first_seconds * 1e9 / (double)job.warm, (double)status.st_blocks * 512 / (double)recorder.slots);
    unlink(recorder.path);
    return 0;
}

static int malloc_mode(unsigned frames, unsigned long pairs)
{
    struct job job = {.events = pairs, .warm = pairs / 10, .leaf = malloc_leaf};
    descend(&job, frames > 6 ? frames - 6 : 0);
    printf("frames=%u ns_a_pair=%.1f\n", frames, job.seconds * 1e9 / BATCH);
    return 0;
}

struct worker {
    pthread_t thread;
    uint64_t base;
    unsigned long events;
};

static void *work(void *argument)
{
    const struct worker *worker = argument;
    for (unsigned long i = 0; i < worker->events / 2; i++)
        record_pair(worker->base + (i & 1023) * 4096, NULL);
    return NULL;
}

static int threads_mode(unsigned count, unsigned long events)
{
    struct worker workers[64];
    if (count < 1 || count > 64)
        return 2;
    start_recorder(0);
    record_pair(4096, NULL);
    double start = now();
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.base = 0x700000000000 + (uint64_t)i * (1 << 30), .events = events};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return 1;
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    printf("threads=%u ns_an_event=%.1f\n", count, (now() - start) * 1e9 / (double)(events * count));
    unlink(recorder.path);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "malloc"))
        return malloc_mode((unsigned)atoi(argv[2]), strtoul(argv[3], NULL, 10));
    if (argc == 4 && !strcmp(argv[1], "threads"))
        return threads_mode((unsigned)atoi(argv[2]), strtoul(argv[3], NULL, 10));
    if (argc == 3)
        return record_mode((unsigned)atoi(argv[1]), strtoul(argv[2], NULL, 10));
    fprintf(stderr, "usage: record_bench FRAMES EVENTS | malloc FRAMES PAIRS | threads COUNT EVENTS\n");
    return 2;
}
