/*
 * When pinned blocks may be used again: events on the streams that used them.  Uses the driver.
 *
 * A stream that is capturing a graph can be neither asked nor waited for: the block is put off until it is not.
 */
#include "api/host.h"

#include "base/array.h"

static bool is_capturing(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = host.call->cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, NULL, NULL);
    return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || (!result && status != CU_STREAM_CAPTURE_STATUS_NONE);
}

static bool any_captures(const struct host_block *block)
{
    for (size_t i = 0; i < block->use_count; i++)
        if (is_capturing(block->uses[i].stream))
            return true;
    return false;
}

static bool get_event(CUcontext context, CUevent *event)
{
    for (size_t i = host.event_count; i-- > 0;) {
        if (host.events[i].context != context)
            continue;
        *event = host.events[i].event;
        host.events[i] = host.events[--host.event_count];
        return true;
    }
    return host.call->cuEventCreate(event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
}

static void keep_event(CUcontext context, CUevent event)
{
    if (array_reserve(&host.events, &host.event_capacity, host.event_count + 1, sizeof(*host.events)))
        host.call->cuEventDestroy_v2(event);
    else
        host.events[host.event_count++] = (struct host_event){event, context};
}

static bool has_room(void)
{
    if (host.wait_first && host.wait_first + host.wait_count == host.wait_capacity) {
        for (size_t i = 0; i < host.wait_count; i++)
            host.waits[i] = host.waits[host.wait_first + i];
        host.wait_first = 0;
    }
    return !array_reserve(&host.waits, &host.wait_capacity, host.wait_first + host.wait_count + 1, sizeof(*host.waits));
}

/* One event, in its stream's context.  Where there can be none the context is waited for instead. */
static void record_one(uint32_t block, const struct host_use *use)
{
    CUevent event = NULL;
    CUcontext own;
    if (host.call->cuCtxPushCurrent_v2(use->context))
        return; /* it is gone with all that was in it */
    bool made = has_room() && get_event(use->context, &event);
    if (made && !host.call->cuEventRecord(event, use->stream)) {
        host.waits[host.wait_first + host.wait_count++] = (struct host_wait){event, use->context, block};
        host.blocks[block].waits++;
    } else {
        if (made)
            host.call->cuEventDestroy_v2(event);
        host.call->cuCtxSynchronize();
    }
    host.call->cuCtxPopCurrent_v2(&own);
}

void host_record_events(uint32_t number)
{
    struct host_block *block = &host.blocks[number];
    if (any_captures(block)) {
        block->is_put_off = true;
        block->next = host.put_off;
        host.put_off = number;
        return;
    }
    for (size_t i = 0; i < block->use_count; i++)
        record_one(number, &block->uses[i]);
    block->use_count = 0;
    if (!block->waits)
        host_make_free(number);
}

/* Those that a capture put off, again. */
static void try_put_off(void)
{
    uint32_t block = host.put_off;
    host.put_off = 0;
    while (block) {
        uint32_t next = host.blocks[block].next;
        host.blocks[block].is_put_off = false;
        host_record_events(block);
        block = next;
    }
}

/* An event that was lost with its context stands for nothing that still runs. */
static bool is_done(const struct host_wait *wait)
{
    CUresult result = host.call->cuEventQuery(wait->event);
    return result != CUDA_ERROR_NOT_READY && result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           result != CUDA_ERROR_CAPTURED_EVENT;
}

void host_process_events(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* another stream's capture is not disturbed */
    if (!host.wait_count && !host.put_off)
        return;
    host.call->cuThreadExchangeStreamCaptureMode(&mode);
    try_put_off();
    size_t kept = 0;
    for (size_t i = 0; i < host.wait_count; i++) {
        struct host_wait wait = host.waits[host.wait_first + i];
        if (!is_done(&wait)) {
            host.waits[host.wait_first + kept++] = wait;
            continue;
        }
        keep_event(wait.context, wait.event);
        if (!--host.blocks[wait.block].waits)
            host_make_free(wait.block);
    }
    host.wait_count = kept;
    if (!kept)
        host.wait_first = 0;
    host.call->cuThreadExchangeStreamCaptureMode(&mode);
}
