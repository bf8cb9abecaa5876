/* Allocations from maker to free.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/allocations.h"

#include "analyze/makers.h"
#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

struct live {
    uint64_t made, freed, size, address;
    uint64_t number, freed_number; /* of the entries, among those of the space */
    uint32_t next_unused;
    uint16_t process, device;
    bool is_used;
};

struct space {
    struct table live; /* address -> live */
    uint64_t entries;  /* so far */
};

struct walk {
    const struct snapshot *snapshot;
    allocations_visit *visit;
    void *context;
    struct space *spaces;
    size_t space_count, space_capacity;
    struct table space_index;
    uint32_t last_key, last_space;
    struct live *lives;
    size_t count, capacity;
    uint32_t unused;       /* a list through next_unused */
    struct table refused;  /* entries of frees that were taken back */
    bool has_completed;    /* the trace tells when frees complete */
    bool is_over;          /* after the moment: nothing is made any more */
};

static struct space *space_of(struct walk *walk, uint16_t process, uint16_t device)
{
    uint32_t key = (uint32_t)process << 16 | device;
    if (walk->last_space < walk->space_count && walk->last_key == key)
        return &walk->spaces[walk->last_space];
    uint32_t *slot = table_at(&walk->space_index, key, NONE32);
    if (!slot)
        return NULL;
    if (*slot == NONE32) {
        if (array_reserve(&walk->spaces, &walk->space_capacity, walk->space_count + 1, sizeof(*walk->spaces)))
            return NULL;
        memset(&walk->spaces[walk->space_count], 0, sizeof(*walk->spaces));
        *slot = (uint32_t)walk->space_count++;
    }
    walk->last_key = key;
    walk->last_space = *slot;
    return &walk->spaces[*slot];
}

/* --- beginning and ending ------------------------------------------------------------------------------------------ */

static int tell(struct walk *walk, const struct live *live)
{
    struct allocation allocation = {.made = live->made, .freed = live->freed, .address = live->address, .size = live->size,
                                    .context = CONTEXT_NONE, .process = live->process, .device = live->device};
    if (live->made != ALLOCATION_NO_ENTRY) {
        allocation.context = walk->snapshot->entries.context[live->made];
        if (live->freed != ALLOCATION_NO_ENTRY)
            allocation.distance = live->freed_number - live->number;
    }
    return walk->visit(walk->context, &allocation);
}

static int end_life(struct walk *walk, struct space *space, uint32_t number)
{
    struct live *live = &walk->lives[number];
    int status = tell(walk, live);
    table_remove(&space->live, live->address);
    live->is_used = false;
    live->next_unused = walk->unused;
    walk->unused = number;
    return status;
}

static int begin_life(struct walk *walk, struct space *space, size_t i)
{
    const struct entries *entries = &walk->snapshot->entries;
    uint32_t there = table_get(&space->live, entries->address[i], NONE32);
    if (there != NONE32) { /* its free is missing */
        int status = end_life(walk, space, there);
        if (status)
            return status;
    }
    uint32_t number = walk->unused;
    if (number != NONE32) {
        walk->unused = walk->lives[number].next_unused;
    } else {
        if (walk->count >= NONE32 || array_reserve(&walk->lives, &walk->capacity, walk->count + 1, sizeof(*walk->lives)))
            return STATUS_NO_MEMORY;
        number = (uint32_t)walk->count++;
    }
    walk->lives[number] = (struct live){.made = i, .freed = ALLOCATION_NO_ENTRY, .size = entries->size[i],
                                        .address = entries->address[i], .number = space->entries, .is_used = true,
                                        .process = entries->process ? entries->process[i] : 0,
                                        .device = entries->device[i]};
    return table_set(&space->live, entries->address[i], number);
}

/* A free of what no entry made. */
static int tell_older(struct walk *walk, size_t i)
{
    const struct entries *entries = &walk->snapshot->entries;
    struct live live = {.made = ALLOCATION_NO_ENTRY, .freed = i, .size = entries->size[i], .address = entries->address[i],
                        .process = entries->process ? entries->process[i] : 0, .device = entries->device[i]};
    return tell(walk, &live);
}

static int free_block(struct walk *walk, struct space *space, size_t i)
{
    const struct entries *entries = &walk->snapshot->entries;
    bool completes = entries->action[i] == ACTION_FREE_COMPLETED || !walk->has_completed;
    uint32_t number = table_get(&space->live, entries->address[i], NONE32);
    if (number == NONE32)
        return completes && !walk->is_over ? tell_older(walk, i) : STATUS_OK;
    struct live *live = &walk->lives[number];
    if (live->freed == ALLOCATION_NO_ENTRY) {
        live->freed = i;
        live->freed_number = space->entries;
    }
    return completes ? end_life(walk, space, number) : STATUS_OK;
}

