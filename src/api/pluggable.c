/*
 * An allocator out of a library of the user's (include/cudamem/pluggable.h).  Uses src/base.
 *
 * What it handed out is kept with what it was asked for: its free function wants to hear that again.  The user's
 * functions are called without a lock.
 */
#include "api/library.h"
#include "api/report.h"
#include "base/array.h"
#include "base/table.h"

#include <cudamem/pluggable.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    void *stream;
    uint64_t size;
    int device;
    uint32_t next; /* spare record */
};

struct cudamem_pluggable {
    void *library;
    cudamem_pluggable_alloc alloc;
    cudamem_pluggable_free free;
    cudamem_pluggable_hooks hooks;
    struct library_foreign foreign;
    bool is_current;
    pthread_once_t first;
    pthread_mutex_t lock; /* over what follows */
    struct table index;   /* pointer -> piece */
    struct piece *pieces; /* [0] is nobody's */
    size_t count, capacity;
    uint32_t spare;
};

static cudamem_pluggable *current; /* under current_lock */
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- what is handed out ------------------------------------------------------------------------------------------------ */

/* A record; 0: no memory. */
static uint32_t new_piece(cudamem_pluggable *allocator)
{
    uint32_t number = allocator->spare;
    if (number) {
        allocator->spare = allocator->pieces[number].next;
        return number;
    }
    size_t need = (allocator->count ? allocator->count : 1) + 1;
    if (need >= UINT32_MAX || array_reserve(&allocator->pieces, &allocator->capacity, need, sizeof(struct piece)))
        return 0;
    allocator->count = need;
    return (uint32_t)need - 1;
}

static void give_piece(cudamem_pluggable *allocator, uint32_t number)
{
    allocator->pieces[number].next = allocator->spare;
    allocator->spare = number;
}

static bool note(cudamem_pluggable *allocator, const void *pointer, const struct piece *piece)
{
    pthread_mutex_lock(&allocator->lock);
    uint32_t number = new_piece(allocator);
    bool noted = number && !table_set(&allocator->index, (uint64_t)(uintptr_t)pointer, number);
    if (noted)
        allocator->pieces[number] = *piece;
    else if (number)
        give_piece(allocator, number);
    pthread_mutex_unlock(&allocator->lock);
    return noted;
}

static bool forget(cudamem_pluggable *allocator, const void *pointer, struct piece *piece)
{
    pthread_mutex_lock(&allocator->lock);
    uint32_t number = table_get(&allocator->index, (uint64_t)(uintptr_t)pointer, 0);
    if (number) {
        *piece = allocator->pieces[number];
        table_remove(&allocator->index, (uint64_t)(uintptr_t)pointer);
        give_piece(allocator, number);
    }
    pthread_mutex_unlock(&allocator->lock);
    return number;
}

/* --- in our place ------------------------------------------------------------------------------------------------------ */

static void tell_begin(void)
{
    struct error ignored;
    int count = 0;
    library_device_count(&count, &ignored);
    current->hooks.init(count);
}

static int allocate(void *self, uint64_t size, int device, void *stream, void **pointer, struct error *err)
{
    cudamem_pluggable *allocator = self;
    const struct piece piece = {stream, size, device, 0};
    if (size > PTRDIFF_MAX)
        return error_set(err, CUDAMEM_ERROR_OUT_OF_MEMORY, "%llu bytes are more than there can be", (unsigned long long)size);
    if (allocator->hooks.init)
        pthread_once(&allocator->first, tell_begin);
    *pointer = allocator->alloc((ptrdiff_t)size, device, stream);
    if (!*pointer && size)
        return error_set(err, CUDAMEM_ERROR_OUT_OF_MEMORY, "the pluggable allocator has no %llu bytes on device %d",
                         (unsigned long long)size, device);
    if (!*pointer || note(allocator, *pointer, &piece))
        return CUDAMEM_OK;
    allocator->free(*pointer, (ptrdiff_t)size, device, stream);
    *pointer = NULL;
    return error_no_memory(err);
}

static int release(void *self, void *pointer, struct error *err)
{
    cudamem_pluggable *allocator = self;
    struct piece piece;
    if (!forget(allocator, pointer, &piece))
        return error_set(err, CUDAMEM_ERROR_INVALID, "%p was not handed out by the pluggable allocator, or was freed before",
                         pointer);
    allocator->free(pointer, (ptrdiff_t)piece.size, piece.device, piece.stream);
    return CUDAMEM_OK;
}

static void empty_cache(void *self)
{
    cudamem_pluggable *allocator = self;
    if (allocator->hooks.reset)
        allocator->hooks.reset();
}

static void set_fraction(void *self, double fraction, int device)
{
    cudamem_pluggable *allocator = self;
    if (allocator->hooks.memory_fraction)
        allocator->hooks.memory_fraction(fraction, device);
}

