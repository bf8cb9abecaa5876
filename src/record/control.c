/* Pausing, marks, forgetting: words in the header of a ring file.  Uses the layout alone. */
#include "record/control.h"

#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

uint64_t control_ticks(const struct ring_header *header)
{
    struct timespec time = {0};
#if defined(__x86_64__)
    if (header->clock == RING_CLOCK_CYCLES)
        return __rdtsc();
#elif defined(__aarch64__)
    if (header->clock == RING_CLOCK_CYCLES) {
        uint64_t count;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
        return count;
    }
#endif
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

bool control_pause(struct ring_header *header, bool pause)
{
    return __atomic_exchange_n(&header->paused, pause, __ATOMIC_ACQ_REL) != (uint32_t)pause;
}

void control_forget(struct ring_header *header)
{
    uint64_t sequence = __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE);
    __atomic_store_n(&header->forgotten, sequence, __ATOMIC_RELEASE);
}

bool control_mark(struct ring_header *header, const char *name, size_t length)
{
    uint32_t place = __atomic_load_n(&header->mark_count, __ATOMIC_RELAXED);
    do {
        if (place >= RING_MARKS)
            return false;
    } while (!__atomic_compare_exchange_n(&header->mark_count, &place, place + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    struct ring_mark *mark = &header->marks[place];
    __atomic_store_n(&mark->state, RING_MARK_BUSY, __ATOMIC_RELAXED);
    mark->sequence = __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE);
    mark->ticks = control_ticks(header);
    memset(mark->name, 0, sizeof(mark->name));
    memcpy(mark->name, name, length < CONTROL_MARK_NAME ? length : CONTROL_MARK_NAME);
    __atomic_store_n(&mark->state, RING_MARK_WHOLE, __ATOMIC_RELEASE);
    return true;
}
