/*
 * Samples of a device's free memory.  Uses the driver table, the captures and the recorder.
 */
#include "preload/measure.h"

#include "preload/capture.h"
#include "preload/driver.h"
#include "preload/hook.h"
#include "preload/pools.h"
#include "preload/unplaced.h"

#include <stdatomic.h>
#include <stddef.h>

#define MEASURE_DEVICES 64
#define MEASURE_POOLS 66 /* the default one, the current one, and the program's own */

_Atomic uint64_t unplaced_next;

static struct {
    _Atomic uint64_t events, known; /* of an allocation; known bytes when it was asked last */
    atomic_bool has_pools;
} measure_devices[MEASURE_DEVICES];

void measure_has_pools(uint16_t device)
{
    if (device < MEASURE_DEVICES && !atomic_load_explicit(&measure_devices[device].has_pools, memory_order_relaxed))
        atomic_store(&measure_devices[device].has_pools, true);
}

static uint64_t held_by(CUmemoryPool pool)
{
    cuuint64_t reserved = 0, used = 0;
    if (!pool || driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS ||
        driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS)
        return 0;
    return reserved > used ? reserved - used : 0;
}

/* What the pools of a device hold beyond what they handed out. */
static uint64_t held_by_pools(uint16_t device)
{
    CUmemoryPool pools[MEASURE_POOLS] = {NULL};
    size_t count = 2;
    uint64_t sum = 0;
    if (device >= MEASURE_DEVICES || !atomic_load(&measure_devices[device].has_pools) || !driver.cuMemPoolGetAttribute)
        return 0;
    if (!driver.cuDeviceGetDefaultMemPool || driver.cuDeviceGetDefaultMemPool(&pools[0], device) != CUDA_SUCCESS)
        pools[0] = NULL;
    if (!driver.cuDeviceGetMemPool || driver.cuDeviceGetMemPool(&pools[1], device) != CUDA_SUCCESS)
        pools[1] = NULL;
    count += pools_of_device(device, pools + count, MEASURE_POOLS - count);
    for (size_t i = 0; i < count; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again = again || pools[k] == pools[i];
        sum += again ? 0 : held_by(pools[i]);
    }
    return sum;
}

static bool ask(uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t available = 0, total = 0;
    if (capture_any() || !driver.cuMemGetInfo_v2 || driver.cuMemGetInfo_v2(&available, &total) != CUDA_SUCCESS)
        return false;
    *free_bytes = available;
    *total_bytes = total;
    return true;
}

void measure_seen(uint16_t device, uint64_t free_bytes)
{
    recorder_device_free(device, free_bytes, capture_any() ? 0 : held_by_pools(device));
}

void measure_now(uint16_t device)
{
    uint64_t available, total;
    if (ask(&available, &total))
        measure_seen(device, available);
}

void measure_event(uint16_t device)
{
    if (device >= MEASURE_DEVICES || capture_any())
        return;
    uint64_t events = atomic_fetch_add_explicit(&measure_devices[device].events, 1, memory_order_relaxed) + 1;
    uint64_t known = recorder_known(device);
    uint64_t last = atomic_load_explicit(&measure_devices[device].known, memory_order_relaxed);
    if ((events & (events - 1)) != 0 && known <= last + last / 8)
        return;
    if (known > last)
        atomic_store_explicit(&measure_devices[device].known, known, memory_order_relaxed);
    measure_now(device);
}

/* False too if another thread allocated while the driver answered. */
static bool take(uint16_t device, int64_t *unknown)
{
    uint64_t available, total, known = recorder_known(device);
    if (!ask(&available, &total) || total < available)
        return false;
    *unknown = (int64_t)(total - available) - (int64_t)known - (int64_t)held_by_pools(device);
    return recorder_known(device) == known;
}

static atomic_uint measure_begun, measure_open;

void measure_after_fork(void)
{
    atomic_store(&measure_open, 0);
}

struct measure measure_begin(void)
{
    bool alone = atomic_fetch_add(&measure_open, 1) == 0;
    struct measure measure = {.open = true, .number = atomic_fetch_add(&measure_begun, 1) + 1};
    CUdevice device = 0;
    if (capture_any() || !driver.cuCtxGetDevice || driver.cuCtxGetDevice(&device) != CUDA_SUCCESS || device < 0 ||
        device >= MEASURE_DEVICES)
        return measure;
    measure.device = (uint16_t)device;
    measure.valid = alone && take(measure.device, &measure.unknown);
    return measure;
}

uint64_t measure_end(const struct measure *before)
{
    int64_t unknown;
    bool alone = atomic_load(&measure_begun) == before->number;
    bool grew = before->valid && alone && take(before->device, &unknown) && unknown > before->unknown;
    if (before->open)
        atomic_fetch_sub(&measure_open, 1);
    return grew ? (uint64_t)(unknown - before->unknown) : 0;
}