static void record_stream(void *self, void *pointer, void *stream)
{
    cudamem_pluggable *allocator = self;
    if (allocator->hooks.record_stream)
        allocator->hooks.record_stream(pointer, stream);
}

static void *base(void *self, void *pointer, uint64_t *size)
{
    cudamem_pluggable *allocator = self;
    size_t bytes = 0;
    void *start = allocator->hooks.base_alloc ? allocator->hooks.base_alloc(pointer, &bytes) : pointer;
    *size = bytes;
    return start;
}

/* --- the caller's handle ----------------------------------------------------------------------------------------------- */

static int find(cudamem_pluggable *allocator, const char *path, const char *name, void *function, struct error *err)
{
    void *found = dlsym(allocator->library, name);
    memcpy(function, &found, sizeof(found)); /* an object pointer becomes a function's */
    return found ? CUDAMEM_OK : error_set(err, CUDAMEM_ERROR_NOT_FOUND, "%s has no %s", path, name);
}

static int load(cudamem_pluggable *allocator, const char *path, const char *alloc_name, const char *free_name,
                struct error *err)
{
    allocator->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!allocator->library)
        return error_set(err, CUDAMEM_ERROR_NOT_FOUND, "%s", dlerror());
    int status = find(allocator, path, alloc_name, &allocator->alloc, err);
    return status ? status : find(allocator, path, free_name, &allocator->free, err);
}

static void destroy(cudamem_pluggable *allocator)
{
    if (allocator->library)
        dlclose(allocator->library);
    table_free(&allocator->index);
    free(allocator->pieces);
    pthread_mutex_destroy(&allocator->lock);
    free(allocator);
}

EXPORT int cudamem_pluggable_load(const char *path, const char *alloc_name, const char *free_name,
                                  cudamem_pluggable **result, cudamem_error *error)
{
    struct error err = {0};
    if (!result || !path || !alloc_name || !free_name)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "path, both names and a place are all needed"));
    *result = NULL;
    cudamem_pluggable *allocator = calloc(1, sizeof(*allocator));
    if (!allocator)
        return api_report(error, &err, error_no_memory(&err));
    pthread_mutex_init(&allocator->lock, NULL);
    allocator->first = (pthread_once_t)PTHREAD_ONCE_INIT;
    allocator->foreign = (struct library_foreign){"pluggable", allocate, release, empty_cache, set_fraction, record_stream,
                                                  base, allocator};
    int status = load(allocator, path, alloc_name, free_name, &err);
    if (status) {
        destroy(allocator);
        return api_report(error, &err, status);
    }
    *result = allocator;
    return CUDAMEM_OK;
}

EXPORT int cudamem_pluggable_functions(const cudamem_pluggable *allocator, cudamem_pluggable_alloc *alloc_function,
                                       cudamem_pluggable_free *free_function, cudamem_error *error)
{
    struct error err = {0};
    if (!allocator)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no allocator was given"));
    if (alloc_function)
        *alloc_function = allocator->alloc;
    if (free_function)
        *free_function = allocator->free;
    return CUDAMEM_OK;
}

EXPORT int cudamem_pluggable_set_hooks(cudamem_pluggable *allocator, const cudamem_pluggable_hooks *hooks,
                                       cudamem_error *error)
{
    struct error err = {0};
    int status = CUDAMEM_OK;
    if (!allocator || !hooks)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no allocator, or no hooks were given"));
    pthread_mutex_lock(&current_lock);
    if (allocator->is_current)
        status = error_set(&err, CUDAMEM_ERROR_STATE, "the allocator is the current one: hooks are set before that");
    else
        api_take(&allocator->hooks, sizeof(allocator->hooks), hooks);
    pthread_mutex_unlock(&current_lock);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_change_allocator(cudamem_pluggable *allocator, cudamem_error *error)
{
    struct error err = {0};
    if (!allocator)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no allocator was given"));
    pthread_mutex_lock(&current_lock);
    cudamem_pluggable *before = current;
    if (!before)
        current = allocator;
    int status = library_set_foreign(&allocator->foreign, &err);
    if (status)
        current = before;
    else
        allocator->is_current = true;
    pthread_mutex_unlock(&current_lock);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT cudamem_pluggable *cudamem_current_allocator(void)
{
    pthread_mutex_lock(&current_lock);
    cudamem_pluggable *allocator = current;
    pthread_mutex_unlock(&current_lock);
    return allocator;
}

EXPORT int cudamem_pluggable_close(cudamem_pluggable *allocator, cudamem_error *error)
{
    struct error err = {0};
    if (!allocator)
        return CUDAMEM_OK;
    pthread_mutex_lock(&current_lock);
    bool is_current = allocator->is_current;
    pthread_mutex_unlock(&current_lock);
    if (is_current)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_STATE, "the allocator is the current one: it stays"));
    destroy(allocator);
    return CUDAMEM_OK;
}
