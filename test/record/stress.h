/* What the files of the program stress share: the threads, what each does, and the calls that they all make. */
#ifndef RECORD_STRESS_H
#define RECORD_STRESS_H

#include "../programs/driver.h"
#include "../programs/torch_hooks.h"

#include <pthread.h>

#define EXPORTED __attribute__((visibility("default")))
#define STRESS_THREADS 16
#define STRESS_SIGNAL_STACK ((size_t)16 << 10)

struct stress_thread {
    pthread_t thread;
    const char *name, *doing;
    void (*work)(void);
    unsigned long turns, seen;
    unsigned still;
    bool finished;
    volatile int may_take; /* in nothing that a handler of signals could disturb */
};

struct stress {
    bool stop;
    bool forked; /* giving would wait for work of streams that a thread of the simulated driver did, which is gone */
    const char *program, *libraries[2];
    CUcontext context;
    CUdeviceptr segment; /* that blocks lie in */
    struct stress_thread threads[STRESS_THREADS];
    unsigned count;
};
extern struct stress stress;
extern __thread struct stress_thread *stress_self;

bool stress_goes_on(const char *doing); /* one more turn */
CUdeviceptr stress_take(size_t bytes);
void stress_give(CUdeviceptr address);
void stress_block(void); /* one comes and goes */
int plugin_take(unsigned long long *address, size_t bytes);
int plugin_give(unsigned long long address);

void stress_prepare(void); /* each file finds the driver's functions for itself */

/* What threads do until it is over. */
void stress_allocate(void);
void stress_fork(void);
void stress_vfork(void);
void stress_clone(void);
void stress_load(void);
void stress_begin_and_end(void);
void stress_signal(void);

#endif
