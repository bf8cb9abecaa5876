/*
 * sigaction() and signal(), which a program may call for the signal of `record --signal`.  May use record and the linker.
 * The constructor finds the next definitions, so that a handler that calls these waits for nobody's look at the linker.
 */
#include "preload/wrap_signal.h"

#include "preload/linker.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

typedef void signal_handler(int number);
typedef signal_handler *signal_function(int number, signal_handler *handler);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int sigaction(int number, const struct sigaction *action, struct sigaction *old);
EXPORTED signal_handler *signal(int number, signal_handler *handler);
EXPORTED signal_function __sysv_signal;

enum next { NEXT_SIGACTION, NEXT_SIGNAL, NEXT_SYSV_SIGNAL, NEXTS };

static void *next_of(enum next which)
{
    static const char *const names[NEXTS] = {"sigaction", "signal", "__sysv_signal"};
    static _Atomic(void *) all[NEXTS];
    const char *name = names[which];
    _Atomic(void *) *known = &all[which];
    void *next = atomic_load_explicit(known, memory_order_acquire);
    if (!next && (next = linker_next_definition(name)))
        atomic_store_explicit(known, next, memory_order_release);
    return next;
}

record_sigaction *wrap_signal_next(void)
{
    return (record_sigaction *)next_of(NEXT_SIGACTION);
}

void wrap_signal_start(void)
{
    for (enum next which = 0; which < NEXTS; which++)
        next_of(which);
}

int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return recorder_has_signal(number) ? recorder_sigaction(action, old) : wrap_signal_next()(number, action, old);
}

/* As the C library makes one of the other. */
static signal_handler *set_handler(signal_handler *handler, int flags, int masked)
{
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    if (masked)
        sigaddset(&action.sa_mask, masked);
    return recorder_sigaction(&action, &old) ? SIG_ERR : old.sa_handler;
}

signal_handler *signal(int number, signal_handler *handler)
{
    if (recorder_has_signal(number) && handler != SIG_ERR)
        return set_handler(handler, SA_RESTART, number);
    return ((signal_function *)next_of(NEXT_SIGNAL))(number, handler);
}

/* What signal() is in programs for the standard alone. */
signal_handler *__sysv_signal(int number, signal_handler *handler)
{
    if (recorder_has_signal(number) && handler != SIG_ERR)
        return set_handler(handler, (int)SA_RESETHAND | SA_NODEFER, 0);
    return ((signal_function *)next_of(NEXT_SYSV_SIGNAL))(number, handler);
}
