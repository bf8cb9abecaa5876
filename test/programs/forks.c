/* A child that uses the device as well; see meson.build for the words. */
#include <sys/syscall.h>
#include <sys/wait.h>

#include "driver.h"

static NOINLINE void child_work(void)
{
    driver_use(0);
    for (int i = 0; i < 3; i++)
        take(MIB);
    report("forks child");
}

static NOINLINE void parent_work(void)
{
    driver_use(0);
    for (int i = 0; i < 2; i++)
        take(2 * MIB);
    report("forks parent");
}

int main(int argc, char **argv)
{
    bool before = false, raw = false;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        before |= strcmp(argv[i], "before") == 0;
        raw |= strcmp(argv[i], "clone") == 0;
    }
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    if (before)
        parent_work();
    pid_t child = raw ? (pid_t)syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0) : fork();
    if (child == 0) {
        memset(&done, 0, sizeof done);
        child_work();
        if (raw)
            _exit(0);
        exit(0);
    }
    if (!before)
        parent_work();
    if (waitpid(child, &status, 0) != child)
        return 97;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 96;
}
