/* A signal handled, and one died of. */
#include <signal.h>

#include "driver.h"

static volatile sig_atomic_t seen;

static void handler(int number)
{
    seen = number;
}

int main(void)
{
    signal(SIGUSR1, handler);
    driver_ready();
    take(MIB);
    raise(SIGUSR1);
    printf("signal %d\n", (int)seen);
    report("signals");
    raise(SIGTERM);
    return 97;
}
