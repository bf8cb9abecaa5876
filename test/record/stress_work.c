/* What the threads of the program stress do. */
#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

void stress_prepare(void)
{
    driver_open("libcuda.so.1", 0, BY_DLSYM);
}

void stress_allocate(void)
{
    CUstream stream;
    CHECK(cu.cuStreamCreate(&stream, 0));
    for (unsigned long turn = 0; stress_goes_on("allocation"); turn++) {
        CUdeviceptr address = 0, other = stress_take(1024 + turn % 64 * 512);
        CHECK(cu.cuMemAllocAsync(&address, 4096, stream));
        stress_block();
        stress_self->may_take = 1;
        for (volatile unsigned spin = 0; spin < 2000 && stress_self->may_take; spin++)
            ;
        stress_self->may_take = 0;
        CHECK(cu.cuMemFreeAsync(address, stream));
        stress_give(other);
        if (turn % 64 == 0) /* refused */
            (void)!cu.cuMemAlloc(&address, (size_t)1 << 44);
    }
    CHECK(cu.cuStreamSynchronize(stream));
    CHECK(cu.cuStreamDestroy(stream));
}

void stress_signal(void)
{
    for (unsigned i = 0; stress_goes_on("signals"); i++) {
        struct stress_thread *thread = &stress.threads[i % stress.count];
        struct timespec pause = {0, 700000};
        if (thread->thread && !thread->finished && thread->work != stress_signal)
            pthread_kill(thread->thread, SIGUSR1);
        nanosleep(&pause, NULL);
    }
}

/* --- processes ------------------------------------------------------------------------------------------------------- */

#define CHILD_PATIENCE 20 /* seconds */

/* The child must end well, and soon. */
static void wait_for(pid_t child, const char *what)
{
    int status = 0;
    if (child < 0)
        die(what, errno);
    for (int turn = 0; turn < CHILD_PATIENCE * 1000; turn++) {
        struct timespec pause = {0, 1000000};
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return;
        if (ended == child || (ended < 0 && errno != EINTR)) {
            fprintf(stderr, "stress: the child of a %s: status %d\n", what, status);
            _exit(4);
        }
        nanosleep(&pause, NULL);
    }
    fprintf(stderr, "stress: the child of a %s stands still\n", what);
    kill(child, SIGABRT);
    _exit(3);
}

static void become_program(void)
{
    char *words[] = {(char *)stress.program, (char *)"2", NULL};
    execv(stress.program, words);
    _exit(96);
}

static void be_forked(unsigned turn)
{
    signal(SIGALRM, SIG_DFL);
    stress.forked = true;
    stress_take(2048);
    stress_block();
    if (turn % 8 == 0)
        become_program();
    _exit(0); /* exit would wait for a lock of the C library that another thread may have held */
}

void stress_fork(void)
{
    for (unsigned turn = 0; stress_goes_on("fork"); turn++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            be_forked(turn);
        wait_for(child, "fork");
    }
}

static char *const does_nothing[] = {(char *)"true", NULL};

static pid_t spawn(void)
{
    pid_t child;
    return posix_spawnp(&child, does_nothing[0], NULL, NULL, does_nothing, environ) ? -1 : child;
}

static pid_t fork_without_copy(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execvp(does_nothing[0], does_nothing);
        _exit(96);
    }
    return child;
}

void stress_vfork(void)
{
    for (unsigned turn = 0; stress_goes_on("vfork"); turn++) {
        wait_for(turn % 2 ? fork_without_copy() : spawn(), "vfork");
        stress_give(stress_take(512));
    }
}

/* No handler of pthread_atfork runs: whatever locks others hold are held in the child, so it stays away from them. */
void stress_clone(void)
{
    while (stress_goes_on("clone")) {
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
            _exit(0);
        wait_for(child, "clone");
        stress_give(stress_take(512));
    }
}

/* --- libraries ------------------------------------------------------------------------------------------------------- */

static int call_back(void *context)
{
    stress_give(stress_take(4096));
    stress_block();
    return context == NULL;
}

void stress_load(void)
{
    for (unsigned turn = 0; stress_goes_on("dlopen"); turn++) {
        void *library = dlopen(stress.libraries[turn % 2], RTLD_NOW | RTLD_LOCAL);
        int (*call)(int (*)(void *), void *) =
            library ? (int (*)(int (*)(void *), void *))dlsym(library, turn % 2 ? "second_call" : "first_call") : NULL;
        if (!call || !dlsym(driver_library, "cuMemAlloc_v2"))
            die("a library's function", 0);
        stress_goes_on("call through a library");
        call(call_back, library);
        stress_goes_on("dlclose");
        dlclose(library);
    }
}

/* --- threads --------------------------------------------------------------------------------------------------------- */

static pthread_key_t last_words;
static pthread_once_t last_words_once = PTHREAD_ONCE_INIT;

/* A destructor of the thread's, among the recorder's own and libunwind's. */
static void say_last_words(void *ignored)
{
    (void)ignored;
    if (cu.cuCtxSetCurrent(stress.context) == CUDA_SUCCESS)
        stress_give(stress_take(1024));
    stress_block();
}

static void make_key(void)
{
    pthread_key_create(&last_words, say_last_words);
}

enum end { END_RETURN, END_EXIT, END_CANCELLED, END_CANCELLED_ANYWHERE, END_BY_SIGNAL, ENDS };

static void on_end(int number)
{
    (void)number;
    stress_block();
    pthread_exit(NULL);
}

static void *live_shortly(void *argument)
{
    enum end end = (enum end)(uintptr_t)argument;
    sigset_t set;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setspecific(last_words, argument ? argument : (void *)stress.program);
    CHECK(cu.cuCtxSetCurrent(stress.context));
    stress_give(stress_take(8192));
    if (end == END_EXIT)
        pthread_exit(NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    while (end == END_CANCELLED) {
        CUdeviceptr address = stress_take(8192); /* no place where a thread may be cancelled, and so must it stay */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        stress_give(address); /* in the simulated driver it is one */
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_testcancel();
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (end == END_CANCELLED_ANYWHERE)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    if (end == END_BY_SIGNAL)
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    for (volatile bool ends = end != END_RETURN; ends;)
        ;
    return NULL;
}

void stress_begin_and_end(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR2, on_end);
    pthread_once(&last_words_once, make_key);
    for (unsigned turn = 0; stress_goes_on("threads"); turn++) {
        pthread_t threads[ENDS];
        for (uintptr_t end = 0; end < ENDS; end++)
            if (pthread_create(&threads[end], NULL, live_shortly, (void *)end))
                die("pthread_create", 0);
        pthread_cancel(threads[END_CANCELLED]);
        if (turn % 16 == 0)
            usleep(1000);
        pthread_cancel(threads[END_CANCELLED_ANYWHERE]);
        pthread_kill(threads[END_BY_SIGNAL], SIGUSR2);
        stress_goes_on("ends of threads");
        for (unsigned end = 0; end < ENDS; end++)
            pthread_join(threads[end], NULL);
    }
}
