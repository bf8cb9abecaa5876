/*
 * CUDAMEM_DEBUG=abort: each call keeps its stack, and a misuse ends the program with both stacks on stderr.  For
 * debugging only: it allocates, locks and prints.  Uses src/base.
 */
#include "api/library.h"

#include "base/array.h"
#include "base/table.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEPTH 32
#define OWN_FRAMES 1 /* of this file, on top of each stack */

struct call {
    void *frames[DEPTH];
    int depth;
    bool freed;
};

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct call *calls; /* the last one of each address */
static size_t call_count, call_capacity;
static struct table call_index;

/* Without memory for it the call is just not kept. */
static struct call *call_of(uint64_t address)
{
    uint32_t *slot = table_at(&call_index, address, UINT32_MAX);
    if (!slot)
        return NULL;
    if (*slot != UINT32_MAX)
        return &calls[*slot];
    if (array_reserve(&calls, &call_capacity, call_count + 1, sizeof(*calls)))
        return NULL;
    *slot = (uint32_t)call_count;
    return &calls[call_count++];
}

void library_debug_note(uint64_t address, bool freed)
{
    pthread_mutex_lock(&calls_lock);
    struct call *call = call_of(address);
    if (call) {
        call->depth = backtrace(call->frames, DEPTH);
        call->freed = freed;
    }
    pthread_mutex_unlock(&calls_lock);
}

static void print_frames(void *const *frames, int depth)
{
    int skipped = depth > OWN_FRAMES ? OWN_FRAMES : 0;
    backtrace_symbols_fd(frames + skipped, depth - skipped, STDERR_FILENO);
}

void library_misused(uint64_t address, const struct error *err)
{
    void *frames[DEPTH];
    if (!library_wants(LIBRARY_DEBUG))
        return;
    fprintf(stderr, "cudamem: %s\ncudamem: this call:\n", err->message);
    fflush(stderr);
    print_frames(frames, backtrace(frames, DEPTH));
    pthread_mutex_lock(&calls_lock);
    uint32_t known = table_get(&call_index, address, UINT32_MAX);
    if (known == UINT32_MAX) {
        fprintf(stderr, "cudamem: no call gave or took %#llx before\n", (unsigned long long)address);
    } else {
        fprintf(stderr, "cudamem: %#llx was %s here:\n", (unsigned long long)address,
                calls[known].freed ? "freed" : "handed out");
        print_frames(calls[known].frames, calls[known].depth);
    }
    abort();
}
