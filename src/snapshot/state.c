/*
 * State at a moment.  The first entry after the moment that concerns an address decides what was there: a free says
 * that something lived, an alloc that nothing did; without any, the end state holds.  So one pass forward from the
 * moment finds what existed, whatever happened later, and one pass back finds who had allocated it.
 * May use src/base and the snapshot.
 */
#include "snapshot/state_internal.h"

#include <stdlib.h>
#include <string.h>

uint32_t state_space(struct undo *undo, uint16_t process, uint16_t device)
{
    if (undo->last_space < undo->space_count && undo->spaces[undo->last_space].process == process &&
        undo->spaces[undo->last_space].device == device)
        return undo->last_space;
    uint32_t *slot = table_at(&undo->space_index, (uint64_t)process << 16 | device, NONE32);
    if (!slot)
        return NONE32;
    if (*slot == NONE32) {
        if (array_reserve(&undo->spaces, &undo->space_capacity, undo->space_count + 1, sizeof(*undo->spaces)))
            return NONE32;
        struct space *space = &undo->spaces[undo->space_count];
        memset(space, 0, sizeof(*space));
        space->process = process;
        space->device = device;
        space->implied = process < undo->snapshot->process_count && undo->snapshot->processes[process].implied_blocks;
        *slot = (uint32_t)undo->space_count++;
    }
    return undo->last_space = *slot;
}

int state_add_piece(struct pieces *pieces, const struct piece *piece)
{
    if (pieces->count >= NONE32 - 1 ||
        array_reserve(&pieces->items, &pieces->capacity, pieces->count + 1, sizeof(*pieces->items)))
        return STATUS_NO_MEMORY;
    pieces->items[pieces->count++] = *piece;
    return STATUS_OK;
}

/* The life of an address, made if there is none; NULL: no memory. */
static struct life *life_at(struct table *index, struct life **lives, size_t *count, size_t *capacity, uint32_t space,
                            uint64_t address)
{
    uint32_t *slot = table_at(index, address, NONE32);
    if (!slot)
        return NULL;
    if (*slot == NONE32) {
        if (*count >= NONE32 - 1 || array_reserve(lives, capacity, *count + 1, sizeof(**lives)))
            return NULL;
        (*lives)[*count] = (struct life){.address = address, .first = UINT64_MAX, .space = space, .end_index = NONE32};
        *slot = (uint32_t)(*count)++;
    }
    return &(*lives)[*slot];
}

static struct life *block_life(struct undo *undo, uint32_t space, uint64_t address)
{
    return life_at(&undo->spaces[space].blocks, &undo->block_lives, &undo->block_life_count,
                   &undo->block_life_capacity, space, address);
}

static struct life *segment_life(struct undo *undo, uint32_t space, uint64_t address)
{
    return life_at(&undo->spaces[space].segments, &undo->segment_lives, &undo->segment_life_count,
                   &undo->segment_life_capacity, space, address);
}

/* A correcting entry takes a free back, so it works as an alloc would. */
static bool brings_memory(const struct entries *entries, size_t i)
{
    bool takes = entries->action[i] == ACTION_SEGMENT_FREE || entries->action[i] == ACTION_SEGMENT_UNMAP;
    return takes == ((entries->flags[i] & ENTRY_FAILED) != 0);
}

static int note_range(struct undo *undo, uint32_t space, size_t i)
{
    const struct entries *entries = &undo->snapshot->entries;
    struct range_operation range = {.start = entries->address[i], .entry = i, .space = space,
                                    .restores = !brings_memory(entries, i)};
    if (!entries->size[i] || __builtin_add_overflow(range.start, entries->size[i], &range.end)) {
        undo->faults.overlaps++;
        return STATUS_OK;
    }
    if (array_reserve(&undo->ranges, &undo->range_capacity, undo->range_count + 1, sizeof(*undo->ranges)))
        return STATUS_NO_MEMORY;
    undo->ranges[undo->range_count++] = range;
    return STATUS_OK;
}

/* Does entry b contradict entry a, the one before it at the same address? */
static bool contradicts(const struct entries *entries, uint64_t a, uint64_t b)
{
    enum action before = entries->action[a], after = entries->action[b];
    if (after == ACTION_ALLOC)
        return before != ACTION_FREE_COMPLETED;
    if (after == ACTION_FREE_REQUESTED)
        return before != ACTION_ALLOC;
    if (after == ACTION_FREE_COMPLETED)
        return before == ACTION_FREE_COMPLETED;
    return brings_memory(entries, a) == brings_memory(entries, b);
}

