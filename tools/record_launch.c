/* Running the program.  Uses base and the C library. */
#include "tools/record_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Signals that end or steer programs: what somebody sends to us is meant for the program.  Those that the terminal
 * sends went to the program as well. */
static const int launch_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};
#define LAUNCH_SIGNALS (sizeof(launch_signals) / sizeof(launch_signals[0]))

static volatile sig_atomic_t launch_child;

static void hand_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    pid_t child = launch_child;
    if (child > 0 && info->si_code <= 0 && info->si_pid != child)
        kill(child, number);
    errno = saved;
}

/* Our own lines and files must not end us before the program's end was told: a closed pipe or a limit is an error of the
 * one that writes.  The program has its own ways, so only the parent does this. */
static void take_writing_signals(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* What was ignored (nohup) stays ignored. */
static void take_signals(struct sigaction before[LAUNCH_SIGNALS])
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = hand_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (size_t i = 0; i < LAUNCH_SIGNALS; i++) {
        sigaction(launch_signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(launch_signals[i], &action, NULL);
    }
}

static void give_signals_back(const struct sigaction before[LAUNCH_SIGNALS])
{
    for (size_t i = 0; i < LAUNCH_SIGNALS; i++)
        sigaction(launch_signals[i], &before[i], NULL);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* In the child: become the program, or tell the parent why not. */
static void become(char **argv, const struct record_env *env, bool only, int report)
{
    char pid[32];
    int error = 0;
    if (record_env_apply(env, NULL))
        error = ENOMEM;
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    if (!error && only && setenv("CUDAMEM_PID", pid, 1))
        error = ENOMEM;
    if (!error) {
        execvp(argv[0], argv);
        error = errno;
    }
    ssize_t written = write(report, &error, sizeof(error));
    (void)written;
    _exit(127);
}

static void wait_for(struct record_run *run)
{
    while (waitpid(run->pid, &run->status, 0) < 0)
        if (errno != EINTR) {
            run->status = 0; /* somebody else took it; there is no better answer */
            break;
        }
    run->end = now();
}

int record_launch(char **argv, const struct record_env *env, bool only, struct record_run *run, struct error *err)
{
    struct sigaction before[LAUNCH_SIGNALS], child_before, child_default;
    sigset_t all, mask;
    int report[2];
    memset(run, 0, sizeof(*run));
    if (pipe2(report, O_CLOEXEC))
        return error_set(err, STATUS_NO_MEMORY, "pipe: %s", strerror(errno));
    memset(&child_default, 0, sizeof(child_default));
    child_default.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &child_default, &child_before); /* ignored, it would take the status away */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask);
    run->start = now();
    run->pid = fork();
    if (run->pid == 0) {
        sigaction(SIGCHLD, &child_before, NULL);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        close(report[0]);
        become(argv, env, only, report[1]);
    }
    int status = STATUS_OK;
    close(report[1]);
    if (run->pid < 0) {
        status = error_set(err, STATUS_NO_MEMORY, "no process can be made: %s", strerror(errno));
        sigprocmask(SIG_SETMASK, &mask, NULL);
    } else {
        launch_child = run->pid;
        take_signals(before);
        take_writing_signals();
        sigprocmask(SIG_SETMASK, &mask, NULL);
        ssize_t length;
        do
            length = read(report[0], &run->exec_error, sizeof(run->exec_error));
        while (length < 0 && errno == EINTR);
        if (length != (ssize_t)sizeof(run->exec_error))
            run->exec_error = 0;
        wait_for(run);
        launch_child = 0;
        give_signals_back(before);
    }
    close(report[0]);
    sigaction(SIGCHLD, &child_before, NULL);
    return status;
}

int record_end_like(const struct record_run *run)
{
    if (WIFEXITED(run->status))
        return WEXITSTATUS(run->status);
    if (!WIFSIGNALED(run->status))
        return EXIT_FAILURE;
    int number = WTERMSIG(run->status);
    struct rlimit none = {0, 0}; /* the program's core is enough */
    sigset_t set;
    fflush(NULL);
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), number);
    return 128 + number;
}
