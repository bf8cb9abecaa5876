/*
 * The public functions that hand out memory and take it back (include/cudamem/allocator.h).  Uses src/base, src/alloc.
 *
 * cudamem_alloc() and cudamem_free() begin with what nearly every call is: a device that is open, a stream that was just
 * seen, a free block that fits, the device that this thread asked last.  Everything else is in functions of its own.
 */
#include "api/library.h"

#include "api/uncached.h"
#include "base/size.h"

#include <cudamem/allocator.h>
#include <inttypes.h>
#include <stdio.h>

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

static bool is_plain(const struct library_device *device)
{
    return atomic_load_explicit(&device->ready, memory_order_acquire) &&
           !atomic_load_explicit(&library_ways, memory_order_relaxed);
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

#define LAST_NAMED_STREAM 2 /* 0, the legacy and the per-thread stream belong to every context */

static int ask_context(struct library_device *device, int64_t stream, struct error *err)
{
    CUcontext owner = NULL;
    const struct library_driver *call = library_driver(err);
    int status = library_push_context(device, err);
    if (status)
        return status;
    int result = (int)call->cuStreamGetCtx((CUstream)(uintptr_t)stream, &owner);
    library_pop_context();
    if (result == CUDA_ERROR_DEINITIALIZED)
        return library_driver_status(result, "asking for a stream's context", err);
    if (result)
        return error_set(err, CUDAMEM_ERROR_INVALID, "%#" PRIx64 " is not a stream: %s (%d)", (uint64_t)stream,
                         library_driver_word(result), result);
    return owner == device->context
               ? CUDAMEM_OK
               : error_set(err, CUDAMEM_ERROR_INVALID,
                           "stream %#" PRIx64 " is of another context than device %d's primary one", (uint64_t)stream,
                           device->ordinal);
}

int library_know_stream(struct library_device *device, int64_t stream, struct error *err)
{
    if (stream == device->recent_stream)
        return CUDAMEM_OK;
    if ((uint64_t)stream > LAST_NAMED_STREAM && !table_has(&device->streams, (uint64_t)stream)) {
        int status = ask_context(device, stream, err);
        if (status)
            return status;
        if (table_set(&device->streams, (uint64_t)stream, 1))
            return error_no_memory(err);
    }
    device->recent_stream = stream;
    return CUDAMEM_OK;
}

/* --- allocation --------------------------------------------------------------------------------------------------- */

struct shortage { /* what a failed request tells */
    uint64_t segment, limit, total, free_bytes, allocated, reserved;
};

static void look_at_shortage(struct library_device *device, uint64_t requested, struct shortage *shortage)
{
    struct settings settings;
    const struct memory_stats *stats = allocator_stats(device->allocator);
    library_settings(&settings, NULL, 0);
    *shortage = (struct shortage){
        .segment = requested,
        .limit = allocator_limit(device->allocator),
        .total = device->total_bytes,
        .allocated = (uint64_t)stats->kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].current,
        .reserved = allocator_reserved(device->allocator),
    };
    if (requested < ALLOCATOR_MAX_REQUEST)
        shortage->segment = settings_segment_size(&settings, settings_round(&settings, requested));
    device->under.memory_info(device->under.self, &shortage->free_bytes, &shortage->total);
    if (!shortage->total)
        shortage->total = device->total_bytes;
}

/* The pieces of PyTorch's message, in their order. */
static int out_of_memory(const struct library_device *device, const struct shortage *s, struct error *err)
{
    char tried[SIZE_TEXT], total[SIZE_TEXT], available[SIZE_TEXT], limit[SIZE_TEXT], allocated[SIZE_TEXT], rest[SIZE_TEXT];
    char allowed[SIZE_TEXT + 16] = "";
    if (s->limit != ALLOCATOR_NO_LIMIT)
        snprintf(allowed, sizeof(allowed), "%s allowed; ", size_format(s->limit, limit));
    return error_set(err, CUDAMEM_ERROR_OUT_OF_MEMORY,
                     "out of memory: tried to allocate %s. GPU %d has a total capacity of %s of which %s is free. %s"
                     "%s is allocated, and %s is reserved but unallocated. If the latter is large, try the setting "
                     "expandable_segments:True to avoid fragmentation",
                     size_format(s->segment, tried), device->ordinal, size_format(s->total, total),
                     size_format(s->free_bytes, available), allowed, size_format(s->allocated, allocated),
                     size_format(s->reserved - s->allocated, rest));
}

