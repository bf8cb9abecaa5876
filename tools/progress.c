/* Progress on a terminal, drawn by a thread that sleeps between two looks at the counter.  Uses the C library. */
#include "tools/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool running, stop;
    char what[160];
    uint64_t total;
    _Atomic uint64_t done;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void progress_draw(unsigned ticks)
{
    char line[256];
    uint64_t done = atomic_load_explicit(&progress.done, memory_order_relaxed);
    if (progress.total)
        snprintf(line, sizeof(line), "\rcudamem: %s: %u%%\033[K", progress.what,
                 (unsigned)(done >= progress.total ? 100 : 100.0 * (double)done / (double)progress.total));
    else
        snprintf(line, sizeof(line), "\rcudamem: %s: %u s\033[K", progress.what, ticks / 2);
    if (write(STDERR_FILENO, line, strlen(line)) < 0)
        return;
}

static void *progress_run(void *unused)
{
    struct timespec next;
    (void)unused;
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&progress.lock);
    for (unsigned ticks = 1;; ticks++) {
        next.tv_nsec += 500000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        while (!progress.stop && pthread_cond_timedwait(&progress.wake, &progress.lock, &next) == 0)
            ;
        if (progress.stop) {
            if (ticks > 1 && write(STDERR_FILENO, "\r\033[K", 4) < 0)
                break;
            break;
        }
        progress_draw(ticks);
    }
    pthread_mutex_unlock(&progress.lock);
    return NULL;
}

void progress_start(const char *what, uint64_t total)
{
    if (progress.running || !isatty(STDERR_FILENO))
        return;
    size_t used = 0;
    for (; *what && used + 1 < sizeof(progress.what); what++)
        progress.what[used++] = (unsigned char)*what < 0x20 || *what == 0x7f ? '?' : *what;
    progress.what[used] = '\0';
    progress.total = total;
    progress.stop = false;
    atomic_store(&progress.done, 0);
    progress.running = pthread_create(&progress.thread, NULL, progress_run, NULL) == 0;
}

void progress_at(uint64_t done)
{
    atomic_store_explicit(&progress.done, done, memory_order_relaxed);
}

void progress_stop(void)
{
    if (!progress.running)
        return;
    pthread_mutex_lock(&progress.lock);
    progress.stop = true;
    pthread_cond_signal(&progress.wake);
    pthread_mutex_unlock(&progress.lock);
    pthread_join(progress.thread, NULL);
    progress.running = false;
}
