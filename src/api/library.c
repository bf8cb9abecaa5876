/*
 * The process's library: its locks, who may come in, forks.  Uses src/base and src/alloc.
 *
 * A thread that is inside a call (library_thread.inside) holds one device's lock, or waits for it; whatever comes from
 * it meanwhile, a callback or a signal handler, is refused.
 */
#include "api/library.h"

#include <cudamem/allocator.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct library_device library_devices[LIBRARY_DEVICES];
__thread struct library_thread library_thread;

static struct library_lock settings_lock;

int library_check_outside(struct error *err)
{
    return library_thread.inside
               ? error_set(err, CUDAMEM_ERROR_REENTERED, "called from within a call of this library: a trace tracker or a "
                                                         "signal handler must not ask for or free memory")
               : CUDAMEM_OK;
}

int library_enter(struct library_device *device, struct error *err)
{
    return library_try_enter(device) ? CUDAMEM_OK : library_check_outside(err);
}

void library_pause(struct library_device *device)
{
    if (!library_thread.held)
        lock_open(&device->lock);
    library_thread.inside = false;
}

void library_resume(struct library_device *device)
{
    library_thread.inside = true;
    if (!library_thread.held)
        lock_take(&device->lock);
}

int library_settings_enter(struct error *err)
{
    int status = library_check_outside(err);
    if (status)
        return status;
    library_thread.inside = true;
    if (!library_thread.held)
        lock_take(&settings_lock);
    return CUDAMEM_OK;
}

void library_settings_leave(void)
{
    if (!library_thread.held)
        lock_open(&settings_lock);
    library_thread.inside = false;
}

/* --- everything --------------------------------------------------------------------------------------------------- */

static void take_all(void)
{
    lock_take(&settings_lock);
    for (int i = 0; i < LIBRARY_DEVICES; i++)
        lock_take(&library_devices[i].lock);
}

static void open_all(void)
{
    for (int i = LIBRARY_DEVICES; i-- > 0;)
        lock_open(&library_devices[i].lock);
    lock_open(&settings_lock);
}

/* A child has the thread that forked only: it must find no lock that another one held.  Within a call of its own the
 * thread goes on in both. */
static __thread bool fork_holds;

static void before_fork(void)
{
    fork_holds = !library_thread.inside && !library_thread.held;
    if (fork_holds)
        take_all();
}

static void after_fork(void)
{
    if (fork_holds)
        open_all();
}

static void begin(void)
{
    const char *word = getenv("CUDAMEM_DEBUG");
    if (word && strcmp(word, "abort") == 0)
        atomic_fetch_or(&library_ways, LIBRARY_DEBUG);
    pthread_atfork(before_fork, after_fork, after_fork);
}

void library_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
}

int library_hold(struct error *err)
{
    int status = library_check_outside(err);
    if (status)
        return status;
    if (!library_thread.held) {
        library_begin();
        library_thread.inside = true;
        take_all();
        library_thread.inside = false;
    }
    library_thread.held++;
    return CUDAMEM_OK;
}

int library_let_go(struct error *err)
{
    int status = library_check_outside(err);
    if (status)
        return status;
    if (!library_thread.held)
        return error_set(err, CUDAMEM_ERROR_STATE, "this thread does not hold the allocators: nothing to unlock");
    if (!--library_thread.held)
        open_all();
    return CUDAMEM_OK;
}

EXPORT int cudamem_free_mutex_lock(cudamem_error *error)
{
    struct error err = {0};
    int status = library_hold(&err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_free_mutex_unlock(cudamem_error *error)
{
    struct error err = {0};
    int status = library_let_go(&err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}