/* A request failed in the allocator; its lock is held and let go here. */
static int alloc_failed(struct library_device *device, uint64_t requested, int failure, struct error *err)
{
    struct shortage shortage;
    if (failure != ALLOCATOR_OUT_OF_MEMORY) {
        int status = library_status(device, failure, err);
        library_leave(device);
        return status;
    }
    look_at_shortage(device, requested, &shortage);
    library_leave(device);
    if (requested < ALLOCATOR_MAX_REQUEST)
        library_tell_oom(device->ordinal, shortage.segment,
                         shortage.limit != ALLOCATOR_NO_LIMIT ? shortage.limit : shortage.total, shortage.free_bytes);
    return out_of_memory(device, &shortage, err);
}

static int alloc_cached(struct library_device *device, uint64_t size, int64_t stream, uint64_t *address, struct error *err)
{
    uint64_t context = library_context_begin(LIBRARY_CAPTURE_ALLOC);
    int status = library_enter(device, err);
    if (!status) {
        status = library_know_stream(device, stream, err);
        int failure = status ? 0 : allocator_malloc(device->allocator, size, stream, context, address);
        if (failure)
            status = alloc_failed(device, size, failure, err);
        else
            library_leave(device);
    }
    library_context_end(context);
    return status;
}

static int alloc_ours(uint64_t size, int ordinal, int64_t stream, void **pointer, struct error *err)
{
    struct library_device *device;
    uint64_t address = 0;
    int status = library_device(ordinal, &device, err);
    if (status)
        return status;
    status = library_wants(LIBRARY_UNCACHED) ? uncached_alloc(device, size, stream, &address, err)
                                             : alloc_cached(device, size, stream, &address, err);
    if (status)
        return status;
    library_thread.recent = device->ordinal;
    if (library_wants(LIBRARY_DEBUG))
        library_debug_note(address, false);
    *pointer = (void *)(uintptr_t)address;
    return CUDAMEM_OK;
}