static int note_entry(struct undo *undo, size_t i)
{
    const struct entries *entries = &undo->snapshot->entries;
    enum action action = entries->action[i];
    if (action > ACTION_SEGMENT_UNMAP || (entries->flags[i] & ENTRY_BAD))
        return STATUS_OK;
    uint32_t space = state_space(undo, state_entry_process(entries, i), entries->device[i]);
    if (space == NONE32)
        return STATUS_NO_MEMORY;
    if (action == ACTION_SEGMENT_MAP || action == ACTION_SEGMENT_UNMAP)
        return note_range(undo, space, i);
    bool is_segment = action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_FREE;
    struct life *life = is_segment ? segment_life(undo, space, entries->address[i])
                                   : block_life(undo, space, entries->address[i]);
    if (!life)
        return STATUS_NO_MEMORY;
    if (life->first == UINT64_MAX)
        life->first = i;
    else if (contradicts(entries, life->last, i))
        ++*(is_segment ? &undo->faults.unknown_segments : &undo->faults.unknown_allocs);
    life->last = i;
    return STATUS_OK;
}

static bool is_range_segment(const struct segment *segment)
{
    return segment->is_expandable || segment->kind == MEMORY_VIRTUAL;
}

static bool is_active(const struct block *block)
{
    return block->state == BLOCK_ACTIVE_ALLOCATED || block->state == BLOCK_ACTIVE_PENDING_FREE;
}

struct piece state_piece_of_segment(const struct undo *undo, uint32_t index, uint32_t space)
{
    const struct segment *segment = &undo->snapshot->end.segments[index];
    return (struct piece){.address = segment->address,
                          .size = segment->total_size,
                          .space = space,
                          .context = segment->context,
                          .pool = segment->pool,
                          .stream = segment->stream,
                          .end_segment = index,
                          .kind = segment->kind,
                          .is_large = segment->is_large,
                          .class_known = true,
                          .is_expandable = segment->is_expandable,
                          .is_outside = segment->is_outside};
}

static struct piece piece_of_block(const struct block *block, uint32_t space)
{
    return (struct piece){.address = block->address,
                          .size = block->size,
                          .requested = block->requested,
                          .space = space,
                          .context = block->context,
                          .pool = NONE32,
                          .end_segment = block->segment,
                          .state = block->state,
                          .requested_unknown = (block->flags & BLOCK_REQUESTED_UNKNOWN) != 0};
}

