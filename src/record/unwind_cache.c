/*
 * libunwind's memory of frames: a table a thread, from a program counter to the way from its frame to the caller's.  It
 * never hears that a library went, and would follow the old one's ways in the stack of another that has its addresses,
 * to anywhere.  So it is emptied here.
 *
 * libunwind has no call for that.  Its table is what appeared among the thread's keys when the first stack was taken, and
 * it is believed only if it looks as it should and knows the frames of that stack.  Uses the C library only.
 */
#include "record/internal.h"

#include <limits.h>
#include <string.h>

#if defined(__x86_64__)

struct unwind_cache {
    uint64_t (*frames)[2]; /* program counter, way; 0: free */
    size_t log_size, used;
};

static pthread_key_t cache_key;
static bool has_cache;
static const void *keys_before[PTHREAD_KEYS_MAX];

void unwind_cache_before(void)
{
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++)
        keys_before[key] = pthread_getspecific(key);
}

/* Calls are looked up by the instruction before the one that they return to. */
static bool knows(const struct unwind_cache *cache, void *const *frames, int count)
{
    for (size_t i = 0; i < (size_t)1 << cache->log_size; i++)
        for (int k = 0; k < count; k++)
            if (cache->frames[i][0] == (uintptr_t)frames[k] - 1)
                return true;
    return false;
}

void unwind_cache_find(void *const *frames, int count)
{
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX && !has_cache; key++) {
        const struct unwind_cache *cache = pthread_getspecific(key);
        if (!cache || keys_before[key])
            continue;
        has_cache = cache->frames && (uintptr_t)cache->frames % 4096 == 0 && cache->log_size >= 10 &&
                    cache->log_size <= 20 && cache->used > 0 && cache->used <= (size_t)1 << cache->log_size &&
                    knows(cache, frames, count);
        cache_key = key;
    }
}

void unwind_cache_empty(void)
{
    struct unwind_cache *cache = has_cache ? pthread_getspecific(cache_key) : NULL;
    if (!cache || !cache->frames)
        return;
    memset(cache->frames, 0, sizeof(*cache->frames) << cache->log_size);
    cache->used = 0;
}

#else

void unwind_cache_before(void)
{
}

void unwind_cache_find(void *const *frames, int count)
{
    (void)frames, (void)count;
}

void unwind_cache_empty(void)
{
}

#endif
