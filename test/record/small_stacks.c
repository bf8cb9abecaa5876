/* Threads with the smallest stack there is, each with three allocations that it gives back. */
#include "../programs/driver.h"

#include <limits.h>
#include <pthread.h>

static void *work(void *unused)
{
    (void)unused;
    driver_use(0);
    for (size_t i = 1; i <= 3; i++)
        give(take(i * 4096));
    return NULL;
}

int main(void)
{
    pthread_attr_t attributes;
    driver_ready();
    CHECK(pthread_attr_init(&attributes));
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN));
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, work, NULL));
        CHECK(pthread_join(thread, NULL));
    }
    report("small_stacks");
    return 0;
}
