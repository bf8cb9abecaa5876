/*
 * stress SECONDS PROGRAM FIRST SECOND: everything at once that could make a recorder wait for itself.  Threads that take and
 * give memory; forks whose children do so, end or become PROGRAM; vfork, raw clone; libraries (FIRST, SECOND) that come and
 * go, and take memory while they do; threads that begin and end in every way; signals whose handlers tell of blocks, on
 * small stacks of their own.  Whoever stands still for too long is named, and the program ends with status 3.  In the end
 * nothing lives.
 */
#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>

struct stress stress;
__thread struct stress_thread *stress_self;

CUdeviceptr stress_take(size_t bytes)
{
    CUdeviceptr address = 0;
    CHECK(cu.cuMemAlloc(&address, bytes));
    return address;
}

void stress_give(CUdeviceptr address)
{
    CHECK(cu.cuMemFree(address));
}

/* For the libraries. */
EXPORTED int plugin_take(unsigned long long *address, size_t bytes)
{
    CUdeviceptr taken = 0;
    int result = (int)cu.cuMemAlloc(&taken, bytes);
    *address = taken;
    return result;
}

EXPORTED int plugin_give(unsigned long long address)
{
    return stress.forked ? 0 : (int)cu.cuMemFree(address);
}

bool stress_goes_on(const char *doing)
{
    if (stress_self) {
        __atomic_store_n(&stress_self->doing, doing, __ATOMIC_RELAXED);
        __atomic_fetch_add(&stress_self->turns, 1, __ATOMIC_RELAXED);
    }
    return !__atomic_load_n(&stress.stop, __ATOMIC_RELAXED);
}

void stress_block(void)
{
    void *address = (void *)(uintptr_t)(stress.segment + (CUdeviceptr)(gettid() % 1024) * 1024);
    report_memory(address, 1024, 0, 0, (struct torch_device){1, 0});
    report_memory(address, -1024, 0, 0, (struct torch_device){1, 0});
}

/* Anywhere: in the recorder, in the unwinder, in the linker, in malloc.  The driver only where the thread is in none. */
static void on_signal(int number)
{
    int error = errno;
    (void)number;
    stress_block();
    if (stress_self && stress_self->may_take) {
        stress_self->may_take = 0;
        stress_give(stress_take(4096));
    }
    errno = error;
}

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval every = {{0, 3000}, {0, 3000}};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

/* --- who stands still ------------------------------------------------------------------------------------------------ */

#define PATIENCE 25 /* seconds: more than any bounded wait of the recorder, many times over */

static void tell_who_stands_still(void)
{
    for (unsigned i = 0; i < stress.count; i++)
        fprintf(stderr, "stress: %s: %lu turns, %u seconds without one, at %s\n", stress.threads[i].name,
                stress.threads[i].turns, stress.threads[i].still, stress.threads[i].doing);
}

static void watch(unsigned seconds)
{
    for (unsigned second = 0; second < seconds; second++) {
        struct timespec rest = {1, 0};
        while (nanosleep(&rest, &rest) && errno == EINTR)
            ;
        for (unsigned i = 0; i < stress.count; i++) {
            struct stress_thread *thread = &stress.threads[i];
            unsigned long turns = __atomic_load_n(&thread->turns, __ATOMIC_RELAXED);
            thread->still = turns == thread->seen ? thread->still + 1 : 0;
            thread->seen = turns;
            if (thread->still > PATIENCE) {
                tell_who_stands_still();
                _exit(3);
            }
        }
    }
}

static void *begin_thread(void *argument)
{
    stress_self = argument;
    char *own = malloc(STRESS_SIGNAL_STACK);
    stack_t stack = {.ss_sp = own, .ss_size = STRESS_SIGNAL_STACK}, none = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    CHECK(cu.cuCtxSetCurrent(stress.context));
    stress_self->work();
    sigaltstack(&none, NULL);
    free(own);
    stress_self->finished = true;
    return NULL;
}

static void add(const char *name, void (*work)(void))
{
    struct stress_thread *thread = &stress.threads[stress.count++];
    thread->name = name;
    thread->doing = "start";
    thread->work = work;
    if (pthread_create(&thread->thread, NULL, begin_thread, thread))
        die("pthread_create", errno);
}

/* They are given as long to end as to do anything else. */
static void end_all(void)
{
    __atomic_store_n(&stress.stop, true, __ATOMIC_RELAXED);
    for (unsigned second = 0; second < PATIENCE; second++) {
        bool all = true;
        for (unsigned i = 0; i < stress.count; i++)
            all = all && __atomic_load_n(&stress.threads[i].finished, __ATOMIC_RELAXED);
        if (all)
            break;
        struct timespec rest = {0, 200000000};
        nanosleep(&rest, NULL);
        if (second + 1 == PATIENCE) {
            tell_who_stands_still();
            _exit(3);
        }
    }
    for (unsigned i = 0; i < stress.count; i++)
        pthread_join(stress.threads[i].thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 97;
    stress.program = argv[2];
    stress.libraries[0] = argv[3];
    stress.libraries[1] = argv[4];
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    stress_prepare();
    CHECK(cu.cuInit(0));
    CHECK(cu.cuDevicePrimaryCtxRetain(&stress.context, 0));
    CHECK(cu.cuCtxSetCurrent(stress.context));
    stress.segment = stress_take(MIB);
    stress_block();
    handle_signals();
    for (int i = 0; i < 3; i++)
        add("allocator", stress_allocate);
    for (int i = 0; i < 2; i++) {
        add("fork", stress_fork);
        add("library", stress_load);
        add("threads", stress_begin_and_end);
    }
    add("vfork", stress_vfork);
    add("clone", stress_clone);
    add("signals", stress_signal);
    watch((unsigned)strtoul(argv[1], NULL, 10));
    end_all();
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    stress_give(stress.segment);
    for (unsigned i = 0; i < stress.count; i++)
        if (!stress.threads[i].turns)
            die(stress.threads[i].name, 0);
    printf("stress: done\n");
    if (getenv("STRESS_TURNS"))
        tell_who_stands_still();
    return 0;
}