static int free_segment(struct walk *walk, struct space *space, size_t i)
{
    const struct entries *entries = &walk->snapshot->entries;
    uint64_t at = entries->address[i], end;
    if (__builtin_add_overflow(at, entries->size[i], &end))
        end = UINT64_MAX;
    uint32_t number = table_get(&space->live, at, NONE32);
    if (number == NONE32)
        return walk->is_over ? STATUS_OK : tell_older(walk, i);
    int status = STATUS_OK;
    while (number != NONE32 && !status) {
        uint64_t size = walk->lives[number].size;
        walk->lives[number].freed = i;
        walk->lives[number].freed_number = space->entries;
        status = end_life(walk, space, number);
        if (entries->action[i] != ACTION_SEGMENT_UNMAP || !size || size >= end - at)
            break;
        at += size;
        number = table_get(&space->live, at, NONE32);
    }
    return status;
}

/* --- frees that were taken back ------------------------------------------------------------------------------------ */

/* Each correcting entry takes the last free of its address before it back. */
static int find_refused(struct walk *walk)
{
    const struct entries *entries = &walk->snapshot->entries;
    struct table open = {0};
    int status = STATUS_OK;
    for (size_t i = entries->count; i-- > 0 && !status;) {
        if (entries->action[i] != ACTION_SEGMENT_FREE && entries->action[i] != ACTION_SEGMENT_UNMAP)
            continue;
        uint64_t key = hash_mix(((uint64_t)(entries->process ? entries->process[i] : 0) << 16 | entries->device[i]) + 1) ^
                       entries->address[i];
        if (entries->flags[i] & ENTRY_FAILED)
            status = table_set(&open, key, 1);
        else if (table_remove(&open, key))
            status = table_set(&walk->refused, i, 1);
    }
    table_free(&open);
    return status;
}

static bool has_failed(const struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        if (entries->flags[i] & ENTRY_FAILED)
            return true;
    return false;
}

/* --- the walk ------------------------------------------------------------------------------------------------------ */

static int walk_entry(struct walk *walk, size_t i)
{
    const struct entries *entries = &walk->snapshot->entries;
    if (entries->action[i] > ACTION_SEGMENT_UNMAP)
        return STATUS_OK;
    struct space *space = space_of(walk, entries->process ? entries->process[i] : 0, entries->device[i]);
    if (!space)
        return STATUS_NO_MEMORY;
    space->entries++;
    if (entry_makes(walk->snapshot, i)) {
        if (!walk->is_over)
            return begin_life(walk, space, i);
        uint32_t there = table_get(&space->live, entries->address[i], NONE32);
        return there == NONE32 ? STATUS_OK : end_life(walk, space, there);
    }
    if (!entry_ends(walk->snapshot, i) || (walk->refused.count && table_has(&walk->refused, i)))
        return STATUS_OK;
    return entries->action[i] <= ACTION_FREE_COMPLETED ? free_block(walk, space, i) : free_segment(walk, space, i);
}

int allocations_walk(const struct snapshot *snapshot, uint64_t moment, bool to_the_end, allocations_visit *visit,
                     void *context)
{
    const struct entries *entries = &snapshot->entries;
    struct walk walk = {.snapshot = snapshot, .visit = visit, .context = context, .last_space = NONE32, .unused = NONE32};
    walk.has_completed = entries->count && memchr(entries->action, ACTION_FREE_COMPLETED, entries->count);
    int status = has_failed(entries) ? find_refused(&walk) : STATUS_OK;
    for (size_t i = 0; i < moment && i < entries->count && !status; i++)
        status = walk_entry(&walk, i);
    walk.is_over = true;
    for (size_t i = moment; to_the_end && i < entries->count && !status; i++)
        status = walk_entry(&walk, i);
    for (size_t i = 0; i < walk.count && !status; i++)
        if (walk.lives[i].is_used)
            status = tell(&walk, &walk.lives[i]);
    for (size_t i = 0; i < walk.space_count; i++)
        table_free(&walk.spaces[i].live);
    table_free(&walk.space_index);
    table_free(&walk.refused);
    free(walk.spaces);
    free(walk.lives);
    return status;
}