/* What the end state has and no later entry touched was there already. */
static int keep_from_end(struct undo *undo)
{
    const struct state *end = &undo->snapshot->end;
    for (uint32_t s = 0; s < end->segment_count; s++) {
        const struct segment *segment = &end->segments[s];
        uint32_t space = state_space(undo, segment->process, segment->device);
        if (space == NONE32)
            return STATUS_NO_MEMORY;
        uint32_t life = table_get(&undo->spaces[space].segments, segment->address, NONE32);
        if (life != NONE32)
            undo->segment_lives[life].end_index = s;
        struct piece piece = state_piece_of_segment(undo, s, space);
        if (life == NONE32 && !is_range_segment(segment) && state_add_piece(&undo->segments, &piece))
            return STATUS_NO_MEMORY;
        for (uint32_t b = 0; b < segment->block_count; b++) {
            const struct block *block = &end->blocks[segment->first_block + b];
            if (!is_active(block) || undo->spaces[space].implied) /* there the segment stands for it */
                continue;
            life = table_get(&undo->spaces[space].blocks, block->address, NONE32);
            if (life != NONE32) {
                undo->block_lives[life].end_index = segment->first_block + b;
                continue;
            }
            piece = piece_of_block(block, space);
            if (state_add_piece(&undo->blocks, &piece))
                return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

/* Blocks that a later entry freed. */
static int restore_block(struct undo *undo, const struct life *life)
{
    const struct entries *entries = &undo->snapshot->entries;
    enum action first = entries->action[life->first], last = entries->action[life->last];
    if ((last == ACTION_ALLOC || last == ACTION_FREE_REQUESTED) != (life->end_index != NONE32))
        undo->faults.unknown_allocs++;
    if (first == ACTION_ALLOC)
        return STATUS_OK;
    bool pending = first == ACTION_FREE_COMPLETED && undo->has_free_requested;
    struct piece piece;
    if (life->first == life->last && life->end_index != NONE32) { /* it still waits in the end state: all is known */
        piece = piece_of_block(&undo->snapshot->end.blocks[life->end_index], life->space);
    } else {
        uint64_t size = entries->size[life->first];
        bool is_told = (entries->flags[life->first] & ENTRY_REQUESTED_UNKNOWN) != 0;
        piece = (struct piece){.address = life->address,
                               .requested = size,
                               .space = life->space,
                               .context = CONTEXT_NONE,
                               .pool = NONE32,
                               .end_segment = NONE32,
                               .is_guess = !is_told,
                               .requested_unknown = is_told};
        piece.size = is_told ? size : size > UINT64_MAX - ROUNDING ? size : (size + ROUNDING - 1) / ROUNDING * ROUNDING;
        if (!piece.size)
            piece.size = ROUNDING;
    }
    piece.state = pending ? BLOCK_ACTIVE_PENDING_FREE : BLOCK_ACTIVE_ALLOCATED;
    return state_add_piece(&undo->blocks, &piece);
}

/* Segments that a later entry gave back. */
static int restore_segment(struct undo *undo, const struct life *life)
{
    const struct entries *entries = &undo->snapshot->entries;
    if (brings_memory(entries, life->last) != (life->end_index != NONE32))
        undo->faults.unknown_segments++;
    if (brings_memory(entries, life->first))
        return STATUS_OK;
    struct piece piece = {.address = life->address,
                          .size = entries->size[life->first],
                          .space = life->space,
                          .context = CONTEXT_NONE,
                          .pool = entries->pool ? entries->pool[life->first] : NONE32,
                          .stream = undo->snapshot->streams[entries->stream[life->first]],
                          .end_segment = NONE32,
                          .kind = entries->kind ? entries->kind[life->first] : MEMORY_PLAIN,
                          .class_known = true,
                          .is_outside = entries->flags[life->first] & ENTRY_OUTSIDE};
    piece.is_large = piece.size > (undo->spaces[life->space].implied ? SMALL_SIZE : SMALL_BUFFER);
    return state_add_piece(&undo->segments, &piece);
}

static int collect(struct undo *undo)
{
    const struct entries *entries = &undo->snapshot->entries;
    undo->has_free_requested = memchr(entries->action, ACTION_FREE_REQUESTED, entries->count) != NULL;
    for (size_t i = undo->moment; i < entries->count; i++)
        if (note_entry(undo, i))
            return STATUS_NO_MEMORY;
    if (keep_from_end(undo))
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < undo->block_life_count; i++)
        if (!undo->spaces[undo->block_lives[i].space].implied && restore_block(undo, &undo->block_lives[i]))
            return STATUS_NO_MEMORY;
    for (size_t i = 0; i < undo->segment_life_count; i++)
        if (restore_segment(undo, &undo->segment_lives[i]))
            return STATUS_NO_MEMORY;
    return state_collect_ranges(undo);
}

static void undo_free(struct undo *undo)
{
    for (size_t i = 0; i < undo->space_count; i++) {
        table_free(&undo->spaces[i].blocks);
        table_free(&undo->spaces[i].segments);
        table_free(&undo->spaces[i].live_blocks);
        table_free(&undo->spaces[i].live_segments);
    }
    table_free(&undo->space_index);
    free(undo->spaces);
    free(undo->block_lives);
    free(undo->segment_lives);
    free(undo->ranges);
    free(undo->segments.items);
    free(undo->blocks.items);
}

int state_at_counting(const struct snapshot *snapshot, uint64_t moment, struct state *result,
                      struct state_faults *faults, struct error *err)
{
    struct undo undo = {.snapshot = snapshot, .moment = moment};
    memset(result, 0, sizeof(*result));
    if (faults)
        memset(faults, 0, sizeof(*faults));
    if (moment > snapshot->entries.count)
        return error_set(err, STATUS_NOT_FOUND, "there is no entry #%llu: the trace has %zu", (unsigned long long)moment,
                         snapshot->entries.count);
    if (moment == snapshot->entries.count) {
        if (state_copy(result, &snapshot->end))
            return error_no_memory(err);
        result->moment = moment;
        return STATUS_OK;
    }
    int status = collect(&undo);
    if (!status)
        status = state_find_origins(&undo);
    if (!status)
        status = state_build(&undo, result);
    result->moment = moment;
    result->exact = !undo.guessed;
    if (faults)
        *faults = undo.faults;
    undo_free(&undo);
    if (status) {
        state_free(result);
        return error_no_memory(err);
    }
    return STATUS_OK;
}

/* Pieces for what the state has, to look their origins up. */
static int pieces_of_state(struct undo *undo, const struct state *state)
{
    for (uint32_t s = 0; s < state->segment_count; s++) {
        const struct segment *segment = &state->segments[s];
        uint32_t space = state_space(undo, segment->process, segment->device);
        if (space == NONE32)
            return STATUS_NO_MEMORY;
        struct piece piece = {.address = segment->address, .space = space};
        if (state_add_piece(&undo->segments, &piece))
            return STATUS_NO_MEMORY;
        for (uint32_t b = 0; b < segment->block_count; b++) {
            piece = piece_of_block(&state->blocks[segment->first_block + b], space);
            if (state_add_piece(&undo->blocks, &piece))
                return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

int state_mark_before_recording(const struct snapshot *snapshot, struct state *state, struct error *err)
{
    struct undo undo = {.snapshot = snapshot, .moment = state->moment};
    int status = state->moment > snapshot->entries.count ? STATUS_NOT_FOUND : pieces_of_state(&undo, state);
    if (!status)
        status = state_find_origins(&undo);
    for (size_t b = 0; b < state->block_count && !status; b++) {
        struct block *block = &state->blocks[b];
        const struct piece *segment = &undo.segments.items[block->segment];
        bool before = undo.spaces[segment->space].implied ? segment->before : undo.blocks.items[b].before;
        if (is_active(block) && before)
            block->flags |= BLOCK_BEFORE_RECORDING;
    }
    undo_free(&undo);
    return status ? error_no_memory(err) : STATUS_OK;
}

int state_at(const struct snapshot *snapshot, uint64_t moment, struct state *result, struct error *err)
{
    return state_at_counting(snapshot, moment, result, NULL, err);
}
