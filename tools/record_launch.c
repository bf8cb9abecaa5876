/* Running the program.  Uses base and the C library. */
#include "tools/record_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Signals that end or steer programs: what somebody sends to us is meant for the program.  Those that the terminal
 * sends went to the program as well. */
static const int launch_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};
#define LAUNCH_SIGNALS (sizeof(launch_signals) / sizeof(launch_signals[0]))

struct launch_before { /* what the signals did: those, and the one that the user chose */
    struct sigaction usual[LAUNCH_SIGNALS], chosen;
};

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
static void take_signals(int chosen, struct launch_before *before)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = hand_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    if (chosen)
        sigaction(chosen, &action, &before->chosen);
    for (size_t i = 0; i < LAUNCH_SIGNALS; i++) {
        if (launch_signals[i] == chosen)
            continue;
        sigaction(launch_signals[i], NULL, &before->usual[i]);
        if (before->usual[i].sa_handler != SIG_IGN)
            sigaction(launch_signals[i], &action, NULL);
    }
}

static void give_signals_back(int chosen, const struct launch_before *before)
{
    for (size_t i = 0; i < LAUNCH_SIGNALS; i++)
        if (launch_signals[i] != chosen)
            sigaction(launch_signals[i], &before->usual[i], NULL);
    if (chosen)
        sigaction(chosen, &before->chosen, NULL);
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

/* True when the program has ended. */
static bool has_ended(struct record_run *run, int options)
{
    pid_t ended;
    while ((ended = waitpid(run->pid, &run->status, options)) < 0)
        if (errno != EINTR) {
            run->status = 0; /* somebody else took it; there is no better answer */
            return true;
        }
    return ended == run->pid;
}

#define LAUNCH_TURN 200 /* milliseconds, where the kernel tells of no end or no file */

/* What came into the folder is seen by looking there. */
static void drain(int fd)
{
    char buffer[4096];
    while (read(fd, buffer, sizeof(buffer)) > 0)
        ;
}

static void wait_watching(struct record_run *run, const struct record_watch *watch)
{
    struct pollfd sources[2] = {{.fd = (int)syscall(SYS_pidfd_open, run->pid, 0), .events = POLLIN},
                                {.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .events = POLLIN}};
    bool is_told = sources[0].fd >= 0 && sources[1].fd >= 0 &&
                   inotify_add_watch(sources[1].fd, watch->folder, IN_MOVED_TO) >= 0;
    watch->begin(watch->context, run->pid);
    while (!has_ended(run, WNOHANG)) {
        int left = watch->look(watch->context);
        if (!is_told && (left < 0 || left > LAUNCH_TURN))
            left = LAUNCH_TURN;
        if (poll(sources, 2, left) > 0 && (sources[1].revents & POLLIN))
            drain(sources[1].fd);
    }
    for (int i = 0; i < 2; i++)
        if (sources[i].fd >= 0)
            close(sources[i].fd);
}

static void wait_for(struct record_run *run, const struct record_watch *watch)
{
    if (watch)
        wait_watching(run, watch);
    else
        has_ended(run, 0);
    run->end = now();
}

int record_launch(char **argv, const struct record_env *env, bool only, const struct record_watch *watch,
                  struct record_run *run, struct error *err)
{
    struct launch_before before;
    struct sigaction child_before, child_default;
    int chosen = watch ? watch->signal : 0;
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
        take_signals(chosen, &before);
        take_writing_signals();
        sigprocmask(SIG_SETMASK, &mask, NULL);
        ssize_t length;
        do
            length = read(report[0], &run->exec_error, sizeof(run->exec_error));
        while (length < 0 && errno == EINTR);
        if (length != (ssize_t)sizeof(run->exec_error))
            run->exec_error = 0;
        wait_for(run, run->exec_error ? NULL : watch);
        launch_child = 0;
        give_signals_back(chosen, &before);
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
