/*
 * Private pools (include/cudamem/pool.h): handles, scopes, segments from callbacks.  Uses src/base and src/alloc.
 *
 * The allocator's functions are called under the device's lock, the user's callbacks never: memory is asked for with the
 * lock let go, and what is to be freed waits in the device's list until the lock is open (library_give_back).
 */
#include "api/pool.h"

#include <inttypes.h>
#include <stdlib.h>

static atomic_llong last_made, last_captured, last_thread;
static __thread uint64_t thread_number;

static uint64_t this_thread(void)
{
    if (!thread_number)
        thread_number = (uint64_t)atomic_fetch_add(&last_thread, 1) + 1;
    return thread_number;
}

/* --- segments from callbacks -------------------------------------------------------------------------------------- */

static bool overlaps(const struct pool_use *use, uint64_t address, uint64_t size)
{
    for (const struct pool_return *s = use->segments; s; s = s->next)
        if (address < s->address + s->size && s->address < address + size)
            return true;
    return false;
}

static int segment_get(void *self, uint64_t size, int64_t stream, uint64_t *address)
{
    struct pool_use *use = self;
    const cudamem_pool_options *options = &use->pool->options;
    struct pool_return *segment = malloc(sizeof(*segment));
    if (!segment)
        return STATUS_NO_MEMORY;
    library_pause(use->device);
    library_thread.in_pool++;
    *address = (uint64_t)(uintptr_t)options->alloc(options->self, size, use->device->ordinal, (void *)(intptr_t)stream);
    library_thread.in_pool--;
    library_resume(use->device);
    if (!*address || *address > UINT64_MAX - size || overlaps(use, *address, size)) { /* nor is it any use twice */
        free(segment);
        return MEMORY_DEVICE_FULL;
    }
    *segment = (struct pool_return){use, *address, size, stream, use->segments};
    use->segments = segment;
    atomic_fetch_add(&use->pool->references, 1);
    return 0;
}

static void segment_release(void *self, uint64_t address, uint64_t size, int64_t stream)
{
    struct pool_use *use = self;
    (void)size, (void)stream;
    struct pool_return **link = &use->segments, **end = &use->device->returned;
    while (*link && (*link)->address != address)
        link = &(*link)->next;
    struct pool_return *segment = *link;
    if (!segment)
        return;
    *link = segment->next;
    segment->next = NULL;
    while (*end)
        end = &(*end)->next;
    *end = segment;
}

static struct pool_return *next_returned(struct library_device *device)
{
    library_resume(device);
    struct pool_return *segment = device->returned;
    if (segment)
        device->returned = segment->next;
    library_pause(device);
    return segment;
}

