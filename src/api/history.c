/*
 * Recording what the allocators do (include/cudamem/history.h).  Uses src/base, src/alloc and the recorder's stacks.
 *
 * Stacks are taken before a device's lock, entries kept under it.  Lock order: the devices', then the history's; how stacks
 * are taken is changed under neither, for it may load a library.
 */
#include "api/history.h"

#include "api/report.h"
#include "api/suballoc.h"
#include "base/array.h"
#include "record/stacks.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH RING_DEPTH_MAX

struct history history = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread bool inside; /* a call that has one of the history's locks; its signal handlers are refused */

static int begin_call(struct error *err)
{
    int status = library_check_outside(err);
    if (!status && inside)
        status = error_set(err, CUDAMEM_ERROR_REENTERED, "called in the midst of another call for the history");
    inside = inside || !status;
    return status;
}

int history_enter(struct error *err)
{
    int status = begin_call(err);
    if (!status)
        pthread_mutex_lock(&history.lock);
    return status;
}

void history_leave(void)
{
    pthread_mutex_unlock(&history.lock);
    inside = false;
}

/* --- what the library calls ------------------------------------------------------------------------------------------ */

static uint64_t capture(void *self)
{
    (void)self;
    return history_context_take();
}

void history_keep(struct library_device *device, const struct allocator_event *event)
{
    if (!history.is_enabled || history.skip_actions >> event->action & 1)
        return;
    const struct history_entry entry = {
        .address = event->address,
        .size = event->size,
        .context = history.keeps_contexts ? event->context : 0,
        .ticks = recorder_stacks_ticks(),
        .stream = event->stream,
        .pool = event->pool,
        .action = event->action,
    };
    history_ring_add(&history.rings[device->ordinal], &entry);
}

static void keep(void *self, struct library_device *device, const struct allocator_event *event)
{
    (void)self;
    if (!history.watches || !suballoc_event(device, event))
        history_keep(device, event);
}

static const struct library_history keeper = {.capture = capture, .event = keep};

void history_mark_snapshot(struct library_device *device, uint64_t active_bytes, struct pool_id pool)
{
    const struct allocator_event event = {.action = ALLOCATOR_SNAPSHOT, .size = active_bytes, .pool = pool};
    library_trace(device, &event);
}

/* --- on and off ------------------------------------------------------------------------------------------------------- */

static int check_options(const cudamem_history_options *options, struct error *err)
{
    if ((unsigned)options->enabled > CUDAMEM_HISTORY_NONE)
        return error_set(err, CUDAMEM_ERROR_USAGE, "enabled is %d: expected all, state or none", options->enabled);
    if ((unsigned)options->context > CUDAMEM_CONTEXT_NONE)
        return error_set(err, CUDAMEM_ERROR_USAGE, "context is %d: expected all, alloc, state or none", options->context);
    if ((unsigned)options->stacks > CUDAMEM_STACKS_PYTHON)
        return error_set(err, CUDAMEM_ERROR_USAGE, "stacks is %d: expected all or python", options->stacks);
    if (options->skip_actions >> CUDAMEM_ACTION_OTHER)
        return error_set(err, CUDAMEM_ERROR_USAGE, "skip_actions names an action that there is not");
    return CUDAMEM_OK;
}

