/*
 * The simulated device's pools of memory in stream order.  May use: base.
 *
 * As seen on driver 580: a pool has addresses of its own, takes 32 MiB of
 * memory at a time at their upper end, hands out multiples of 512 bytes,
 * counts as used what was asked for, and gives back what is free at the end
 * and above its threshold (0 at first) when somebody synchronises.
 */
#include <stdlib.h>

#include "sim/sim_private.h"

#define POOL_STEP (32ull << 20)
#define POOL_BASE 0x300000000000ull /* above reserved ranges; a window a pool */
#define POOL_WINDOW 0x010000000000ull
#define POOL_WINDOWS 32

struct part { /* a block, or free */
    uint64_t address, bytes;
    bool used;
};

struct sim_pool {
    struct sim *sim;
    unsigned device;
    uint64_t maximum, base;
    struct sim_pool_numbers numbers; /* reserved: also how far the addresses reach */
    struct part *parts;              /* all of [base, base + reserved), by address, no two free ones together */
    size_t count, room;
    struct sim_pool *next;
};

static uint64_t free_window(const struct sim *sim)
{
    for (unsigned i = 0; i < POOL_WINDOWS; i++) {
        uint64_t base = POOL_BASE + i * POOL_WINDOW;
        const struct sim_pool *pool = sim->pools;
        while (pool && pool->base != base)
            pool = pool->next;
        if (!pool)
            return base;
    }
    return 0;
}

struct sim_pool *sim_pool_new(struct sim *sim, unsigned device, uint64_t maximum)
{
    struct sim_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->sim = sim;
    pool->device = device;
    pool->maximum = maximum;
    pthread_mutex_lock(&sim->lock);
    pool->base = free_window(sim);
    if (pool->base) {
        pool->next = sim->pools;
        sim->pools = pool;
    }
    pthread_mutex_unlock(&sim->lock);
    if (pool->base)
        return pool;
    free(pool);
    return NULL;
}

static void pool_drop(struct sim_pool *pool)
{
    struct sim *sim = pool->sim;
    for (size_t i = sim->entry_count; i-- > 0;)
        if (sim->entries[i].range.kind == SIM_ASYNC && sim->entries[i].range.handle == (uint64_t)(uintptr_t)pool)
            sim_entry_remove(sim, &sim->entries[i]);
    sim->devices[pool->device].used -= pool->numbers.reserved;
    struct sim_pool **at = &sim->pools;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    free(pool->parts);
    free(pool);
}

void sim_pool_free(struct sim_pool *pool)
{
    struct sim *sim = pool->sim;
    pthread_mutex_lock(&sim->lock);
    pool_drop(pool);
    pthread_mutex_unlock(&sim->lock);
}

void sim_pools_free(struct sim *sim)
{
    while (sim->pools)
        pool_drop(sim->pools);
}

