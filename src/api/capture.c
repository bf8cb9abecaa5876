/*
 * Captures of CUDA graphs: requests on capturing streams go to a pool.  Uses src/base and src/alloc.
 *
 * While a capture is open, every request on its device asks the driver what its stream captures; the driver allows that
 * at any time.
 */
#include "api/pool.h"

#include <stdlib.h>

struct cudamem_capture {
    struct library_device *device;
    cudamem_pool *pool; /* one reference is ours */
    struct pool_use *use;
    uint64_t id;        /* the driver's */
    bool owns_pool;     /* nobody else has a handle */
    bool open;
};

/* What the stream captures, 0: nothing. */
static int capture_id(struct library_device *device, int64_t stream, uint64_t *id)
{
    const struct library_driver *call = library_driver(NULL);
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    *id = 0;
    if (!call || library_push_context(device, NULL))
        return CUDA_ERROR_INVALID_CONTEXT;
    int result =
        (int)call->cuStreamGetCaptureInfo_v2((CUstream)(uintptr_t)stream, &state, &number, NULL, NULL, NULL);
    library_pop_context();
    if (!result && state == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *id = number;
    return result;
}

static bool takes_captured(void *self, int64_t stream)
{
    const struct cudamem_capture *capture = self;
    uint64_t id;
    return !library_thread.in_pool && !capture_id(capture->device, stream, &id) && id == capture->id;
}

/* Inside library_enter(). */
static int open_capture(struct cudamem_capture *capture, int64_t stream, struct error *err)
{
    int status = library_know_stream(capture->device, stream, err);
    if (status)
        return status;
    int result = capture_id(capture->device, stream, &capture->id);
    if (result)
        return library_driver_status(result, "asking what the stream captures", err);
    if (!capture->id)
        return error_set(err, CUDAMEM_ERROR_STATE, "the stream does not capture: begin its capture first");
    const cudamem_pool_options *given = &capture->pool->options;
    const struct pool_options options = {.use_on_oom = given->use_on_oom != 0, .no_split = given->no_split != 0,
                                         .source = given->alloc ? &capture->use->source : NULL};
    status = scope_open(capture->device, capture->pool->id, &options, takes_captured, capture, err);
    if (!status) {
        capture->open = true;
        capture->use->open++;
    }
    return status;
}

/* The capture's part in its pool ends: a pool of its own has no handle any more. */
static void give_up(struct cudamem_capture *capture)
{
    pool_drop(capture->pool);
    free(capture);
}

static int begin(struct library_device *device, int64_t stream, cudamem_pool *pool, cudamem_capture **result,
                 struct error *err)
{
    struct cudamem_capture *capture = calloc(1, sizeof(*capture));
    if (!capture)
        return error_no_memory(err);
    capture->device = device;
    capture->owns_pool = !pool;
    capture->pool = pool;
    int status = pool ? CUDAMEM_OK : pool_new(NULL, device->ordinal, true, &capture->pool, err);
    if (status) {
        free(capture);
        return status;
    }
    if (pool)
        atomic_fetch_add(&pool->references, 1);
    status = pool_use_on(capture->pool, device, &capture->use, err);
    bool entered = !status && !(status = library_enter(device, err));
    if (entered) {
        status = open_capture(capture, stream, err);
        if (status && capture->owns_pool)
            scope_release(device, capture->pool->id);
        library_leave(device);
    }
    if (status)
        give_up(capture);
    else
        *result = capture;
    return status;
}

EXPORT int cudamem_capture_begin(int device, void *stream, cudamem_pool *pool, cudamem_capture **capture,
                                 cudamem_error *error)
{
    struct error err = {0};
    struct library_device *opened;
    int status = capture ? library_native_only("captures", &err)
                         : error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the capture was given");
    if (capture)
        *capture = NULL;
    if (!status)
        status = library_device(device, &opened, &err);
    if (!status)
        status = begin(opened, (int64_t)(intptr_t)stream, pool, capture, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* Inside library_enter().  The use that the scope added stays for a pool that others have, too; a pool of its own has the
 * handle's. */
static int end(struct cudamem_capture *capture, struct error *err)
{
    if (!capture->open)
        return error_set(err, CUDAMEM_ERROR_STATE, "the capture has ended before");
    capture->open = false;
    capture->use->open--;
    int status = scope_close(capture->device, capture->pool->id, err);
    if (capture->owns_pool)
        scope_release(capture->device, capture->pool->id);
    return status;
}

EXPORT int cudamem_capture_end(cudamem_capture *capture, cudamem_error *error)
{
    struct error err = {0};
    int status = capture ? library_enter(capture->device, &err)
                         : error_set(&err, CUDAMEM_ERROR_USAGE, "no capture was given");
    if (!status) {
        status = end(capture, &err);
        library_leave(capture->device);
    }
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_capture_close(cudamem_capture *capture, cudamem_error *error)
{
    struct error err = {0};
    int status = capture ? library_enter(capture->device, &err) : CUDAMEM_OK;
    if (status || !capture)
        return status ? api_report(error, &err, status) : CUDAMEM_OK;
    if (capture->open)
        end(capture, NULL);
    scope_release(capture->device, capture->pool->id);
    library_leave(capture->device);
    give_up(capture);
    return CUDAMEM_OK;
}

EXPORT cudamem_pool_id cudamem_capture_pool_id(const cudamem_capture *capture)
{
    return capture ? cudamem_pool_get_id(capture->pool) : (cudamem_pool_id){0, 0};
}
