/*
 * This library as PyTorch's allocator (include/cudamem/torch.h).  Uses src/base and src/alloc.
 *
 * Without the record-stream hook a block that is freed may be in use on any stream: it waits for an event on each that
 * was seen on its device.
 */
#include "api/pool.h"

#include "base/array.h"

#include <cudamem/allocator.h>
#include <cudamem/torch.h>
#include <stdlib.h>

struct seen { /* streams of a device, under its lock */
    int64_t *streams;
    size_t count, capacity;
};

static struct seen seen[LIBRARY_DEVICES];
static atomic_bool hook_is_set;

/* --- streams ------------------------------------------------------------------------------------------------------ */

static bool was_seen(const struct seen *list, int64_t stream)
{
    for (size_t i = list->count; i-- > 0;)
        if (list->streams[i] == stream)
            return true;
    return false;
}

static void see(struct library_device *device, int64_t stream)
{
    struct seen *list = &seen[device->ordinal];
    if (!was_seen(list, stream) && !array_reserve(&list->streams, &list->capacity, list->count + 1, sizeof(*list->streams)))
        list->streams[list->count++] = stream;
}

static void see_at(int ordinal, int64_t stream)
{
    struct library_device *device;
    if (library_device_if_used(ordinal, &device, NULL) || !device || library_enter(device, NULL))
        return;
    see(device, stream);
    library_leave(device);
}

/* Every stream may use the block: its free waits for all of them.  False: it is no block of a device's cache. */
static bool free_after_all(uint64_t address)
{
    struct library_device *device;
    uint64_t context = library_context_begin(LIBRARY_CAPTURE_FREE);
    bool ours = !library_enter_owner(address, &device, NULL);
    if (ours) {
        const struct seen *list = &seen[device->ordinal];
        for (size_t i = 0; i < list->count; i++)
            allocator_record_stream(device->allocator, address, list->streams[i]);
        ours = !allocator_release(device->allocator, address, context);
        library_leave(device);
    }
    library_context_end(context);
    if (ours && library_wants(LIBRARY_DEBUG))
        library_debug_note(address, true);
    return ours;
}

/* --- the allocator ------------------------------------------------------------------------------------------------ */

EXPORT void *cudamem_torch_alloc(ptrdiff_t size, int device, void *stream)
{
    void *pointer = NULL;
    if (size <= 0 || cudamem_alloc((size_t)size, device, stream, &pointer, NULL))
        return NULL;
    if (!atomic_load_explicit(&hook_is_set, memory_order_relaxed))
        see_at(device, (int64_t)(intptr_t)stream);
    return pointer;
}

EXPORT void cudamem_torch_free(void *pointer, ptrdiff_t size, int device, void *stream)
{
    (void)size, (void)device, (void)stream;
    bool simple = !pointer || atomic_load_explicit(&hook_is_set, memory_order_relaxed) || library_wants(LIBRARY_FOREIGN);
    if (simple || !free_after_all((uint64_t)(uintptr_t)pointer))
        cudamem_free(pointer, NULL);
}

/* --- the hooks ---------------------------------------------------------------------------------------------------- */

EXPORT void cudamem_torch_init(int device_count)
{
    (void)device_count; /* devices are opened when they are used */
    library_begin();
}

EXPORT void cudamem_torch_reset(void)
{
    cudamem_empty_cache(NULL);
}

EXPORT void cudamem_torch_memory_fraction(double fraction, int device)
{
    cudamem_set_memory_fraction(fraction, device, NULL);
}

EXPORT void *cudamem_torch_base_alloc(void *pointer, size_t *size)
{
    void *base = NULL;
    size_t bytes = 0;
    cudamem_base(pointer, &base, &bytes, NULL);
    if (size)
        *size = bytes;
    return base;
}

EXPORT void cudamem_torch_record_stream(void *pointer, void *stream)
{
    atomic_store(&hook_is_set, true);
    cudamem_record_stream(pointer, stream, NULL);
}

EXPORT void cudamem_torch_records_streams(int is_set)
{
    atomic_store(&hook_is_set, is_set != 0);
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

struct torch_scope {
    struct library_device *device;
    struct pool_id id;
    int (*filter)(void *self, void *stream);
    void (*drop)(void *self);
    void *self;
    struct torch_scope *next;
};

static struct torch_scope *scopes; /* open ones, under scopes_lock, which nothing else is taken under */
static struct library_lock scopes_lock;

static bool takes(void *self, int64_t stream)
{
    const struct torch_scope *scope = self;
    return !library_thread.in_pool && (!scope->filter || scope->filter(scope->self, (void *)(intptr_t)stream));
}

static struct torch_scope *take_scope(const struct library_device *device, struct pool_id id)
{
    lock_take(&scopes_lock);
    struct torch_scope **link = &scopes;
    while (*link && ((*link)->device != device || (*link)->id.first != id.first || (*link)->id.second != id.second))
        link = &(*link)->next;
    struct torch_scope *found = *link;
    if (found)
        *link = found->next;
    lock_open(&scopes_lock);
    return found;
}

static int begin_scope(struct torch_scope *scope, struct error *err)
{
    const struct pool_options plain = {false, false, NULL};
    int status = library_enter(scope->device, err);
    if (status)
        return status;
    status = scope_open(scope->device, scope->id, &plain, takes, scope, err);
    library_leave(scope->device);
    if (status)
        return status;
    lock_take(&scopes_lock);
    scope->next = scopes;
    scopes = scope;
    lock_open(&scopes_lock);
    return CUDAMEM_OK;
}

EXPORT int cudamem_torch_begin_pool(int ordinal, uint64_t first, uint64_t second, int (*filter)(void *self, void *stream),
                                    void (*drop)(void *self), void *self)
{
    struct library_device *device;
    struct error err = {0};
    int status = library_device(ordinal, &device, &err);
    struct torch_scope *scope = status ? NULL : malloc(sizeof(*scope));
    if (!status && !scope)
        status = CUDAMEM_ERROR_NO_MEMORY;
    if (!status) {
        *scope = (struct torch_scope){device, {(int64_t)first, (int64_t)second}, filter, drop, self, NULL};
        status = begin_scope(scope, &err);
    }
    if (status) {
        free(scope);
        if (drop)
            drop(self);
    }
    return status;
}

EXPORT int cudamem_torch_end_pool(int ordinal, uint64_t first, uint64_t second)
{
    struct library_device *device;
    struct error err = {0};
    const struct pool_id id = {(int64_t)first, (int64_t)second};
    int status = library_device(ordinal, &device, &err);
    if (!status)
        status = library_enter(device, &err);
    if (status)
        return status;
    status = scope_close(device, id, &err);
    library_leave(device);
    struct torch_scope *scope = status ? NULL : take_scope(device, id);
    if (scope && scope->drop)
        scope->drop(scope->self);
    free(scope);
    return status;
}

EXPORT int cudamem_torch_release_pool(int ordinal, uint64_t first, uint64_t second)
{
    struct library_device *device;
    struct error err = {0};
    const struct pool_id id = {(int64_t)first, (int64_t)second};
    int status = library_device(ordinal, &device, &err);
    if (!status)
        status = library_enter(device, &err);
    if (status)
        return status;
    status = library_status(device, allocator_pool_release(device->allocator, id), &err);
    library_leave(device);
    return status;
}
