/*
 * Lanes: one a stream, by whose number the allocator keeps the stream's free blocks apart.  Lane 0 is that of plain
 * memory and of the legacy stream; the per-thread stream is another one in each thread.
 *
 * A stream that is destroyed leaves its lane, with the blocks cached in it, to a stream that comes later, as soon as its
 * work is known to be done: by an event put down before, or by a whole wait for the context.  The number is the handle of
 * the stream that came first, with a count above it where that is taken.  One lock for all of it.  May use base.
 */
#include "preload/caching_internal.h"

#include "base/array.h"
#include "base/table.h"
#include "preload/capture.h"

#include <string.h>

#define HANDLE_BITS 48
#define OWN_KEYS (UINT64_C(1) << 63) /* of threads' own default streams: with the device, then the thread's number */
#define THREAD_BITS 40

struct lane {
    struct cache *cache;
    int64_t id;
    uint64_t key;    /* in the table while a stream has it */
    bool is_taken;
    CUevent last;    /* behind the last stream's work; NULL: */
    uint64_t until;  /* that work is done with this wait for the context */
};

static pthread_mutex_t lanes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lane *lanes; /* [0] is not used: lane 0 is every cache's */
static size_t lane_count = 1, lane_capacity;
static struct table lane_index;
static uint64_t threads;
static pthread_key_t thread_key;
static bool has_thread_key;
static __thread uint64_t thread_number; /* of those that used their own default stream, from 1 */

static void lock(void)
{
    caching_busy++;
    pthread_mutex_lock(&lanes_lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&lanes_lock);
    caching_busy--;
}

void lanes_hold(bool hold)
{
    if (hold)
        lock();
    else
        unlock();
}

int64_t lane_id(uint32_t lane)
{
    int64_t id = PLAIN_ID;
    if (lane != LANE_PLAIN) {
        lock();
        id = lanes[lane].id;
        unlock();
    }
    return id;
}

/* The stream has gone; nobody waits for its work here. */
static void leave(struct lane *lane, CUevent last)
{
    table_remove(&lane_index, lane->key);
    lane->is_taken = false;
    lane->last = last;
    lane->until = atomic_load(&lane->cache->sync_begun) + 1;
}

/* May the blocks of a lane that was left be used by any stream? */
static bool has_rested(struct lane *lane)
{
    bool pushed, rested = atomic_load(&lane->cache->sync_done) >= lane->until;
    if (!lane->last || cache_enter(lane->cache, &pushed))
        return rested;
    rested = rested || caching_driver.memory.cuEventQuery(lane->last) == CUDA_SUCCESS;
    if (rested) {
        caching_driver.memory.cuEventDestroy_v2(lane->last);
        lane->last = NULL;
    }
    cache_leave(pushed);
    return rested;
}

static int64_t free_id(uint64_t handle)
{
    uint64_t id = handle, count = 0;
    for (size_t i = 1; i < lane_count; i++)
        if ((uint64_t)lanes[i].id == id) {
            id = handle | ++count << HANDLE_BITS;
            i = 0;
        }
    return (int64_t)id;
}

/* Left by the same handle at best, by any other if its work is done; else a new one.  LANE_PLAIN: no memory. */
static uint32_t take(struct cache *cache, uint64_t key, uint64_t handle)
{
    uint32_t found = LANE_PLAIN;
    for (uint32_t i = 1; i < lane_count; i++) {
        struct lane *lane = &lanes[i];
        bool is_same = lane->key == key;
        if (lane->cache == cache && !lane->is_taken && (is_same || !found) && has_rested(lane))
            found = i;
    }
    if (!found) {
        if (lane_count >= UINT32_MAX || array_reserve(&lanes, &lane_capacity, lane_count + 1, sizeof(*lanes)))
            return LANE_PLAIN;
        int64_t id = free_id(handle);
        found = (uint32_t)lane_count++;
        lanes[found] = (struct lane){.cache = cache, .id = id};
    }
    if (table_set(&lane_index, key, found))
        return LANE_PLAIN;
    lanes[found].key = key;
    lanes[found].is_taken = true;
    return found;
}

