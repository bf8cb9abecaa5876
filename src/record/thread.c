/*
 * What a thread remembers, from its first event to its end, and fork.  A forked child has only the forking thread: locks
 * that others held at that moment (the loader's and libunwind's, while frames are taken) would be held in it for ever.
 * So fork waits until no thread is in the unwinder; the captures pay one store each for that, because the one who
 * waits makes the others' stores visible by membarrier(2).
 */
#include "record/internal.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FORK_PATIENCE_NS 500000000

__thread struct recorder_thread recorder_self __attribute__((tls_model("initial-exec")));

static pthread_key_t thread_end;
static bool has_thread_end;

/* Around the thread lock outside events: a signal handler's event would wait for it. */
static uint32_t begin_lock(void)
{
    uint32_t inside = recorder_self.inside;
    recorder_self.inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return inside;
}

static void end_lock(uint32_t inside)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    recorder_self.inside = inside;
}

static bool forget_thread(struct recorder_thread_block *block)
{
    if (!lock_try(&recorder.thread_lock))
        return false;
    struct recorder_thread_block **link = &recorder.threads;
    while (*link && *link != block)
        link = &(*link)->next;
    if (*link)
        *link = block->next;
    lock_release(&recorder.thread_lock);
    return true;
}

/* A thread ends: its memory goes.  If it records again (in a later destructor), it gets new memory. */
static void end_thread(void *block)
{
    uint32_t inside = begin_lock();
    recorder_self.block = NULL;
    recorder_self.generation = 0;
    if (forget_thread(block))
        munmap(block, sizeof(struct recorder_thread_block));
    end_lock(inside);
}

static struct recorder_thread_block *new_block(void)
{
    void *map = mmap(NULL, sizeof(struct recorder_thread_block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    struct recorder_thread_block *block = map;
    if (map == MAP_FAILED)
        return NULL;
    bool forks = recorder_self.forks; /* in a signal handler */
    if (!forks && !lock_try(&recorder.thread_lock)) {
        munmap(map, sizeof(struct recorder_thread_block));
        return NULL;
    }
    block->next = recorder.threads;
    recorder.threads = block;
    if (!forks)
        lock_release(&recorder.thread_lock);
    if (has_thread_end)
        pthread_setspecific(thread_end, block);
    return block;
}

void recorder_enter_thread(void)
{
    struct recorder_thread_block *block = recorder_self.block;
    if (!block) {
        recorder_self.block = new_block();
    } else {
        memset(block->stacks, 0, sizeof(block->stacks));
        memset(block->python.known, 0, sizeof(block->python.known));
        block->python.count = 0;
        block->removed_count = 0;
        block->freed_address = 0;
    }
    recorder_self.number = (uint32_t)syscall(SYS_gettid);
    recorder_self.generation = recorder.generation;
    annotate_enter_thread();
}

/* --- fork ------------------------------------------------------------------------------------------------------------ */

static bool is_late(int64_t *deadline, unsigned turns)
{
    if (turns % 64 != 63)
        return false;
    int64_t now = ticks_monotonic_ns();
    if (!*deadline)
        *deadline = now + FORK_PATIENCE_NS;
    return now > *deadline;
}

bool recorder_begin_capture(struct recorder_thread_block *block)
{
    int64_t deadline = 0;
    for (unsigned turns = 0;; lock_pause(&turns)) {
        __atomic_store_n(&block->capturing, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the fork's membarrier does the rest */
        if (!__atomic_load_n(&recorder.forking, __ATOMIC_ACQUIRE) || recorder_self.forks)
            return true; /* the one who forks waits for nobody: it is in a signal handler that ends before */
        __atomic_store_n(&block->capturing, 0, __ATOMIC_RELEASE);
        if (recorder_self.unloads || is_late(&deadline, turns)) /* the fork waits for those who wait for us */
            return false;
    }
}

void recorder_unloads(bool begins)
{
    recorder_self.unloads += begins ? 1u : -1u;
}

/* An old kernel: long enough for any store to arrive. */
static void wait_for_stores(void)
{
    int cancel = cancel_off();
    usleep(1000);
    cancel_as(cancel);
}

static void before_fork(void)
{
    uint32_t inside = begin_lock();
    bool taken = lock_try(&recorder.thread_lock);
    if (taken)
        recorder_self.forks = 1;
    end_lock(inside);
    if (!taken)
        return;
    __atomic_store_n(&recorder.forking, 1, __ATOMIC_SEQ_CST);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
        wait_for_stores();
    int64_t deadline = 0;
    for (struct recorder_thread_block *block = recorder.threads; block; block = block->next) {
        unsigned turns = 0;
        while (block != recorder_self.block && __atomic_load_n(&block->capturing, __ATOMIC_ACQUIRE)) {
            if (is_late(&deadline, turns))
                return;
            lock_pause(&turns);
        }
    }
}

static void after_fork(void)
{
    if (!recorder_self.forks) /* the lock is another's */
        return;
    __atomic_store_n(&recorder.forking, 0, __ATOMIC_RELEASE);
    uint32_t inside = begin_lock();
    lock_release(&recorder.thread_lock);
    recorder_self.forks = 0;
    end_lock(inside);
}

/* What other threads held. */
static void forget_holders(void)
{
    recorder.fact_lock = 0;
    annotate_forget_holder();
}

/* The other threads' memory is of no use here. */
static void after_fork_in_child(void)
{
    struct recorder_thread_block *block = recorder.threads;
    recorder.threads = NULL;
    while (block) {
        struct recorder_thread_block *next = block->next;
        if (block != recorder_self.block) {
            munmap(block, sizeof(*block));
        } else {
            block->next = NULL;
            recorder.threads = block;
        }
        block = next;
    }
    recorder_self.forks = 1; /* nobody else is left to hold it */
    forget_holders();
    after_fork();
}

void recorder_hold_captures(void)
{
    before_fork();
}

void recorder_release_captures(void)
{
    after_fork();
}

void recorder_threads_start(void)
{
    has_thread_end = pthread_key_create(&thread_end, end_thread) == 0;
    if (!recorder.stacks && !recorder.python) {
        pthread_atfork(NULL, NULL, forget_holders);
        return;
    }
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
