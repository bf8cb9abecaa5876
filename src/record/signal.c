/*
 * A signal that asks for a copy of the ring file.  The action that the program has goes on: its handler is called after
 * ours, and the program is told of what it set itself.  It sets actions by functions that src/preload interposes; one that
 * comes another way (a system call of its own) takes our place, until the recorder looks after it again, as it does from
 * time to time with the events.  Where the program has no handler, the signal has no other effect.
 */
#include "record/internal.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#define SIGNAL_RESTORER 0x04000000 /* SA_RESTORER, which the C library adds where the kernel wants it */

static record_sigaction *set_action;
static int32_t owner;       /* the process whose actions these are: a vfork's child has its own in our memory */
static uint32_t lock;       /* over changes, with signals blocked: a handler may change its own action */
static bool is_on_restorer; /* what the C library adds to each action that was set */
static void (*restorer)(void);

/* The program's action of turn n stands in place n & 1, so that a handler that runs meanwhile finds a whole one. */
static struct sigaction programs[2];
static uint32_t programs_used[2]; /* one that is for a single signal had it */
static uint32_t programs_turn;

/* Where the frame of our handler stands while it calls the program's: that one may call back the one that it found. */
static __thread const char *inside __attribute__((tls_model("initial-exec")));

/* --- the program's action ------------------------------------------------------------------------------------------ */

static bool is_ours(const struct sigaction *action);

/* A copy, and its turn. */
static uint32_t read_programs(struct sigaction *action)
{
    uint32_t turn = __atomic_load_n(&programs_turn, __ATOMIC_ACQUIRE), again;
    for (;; turn = again) {
        *action = programs[turn & 1];
#ifndef __SANITIZE_THREAD__
        __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the copy is whole before the turn is read again */
#endif
        again = __atomic_load_n(&programs_turn, __ATOMIC_RELAXED);
        if (again == turn)
            return turn;
    }
}

static void write_programs(const struct sigaction *action)
{
    uint32_t turn = programs_turn + 1;
    programs[turn & 1] = *action;
    __atomic_store_n(&programs_used[turn & 1], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&programs_turn, turn, __ATOMIC_RELEASE);
}

/* As the kernel tells it. */
static void tell_programs(struct sigaction *action)
{
    uint32_t turn = read_programs(action);
    if ((action->sa_flags & SA_RESETHAND) && __atomic_load_n(&programs_used[turn & 1], __ATOMIC_RELAXED))
        action->sa_handler = SIG_DFL;
}

static bool has_handler(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static void call_programs(int number, siginfo_t *info, void *context)
{
    struct sigaction action;
    uint32_t turn = read_programs(&action);
    if (!has_handler(&action) ||
        ((action.sa_flags & SA_RESETHAND) && __atomic_exchange_n(&programs_used[turn & 1], 1, __ATOMIC_RELAXED)))
        return;
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

/* --- our action ----------------------------------------------------------------------------------------------------- */

/* The kernel puts the context between the frames of the handler that a signal interrupts and of the one that it starts;
 * a call by the program's handler has the first signal's, if any. */
static bool is_called_back(const char *frame, const char *before, const char *context)
{
    return before && frame < before && !(frame < context && context < before);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const char *frame = __builtin_frame_address(0), *before = inside;
    int error = errno;
    if (is_called_back(frame, before, context))
        return;
    recorder_freeze(RING_COPY_SIGNAL);
    inside = frame;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    errno = error;
    call_programs(number, info, context);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    inside = before && frame < before ? before : NULL; /* else that one was left by a jump */
    errno = error;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

/* Calls are restarted, masked and run on the stack that the program asked for.  Ours stays after the first one. */
static int put_ours(const struct sigaction *wanted)
{
    struct sigaction ours = *wanted;
    ours.sa_sigaction = on_signal;
    ours.sa_flags = (ours.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
    if (!has_handler(wanted)) {
        ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
    }
    write_programs(wanted);
    return set_action(recorder.signal, &ours, NULL);
}

/* What is there without having come by us. */
static void take_found(void)
{
    struct sigaction found;
    if (set_action(recorder.signal, NULL, &found) == 0 && !is_ours(&found))
        put_ours(&found);
}

/* --- changes -------------------------------------------------------------------------------------------------------- */

static bool begin_change(sigset_t *mask)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, mask);
    if (lock_try(&lock))
        return true;
    pthread_sigmask(SIG_SETMASK, mask, NULL);
    return false;
}

static void end_change(const sigset_t *mask)
{
    lock_release(&lock);
    pthread_sigmask(SIG_SETMASK, mask, NULL);
}

void signal_keep(void)
{
    struct sigaction found;
    sigset_t mask;
    if (!recorder.signal)
        return;
    int error = errno;
    __atomic_store_n(&owner, (int32_t)getpid(), __ATOMIC_RELAXED);
    if (set_action(recorder.signal, NULL, &found) == 0 && !is_ours(&found) && begin_change(&mask)) {
        take_found();
        end_change(&mask);
    }
    errno = error;
}

/* A child has one thread, which is not in the midst of a change. */
static void own_child(void)
{
    owner = (int32_t)getpid();
    lock_release(&lock);
}

bool recorder_has_signal(int number)
{
    return number && number == recorder.signal;
}

/* With what the C library and the kernel do to it. */
static struct sigaction as_kept(const struct sigaction *action)
{
    struct sigaction kept = *action;
    sigdelset(&kept.sa_mask, SIGKILL);
    sigdelset(&kept.sa_mask, SIGSTOP);
    if (is_on_restorer)
        kept.sa_flags |= SIGNAL_RESTORER;
    kept.sa_restorer = restorer;
    return kept;
}

static int pass_on(const struct sigaction *action, struct sigaction *old)
{
    int status = set_action(recorder.signal, action, old);
    if (!status && old && is_ours(old))
        tell_programs(old);
    return status;
}

int recorder_sigaction(const struct sigaction *action, struct sigaction *old)
{
    struct sigaction wanted, told;
    sigset_t mask;
    if (action)
        wanted = as_kept(action); /* both may be the same */
    if (getpid() != __atomic_load_n(&owner, __ATOMIC_RELAXED) || !begin_change(&mask))
        return pass_on(action, old);
    take_found();
    tell_programs(&told);
    int status = action ? put_ours(&wanted) : 0;
    end_change(&mask);
    if (!status && old)
        *old = told;
    return status;
}

void recorder_take_signal(int number, record_sigaction *next)
{
    struct sigaction ours;
    set_action = next;
    recorder.signal = number;
    signal_keep();
    if (set_action(number, NULL, &ours) == 0 && is_ours(&ours)) {
        is_on_restorer = ours.sa_flags & SIGNAL_RESTORER;
        restorer = ours.sa_restorer;
    }
    pthread_atfork(NULL, NULL, own_child);
}
