/*
 * Time for events: the cycle counter where it runs evenly, else the monotonic clock, and the samples by which a reader
 * turns ticks into times.  Uses the C library's clocks only.
 */
#include "record/internal.h"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CALIBRATION_FIRST_NS 1000000   /* after the file was made; doubled up to ... */
#define CALIBRATION_LAST_NS 1000000000
#define CALIBRATION_SIGNAL_NS 20000000u /* with a signal, whose handlers are looked after then, too */

static int64_t nanoseconds(clockid_t clock)
{
    struct timespec time = {0};
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t ticks_monotonic_ns(void)
{
    return nanoseconds(CLOCK_MONOTONIC);
}

void ticks_choose(void)
{
    recorder.clock = RING_CLOCK_NANOSECONDS;
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8)) /* runs at one rate in every state */
        recorder.clock = RING_CLOCK_CYCLES;
#elif defined(__aarch64__)
    recorder.clock = RING_CLOCK_CYCLES;
#endif
}

/* The tightest of a few readings, so that a preemption between the three clocks does not shift them. */
void ticks_sample(struct ring_calibration *sample)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        uint64_t before = ticks_now();
        int64_t monotonic = nanoseconds(CLOCK_MONOTONIC);
        int64_t realtime = nanoseconds(CLOCK_REALTIME);
        uint64_t after = ticks_now();
        if (after - before >= best)
            continue;
        best = after - before;
        sample->ticks = recorder.clock == RING_CLOCK_CYCLES ? before + best / 3 : (uint64_t)monotonic;
        sample->monotonic = monotonic;
        sample->realtime = realtime;
    }
    sample->check = RING_CALIBRATION_CHECK(sample);
}

void ticks_calibrate(uint64_t now)
{
    struct ring_header *header = recorder.header;
    uint64_t due = __atomic_load_n(&recorder.next_calibration, __ATOMIC_RELAXED);
    /* Whoever moves the date takes the sample; the next date is far enough away that it will not be overtaken. */
    if (now < due || !__atomic_compare_exchange_n(&recorder.next_calibration, &due, UINT64_MAX, false,
                                                  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    struct ring_calibration sample;
    ticks_sample(&sample);
    header->calibrations[1 + (recorder.calibrations++ & 1)] = sample;
    const struct ring_calibration *first = &header->calibrations[0];
    double rate = (double)(sample.ticks - first->ticks) / (double)(sample.monotonic - first->monotonic + 1);
    if (recorder.calibration_step < CALIBRATION_FIRST_NS)
        recorder.calibration_step = CALIBRATION_FIRST_NS;
    else if (recorder.calibration_step < (recorder.signal ? CALIBRATION_SIGNAL_NS : CALIBRATION_LAST_NS))
        recorder.calibration_step *= 2;
    uint64_t step = (uint64_t)(rate * (double)recorder.calibration_step);
    __atomic_store_n(&recorder.next_calibration, sample.ticks + (step ? step : 1), __ATOMIC_RELEASE);
    signal_keep();
}
