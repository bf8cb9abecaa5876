/*
 * The program's own pools.  Uses the C library alone.
 */
#include "preload/pools.h"

#include <stdatomic.h>

#define POOLS 64

static struct {
    _Atomic(CUmemoryPool) pool;
    atomic_uint device;
} pools_made[POOLS];

void pools_add(CUmemoryPool pool, unsigned device)
{
    for (int i = 0; i < POOLS; i++) {
        CUmemoryPool none = NULL;
        if (!atomic_compare_exchange_strong(&pools_made[i].pool, &none, pool))
            continue;
        atomic_store(&pools_made[i].device, device);
        return;
    }
}

bool pools_take(CUmemoryPool pool, unsigned *device)
{
    for (int i = 0; pool && i < POOLS; i++) {
        CUmemoryPool same = pool;
        unsigned on = atomic_load(&pools_made[i].device);
        if (!atomic_compare_exchange_strong(&pools_made[i].pool, &same, NULL))
            continue;
        *device = on;
        return true;
    }
    return false;
}

bool pools_find(CUmemoryPool pool, unsigned *device)
{
    for (int i = 0; pool && i < POOLS; i++) {
        if (atomic_load(&pools_made[i].pool) != pool)
            continue;
        *device = atomic_load(&pools_made[i].device);
        return true;
    }
    return false;
}

size_t pools_of_device(unsigned device, CUmemoryPool *found, size_t room)
{
    size_t count = 0;
    for (int i = 0; i < POOLS && count < room; i++) {
        CUmemoryPool pool = atomic_load(&pools_made[i].pool);
        if (pool && atomic_load(&pools_made[i].device) == device)
            found[count++] = pool;
    }
    return count;
}
