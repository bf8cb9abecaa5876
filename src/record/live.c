/*
 * The table of live memory: what the ring forgets stays known here.  Levels of open-addressed buckets, each level twice
 * the one before; a key sits in one of two buckets of eight (one cache line each) of some level.  Removal leaves a
 * plain hole, so there is nothing to clean up and nothing to chase.  Lock-free: a place is claimed by swapping its
 * key; different threads never add or remove the same key at once, because an address is given out once.
 */
#include "record/internal.h"

#define LIVE_WORDS (sizeof(struct ring_live) / sizeof(uint64_t))

static uint64_t level_keys(uint32_t level)
{
    return (uint64_t)RING_LIVE_FIRST << level;
}

static uint64_t *keys_of(uint32_t level)
{
    return __atomic_load_n(&recorder.live_keys[level], __ATOMIC_ACQUIRE);
}

static uint64_t *value_of(uint64_t *keys, uint32_t level, uint64_t index)
{
    return keys + level_keys(level) + index * LIVE_WORDS;
}

/* Copies go word by word with relaxed order: a program that frees and allocates one address in two threads at once may
 * give us a mixture, which the second look at the key catches. */
static bool copy_out(uint64_t *keys, uint32_t level, uint64_t index, uint64_t key, struct ring_live *copy)
{
    union {
        uint64_t words[LIVE_WORDS];
        struct ring_live record;
    } out;
    const uint64_t *value = value_of(keys, level, index);
    for (size_t i = 0; i < LIVE_WORDS; i++)
        out.words[i] = __atomic_load_n(&value[i], __ATOMIC_RELAXED);
    *copy = out.record;
    return __atomic_load_n(&keys[index], __ATOMIC_ACQUIRE) == key;
}

bool live_find(uint64_t key, struct ring_live *copy, struct live_place *place)
{
    for (uint32_t level = 0; level < RING_LIVE_LEVELS; level++) {
        uint64_t *keys = keys_of(level);
        if (!keys)
            return false;
        uint64_t bucket[2];
        ring_live_buckets(key, level_keys(level), bucket);
        for (int b = 0; b < 2; b++) {
            for (uint64_t i = bucket[b]; i < bucket[b] + RING_LIVE_BUCKET; i++) {
                if (__atomic_load_n(&keys[i], __ATOMIC_ACQUIRE) != key)
                    continue;
                *place = (struct live_place){level, i};
                return copy_out(keys, level, i, key, copy);
            }
        }
    }
    return false;
}

static unsigned free_places(const uint64_t *bucket)
{
    unsigned count = 0;
    for (unsigned i = 0; i < RING_LIVE_BUCKET; i++)
        count += __atomic_load_n(&bucket[i], __ATOMIC_RELAXED) == 0;
    return count;
}

