/* Makers of blocks.  May use src/snapshot and src/base. */
#include "analyze/makers.h"

#include "base/table.h"

#include <stdlib.h>
#include <string.h>

static bool is_of_segments(const struct snapshot *snapshot, size_t i)
{
    const struct entries *entries = &snapshot->entries;
    uint16_t process = entries->process ? entries->process[i] : 0;
    return (entries->flags[i] & ENTRY_OUTSIDE) ||
           (process < snapshot->process_count && snapshot->processes[process].implied_blocks);
}

bool entry_makes(const struct snapshot *snapshot, size_t i)
{
    const struct entries *entries = &snapshot->entries;
    enum action action = entries->action[i];
    if (entries->flags[i] & (ENTRY_BAD | ENTRY_FAILED))
        return false;
    if (action == ACTION_ALLOC)
        return !is_of_segments(snapshot, i);
    return (action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP) && is_of_segments(snapshot, i);
}

bool entry_ends(const struct snapshot *snapshot, size_t i)
{
    const struct entries *entries = &snapshot->entries;
    enum action action = entries->action[i];
    if (entries->flags[i] & (ENTRY_BAD | ENTRY_FAILED))
        return false;
    if (action == ACTION_FREE_REQUESTED || action == ACTION_FREE_COMPLETED)
        return !is_of_segments(snapshot, i);
    return (action == ACTION_SEGMENT_FREE || action == ACTION_SEGMENT_UNMAP) && is_of_segments(snapshot, i);
}

static uint64_t place_key(uint16_t process, uint16_t device, uint64_t address)
{
    return hash_mix(((uint64_t)process << 16 | device) + 1) ^ address;
}

static uint64_t entry_key(const struct entries *entries, size_t i)
{
    return place_key(entries->process ? entries->process[i] : 0, entries->device[i], entries->address[i]);
}

/* The living blocks by their addresses. */
static int index_blocks(const struct state *state, struct table *blocks)
{
    for (size_t b = 0; b < state->block_count; b++) {
        const struct block *block = &state->blocks[b];
        const struct segment *segment = &state->segments[block->segment];
        if (block_is_living(block) && b < NONE32 &&
            table_set(blocks, place_key(segment->process, segment->device, block->address), (uint32_t)b))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static void find_entries(const struct snapshot *snapshot, uint64_t moment, struct table *blocks, struct makers *makers)
{
    for (size_t i = moment; i-- > 0 && blocks->count;) {
        if (!entry_makes(snapshot, i))
            continue;
        uint64_t key = entry_key(&snapshot->entries, i);
        uint32_t block = table_get(blocks, key, NONE32);
        if (block == NONE32)
            continue;
        makers->entry[block] = i;
        table_remove(blocks, key);
    }
}

/* What frees a block first after the moment; a free that the driver refused is none, but that shows later. */
static void find_ends(const struct snapshot *snapshot, uint64_t moment, struct table *blocks, struct makers *makers)
{
    for (size_t i = moment; i < snapshot->entries.count && blocks->count; i++) {
        bool ends = entry_ends(snapshot, i);
        if (!ends && !entry_makes(snapshot, i))
            continue;
        uint64_t key = entry_key(&snapshot->entries, i);
        uint32_t block = table_get(blocks, key, NONE32);
        if (block == NONE32)
            continue;
        makers->kept[block] = false; /* that something is made there says so, too */
        table_remove(blocks, key);
    }
}

int makers_find(const struct snapshot *snapshot, const struct state *state, bool need_kept, struct makers *makers,
                struct error *err)
{
    struct table blocks = {0};
    uint64_t moment = state == &snapshot->end ? snapshot->entries.count : state->moment;
    size_t count = state->block_count;
    *makers = (struct makers){.entry = malloc((count + 1) * sizeof(*makers->entry)),
                              .kept = need_kept ? malloc((count + 1) * sizeof(*makers->kept)) : NULL};
    int status = makers->entry && (makers->kept || !need_kept) ? index_blocks(state, &blocks) : STATUS_NO_MEMORY;
    if (!status) {
        for (size_t b = 0; b < count; b++)
            makers->entry[b] = MAKER_NONE;
        find_entries(snapshot, moment, &blocks, makers);
    }
    table_free(&blocks);
    memset(&blocks, 0, sizeof(blocks));
    if (!status && need_kept) {
        for (size_t b = 0; b < count; b++)
            makers->kept[b] = state->blocks[b].state == BLOCK_ACTIVE_ALLOCATED;
        status = index_blocks(state, &blocks);
        if (!status)
            find_ends(snapshot, moment, &blocks, makers);
        table_free(&blocks);
    }
    if (!status)
        return STATUS_OK;
    makers_free(makers);
    return error_no_memory(err);
}

void makers_free(struct makers *makers)
{
    free(makers->entry);
    free(makers->kept);
    *makers = (struct makers){0};
}
