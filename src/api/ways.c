/*
 * Who takes part in the calls of the allocators: history, trace trackers, observers of failed requests, an allocator in
 * place of ours.  Uses src/base and src/alloc.
 *
 * What is called under a device's lock is changed only while all locks are held; observers are called without any, from
 * a copy of their list.
 */
#include "api/library.h"

#include "base/array.h"

#include <cudamem/allocator.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

atomic_uint library_ways;

struct watcher {
    uint64_t id;
    cudamem_oom_observer observer;
    cudamem_trace_tracker tracker;
    void *self;
};

struct watchers {
    struct watcher *items;
    size_t count, capacity;
};

static _Atomic(const struct library_history *) history; /* the last one there was: calls under way end with it */
static bool history_keeps;                              /* its event() is called; under all locks */
static struct watchers trackers, observers; /* the former under all locks, the latter under theirs */
static pthread_mutex_t observers_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ullong last_id;

/* --- events ------------------------------------------------------------------------------------------------------- */

static void trace(void *self, const struct allocator_event *event)
{
    struct library_device *device = self;
    if (history_keeps) {
        const struct library_history *keeper = atomic_load_explicit(&history, memory_order_relaxed);
        keeper->event(keeper->self, device, event);
    }
    const cudamem_trace_event told = {
        .struct_size = sizeof(told),
        .action = (int32_t)event->action,
        .device = device->ordinal,
        .stream = event->stream,
        .address = event->address,
        .size = event->size,
        .pool = {event->pool.first, event->pool.second},
    };
    for (size_t i = 0; i < trackers.count; i++)
        trackers.items[i].tracker(trackers.items[i].self, &told);
}

void library_trace(struct library_device *device, const struct allocator_event *event)
{
    if (history_keeps || trackers.count)
        trace(device, event);
}

void library_set_trace(struct library_device *device)
{
    allocator_set_trace(device->allocator, history_keeps || trackers.count ? trace : NULL, device);
}

static void set_traces(void)
{
    for (struct library_device *d = library_next_device(0); d; d = library_next_device(d->ordinal + 1))
        library_set_trace(d);
}

/* --- history ------------------------------------------------------------------------------------------------------ */

int library_set_history(const struct library_history *wanted, unsigned ways, struct error *err)
{
    const unsigned all = LIBRARY_CAPTURE_ALLOC | LIBRARY_CAPTURE_FREE;
    int status = library_hold(err);
    if (status)
        return status;
    atomic_fetch_and(&library_ways, ~all);
    if (wanted)
        atomic_store(&history, wanted);
    history_keeps = wanted && wanted->event;
    if (wanted && wanted->capture)
        atomic_fetch_or(&library_ways, ways & all);
    set_traces();
    return library_let_go(err);
}

uint64_t library_context_begin(enum library_way way)
{
    const struct library_history *keeper = library_wants(way) ? atomic_load(&history) : NULL;
    return keeper && keeper->capture ? keeper->capture(keeper->self) : 0;
}

void library_context_end(uint64_t context)
{
    const struct library_history *keeper = context ? atomic_load(&history) : NULL;
    if (keeper && keeper->captured)
        keeper->captured(keeper->self, context);
}

/* --- trackers and observers --------------------------------------------------------------------------------------- */

static int watchers_add(struct watchers *list, const struct watcher *watcher, struct error *err)
{
    if (array_reserve(&list->items, &list->capacity, list->count + 1, sizeof(*list->items)))
        return error_no_memory(err);
    list->items[list->count++] = *watcher;
    return CUDAMEM_OK;
}

static bool watchers_remove(struct watchers *list, uint64_t id)
{
    size_t i = 0;
    while (i < list->count && list->items[i].id != id)
        i++;
    if (i == list->count)
        return false;
    list->count--;
    memmove(list->items + i, list->items + i + 1, (list->count - i) * sizeof(*list->items));
    return true;
}

