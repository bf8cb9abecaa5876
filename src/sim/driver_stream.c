/*
 * The simulated driver: streams and events.  May use: the simulated device.
 */
#include <stdlib.h>

#include "sim/driver.h"

static __thread struct {
    CUcontext context;
    CUstream stream;
} own[8]; /* this thread's default streams */
static __thread unsigned own_next;

static void link_stream(CUstream stream)
{
    driver_lock();
    stream->id = driver_id();
    stream->next = stream->context->streams;
    stream->context->streams = stream;
    driver_unlock();
}

CUstream driver_stream_new(CUcontext context, unsigned flags, int priority)
{
    CUstream stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    *stream = (struct CUstream_st){.magic = MAGIC_STREAM, .context = context, .flags = flags, .priority = priority,
        .work = sim_stream_new(driver.sim, context->device)};
    if (!stream->work) {
        free(stream);
        return NULL;
    }
    link_stream(stream);
    return stream;
}

void driver_stream_drop(CUstream stream)
{
    sim_stream_free(stream->work);
    stream->magic = 0;
    free(stream);
}

CUstream driver_stream(CUstream stream)
{
    CUcontext context = driver_current();
    if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD)
        return stream->magic == MAGIC_STREAM ? stream : NULL;
    if (!context || !context->alive)
        return NULL;
    if (stream != CU_STREAM_PER_THREAD)
        return context->legacy;
    for (unsigned i = 0; i < 8; i++)
        if (own[i].context == context && own[i].stream)
            return own[i].stream;
    CUstream fresh = driver_stream_new(context, CU_STREAM_NON_BLOCKING, 0);
    own[own_next % 8].context = context;
    own[own_next++ % 8].stream = fresh;
    return fresh;
}

void driver_settle(unsigned device)
{
    sim_pool_settle(driver.sim, device);
}

void driver_finish(unsigned device)
{
    driver_lock();
    for (CUcontext context = driver.contexts; context; context = context->next)
        for (CUstream s = context->device == device ? context->streams : NULL; s; s = s->next)
            sim_stream_finish(s->work);
    driver_unlock();
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    ENTER(cuStreamCreateWithPriority, NEED_CONTEXT);
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream fresh = driver_stream_new(driver_current(), flags, priority);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = fresh;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    ENTER(cuStreamCreate, NEED_CONTEXT);
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream fresh = driver_stream_new(driver_current(), flags, 0);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = fresh;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    ENTER(cuStreamDestroy_v2, NEED_INIT);
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || stream->magic != MAGIC_STREAM)
        return CUDA_ERROR_INVALID_HANDLE;
    driver_lock();
    CUstream *at = &stream->context->streams;
    while (*at && *at != stream)
        at = &(*at)->next;
    bool found = *at != NULL && stream != stream->context->legacy;
    if (found)
        *at = stream->next;
    driver_unlock();
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    driver_stream_drop(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    return cuStreamDestroy_v2(stream);
}

/* The stream meant, or the way out. */
#define STREAM(variable) \
    CUstream variable = driver_stream(stream); \
    if (!variable) \
    return CUDA_ERROR_INVALID_HANDLE

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    ENTER(cuStreamGetPriority, NEED_CONTEXT);
    STREAM(s);
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    ENTER(cuStreamGetFlags, NEED_CONTEXT);
    STREAM(s);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = s->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    ENTER(cuStreamGetCtx, NEED_CONTEXT);
    STREAM(s);
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = s->context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    ENTER(cuStreamGetDevice, NEED_CONTEXT);
    STREAM(s);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (int)s->context->device;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *value)
{
    ENTER(cuStreamGetId, NEED_CONTEXT);
    STREAM(s);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    *value = s->id;
    return CUDA_SUCCESS;
}

/* Asking or waiting for a stream under capture breaks the capture. */
static bool breaks_capture(CUstream stream)
{
    driver_lock();
    bool breaks = stream->capture != NULL;
    if (breaks)
        stream->capture->invalid = true;
    driver_unlock();
    return breaks;
}

CUresult cuStreamQuery(CUstream stream)
{
    ENTER(cuStreamQuery, NEED_CONTEXT);
    STREAM(s);
    if (breaks_capture(s))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return sim_stream_done(s->work) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    ENTER(cuStreamSynchronize, NEED_CONTEXT);
    STREAM(s);
    if (breaks_capture(s))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    sim_stream_finish(s->work);
    driver_settle(s->context->device);
    return CUDA_SUCCESS;
}

static bool is_event(CUevent event)
{
    return event && event->magic == MAGIC_EVENT;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    (void)flags;
    ENTER(cuStreamWaitEvent, NEED_CONTEXT);
    STREAM(s);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    driver_lock();
    struct capture *capture = event->capture ? driver_capture(event->capture) : NULL;
    bool over = event->capture && !capture, captured = capture || s->capture;
    if (capture && !s->capture)
        s->capture = capture; /* the waiting stream joins */
    driver_unlock();
    if (over)
        return CUDA_ERROR_CAPTURED_EVENT;
    return captured ? CUDA_SUCCESS : sim_stream_wait(s->work, event->event);
}

struct added {
    CUstreamCallback callback;
    CUstream stream;
    void *data;
};

static void call_added(void *data)
{
    struct added *added = data;
    added->callback(added->stream, CUDA_SUCCESS, added->data);
    free(added);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
    ENTER(cuStreamAddCallback, NEED_CONTEXT);
    STREAM(s);
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (breaks_capture(s))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct added *added = malloc(sizeof *added);
    if (!added)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *added = (struct added){callback, stream, data};
    return sim_stream_call(s->work, call_added, added);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn callback, void *data)
{
    struct operation operation = {.kind = OPERATION_CALL, .call = callback, .data = data};
    ENTER(cuLaunchHostFunc, NEED_CONTEXT);
    if (!callback)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_operate(stream, &operation);
}

/* Events. */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    ENTER(cuEventCreate, NEED_CONTEXT);
    if (!event || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUevent fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *fresh = (struct CUevent_st){.magic = MAGIC_EVENT, .context = driver_current(), .flags = flags,
        .event = sim_event_new(driver.sim)};
    if (!fresh->event) {
        free(fresh);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *event = fresh;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    ENTER(cuEventDestroy_v2, NEED_INIT);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_event_free(event->event);
    event->magic = 0;
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    return cuEventDestroy_v2(event);
}

static CUresult record(CUevent event, CUstream stream)
{
    STREAM(s);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    driver_lock();
    event->capture = s->capture ? s->capture->id : 0;
    event->recorded = true;
    bool captured = s->capture != NULL;
    driver_unlock();
    return captured ? CUDA_SUCCESS : sim_event_record(event->event, s->work);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER(cuEventRecord, NEED_CONTEXT);
    return record(event, stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    ENTER(cuEventRecordWithFlags, NEED_CONTEXT);
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(event, stream);
}

CUresult cuEventQuery(CUevent event)
{
    ENTER(cuEventQuery, NEED_SAFE);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    return sim_event_done(event->event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    ENTER(cuEventSynchronize, NEED_SAFE);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    sim_event_finish(event->event);
    driver_settle(event->context->device);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    ENTER(cuEventElapsedTime, NEED_INIT);
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_event(start) || !is_event(end) || !start->recorded || !end->recorded ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    double from = sim_event_time(start->event), to = sim_event_time(end->event);
    if (from < 0 || to < 0)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((to - from) * 1e3);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime(milliseconds, start, end);
}
