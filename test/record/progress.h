/* What the program load writes beside the recording, in memory that survives it: each call that has returned. */
#ifndef RECORD_PROGRESS_H
#define RECORD_PROGRESS_H

#include <stdint.h>

#define PROGRESS_THREADS 4
#define PROGRESS_CALLS 65536 /* a thread; load ends when one is at its end */

struct progress_call {
    uint64_t address, size;
    uint32_t action; /* enum record_action */
    uint32_t device;
};

struct progress_thread {
    uint64_t count; /* calls that have returned; stored with release order */
    uint32_t number;
    uint32_t spare;
    struct progress_call calls[PROGRESS_CALLS];
};

struct progress {
    struct progress_thread threads[PROGRESS_THREADS];
};

#endif