EXPORT int cudamem_attach_oom_observer(cudamem_oom_observer observer, void *self, uint64_t *id, cudamem_error *error)
{
    struct error err = {0};
    struct watcher watcher = {.observer = observer, .self = self, .id = atomic_fetch_add(&last_id, 1) + 1};
    int status = observer ? library_native_only("observers of failed requests", &err)
                          : error_set(&err, CUDAMEM_ERROR_USAGE, "no observer was given");
    if (!status)
        status = library_check_outside(&err);
    if (!status) {
        pthread_mutex_lock(&observers_lock);
        status = watchers_add(&observers, &watcher, &err);
        pthread_mutex_unlock(&observers_lock);
    }
    if (!status && id)
        *id = watcher.id;
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_attach_trace_tracker(cudamem_trace_tracker tracker, void *self, uint64_t *id, cudamem_error *error)
{
    struct error err = {0};
    struct watcher watcher = {.tracker = tracker, .self = self, .id = atomic_fetch_add(&last_id, 1) + 1};
    int status = tracker ? library_native_only("trace trackers", &err)
                         : error_set(&err, CUDAMEM_ERROR_USAGE, "no tracker was given");
    if (!status)
        status = library_hold(&err);
    if (!status) {
        status = watchers_add(&trackers, &watcher, &err);
        set_traces();
        library_let_go(NULL);
    }
    if (!status && id)
        *id = watcher.id;
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_detach(uint64_t id, cudamem_error *error)
{
    struct error err = {0};
    int status = library_hold(&err);
    if (status)
        return api_report(error, &err, status);
    bool found = watchers_remove(&trackers, id);
    set_traces();
    library_let_go(NULL);
    pthread_mutex_lock(&observers_lock);
    found |= watchers_remove(&observers, id);
    pthread_mutex_unlock(&observers_lock);
    if (found)
        return CUDAMEM_OK;
    return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_NOT_FOUND, "there is no observer or tracker %llu",
                                             (unsigned long long)id));
}

/* A copy of the observers, for the caller to free; without memory for one, nobody is told. */
static struct watcher *observers_copy(size_t *count)
{
    pthread_mutex_lock(&observers_lock);
    struct watcher *copy = observers.count ? malloc(observers.count * sizeof(*copy)) : NULL;
    *count = copy ? observers.count : 0;
    if (copy)
        memcpy(copy, observers.items, observers.count * sizeof(*copy));
    pthread_mutex_unlock(&observers_lock);
    return copy;
}

void library_tell_oom(int device, uint64_t size, uint64_t total, uint64_t free_bytes)
{
    size_t count;
    if (library_thread.observes)
        return;
    struct watcher *copy = observers_copy(&count);
    library_thread.observes = true;
    for (size_t i = 0; i < count; i++)
        copy[i].observer(copy[i].self, device, size, total, free_bytes);
    library_thread.observes = false;
    free(copy);
}

/* --- an allocator in place of ours -------------------------------------------------------------------------------- */

static _Atomic(const struct library_foreign *) foreign;

int library_set_foreign(const struct library_foreign *wanted, struct error *err)
{
    int status = library_hold(err);
    if (status)
        return status;
    if (library_is_used() || atomic_load(&foreign)) {
        status = error_set(err, CUDAMEM_ERROR_STATE,
                           "the current allocator is in use: it can be changed before its first use only");
    } else {
        atomic_store(&foreign, wanted);
        if (wanted)
            atomic_fetch_or(&library_ways, LIBRARY_FOREIGN);
    }
    library_let_go(NULL);
    return status;
}

const struct library_foreign *library_foreign(void)
{
    return atomic_load_explicit(&foreign, memory_order_acquire);
}

int library_native_only(const char *what, struct error *err)
{
    return library_foreign() ? error_set(err, CUDAMEM_ERROR_UNSUPPORTED, "a pluggable allocator has no %s", what)
                             : CUDAMEM_OK;
}

EXPORT const char *cudamem_allocator_backend(void)
{
    const struct library_foreign *other = library_foreign();
    return other ? other->name : "native";
}