void library_give_back(struct library_device *device)
{
    for (struct pool_return *segment; (segment = next_returned(device));) {
        cudamem_pool *pool = segment->use->pool;
        library_thread.in_pool++;
        pool->options.free(pool->options.self, (void *)(uintptr_t)segment->address, segment->size, device->ordinal,
                           (void *)(intptr_t)segment->stream);
        library_thread.in_pool--;
        free(segment);
        pool_drop(pool);
    }
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

void pool_drop(cudamem_pool *pool)
{
    if (atomic_fetch_sub(&pool->references, 1) != 1)
        return;
    for (int i = 0; i < LIBRARY_DEVICES; i++)
        free(atomic_load(&pool->uses[i]));
    free(pool);
}

int pool_use_on(cudamem_pool *pool, struct library_device *device, struct pool_use **use, struct error *err)
{
    _Atomic(struct pool_use *) *place = &pool->uses[device->ordinal];
    struct pool_use *none = NULL, *made;
    *use = atomic_load(place);
    if (*use)
        return CUDAMEM_OK;
    made = calloc(1, sizeof(*made));
    if (!made)
        return error_no_memory(err);
    made->pool = pool;
    made->device = device;
    made->source = (struct pool_source){segment_get, segment_release, made};
    if (!atomic_compare_exchange_strong(place, &none, made))
        free(made);
    *use = none ? none : made;
    return CUDAMEM_OK;
}

static struct pool_options inner_options(const struct pool_use *use)
{
    const cudamem_pool_options *options = &use->pool->options;
    return (struct pool_options){.use_on_oom = options->use_on_oom != 0, .no_split = options->no_split != 0,
                                 .source = options->alloc ? &use->source : NULL};
}

static int create_on(struct library_device *device, cudamem_pool *pool, struct error *err)
{
    struct pool_use *use;
    int status = pool_use_on(pool, device, &use, err);
    if (!status)
        status = library_enter(device, err);
    if (status)
        return status;
    const struct pool_options options = inner_options(use);
    status = library_status(device, allocator_pool_create(device->allocator, pool->id, &options), err);
    library_leave(device);
    return status;
}

int pool_new(const cudamem_pool_options *options, int ordinal, bool of_capture, cudamem_pool **result, struct error *err)
{
    struct library_device *device;
    int status = library_native_only("private pools", err);
    if (!status)
        status = library_device(ordinal, &device, err);
    if (status)
        return status;
    cudamem_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return error_no_memory(err);
    api_take(&pool->options, sizeof(pool->options), options);
    atomic_init(&pool->references, 1);
    pool->ordinal = device->ordinal;
    if (of_capture)
        pool->id.first = atomic_fetch_add(&last_captured, 1) + 1;
    else
        pool->id.second = atomic_fetch_add(&last_made, 1) + 1;
    if (!pool->options.alloc != !pool->options.free)
        status = error_set(err, CUDAMEM_ERROR_USAGE, "a pool needs both callbacks, alloc and free, or none");
    else
        status = create_on(device, pool, err);
    if (status)
        pool_drop(pool);
    else
        *result = pool;
    return status;
}

EXPORT int cudamem_pool_create(const cudamem_pool_options *options, int device, cudamem_pool **pool, cudamem_error *error)
{
    struct error err = {0};
    if (!pool)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the pool was given"));
    *pool = NULL;
    int status = pool_new(options, device, false, pool, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

int pool_flush(struct library_device *device, struct pool_id id, struct error *err)
{
    uint64_t context = library_context_begin(LIBRARY_CAPTURE_FREE);
    int status = library_enter(device, err);
    if (!status) {
        if (!device->scopes)
            status = library_status(device, allocator_pool_flush(device->allocator, id, context), err);
        library_leave(device);
    }
    library_context_end(context);
    return status;
}

/* Is a scope of it open on any device? */
static int check_closed(cudamem_pool *pool, struct error *err)
{
    for (int i = 0; i < LIBRARY_DEVICES; i++) {
        struct pool_use *use = atomic_load(&pool->uses[i]);
        if (!use)
            continue;
        int status = library_enter(use->device, err);
        if (status)
            return status;
        unsigned open = use->open;
        library_leave(use->device);
        if (open)
            return error_set(err, CUDAMEM_ERROR_STATE, "a scope or capture of the pool is open on device %d", i);
    }
    return CUDAMEM_OK;
}

EXPORT int cudamem_pool_destroy(cudamem_pool *pool, cudamem_error *error)
{
    struct error err = {0};
    if (!pool)
        return CUDAMEM_OK;
    int status = check_closed(pool, &err);
    struct library_device *own = &library_devices[pool->ordinal];
    if (!status)
        status = library_enter(own, &err);
    if (status)
        return api_report(error, &err, status);
    scope_release(own, pool->id); /* the handle's use */
    library_leave(own);
    for (int i = 0; i < LIBRARY_DEVICES; i++) {
        int failure = atomic_load(&pool->uses[i]) ? pool_flush(&library_devices[i], pool->id, &err) : CUDAMEM_OK;
        status = status ? status : failure;
    }
    pool_drop(pool);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT cudamem_pool_id cudamem_pool_get_id(const cudamem_pool *pool)
{
    return pool ? (cudamem_pool_id){pool->id.first, pool->id.second} : (cudamem_pool_id){0, 0};
}

EXPORT int cudamem_pool_use_count(const cudamem_pool *pool, int *count, cudamem_error *error)
{
    struct error err = {0};
    int status = pool && count ? library_enter(&library_devices[pool->ordinal], &err)
                               : error_set(&err, CUDAMEM_ERROR_USAGE, "pool and count are both needed");
    if (status)
        return api_report(error, &err, status);
    *count = allocator_pool_uses(library_devices[pool->ordinal].allocator, pool->id);
    library_leave(&library_devices[pool->ordinal]);
    return CUDAMEM_OK;
}

/* --- scopes ------------------------------------------------------------------------------------------------------- */

int scope_open(struct library_device *device, struct pool_id id, const struct pool_options *options,
               bool (*filter)(void *self, int64_t stream), void *self, struct error *err)
{
    struct allocator *allocator = device->allocator;
    int failure = allocator_pool_retain(allocator, id); /* it must not go meanwhile */
    if (failure == ALLOCATOR_INVALID)
        failure = allocator_pool_create(allocator, id, options);
    if (failure)
        return library_status(device, failure, err);
    failure = allocator_scope_begin(allocator, id, filter, self);
    if (failure == ALLOCATOR_INVALID)
        scope_release(device, id); /* the use of the scope that was not opened */
    scope_release(device, id);
    if (failure == ALLOCATOR_INVALID)
        return error_set(err, CUDAMEM_ERROR_STATE, "a scope of pool (%" PRId64 ", %" PRId64 ") is open on device %d already",
                         id.first, id.second, device->ordinal);
    if (!failure)
        device->scopes++;
    return library_status(device, failure, err);
}

int scope_close(struct library_device *device, struct pool_id id, struct error *err)
{
    if (allocator_scope_end(device->allocator, id))
        return error_set(err, CUDAMEM_ERROR_STATE, "no scope of pool (%" PRId64 ", %" PRId64 ") is open on device %d",
                         id.first, id.second, device->ordinal);
    device->scopes--;
    return CUDAMEM_OK;
}

void scope_release(struct library_device *device, struct pool_id id)
{
    allocator_pool_release(device->allocator, id);
}

/* Requests of the thread that opened the scope, unless they come from a pool's callback. */
static bool takes_own(void *self, int64_t stream)
{
    const struct pool_use *use = self;
    (void)stream;
    return use->thread == thread_number && !library_thread.in_pool;
}

static int begin(cudamem_pool *pool, int ordinal, struct error *err)
{
    struct library_device *device;
    struct pool_use *use;
    int status = library_device(ordinal, &device, err);
    if (!status)
        status = pool_use_on(pool, device, &use, err);
    if (!status)
        status = library_enter(device, err);
    if (status)
        return status;
    const struct pool_options options = inner_options(use);
    uint64_t thread = this_thread();
    status = scope_open(device, pool->id, &options, takes_own, use, err);
    if (!status) {
        use->thread = thread;
        use->open++;
    }
    library_leave(device);
    return status;
}

static int end(cudamem_pool *pool, int ordinal, struct error *err)
{
    struct library_device *device = NULL;
    int status = library_device_if_used(ordinal, &device, err);
    if (status)
        return status;
    struct pool_use *use = device ? atomic_load(&pool->uses[device->ordinal]) : NULL;
    if (!use)
        return error_set(err, CUDAMEM_ERROR_STATE, "no scope of the pool is open there");
    status = library_enter(device, err);
    if (status)
        return status;
    status = use->thread ? scope_close(device, pool->id, err)
                         : error_set(err, CUDAMEM_ERROR_STATE, "no scope of the pool is open on device %d", device->ordinal);
    if (!status) {
        use->thread = 0;
        use->open--;
        scope_release(device, pool->id);
    }
    library_leave(device);
    return status;
}

EXPORT int cudamem_pool_begin(cudamem_pool *pool, int device, cudamem_error *error)
{
    struct error err = {0};
    int status = pool ? begin(pool, device, &err) : error_set(&err, CUDAMEM_ERROR_USAGE, "no pool was given");
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_pool_end(cudamem_pool *pool, int device, cudamem_error *error)
{
    struct error err = {0};
    int status = pool ? end(pool, device, &err) : error_set(&err, CUDAMEM_ERROR_USAGE, "no pool was given");
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}