static bool claim(uint64_t *keys, uint64_t bucket, uint64_t key, uint64_t *index)
{
    for (uint64_t i = bucket; i < bucket + RING_LIVE_BUCKET; i++) {
        uint64_t expected = 0;
        if (__atomic_load_n(&keys[i], __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&keys[i], &expected, key | RING_LIVE_BUSY, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            *index = i;
            return true;
        }
    }
    return false;
}

static void fill(uint64_t *keys, uint32_t level, uint64_t index, uint64_t key, const struct ring_live *record)
{
    union {
        struct ring_live record;
        uint64_t words[LIVE_WORDS];
    } in = {.record = *record};
    uint64_t *value = value_of(keys, level, index);
    for (size_t i = 0; i < LIVE_WORDS; i++)
        __atomic_store_n(&value[i], in.words[i], __ATOMIC_RELAXED);
    __atomic_store_n(&keys[index], key, __ATOMIC_RELEASE);
}

/* Make the level, unless another thread did meanwhile. */
static uint64_t *make_level(uint32_t level)
{
    if (!lock_try(&recorder.live_lock))
        return NULL;
    uint64_t *keys = keys_of(level);
    if (!keys) {
        uint64_t offset = 0;
        keys = ring_file_append(level_keys(level) * (sizeof(uint64_t) + sizeof(struct ring_live)), &offset);
        if (keys) {
            __atomic_store_n(&recorder.header->live[level], offset, __ATOMIC_RELEASE);
            __atomic_store_n(&recorder.live_keys[level], keys, __ATOMIC_RELEASE);
        }
    }
    lock_release(&recorder.live_lock);
    return keys;
}

bool live_insert(uint64_t key, const struct ring_live *record)
{
    for (uint32_t level = 0; level < RING_LIVE_LEVELS; level++) {
        uint64_t *keys = keys_of(level);
        if (!keys && !(keys = make_level(level)))
            return false;
        uint64_t bucket[2], index = 0;
        ring_live_buckets(key, level_keys(level), bucket);
        /* The emptier of two buckets: that keeps a level useful until it is four fifths full. */
        if (free_places(keys + bucket[0]) < RING_LIVE_BUCKET / 2 &&
            free_places(keys + bucket[1]) > free_places(keys + bucket[0])) {
            uint64_t first = bucket[0];
            bucket[0] = bucket[1];
            bucket[1] = first;
        }
        if (claim(keys, bucket[0], key, &index) || claim(keys, bucket[1], key, &index)) {
            fill(keys, level, index, key, record);
            return true;
        }
    }
    return false;
}

/* Nobody else changes a record that stands; one that is replaced meanwhile is another's, and its note says too much. */
bool live_note(uint64_t key, struct live_place place, uint8_t note)
{
    uint64_t *keys = keys_of(place.level);
    struct ring_live *record = (struct ring_live *)value_of(keys, place.level, place.index);
    return __atomic_load_n(&keys[place.index], __ATOMIC_ACQUIRE) == key &&
           !(__atomic_fetch_or(&record->notes, note, __ATOMIC_RELAXED) & note);
}

void live_remove(uint64_t key, struct live_place place)
{
    uint64_t *keys = keys_of(place.level);
    __atomic_compare_exchange_n(&keys[place.index], &key, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void recorder_each_segment(bool (*each)(uint64_t address, uint16_t device, uint8_t kind, void *context), void *context)
{
    if (!recorder.state || recorder_state() != RECORDER_READY)
        return;
    for (uint32_t level = 0; level < RING_LIVE_LEVELS; level++) {
        uint64_t *keys = keys_of(level);
        for (uint64_t i = 0; keys && i < level_keys(level); i++) {
            uint64_t key = __atomic_load_n(&keys[i], __ATOMIC_ACQUIRE);
            struct ring_live copy;
            if (!key || (key & (RING_LIVE_BUSY | RING_LIVE_BLOCK)) || !copy_out(keys, level, i, key, &copy))
                continue;
            if (!each(key & RING_LIVE_ADDRESS, copy.device, copy.flags & RING_KIND_MASK, context))
                return;
        }
    }
}

/* What the wrappers ask: what starts at an address. */
static bool find_at(uint64_t address, uint8_t action, struct ring_live *record, struct live_place *place)
{
    uint64_t key = live_key(address, action);
    return recorder.state && recorder_state() == RECORDER_READY && key && live_find(key, record, place);
}

bool recorder_find_segment(uint64_t address, uint64_t *size, uint16_t *device, uint8_t *kind)
{
    struct ring_live record;
    struct live_place place;
    if (!find_at(address, RECORD_SEGMENT_ALLOC, &record, &place))
        return false;
    if (size)
        *size = record.size;
    if (device)
        *device = record.device;
    if (kind)
        *kind = record.flags & RING_KIND_MASK;
    return true;
}

bool recorder_find(uint64_t address, uint64_t *size, uint16_t *device)
{
    return recorder_find_segment(address, size, device, NULL);
}

bool recorder_find_block(uint64_t address, uint64_t *size, uint16_t *device)
{
    struct ring_live record;
    struct live_place place;
    if (!find_at(address, RECORD_ALLOC, &record, &place))
        return false;
    *size = record.size;
    *device = record.device;
    return true;
}
