/*
 * A lock that is held for a few probes of a table, never while the driver runs or an event is recorded.  A forked child
 * lets go of it, because the thread that held it may be its parent's.
 */
#ifndef PRELOAD_SPIN_H
#define PRELOAD_SPIN_H

#include <sched.h>
#include <stdatomic.h>

static inline void spin_lock(atomic_flag *flag)
{
    while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire))
        sched_yield();
}

static inline void spin_unlock(atomic_flag *flag)
{
    atomic_flag_clear_explicit(flag, memory_order_release);
}

#endif