static __attribute__((noinline)) int alloc_anyhow(size_t size, int device, void *stream, void **pointer,
                                                  cudamem_error *error)
{
    struct error err = {0};
    int status = CUDAMEM_OK;
    const struct library_foreign *other = library_foreign();
    if (!pointer)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the pointer was given"));
    *pointer = NULL;
    if (other)
        status = other->allocate(other->self, size, device, stream, pointer, &err);
    else if (size)
        status = alloc_ours(size, device, (int64_t)(intptr_t)stream, pointer, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_alloc(size_t size, int device, void *stream, void **pointer, cudamem_error *error)
{
    struct library_device *d = &library_devices[(unsigned)device % LIBRARY_DEVICES];
    if (!LIKELY((unsigned)device < LIBRARY_DEVICES && size && pointer && is_plain(d) && library_try_enter(d)))
        return alloc_anyhow(size, device, stream, pointer, error);
    int64_t handle = (int64_t)(intptr_t)stream;
    if (!LIKELY(handle == d->recent_stream) && library_know_stream(d, handle, NULL)) {
        library_leave(d);
        return alloc_anyhow(size, device, stream, pointer, error); /* which says what is wrong with it */
    }
    uint64_t address;
    int failure = allocator_malloc(d->allocator, size, handle, 0, &address);
    if (!LIKELY(!failure)) {
        struct error err = {0};
        *pointer = NULL;
        return api_report(error, &err, alloc_failed(d, size, failure, &err));
    }
    library_leave(d);
    library_thread.recent = device;
    *pointer = (void *)(uintptr_t)address;
    return CUDAMEM_OK;
}

/* --- free --------------------------------------------------------------------------------------------------------- */

/* Each device is asked, with its own context of the call; the first that knows the block frees it. */
static int free_cached(uint64_t address, uint64_t context, struct error *err)
{
    struct library_device *device;
    int status = library_enter_owner(address, &device, err);
    if (status)
        return status;
    int failure = allocator_release(device->allocator, address, context);
    if (failure)
        status = failure == ALLOCATOR_INVALID
                     ? error_set(err, CUDAMEM_ERROR_INVALID,
                                 "%#" PRIx64 " was freed before, and waits for other streams", address)
                     : library_status(device, failure, err);
    library_leave(device);
    return status;
}

static int free_ours(uint64_t address, struct error *err)
{
    uint64_t context = library_context_begin(LIBRARY_CAPTURE_FREE);
    int status = uncached_owns(address) ? uncached_free(address, err) : free_cached(address, context, err);
    library_context_end(context);
    if (status == CUDAMEM_ERROR_INVALID)
        library_misused(address, err);
    else if (!status && library_wants(LIBRARY_DEBUG))
        library_debug_note(address, true);
    return status;
}

static __attribute__((noinline)) int free_anyhow(void *pointer, cudamem_error *error)
{
    struct error err = {0};
    const struct library_foreign *other = library_foreign();
    if (!pointer)
        return CUDAMEM_OK;
    int status = library_check_outside(&err);
    if (!status)
        status = other ? other->release(other->self, pointer, &err) : free_ours((uint64_t)(uintptr_t)pointer, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_free(void *pointer, cudamem_error *error)
{
    struct library_device *d = &library_devices[library_thread.recent];
    if (LIKELY(pointer && is_plain(d) && library_try_enter(d))) {
        int failure = allocator_release(d->allocator, (uint64_t)(uintptr_t)pointer, 0);
        library_leave(d);
        if (LIKELY(!failure))
            return CUDAMEM_OK;
        if (failure != ALLOCATOR_INVALID) {
            struct error err = {0};
            return api_report(error, &err, library_status(d, failure, &err));
        }
    }
    return free_anyhow(pointer, error); /* of another device, or of none */
}

/* --- other streams, segments -------------------------------------------------------------------------------------- */

int library_record_stream(uint64_t address, int64_t stream, struct error *err)
{
    struct library_device *device;
    int status = library_enter_owner(address, &device, err);
    if (status)
        return status;
    status = library_know_stream(device, stream, err);
    if (!status) {
        int failure = allocator_record_stream(device->allocator, address, stream);
        status = failure == ALLOCATOR_INVALID
                     ? error_set(err, CUDAMEM_ERROR_INVALID,
                                 "%#" PRIx64 " was freed: no stream can use it any more", address)
                     : library_status(device, failure, err);
    }
    library_leave(device);
    return status;
}

EXPORT int cudamem_record_stream(void *pointer, void *stream, cudamem_error *error)
{
    struct error err = {0};
    const struct library_foreign *other = library_foreign();
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    int status = library_check_outside(&err);
    if (status || !pointer || !address)
        return status ? api_report(error, &err, status) : CUDAMEM_OK;
    if (other) {
        if (other->record_stream)
            other->record_stream(other->self, pointer, stream);
        return CUDAMEM_OK;
    }
    struct library_device *device;
    if (library_enter_owner(address, &device, NULL)) /* memory of somebody else is no concern of ours */
        return CUDAMEM_OK;
    library_leave(device);
    status = library_record_stream(address, (int64_t)(intptr_t)stream, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

int library_base(uint64_t address, uint64_t *base, uint64_t *size, struct error *err)
{
    struct library_device *device;
    struct allocator_segment segment = {0};
    int status = library_enter_owner(address, &device, err);
    if (status)
        return status;
    allocator_segment_of(device->allocator, address, &segment);
    library_leave(device);
    if (segment.is_expandable)
        return error_set(err, CUDAMEM_ERROR_UNSUPPORTED, "%#" PRIx64 " lies in an expandable segment, which has no base",
                         address);
    *base = segment.address;
    *size = segment.size;
    return CUDAMEM_OK;
}

EXPORT int cudamem_base(const void *pointer, void **base, size_t *size, cudamem_error *error)
{
    struct error err = {0};
    uint64_t start = 0, bytes = 0;
    const struct library_foreign *other = library_foreign();
    int status = base && size ? library_check_outside(&err)
                              : error_set(&err, CUDAMEM_ERROR_USAGE, "base and size are both needed");
    if (!status && other)
        start = (uint64_t)(uintptr_t)(other->base ? other->base(other->self, (void *)(uintptr_t)pointer, &bytes) : pointer);
    else if (!status)
        status = library_base((uint64_t)(uintptr_t)pointer, &start, &bytes, &err);
    if (base)
        *base = (void *)(uintptr_t)start;
    if (size)
        *size = bytes;
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* --- the cache, the limit ----------------------------------------------------------------------------------------- */

static int flush(struct library_device *device, struct error *err)
{
    uint64_t context = library_context_begin(LIBRARY_CAPTURE_FREE);
    int status = library_enter(device, err);
    if (!status) {
        status = library_status(device, allocator_empty_cache(device->allocator, context), err);
        library_leave(device);
    }
    library_context_end(context);
    return status;
}

EXPORT int cudamem_empty_cache(cudamem_error *error)
{
    struct error err = {0};
    const struct library_foreign *other = library_foreign();
    int status = library_check_outside(&err);
    if (!status && other && other->empty_cache)
        other->empty_cache(other->self);
    for (struct library_device *d = library_next_device(0); d && !status; d = library_next_device(d->ordinal + 1))
        status = flush(d, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_set_caching(int enabled, cudamem_error *error)
{
    struct error err = {0};
    int status = library_native_only("switch for caching", &err);
    if (!status)
        status = library_check_outside(&err);
    if (status)
        return api_report(error, &err, status);
    if (enabled)
        atomic_fetch_and(&library_ways, ~(unsigned)LIBRARY_UNCACHED);
    else
        atomic_fetch_or(&library_ways, LIBRARY_UNCACHED);
    return CUDAMEM_OK;
}

static int set_fraction(double fraction, int ordinal, struct error *err)
{
    struct library_device *device;
    int status = library_device(ordinal, &device, err);
    if (!status)
        status = library_enter(device, err);
    if (status)
        return status;
    device->fraction = fraction;
    allocator_set_limit(device->allocator,
                        fraction < 1 ? (uint64_t)(fraction * (double)device->total_bytes) : ALLOCATOR_NO_LIMIT);
    library_leave(device);
    return CUDAMEM_OK;
}

EXPORT int cudamem_set_memory_fraction(double fraction, int device, cudamem_error *error)
{
    struct error err = {0};
    const struct library_foreign *other = library_foreign();
    int status = CUDAMEM_OK;
    if (!(fraction >= 0 && fraction <= 1)) /* nor is what is no number */
        status = error_set(&err, CUDAMEM_ERROR_USAGE, "the fraction %g of the memory is not within 0 to 1", fraction);
    else if (!other)
        status = set_fraction(fraction, device, &err);
    else if (other->set_fraction)
        other->set_fraction(other->self, fraction, device);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_memory_fraction(int device, double *fraction, cudamem_error *error)
{
    struct error err = {0};
    struct library_device *asked = NULL;
    int status = fraction ? library_native_only("memory fraction to be asked for", &err)
                          : error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the fraction was given");
    if (!status)
        status = library_device(device, &asked, &err);
    if (!status)
        status = library_enter(asked, &err);
    if (status)
        return api_report(error, &err, status);
    *fraction = allocator_limit(asked->allocator) == ALLOCATOR_NO_LIMIT ? 1 : asked->fraction;
    library_leave(asked);
    return CUDAMEM_OK;
}