/* A thread ends, and its own default streams with it. */
static void thread_ends(void *number)
{
    lock();
    for (uint32_t i = 1; i < lane_count; i++)
        if (lanes[i].is_taken && (lanes[i].key & OWN_KEYS) &&
            (lanes[i].key & ((UINT64_C(1) << THREAD_BITS) - 1)) == (uintptr_t)number)
            leave(&lanes[i], NULL);
    unlock();
}

/* Under the lock. */
static bool number_thread(void)
{
    if (!has_thread_key)
        has_thread_key = pthread_key_create(&thread_key, thread_ends) == 0;
    if (!thread_number && has_thread_key && pthread_setspecific(thread_key, (void *)(uintptr_t)(threads + 1)) == 0)
        thread_number = ++threads;
    return thread_number != 0;
}

static struct cache *known_or_new(struct cache *cache, uint64_t key, CUstream stream, uint32_t *lane)
{
    *lane = table_get(&lane_index, key, LANE_PLAIN);
    if (!*lane && cache)
        *lane = take(cache, key, (uintptr_t)stream);
    return *lane ? lanes[*lane].cache : NULL;
}

static struct cache *lane_of_thread(uint32_t *lane)
{
    struct cache *cache = cache_current();
    if (!cache)
        return NULL;
    lock();
    bool numbered = thread_number || number_thread();
    uint64_t key = OWN_KEYS | (uint64_t)cache->device << HANDLE_BITS | thread_number;
    cache = numbered ? known_or_new(cache, key, CU_STREAM_PER_THREAD, lane) : NULL;
    unlock();
    return cache;
}

struct cache *lane_of(CUstream stream, uint32_t *lane)
{
    *lane = LANE_PLAIN;
    if (stream == CU_STREAM_LEGACY)
        return cache_current();
    if (stream == CU_STREAM_PER_THREAD)
        return lane_of_thread(lane);
    lock();
    struct cache *cache = known_or_new(NULL, (uintptr_t)stream, stream, lane);
    unlock();
    if (cache)
        return cache;
    CUcontext context = NULL; /* the stream's, which need not be the current one */
    if (caching_driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS || !(cache = cache_of_context(context)))
        return NULL;
    lock();
    cache = known_or_new(cache, (uintptr_t)stream, stream, lane);
    unlock();
    return cache;
}

/* Behind all that the stream has to do; NULL if that cannot be had. */
static CUevent put_down_last(struct cache *cache, CUstream stream)
{
    bool pushed;
    CUevent event = NULL;
    if (capture_of(stream) || cache_enter(cache, &pushed))
        return NULL;
    if (caching_driver.memory.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
        caching_driver.memory.cuEventRecord(event, stream) != CUDA_SUCCESS) {
        caching_driver.memory.cuEventDestroy_v2(event);
        event = NULL;
    }
    cache_leave(pushed);
    return event;
}

void caching_stream_goes(CUstream stream)
{
    if (!caching_is_on() || caching_busy || !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return;
    lock();
    uint32_t lane = table_get(&lane_index, (uintptr_t)stream, LANE_PLAIN);
    struct cache *cache = lane ? lanes[lane].cache : NULL;
    unlock();
    if (!cache)
        return;
    CUevent last = put_down_last(cache, stream);
    lock();
    if (table_get(&lane_index, (uintptr_t)stream, LANE_PLAIN) == lane)
        leave(&lanes[lane], last);
    unlock();
}

/* Its streams went with it, and nothing is cached any more: every lane has rested. */
void lanes_forget(struct cache *cache)
{
    lock();
    for (uint32_t i = 1; i < lane_count; i++) {
        if (lanes[i].cache != cache)
            continue;
        if (lanes[i].is_taken)
            leave(&lanes[i], NULL);
        lanes[i].last = NULL;
        lanes[i].until = 0;
    }
    unlock();
}
