/*
 * A lock for a few hundred nanoseconds of work: one atomic operation to take it and one to let it go while nobody else
 * wants it; who waits turns a little, then sleeps.  Not recursive.  A zeroed struct is an open lock.
 */
#ifndef API_LOCK_H
#define API_LOCK_H

#include <stdatomic.h>

struct library_lock {
    atomic_int state; /* 0 open, 1 taken, 2 taken and somebody sleeps */
};

void lock_wait(struct library_lock *lock);
void lock_wake(struct library_lock *lock);

static inline void lock_take(struct library_lock *lock)
{
    int open = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &open, 1, memory_order_acquire, memory_order_relaxed))
        lock_wait(lock);
}

static inline void lock_open(struct library_lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        lock_wake(lock);
}

#endif
