/* Waiting for a lock.  Linux' futexes. */
#include "api/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TURNS 200 /* looks at a taken lock before sleeping */

static inline void turn(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static long futex(struct library_lock *lock, int operation, int value)
{
    int saved = errno;
    long result = syscall(SYS_futex, &lock->state, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
    errno = saved;
    return result;
}

void lock_wait(struct library_lock *lock)
{
    for (int i = 0; i < TURNS; i++) {
        int seen = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (!seen &&
            atomic_compare_exchange_weak_explicit(&lock->state, &seen, 1, memory_order_acquire, memory_order_relaxed))
            return;
        turn();
    }
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire))
        futex(lock, FUTEX_WAIT, 2);
}

void lock_wake(struct library_lock *lock)
{
    futex(lock, FUTEX_WAKE, 1);
}
