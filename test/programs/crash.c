/* Ends in the way asked for, with three allocations alive. */
#include <signal.h>

#include "driver.h"

static volatile uintptr_t nowhere = 16;

static NOINLINE void end(const char *kind)
{
    if (strcmp(kind, "exit") == 0)
        exit(0);
    if (strcmp(kind, "exit3") == 0)
        exit(3);
    if (strcmp(kind, "_exit") == 0)
        _exit(0);
    if (strcmp(kind, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(kind, "abort") == 0 || strcmp(kind, "throw") == 0)
        abort();
    if (strcmp(kind, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(kind, "segv") == 0)
        *(volatile int *)nowhere = 1;
    exit(97);
}

static NOINLINE void hold_three(void)
{
    for (int i = 0; i < 3; i++)
        take(2 * MIB);
}

int main(int argc, char **argv)
{
    driver_ready();
    hold_three();
    report("crash");
    end(argc > 1 ? argv[1] : "exit");
}
