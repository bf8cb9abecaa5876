/*
 * Locks that never hang: words tried for a bounded time.  Uses sched_yield and the monotonic clock.
 */
#include "record/internal.h"

#include <sched.h>

enum { LOCK_FREE, LOCK_HELD, LOCK_ABANDONED };

#define LOCK_PATIENCE_NS 2000000000 /* longer than any holder needs; a holder that left by longjmp never comes back */

static void relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void lock_pause(unsigned *turns)
{
    if (++*turns < 100)
        relax();
    else
        sched_yield();
}

static bool take(uint32_t *lock)
{
    uint32_t expected = LOCK_FREE;
    return __atomic_compare_exchange_n(lock, &expected, LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Wait until it was taken (true) or patience ended. */
static bool wait_for(uint32_t *lock, bool heed_abandoned)
{
    int64_t deadline = 0;
    for (unsigned turns = 0;; lock_pause(&turns)) {
        uint32_t now = __atomic_load_n(lock, __ATOMIC_RELAXED);
        if (now == LOCK_FREE && take(lock))
            return true;
        if (now == LOCK_ABANDONED && heed_abandoned)
            return false;
        if (turns % 64 != 63)
            continue;
        int64_t time = ticks_monotonic_ns();
        if (!deadline)
            deadline = time + LOCK_PATIENCE_NS;
        else if (time > deadline)
            return false;
    }
}

/* Once a wait was in vain, others do not wait at all, until the holder gives the lock back after all. */
bool lock_try(uint32_t *lock)
{
    if (take(lock) || wait_for(lock, true))
        return true;
    uint32_t expected = LOCK_HELD;
    __atomic_compare_exchange_n(lock, &expected, LOCK_ABANDONED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return false;
}

void lock_release(uint32_t *lock)
{
    __atomic_store_n(lock, LOCK_FREE, __ATOMIC_RELEASE);
}

void lock_wait_header(uint32_t *lock)
{
    if (wait_for(lock, false))
        return;
    __atomic_fetch_or(&recorder.header->state, RING_STATS_INEXACT, __ATOMIC_RELAXED);
    __atomic_store_n(lock, LOCK_HELD, __ATOMIC_RELAXED);
}
