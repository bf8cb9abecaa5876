/*
 * What an event finds missing on its way and opens: the file, a device's ring, extensions of its slots.  Seldom done, and
 * kept apart from the way itself (record.c).  Uses the ring file and the locks.
 */
#include "record/internal.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The file is not there: make it, or wait for the thread that makes it.  False: no recording. */
bool recorder_open_file(unsigned device)
{
    uint32_t state = RECORDER_NONE;
    if (__atomic_compare_exchange_n(recorder.state, &state, RECORDER_MAKING, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        recorder.generation++;
        stack_forget();
        int cancel = cancel_off(), failed = ring_file_make(device < RING_DEVICES ? device : 0), error = errno;
        cancel_as(cancel);
        signal_keep();
        __atomic_store_n(recorder.state, failed ? RECORDER_OFF : RECORDER_READY, __ATOMIC_RELEASE);
        if (!failed)
            ring_file_tell_facts();
        else
            recorder_say("nothing is recorded: no ring file can be made in", recorder.folder, error);
        return !failed;
    }
    int64_t deadline = ticks_monotonic_ns() + INT64_C(5000000000);
    for (unsigned turns = 0; (state = recorder_state()) == RECORDER_MAKING; lock_pause(&turns)) {
        if (turns % 64 == 63 && ticks_monotonic_ns() > deadline) {
            recorder_count(&recorder.dropped_waiting);
            return false;
        }
    }
    return state == RECORDER_READY;
}

struct ring_slot *recorder_open_ring(unsigned device)
{
    struct ring_slot *ring = NULL;
    if (!lock_try(&recorder.live_lock))
        return NULL;
    if (!(ring = recorder.rings[device])) {
        uint64_t offset = 0;
        ring = ring_file_append(recorder.slots * sizeof(struct ring_slot), &offset);
        if (ring) {
            __atomic_store_n(&recorder.devices[device].ring, offset, __ATOMIC_RELEASE);
            __atomic_store_n(&recorder.rings[device], ring, __ATOMIC_RELEASE);
        }
    }
    lock_release(&recorder.live_lock);
    return ring;
}

struct ring_extension *recorder_open_extensions(unsigned device, uint64_t chunk)
{
    struct ring_extension *extensions = NULL;
    if (!lock_try(&recorder.live_lock))
        return NULL;
    if (!(extensions = recorder.extensions[device][chunk])) {
        uint64_t offset = 0;
        extensions = ring_file_append(recorder.slots / RING_EXTENSION_CHUNKS * sizeof(*extensions), &offset);
        if (extensions) {
            recorder.devices[device].extensions[chunk] = offset;
            __atomic_store_n(&recorder.extensions[device][chunk], extensions, __ATOMIC_RELEASE);
        }
    }
    lock_release(&recorder.live_lock);
    return extensions;
}

/* Pages that are written for the first time cost a fault each; taken many at once they cost a fifth of that. */
void recorder_touch_ahead(struct ring_slot *ring, uint64_t position)
{
    uint64_t start = position & (recorder.slots - 1);
    uint64_t count = recorder.slots - start < RECORDER_AHEAD ? recorder.slots - start : RECORDER_AHEAD;
    madvise(&ring[start], count * sizeof(*ring), MADV_POPULATE_WRITE); /* if the kernel knows it */
}
