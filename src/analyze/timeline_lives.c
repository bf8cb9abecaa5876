/*
 * Who lived from where to where: one pass back over the entries, from the state at the end, which is known.  Going back,
 * a free says that something lived before it, an alloc that nothing did, so that contradictions come out as state_at()
 * has them, whatever the trace leaves out.  May use src/snapshot, src/base and the selection.
 */
#include "analyze/timeline_internal.h"

#include "analyze/usage.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* --- spaces ------------------------------------------------------------------------------------------------------- */

static uint32_t space_key(uint16_t process, uint16_t device)
{
    return (uint32_t)process << 16 | device;
}

static int compare_keys(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

bool timeline_is_counted(const struct entries *entries, size_t i)
{
    return !(entries->flags[i] & ENTRY_BAD) && (!entries->kind || usage_is_devices(entries->kind[i]));
}

/* Every pair of process and device that has something, once, in order; beyond TIMELINE_CHARTS they are only counted. */
static int find_spaces(struct timeline_lives *lives, struct error *err)
{
    const struct snapshot *snapshot = lives->snapshot;
    const struct entries *entries = &snapshot->entries;
    int device = lives->selection ? lives->selection->device : -1;
    struct table seen = {0};
    uint32_t last = NONE32, *keys;
    bool failed = false;
    for (size_t i = 0; i < entries->count && !failed; i++) {
        uint32_t key = space_key(entries->process ? entries->process[i] : 0, entries->device[i]);
        if (key == last || (device >= 0 && entries->device[i] != device) || !timeline_is_counted(entries, i))
            continue;
        last = key;
        failed = table_set(&seen, key, 0);
    }
    for (size_t s = 0; s < snapshot->end.segment_count && !failed; s++) {
        const struct segment *segment = &snapshot->end.segments[s];
        if (usage_is_devices(segment->kind) && (device < 0 || segment->device == device))
            failed = table_set(&seen, space_key(segment->process, segment->device), 0);
    }
    keys = malloc((seen.count + 1) * sizeof(*keys));
    lives->spaces = calloc(seen.count < TIMELINE_CHARTS ? seen.count + 1 : TIMELINE_CHARTS, sizeof(*lives->spaces));
    failed = failed || !keys || !lives->spaces;
    size_t count = 0;
    for (size_t slot = 0; slot < seen.capacity && !failed; slot++)
        if (seen.used[slot])
            keys[count++] = (uint32_t)seen.keys[slot];
    if (count)
        qsort(keys, count, sizeof(*keys), compare_keys);
    for (size_t i = 0; i < count && i < TIMELINE_CHARTS && !failed; i++) {
        struct timeline_space *space = &lives->spaces[lives->space_count++];
        space->process = (uint16_t)(keys[i] >> 16);
        space->device = (uint16_t)keys[i];
        space->implied = space->process < snapshot->process_count && snapshot->processes[space->process].implied_blocks;
        failed = table_set(&lives->space_index, keys[i], (uint32_t)i);
    }
    lives->left_out = count - lives->space_count;
    table_free(&seen);
    free(keys);
    return failed ? error_no_memory(err) : STATUS_OK;
}

static uint32_t space_at(struct timeline_lives *lives, uint16_t process, uint16_t device)
{
    uint32_t at = lives->last_space;
    if (at < lives->space_count && lives->spaces[at].process == process && lives->spaces[at].device == device)
        return at;
    at = table_get(&lives->space_index, space_key(process, device), NONE32);
    if (at != NONE32)
        lives->last_space = at;
    return at;
}

uint32_t timeline_space_of(struct timeline_lives *lives, size_t i)
{
    const struct entries *entries = &lives->snapshot->entries;
    return space_at(lives, entries->process ? entries->process[i] : 0, entries->device[i]);
}

/* --- what is selected --------------------------------------------------------------------------------------------- */

static void prepare_selection(struct timeline_lives *lives)
{
    const struct selection *selection = lives->selection;
    if (!selection)
        return;
    lives->of_blocks = *selection; /* borrowed: it is asked, not freed */
    lives->of_blocks.has_entries = lives->of_blocks.has_time = lives->of_blocks.has_actions = false;
    lives->of_segments = lives->of_blocks;
    lives->of_segments.has_size = lives->of_segments.has_stack = lives->of_segments.has_not_stack = false;
    lives->of_segments.has_annotation = false;
    lives->of_blocks.device = lives->of_segments.device = -1; /* the spaces are of the device already */
    lives->selects_blocks = !selection_is_everything(&lives->of_blocks);
    lives->selects_segments = !selection_is_everything(&lives->of_segments);
}

bool timeline_has_block(const struct timeline_lives *lives, size_t alloc)
{
    return !lives->selects_blocks || selection_has_entry(&lives->of_blocks, alloc);
}

/* The entry that freed it has the stack of who freed it: who allocated it is not known. */
bool timeline_has_ended(const struct timeline_lives *lives, size_t i)
{
    if (!lives->selects_blocks)
        return true;
    if (lives->of_blocks.has_stack || lives->of_blocks.has_annotation)
        return false;
    struct selection selection = lives->of_blocks;
    selection.has_not_stack = false;
    return selection_has_entry(&selection, i);
}

bool timeline_has_segment(const struct timeline_lives *lives, size_t i)
{
    return !lives->selects_segments || selection_has_entry(&lives->of_segments, i);
}

static bool has_end_block(const struct timeline_lives *lives, const struct block *block)
{
    return !lives->selects_blocks || selection_has_block(&lives->of_blocks, &lives->snapshot->end, block);
}

static bool has_end_segment(const struct timeline_lives *lives, const struct segment *segment)
{
    return !lives->selects_segments || selection_has_segment(&lives->of_segments, segment);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static bool is_mapped(const struct segment *segment)
{
    return segment->is_expandable || segment->kind == MEMORY_VIRTUAL;
}

static int add_end_segment(struct timeline_lives *lives, struct timeline_space *space, uint32_t number)
{
    const struct snapshot *snapshot = lives->snapshot;
    const struct segment *segment = &snapshot->end.segments[number];
    uint32_t base = (uint32_t)snapshot->entries.count;
    space->has_end = true;
    if ((space->implied || !is_mapped(segment)) && table_set(&space->segments, segment->address, base + number))
        return STATUS_NO_MEMORY;
    if (is_mapped(segment) && has_end_segment(lives, segment))
        *(segment->is_outside ? &space->mapped_outside : &space->mapped) += segment->total_size;
    if (space->implied || segment->is_outside)
        return STATUS_OK;
    for (uint32_t b = segment->first_block; b < segment->first_block + segment->block_count; b++) {
        enum block_state state = snapshot->end.blocks[b].state;
        if ((state == BLOCK_ACTIVE_ALLOCATED || state == BLOCK_ACTIVE_PENDING_FREE) &&
            table_set(&space->blocks, snapshot->end.blocks[b].address, base + b))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static int add_end(struct timeline_lives *lives)
{
    const struct snapshot *snapshot = lives->snapshot;
    for (uint32_t s = 0; s < snapshot->end.segment_count; s++) {
        const struct segment *segment = &snapshot->end.segments[s];
        uint32_t at = usage_is_devices(segment->kind) ? space_at(lives, segment->process, segment->device) : NONE32;
        if (at != NONE32 && add_end_segment(lives, &lives->spaces[at], s))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* --- back --------------------------------------------------------------------------------------------------------- */

/* Going back over a free: from here on it lives. */
static int step_free(struct table *index, const struct entries *entries, size_t i)
{
    uint32_t *slot = table_at(index, entries->address[i], (uint32_t)i);
    if (!slot)
        return STATUS_NO_MEMORY;
    if (*slot == LIFE_NONE)
        *slot = (uint32_t)i;
    return STATUS_OK; /* one that lives already: its end is further on */
}

/* Where the end was left out of the file, what nobody frees lives on; LIFE_NONE marks addresses that were used again. */
static int step_alloc(struct timeline_lives *lives, const struct timeline_space *space, struct table *index, size_t i)
{
    uint64_t address = lives->snapshot->entries.address[i];
    uint32_t end = table_get(index, address, LIFE_NONE);
    if (end == LIFE_NONE) {
        if (space->has_end || table_has(index, address))
            return STATUS_OK;
        lives->partner[i] = LIFE_ON;
        return table_set(index, address, LIFE_NONE);
    }
    bool is_on = end >= lives->snapshot->entries.count;
    lives->partner[i] = is_on ? LIFE_ON : end;
    if (!is_on)
        lives->partner[end] = (uint32_t)i;
    if (!space->has_end)
        return table_set(index, address, LIFE_NONE);
    table_remove(index, address);
    return STATUS_OK;
}

/* A mapping is a life of its own if it ends as it began; else it is only part of the sum. */
static int step_map(struct timeline_lives *lives, struct timeline_space *space, size_t i)
{
    const struct snapshot *snapshot = lives->snapshot;
    const struct entries *entries = &snapshot->entries;
    uint32_t end = table_get(&space->segments, entries->address[i], LIFE_NONE);
    if (end == LIFE_NONE)
        return STATUS_OK;
    bool is_on = end >= entries->count;
    uint64_t size = is_on ? snapshot->end.segments[end - entries->count].total_size : entries->size[end];
    if (size == entries->size[i])
        return step_alloc(lives, space, &space->segments, i);
    table_remove(&space->segments, entries->address[i]);
    return STATUS_OK;
}

static int step_segment(struct timeline_lives *lives, struct timeline_space *space, size_t i)
{
    const struct entries *entries = &lives->snapshot->entries;
    bool brings = timeline_brings(entries, i), is_map = timeline_is_map(entries->action[i]);
    if (is_map && timeline_has_segment(lives, i)) {
        __int128 *mapped = entries->flags[i] & ENTRY_OUTSIDE ? &space->mapped_outside : &space->mapped;
        *mapped += brings ? -(__int128)entries->size[i] : (__int128)entries->size[i];
    }
    if (is_map && !space->implied)
        return STATUS_OK;
    if (!brings)
        return step_free(&space->segments, entries, i);
    return is_map ? step_map(lives, space, i) : step_alloc(lives, space, &space->segments, i);
}

static int step(struct timeline_lives *lives, size_t i)
{
    const struct entries *entries = &lives->snapshot->entries;
    enum action action = entries->action[i];
    if (action > ACTION_SEGMENT_UNMAP || !timeline_is_counted(entries, i))
        return STATUS_OK;
    uint32_t at = timeline_space_of(lives, i);
    if (at == NONE32)
        return STATUS_OK;
    struct timeline_space *space = &lives->spaces[at];
    if (timeline_is_segment_action(action))
        return step_segment(lives, space, i);
    if (space->implied || entries->flags[i] & ENTRY_OUTSIDE)
        return STATUS_OK;
    if (action != ACTION_ALLOC)
        return step_free(&space->blocks, entries, i);
    return step_alloc(lives, space, &space->blocks, i);
}

/* --- what is left was there before -------------------------------------------------------------------------------- */

static void add_before(uint64_t *sum, uint64_t size)
{
    if (__builtin_add_overflow(*sum, size, sum))
        *sum = UINT64_MAX;
}

static void keep_block(struct timeline_lives *lives, struct timeline_space *space, uint32_t end)
{
    const struct snapshot *snapshot = lives->snapshot;
    if (end < snapshot->entries.count) {
        lives->partner[end] = LIFE_BEFORE;
        if (timeline_has_ended(lives, end))
            add_before(&space->before, snapshot->entries.size[end]);
        return;
    }
    const struct block *block = &snapshot->end.blocks[end - snapshot->entries.count];
    if (has_end_block(lives, block))
        add_before(&space->before, block->flags & BLOCK_REQUESTED_UNKNOWN ? block->size : block->requested);
}

static void keep_segment(struct timeline_lives *lives, struct timeline_space *space, uint32_t end)
{
    const struct snapshot *snapshot = lives->snapshot;
    const struct entries *entries = &snapshot->entries;
    bool is_block = false, is_selected, is_outside, is_ended = end < entries->count;
    uint64_t size;
    if (is_ended) {
        if (timeline_is_map(entries->action[end]))
            return; /* part of `mapped` */
        lives->partner[end] = LIFE_BEFORE;
        size = entries->size[end];
        is_outside = entries->flags[end] & ENTRY_OUTSIDE;
        is_selected = timeline_has_segment(lives, end);
        is_block = space->implied && timeline_has_ended(lives, end);
    } else {
        const struct segment *segment = &snapshot->end.segments[end - entries->count];
        if (is_mapped(segment))
            return;
        size = segment->total_size;
        is_outside = segment->is_outside;
        is_selected = has_end_segment(lives, segment);
        if (space->implied)
            is_block = segment->block_count ? has_end_block(lives, &snapshot->end.blocks[segment->first_block]) : is_selected;
    }
    if (is_selected)
        add_before(is_outside ? &space->outside : &space->reserved, size);
    if (is_block)
        add_before(&space->before, size);
}

static void keep_before(struct timeline_lives *lives)
{
    for (size_t s = 0; s < lives->space_count; s++) {
        struct timeline_space *space = &lives->spaces[s];
        for (size_t slot = 0; slot < space->blocks.capacity; slot++)
            if (space->blocks.used[slot] && space->blocks.values[slot] != LIFE_NONE)
                keep_block(lives, space, space->blocks.values[slot]);
        for (size_t slot = 0; slot < space->segments.capacity; slot++)
            if (space->segments.used[slot] && space->segments.values[slot] != LIFE_NONE)
                keep_segment(lives, space, space->segments.values[slot]);
        table_free(&space->blocks);
        table_free(&space->segments);
    }
}

int timeline_lives_find(const struct snapshot *snapshot, const struct selection *selection, struct timeline_lives *lives,
                        struct error *err)
{
    size_t count = snapshot->entries.count, more = snapshot->end.block_count + snapshot->end.segment_count;
    memset(lives, 0, sizeof(*lives));
    lives->snapshot = snapshot;
    lives->selection = selection;
    prepare_selection(lives);
    if (count >= LIFE_BEFORE || more >= LIFE_BEFORE - count)
        return error_set(err, STATUS_UNSUPPORTED, "%zu entries are more than a timeline can number", count);
    int status = find_spaces(lives, err);
    if (status)
        return status;
    lives->partner = malloc((count + 1) * sizeof(*lives->partner));
    if (!lives->partner)
        return error_no_memory(err);
    array_advise(lives->partner, count * sizeof(*lives->partner));
    memset(lives->partner, 0xff, count * sizeof(*lives->partner));
    status = add_end(lives);
    for (size_t i = count; i-- > 0 && !status;)
        status = step(lives, i);
    if (status)
        return error_no_memory(err);
    keep_before(lives);
    return STATUS_OK;
}

void timeline_lives_free(struct timeline_lives *lives)
{
    for (size_t s = 0; s < lives->space_count; s++) {
        table_free(&lives->spaces[s].blocks);
        table_free(&lives->spaces[s].segments);
    }
    free(lives->spaces);
    free(lives->partner);
    table_free(&lives->space_index);
}
