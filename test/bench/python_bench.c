/*
 * What Python's frames cost: `python_bench DEPTH EVENTS` records events from DEPTH frames of an interpreter that is none
 * (fake_python.h) and as many native ones, with each choice of stacks, and prints key=value a line: the best of many
 * short runs.  Between two events the innermost frame's instruction moves, as it does in a program; `same` is the cost if
 * nothing moves, `changed` if every third frame is another.
 */
#include "record/internal.h"
#include "test/unit/fake_python.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 4096 /* events: well under a millisecond, so that the best ones were not interrupted */
#define MOST 256

static struct fake_thread bench_thread;
static struct fake_frame *bench_frames[MOST];
static unsigned bench_depth;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void make_frames(unsigned depth)
{
    bench_depth = depth;
    for (unsigned i = 0; i < depth; i++) {
        char name[32];
        snprintf(name, sizeof(name), "function_%u", i);
        bench_frames[i] = fake_frame(fake_code(name, i % 3 ? "train.py" : "model.py", (int)i * 20, 8), (int)i % 8,
                                     i ? bench_frames[i - 1] : fake_entry(NULL));
    }
    bench_thread.frame = bench_frames[depth - 1];
    fake_current = &bench_thread;
}

/* How much of the stack is another one at the next event: one frame in so many, from the inner end; 0: none. */
static void move(unsigned long event, unsigned every)
{
    for (unsigned i = 0; every && i < bench_depth; i += every) {
        struct fake_frame *frame = bench_frames[bench_depth - 1 - i];
        frame->instruction = ((struct fake_code *)(frame->executable & ~UINT64_C(1)))->bytes + (event & 7);
    }
}

static __attribute__((noinline)) void record_events(unsigned long count, unsigned every)
{
    for (unsigned long i = 0; i < count; i += 2) {
        struct record_event event = {.action = RECORD_SEGMENT_ALLOC, .address = 0x700000000000 + (i & 1023) * 4096,
                                     .size = 4096, .requested = RECORD_UNKNOWN};
        move(i, every);
        recorder_event(&event);
        event.action = RECORD_SEGMENT_FREE;
        event.size = RECORD_UNKNOWN;
        move(i + 1, every);
        recorder_event(&event);
    }
}

static double measure(unsigned long events, unsigned every)
{
    double best = 1e9;
    record_events(4 * BATCH, every);
    for (unsigned long done = 0; done < events; done += BATCH) {
        double start = now();
        record_events(BATCH, every);
        double seconds = now() - start;
        best = seconds < best ? seconds : best;
    }
    return best * 1e9 / BATCH;
}

static __attribute__((noinline)) void descend(unsigned depth, unsigned long events)
{
    if (depth)
        descend(depth - 1, events);
    else
        printf("same=%.1f moved=%.1f changed=%.1f\n", measure(events, 0), measure(events, MOST), measure(events, 3));
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

/* The recorder starts once a process. */
static int bench(const char *name, bool native, bool python, unsigned depth, unsigned long events)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char message[256];
        struct recorder_options options = {.native_stacks = native, .python_stacks = python, .depth = 128};
        if (recorder_start(&options, message, sizeof(message)) || message[0]) {
            fprintf(stderr, "python_bench: %s\n", message);
            _exit(1);
        }
        make_frames(depth);
        printf("stacks=%s depth=%u ", name, depth);
        descend(depth > 8 ? depth - 8 : 0, events); /* main, bench and those of the C library are there already */
        fflush(stdout);
        unlink(recorder.path);
        _exit(0);
    }
    int status = 1;
    return child < 0 || waitpid(child, &status, 0) < 0 || status ? 1 : 0;
}

int main(int argc, char **argv)
{
    unsigned depth = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
    unsigned long events = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (!depth || depth > MOST || !events) {
        fprintf(stderr, "usage: python_bench DEPTH EVENTS\n");
        return 2;
    }
    fake_offsets_of_3_14();
    return bench("none", false, false, depth, events) || bench("native", true, false, depth, events) ||
           bench("python", false, true, depth, events) || bench("native,python", true, true, depth, events);
}
