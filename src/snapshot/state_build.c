/* The second half of state_at(): who allocated what lived at the moment, and the pieces laid out as a state.
 * May use src/base and the snapshot. */
#include "snapshot/state_internal.h"

#include <stdlib.h>
#include <string.h>

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

void state_sort_pieces(struct pieces *pieces)
{
    if (pieces->count > 1)
        qsort(pieces->items, pieces->count, sizeof(*pieces->items), compare_pieces);
}

/* --- origins ---------------------------------------------------------------------------------------------------- */

static int index_pieces(struct undo *undo, struct pieces *pieces, bool are_blocks)
{
    for (size_t i = 0; i < pieces->count; i++) {
        struct piece *piece = &pieces->items[i];
        struct space *space = &undo->spaces[piece->space];
        piece->before = true;
        if (table_set(are_blocks ? &space->live_blocks : &space->live_segments, piece->address, (uint32_t)i))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* The piece that entry i begins (or contradicts), taken out of the index; NULL: none. */
static struct piece *take_piece(struct undo *undo, size_t i, bool is_block)
{
    const struct entries *entries = &undo->snapshot->entries;
    uint16_t process = state_entry_process(entries, i);
    uint32_t at = undo->last_space;
    if (at >= undo->space_count || undo->spaces[at].process != process || undo->spaces[at].device != entries->device[i])
        at = table_get(&undo->space_index, (uint64_t)process << 16 | entries->device[i], NONE32);
    if (at == NONE32)
        return NULL;
    undo->last_space = at;
    struct table *index = is_block ? &undo->spaces[at].live_blocks : &undo->spaces[at].live_segments;
    uint32_t found = table_get(index, entries->address[i], NONE32);
    if (found == NONE32)
        return NULL;
    table_remove(index, entries->address[i]);
    return &(is_block ? &undo->blocks : &undo->segments)->items[found];
}

static void found_origin(struct undo *undo, struct piece *piece, size_t i, bool is_block)
{
    const struct snapshot *snapshot = undo->snapshot;
    const struct entries *entries = &snapshot->entries;
    piece->before = false;
    if (is_block ? piece->context == CONTEXT_NONE
                 : snapshot_context_stack(snapshot, piece->context) == STACK_EMPTY)
        piece->context = entries->context[i];
    if (piece->pool == NONE32 && entries->pool)
        piece->pool = entries->pool[i];
    if (is_block && piece->is_guess)
        piece->requested = entries->size[i];
    if (!is_block && !piece->class_known) { /* the small pool maps pages of this size one by one */
        piece->is_large = entries->size[i] > SMALL_BUFFER;
        piece->class_known = true;
    }
}

int state_find_origins(struct undo *undo)
{
    const struct entries *entries = &undo->snapshot->entries;
    if (index_pieces(undo, &undo->blocks, true) || index_pieces(undo, &undo->segments, false))
        return STATUS_NO_MEMORY;
    size_t left = undo->blocks.count + undo->segments.count;
    for (size_t i = undo->moment; i-- > 0 && left;) {
        enum action action = entries->action[i];
        bool is_block = action <= ACTION_FREE_COMPLETED;
        if (action > ACTION_SEGMENT_UNMAP || action == ACTION_FREE_REQUESTED || (entries->flags[i] & (ENTRY_BAD | ENTRY_FAILED)))
            continue;
        bool takes = action == ACTION_FREE_COMPLETED || action == ACTION_SEGMENT_FREE || action == ACTION_SEGMENT_UNMAP;
        if (takes && !is_block) /* a correcting entry may have undone it */
            continue;
        struct piece *piece = take_piece(undo, i, is_block);
        if (!piece)
            continue;
        left--;
        if (!takes)
            found_origin(undo, piece, i, is_block);
    }
    return STATUS_OK;
}

/* --- layout ----------------------------------------------------------------------------------------------------- */

/* Pieces that lie over one another: a guessed size gives way, else the later piece does.  Where nothing caches, segments
 * need no room for blocks, and the address of an array is just a handle: there all are kept. */
static void remove_overlaps(struct undo *undo, struct pieces *pieces)
{
    size_t kept = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        struct piece *piece = &pieces->items[i], *last = kept ? &pieces->items[kept - 1] : NULL;
        if (piece->size > UINT64_MAX - piece->address)
            piece->size = UINT64_MAX - piece->address;
        bool touches = last && last->space == piece->space && piece->address - last->address < last->size;
        if (touches && !undo->spaces[piece->space].implied) {
            if (!last->is_guess || piece->address == last->address) {
                undo->faults.overlaps++;
                continue;
            }
            last->size = piece->address - last->address;
            undo->faults.overlaps += last->size < last->requested;
        }
        pieces->items[kept++] = *piece;
    }
    pieces->count = kept;
}

static bool before_segment(const struct piece *block, const struct piece *segment)
{
    if (block->space != segment->space)
        return block->space < segment->space;
    return block->address < segment->address;
}

/* A segment for each block outside of all, so that no living byte is lost. */
static int house_outsiders(struct undo *undo)
{
    size_t segment_count = undo->segments.count, s = 0;
    for (size_t b = 0; b < undo->blocks.count; b++) {
        struct piece *block = &undo->blocks.items[b];
        while (s < segment_count && !before_segment(block, &undo->segments.items[s]))
            s++; /* s: the first segment after the block's start */
        const struct piece *holder = s ? &undo->segments.items[s - 1] : NULL;
        if (holder && holder->space == block->space && block->address - holder->address < holder->size)
            continue;
        const struct piece *next = s < segment_count ? &undo->segments.items[s] : NULL;
        if (next && next->space == block->space && next->address - block->address < block->size)
            block->size = next->address - block->address;
        struct piece segment = {.address = block->address, .size = block->size, .space = block->space,
                                .context = CONTEXT_NONE, .pool = block->pool, .end_segment = NONE32,
                                .is_large = block->size > SMALL_SIZE, .class_known = true, .before = true};
        undo->faults.outside++;
        undo->guessed = true;
        if (state_add_piece(&undo->segments, &segment))
            return STATUS_NO_MEMORY;
    }
    if (undo->segments.count != segment_count)
        state_sort_pieces(&undo->segments);
    return STATUS_OK;
}

static int add_hole(struct state *result, uint64_t address, uint64_t size)
{
    struct block hole = {.address = address, .size = size, .context = CONTEXT_NONE, .state = BLOCK_INACTIVE,
                         .flags = BLOCK_REQUESTED_UNKNOWN};
    return size ? state_add_block(result, &hole) : STATUS_OK;
}

static int add_active(struct state *result, const struct piece *piece, uint64_t size)
{
    struct block block = {.address = piece->address, .size = size, .requested = piece->requested,
                          .context = piece->context, .state = piece->state};
    block.flags = (uint8_t)((piece->requested_unknown ? BLOCK_REQUESTED_UNKNOWN : 0) |
                            (piece->before ? BLOCK_BEFORE_RECORDING : 0));
    if (state_add_block(result, &block))
        return STATUS_NO_MEMORY;
    struct segment *segment = &result->segments[result->segment_count - 1];
    if (piece->state == BLOCK_ACTIVE_ALLOCATED)
        segment->allocated_size += size;
    segment->active_size += size;
    segment->requested_size += piece->requested;
    return STATUS_OK;
}

/* The one block of a segment where nothing caches: as the end state has it if it is still there. */
static int add_implied(struct undo *undo, const struct piece *piece, struct state *result)
{
    struct piece block = *piece;
    block.requested = piece->size;
    block.state = BLOCK_ACTIVE_ALLOCATED;
    block.requested_unknown = false;
    if (piece->end_segment != NONE32) {
        const struct state *end = &undo->snapshot->end;
        const struct segment *segment = &end->segments[piece->end_segment];
        bool whole = segment->total_size == piece->size && segment->block_count == 1;
        const struct block *old = whole ? &end->blocks[segment->first_block] : NULL;
        if (old && old->size == piece->size && old->state == BLOCK_ACTIVE_ALLOCATED) {
            block.requested = old->requested;
            block.requested_unknown = (old->flags & BLOCK_REQUESTED_UNKNOWN) != 0;
            block.context = old->context;
        }
    }
    return add_active(result, &block, piece->size);
}

static int add_segment(struct undo *undo, const struct piece *piece, struct state *result)
{
    struct segment segment = {.address = piece->address, .total_size = piece->size, .stream = piece->stream,
                              .context = piece->context, .pool = piece->pool, .kind = piece->kind,
                              .process = undo->spaces[piece->space].process,
                              .device = undo->spaces[piece->space].device,
                              .is_large = piece->is_large, .is_expandable = piece->is_expandable,
                              .is_outside = piece->is_outside};
    return state_add_segment(result, &segment);
}

/* A segment and its blocks; *next is the first block that is not yet laid out. */
static int lay_out(struct undo *undo, const struct piece *piece, size_t *next, struct state *result)
{
    if (add_segment(undo, piece, result))
        return STATUS_NO_MEMORY;
    if (undo->spaces[piece->space].implied)
        return add_implied(undo, piece, result);
    uint64_t at = piece->address, end = piece->address + piece->size;
    bool class_known = piece->class_known;
    for (; *next < undo->blocks.count; ++*next) {
        const struct piece *block = &undo->blocks.items[*next];
        if (block->space != piece->space || block->address >= end)
            break;
        uint64_t size = block->size;
        if (size > end - block->address) {
            size = end - block->address;
            undo->faults.overlaps += size < block->requested;
        }
        if (!class_known) {
            result->segments[result->segment_count - 1].is_large = block->requested > SMALL_SIZE;
            class_known = true;
        }
        undo->guessed = undo->guessed || block->is_guess;
        if (add_hole(result, at, block->address - at) || add_active(result, block, size))
            return STATUS_NO_MEMORY;
        at = block->address + size;
    }
    return add_hole(result, at, end - at);
}

static int compare_spaces(const void *a, const void *b)
{
    const struct space *const *x = a, *const *y = b;
    if ((*x)->process != (*y)->process)
        return (*x)->process < (*y)->process ? -1 : 1;
    return (*x)->device < (*y)->device ? -1 : (*x)->device > (*y)->device;
}

static int lay_out_space(struct undo *undo, uint32_t space, size_t *segment, size_t *block, struct state *result)
{
    for (; *segment < undo->segments.count && undo->segments.items[*segment].space == space; ++*segment)
        if (lay_out(undo, &undo->segments.items[*segment], block, result))
            return STATUS_NO_MEMORY;
    return STATUS_OK;
}

/* The first piece of each space. */
static void find_starts(const struct pieces *pieces, size_t *starts, size_t space_count)
{
    for (size_t i = pieces->count, space = space_count; space-- > 0;) {
        while (i && pieces->items[i - 1].space >= space)
            i--;
        starts[space] = i;
    }
}

int state_build(struct undo *undo, struct state *result)
{
    state_sort_pieces(&undo->segments);
    state_sort_pieces(&undo->blocks);
    remove_overlaps(undo, &undo->segments);
    remove_overlaps(undo, &undo->blocks);
    if (house_outsiders(undo))
        return STATUS_NO_MEMORY;
    size_t count = undo->space_count;
    const struct space **order = calloc(count + 1, sizeof(*order));
    size_t *segments = calloc(count + 1, sizeof(*segments)), *blocks = calloc(count + 1, sizeof(*blocks));
    int status = order && segments && blocks ? STATUS_OK : STATUS_NO_MEMORY;
    if (!status) {
        for (size_t i = 0; i < count; i++)
            order[i] = &undo->spaces[i];
        qsort(order, count, sizeof(*order), compare_spaces);
        find_starts(&undo->segments, segments, count);
        find_starts(&undo->blocks, blocks, count);
    }
    for (size_t i = 0; i < count && !status; i++) {
        uint32_t space = (uint32_t)(order[i] - undo->spaces);
        status = lay_out_space(undo, space, &segments[space], &blocks[space], result);
    }
    free(order);
    free(segments);
    free(blocks);
    return status;
}