static void trim(struct sim_pool *pool, uint64_t keep)
{
    struct part *last = pool->count ? &pool->parts[pool->count - 1] : NULL;
    if (!last || last->used || pool->numbers.reserved <= keep)
        return;
    uint64_t excess = (pool->numbers.reserved - keep + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    uint64_t give = last->bytes / POOL_STEP * POOL_STEP;
    if (give > excess)
        give = excess;
    last->bytes -= give;
    if (last->bytes == 0)
        pool->count--;
    pool->numbers.reserved -= give;
    pool->sim->devices[pool->device].used -= give;
}

/* The smallest that is large enough, ties by address. */
static struct part *find(struct sim_pool *pool, uint64_t bytes)
{
    struct part *best = NULL;
    for (size_t k = 0; k < pool->count; k++) {
        struct part *part = &pool->parts[k];
        if (!part->used && part->bytes >= bytes && (!best || part->bytes < best->bytes))
            best = part;
    }
    return best;
}

/* More memory at the end, so much that the free part there has room for bytes. */
static CUresult extend(struct sim_pool *pool, uint64_t bytes)
{
    struct device *d = &pool->sim->devices[pool->device];
    struct part *last = pool->count ? &pool->parts[pool->count - 1] : NULL;
    uint64_t have = last && !last->used ? last->bytes : 0;
    uint64_t more = (bytes - have + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    uint64_t most = pool->maximum && pool->maximum < POOL_WINDOW ? pool->maximum : POOL_WINDOW;
    if (more > d->bytes - d->used || more > most || pool->numbers.reserved > most - more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sim_grow((void **)&pool->parts, &pool->room, pool->count + 1, sizeof *pool->parts))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (have)
        pool->parts[pool->count - 1].bytes += more;
    else
        pool->parts[pool->count++] = (struct part){pool->base + pool->numbers.reserved, more, false};
    d->used += more;
    pool->numbers.reserved += more;
    if (pool->numbers.reserved > pool->numbers.reserved_high)
        pool->numbers.reserved_high = pool->numbers.reserved;
    return CUDA_SUCCESS;
}

static CUresult part_take(struct sim_pool *pool, struct part *part, uint64_t bytes)
{
    size_t k = (size_t)(part - pool->parts);
    if (!sim_grow((void **)&pool->parts, &pool->room, pool->count + 1, sizeof *pool->parts))
        return CUDA_ERROR_OUT_OF_MEMORY;
    part = &pool->parts[k];
    if (part->bytes > bytes) {
        for (size_t i = pool->count++; i > k + 1; i--)
            pool->parts[i] = pool->parts[i - 1];
        pool->parts[k + 1] = (struct part){part->address + bytes, part->bytes - bytes, false};
        part->bytes = bytes;
    }
    part->used = true;
    return CUDA_SUCCESS;
}

static void part_join(struct sim_pool *pool, size_t left) /* with the one after it, if both are free */
{
    if (left + 1 >= pool->count || pool->parts[left].used || pool->parts[left + 1].used)
        return;
    pool->parts[left].bytes += pool->parts[left + 1].bytes;
    pool->count--;
    for (size_t i = left + 1; i < pool->count; i++)
        pool->parts[i] = pool->parts[i + 1];
}

static void block_put(struct sim_pool *pool, uint64_t address)
{
    for (size_t k = 0; k < pool->count; k++)
        if (pool->parts[k].address == address) {
            pool->parts[k].used = false;
            part_join(pool, k);
            if (k)
                part_join(pool, k - 1);
            return;
        }
}

CUresult sim_pool_get(struct sim_pool *pool, uint64_t bytes, void *owner, uint64_t *address)
{
    struct sim *sim = pool->sim;
    if (bytes == 0 || bytes > UINT64_MAX / 2)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t size = (bytes + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT;
    pthread_mutex_lock(&sim->lock);
    CUresult result = sim_entered(sim, "pool_get");
    if (!result && sim->devices[pool->device].lost)
        result = CUDA_ERROR_UNKNOWN;
    struct part *part = result ? NULL : find(pool, size);
    if (!result && !part) {
        result = extend(pool, size);
        part = result ? NULL : find(pool, size);
    }
    if (part) {
        struct entry entry = {.range = {.address = part->address, .bytes = bytes, .kind = SIM_ASYNC,
                                  .device = pool->device, .owner = owner, .handle = (uint64_t)(uintptr_t)pool}};
        *address = part->address;
        result = part_take(pool, part, size);
        if (!result)
            result = sim_entry_add(sim, &entry);
    }
    if (!result) {
        pool->numbers.used += bytes;
        if (pool->numbers.used > pool->numbers.used_high)
            pool->numbers.used_high = pool->numbers.used;
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

CUresult sim_pool_put(struct sim *sim, uint64_t address)
{
    pthread_mutex_lock(&sim->lock);
    struct entry *entry = sim_entry_at(sim, address);
    CUresult result = entry && entry->range.kind == SIM_ASYNC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        struct sim_pool *pool = (struct sim_pool *)(uintptr_t)entry->range.handle;
        pool->numbers.used -= entry->range.bytes;
        sim_entry_remove(sim, entry);
        block_put(pool, address);
    }
    pthread_mutex_unlock(&sim->lock);
    return result;
}

void sim_pool_trim(struct sim_pool *pool, uint64_t keep)
{
    pthread_mutex_lock(&pool->sim->lock);
    trim(pool, keep);
    pthread_mutex_unlock(&pool->sim->lock);
}

void sim_pool_settle(struct sim *sim, unsigned device)
{
    pthread_mutex_lock(&sim->lock);
    for (struct sim_pool *pool = sim->pools; pool; pool = pool->next)
        if (pool->device == device)
            trim(pool, pool->numbers.threshold);
    pthread_mutex_unlock(&sim->lock);
}

void sim_pool_numbers(struct sim_pool *pool, struct sim_pool_numbers *numbers)
{
    pthread_mutex_lock(&pool->sim->lock);
    *numbers = pool->numbers;
    pthread_mutex_unlock(&pool->sim->lock);
}

void sim_pool_set(struct sim_pool *pool, const uint64_t *threshold, bool reset_reserved_high, bool reset_used_high)
{
    pthread_mutex_lock(&pool->sim->lock);
    if (threshold)
        pool->numbers.threshold = *threshold;
    if (reset_reserved_high)
        pool->numbers.reserved_high = pool->numbers.reserved;
    if (reset_used_high)
        pool->numbers.used_high = pool->numbers.used;
    pthread_mutex_unlock(&pool->sim->lock);
}

unsigned sim_pool_device(const struct sim_pool *pool)
{
    return pool->device;
}
