/*
 * A signal that asks for a copy of the ring file.  The handler that the program has goes on being called, after ours;
 * one that it sets later takes our place, until the recorder looks after it again, as it does from time to time with
 * the events: then it is called by ours.  Where the program has none, the signal has no other effect.
 */
#include "record/internal.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

/* The program's action: in one of two places, so that a handler that runs meanwhile finds a whole one. */
static struct sigaction programs[2];
static uint32_t programs_current;
static uint32_t keeping;

/* Where the frame of our handler stands while it calls the program's: that one may call back the one that it found. */
static __thread const char *inside __attribute__((tls_model("initial-exec")));

static void call_programs(int number, siginfo_t *info, void *context)
{
    const struct sigaction *action = &programs[__atomic_load_n(&programs_current, __ATOMIC_ACQUIRE)];
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(number, info, context);
    else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN)
        action->sa_handler(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const char *frame = __builtin_frame_address(0), *before = inside;
    int error = errno;
    if (before && frame < before) /* else it was left by a jump */
        return;
    recorder_freeze(RING_COPY_SIGNAL);
    inside = frame;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    errno = error;
    call_programs(number, info, context);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    inside = NULL;
    errno = error;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

/* Calls are restarted, masked and run on the stack that the program asked for. */
static void put_ours(const struct sigaction *found)
{
    bool has_handler = (found->sa_flags & SA_SIGINFO) || (found->sa_handler != SIG_DFL && found->sa_handler != SIG_IGN);
    struct sigaction ours = *found;
    ours.sa_sigaction = on_signal;
    ours.sa_flags |= SA_SIGINFO;
    if (!has_handler) {
        ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
    }
    uint32_t other = !__atomic_load_n(&programs_current, __ATOMIC_RELAXED);
    programs[other] = *found;
    __atomic_store_n(&programs_current, other, __ATOMIC_RELEASE);
    sigaction(recorder.signal, &ours, NULL);
}

void signal_keep(void)
{
    struct sigaction found;
    if (!recorder.signal || __atomic_exchange_n(&keeping, 1, __ATOMIC_ACQUIRE))
        return;
    if (sigaction(recorder.signal, NULL, &found) == 0 && !is_ours(&found))
        put_ours(&found);
    __atomic_store_n(&keeping, 0, __ATOMIC_RELEASE);
}

void signal_forget_keeper(void)
{
    __atomic_store_n(&keeping, 0, __ATOMIC_RELEASE);
}

void recorder_take_signal(int number)
{
    recorder.signal = number;
    signal_keep();
}