/* The clock, and stacks as they are wanted.  Without an unwinder err says so and the status is 0. */
static int start_stacks(const cudamem_history_options *options, struct error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char message[200];
    bool any = options->enabled != CUDAMEM_HISTORY_NONE && options->context != CUDAMEM_CONTEXT_NONE;
    pthread_mutex_lock(&lock);
    int failed = recorder_stacks_start(DEPTH, any && options->stacks == CUDAMEM_STACKS_ALL, any, message, sizeof(message));
    if (!failed && !atomic_load_explicit(&history.is_started, memory_order_relaxed)) {
        recorder_stacks_sample(&history.start);
        atomic_store_explicit(&history.is_started, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (failed)
        return error_set(err, CUDAMEM_ERROR_NO_MEMORY, "%s", message);
    if (message[0])
        error_set(err, CUDAMEM_OK, "%s", message);
    return CUDAMEM_OK;
}

/* The newest that fit. */
static void limit_annotations(uint64_t max)
{
    history.max_annotations = max;
    if (!history.annotation_next && history.annotation_count <= max)
        return;
    size_t count = history.annotation_count, kept = count < max ? count : (size_t)max;
    struct history_annotation *sorted = malloc(kept * sizeof(*sorted) + 1);
    for (size_t i = 0; sorted && i < kept; i++)
        sorted[i] = history.annotations[(history.annotation_next + count - kept + i) % count];
    free(history.annotations);
    history.annotations = sorted;
    history.annotation_count = history.annotation_capacity = sorted ? kept : 0;
    history.annotation_next = 0;
}

/* Under every lock. */
static int apply(const cudamem_history_options *options, struct error *err)
{
    bool enabled = options->enabled != CUDAMEM_HISTORY_NONE, clear = !enabled || options->clear_history;
    uint64_t max = options->enabled != CUDAMEM_HISTORY_ALL ? 1 : options->max_entries ? options->max_entries : UINT64_MAX;
    for (size_t i = 0; i < LIBRARY_DEVICES; i++) {
        if (clear)
            history_ring_clear(&history.rings[i]);
        if (history_ring_set_max(&history.rings[i], max))
            return error_no_memory(err);
    }
    pthread_mutex_lock(&history.lock);
    if (clear)
        history.annotation_count = history.annotation_next = 0;
    limit_annotations(max);
    history.annotates = enabled && options->annotations;
    pthread_mutex_unlock(&history.lock);
    history.is_enabled = enabled;
    history.keeps_contexts = enabled && options->context <= CUDAMEM_CONTEXT_ALLOC;
    history.skip_actions = options->skip_actions;
    return CUDAMEM_OK;
}

static unsigned ways_of(const cudamem_history_options *options)
{
    if (options->enabled == CUDAMEM_HISTORY_NONE || options->context == CUDAMEM_CONTEXT_NONE)
        return 0;
    return LIBRARY_CAPTURE_ALLOC | (options->context == CUDAMEM_CONTEXT_ALL ? LIBRARY_CAPTURE_FREE : 0);
}

/* In a child nobody else is left to end what it was in the midst of: that goes. */
static void after_fork_in_child(void)
{
    if (inside)
        return;
    if (pthread_mutex_trylock(&history.lock)) {
        pthread_mutex_init(&history.lock, NULL);
        history.names = NULL;
        history.annotations = NULL;
        history.annotation_count = history.annotation_capacity = history.annotation_next = 0;
    } else {
        pthread_mutex_unlock(&history.lock);
    }
}

static void register_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static int change(const cudamem_history_options *options, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_forks);
    int status = start_stacks(options, err);
    if (!status)
        status = library_hold(err);
    if (status)
        return status;
    status = apply(options, err);
    if (!status)
        status = library_set_history(history.is_enabled || history.watches ? &keeper : NULL, ways_of(options), err);
    library_let_go(NULL);
    return status;
}

static int begin_watching(struct error *err)
{
    int status = library_hold(err);
    if (status)
        return status;
    if (!history.is_enabled && !history.watches)
        status = library_set_history(&keeper, 0, err);
    history.watches = !status;
    library_let_go(NULL);
    return status;
}

int history_watch(struct error *err)
{
    static atomic_bool watches;
    if (atomic_load_explicit(&watches, memory_order_relaxed))
        return CUDAMEM_OK;
    int status = begin_watching(err);
    if (!status)
        atomic_store_explicit(&watches, true, memory_order_relaxed);
    return status;
}

EXPORT int cudamem_record_memory_history(const cudamem_history_options *options, cudamem_error *error)
{
    struct error err = {0};
    cudamem_history_options ours;
    api_take(&ours, sizeof(ours), options);
    int status = check_options(&ours, &err);
    if (!status)
        status = library_native_only("history", &err);
    if (!status)
        status = begin_call(&err);
    if (status)
        return api_report(error, &err, status);
    status = change(&ours, &err);
    inside = false;
    return api_report(error, &err, status);
}

EXPORT int cudamem_history_lost(int device, uint64_t *lost, cudamem_error *error)
{
    struct error err = {0};
    struct library_device *used = NULL;
    if (!lost)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the number was given"));
    *lost = 0;
    int status = library_check_outside(&err);
    if (!status)
        status = library_device_if_used(device, &used, &err);
    if (!status && used && !(status = library_enter(used, &err))) {
        *lost = history.rings[used->ordinal].lost;
        library_leave(used);
    }
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* --- annotations ------------------------------------------------------------------------------------------------------ */

static int add_annotation(const char *name, int device, bool is_end, struct error *err)
{
    if (!history.names && !(history.names = strings_new()))
        return error_no_memory(err);
    struct history_annotation annotation = {strings_intern_text(history.names, name), (uint16_t)device, is_end,
                                            recorder_stacks_ticks()};
    if (annotation.name == STRING_NONE)
        return error_no_memory(err);
    if (history.annotation_count >= history.max_annotations) {
        history.annotations[history.annotation_next] = annotation;
        history.annotation_next = (history.annotation_next + 1) % history.annotation_count;
        return CUDAMEM_OK;
    }
    if (array_reserve(&history.annotations, &history.annotation_capacity, history.annotation_count + 1,
                      sizeof(*history.annotations)))
        return error_no_memory(err);
    history.annotations[history.annotation_count++] = annotation;
    return CUDAMEM_OK;
}

/* The current device without opening it. */
static int annotated_device(int device)
{
    CUdevice current = 0;
    if (device != -1)
        return device;
    const struct library_driver *call = library_driver(NULL);
    return call && !call->cuCtxGetDevice(&current) ? (int)current : 0;
}

static int annotate(const char *name, int device, bool is_end, cudamem_error *error)
{
    struct error err = {0};
    int status = CUDAMEM_OK;
    if (!name || device < -1 || device >= LIBRARY_DEVICES)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "an annotation needs a name and a device"));
    status = history_enter(&err);
    if (!status) {
        if (history.annotates)
            status = add_annotation(name, annotated_device(device), is_end, &err);
        history_leave();
    }
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_annotation_begin(const char *name, int device, cudamem_error *error)
{
    return annotate(name, device, false, error);
}

EXPORT int cudamem_annotation_end(const char *name, int device, cudamem_error *error)
{
    return annotate(name, device, true, error);
}
