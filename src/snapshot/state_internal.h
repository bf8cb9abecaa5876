/* Shared by state.c, state_ranges.c and state_build.c; not for others. */
#ifndef SNAPSHOT_STATE_INTERNAL_H
#define SNAPSHOT_STATE_INTERNAL_H

#include "base/array.h"
#include "base/table.h"
#include "snapshot/state.h"

#define SMALL_SIZE (UINT64_C(1) << 20)   /* requests up to this come from the small pool */
#define SMALL_BUFFER (UINT64_C(2) << 20) /* its segments */
#define LARGE_BUFFER (UINT64_C(20) << 20)
#define ROUNDING UINT64_C(512)

/* What the entries after the moment do to one address: the first of them decides what was there at the moment. */
struct life {
    uint64_t address, first, last; /* entries */
    uint32_t space;
    uint32_t end_index; /* of the active block or plain segment at this address in the end state, NONE32 */
};

/* The addresses of one device of one process. */
struct space {
    uint16_t process, device;
    bool implied;           /* a segment is its block, too */
    struct table blocks, segments;         /* address -> life */
    struct table live_blocks, live_segments; /* address -> piece, while stacks are looked up */
};

/* A segment or block of the past while it is put together. */
struct piece {
    uint64_t address, size, requested;
    uint32_t space, context, pool;
    int64_t stream;
    uint32_t end_segment; /* it is this segment of the end state (or part of it), NONE32: from an entry */
    uint8_t kind;
    uint8_t state;        /* of a block */
    bool is_guess;        /* size or class was not told */
    bool requested_unknown, before, is_large, class_known, is_expandable, is_outside;
};

struct pieces {
    struct piece *items;
    size_t count, capacity;
};

struct range_operation {
    uint64_t start, end, entry;
    uint32_t space;
    bool restores; /* an unmap, which undone brings the range back */
};

struct undo {
    const struct snapshot *snapshot;
    uint64_t moment;
    struct space *spaces;
    size_t space_count, space_capacity;
    struct table space_index;
    uint32_t last_space;
    struct life *block_lives, *segment_lives;
    size_t block_life_count, block_life_capacity, segment_life_count, segment_life_capacity;
    struct range_operation *ranges;
    size_t range_count, range_capacity;
    struct pieces segments, blocks;
    struct state_faults faults;
    bool guessed;
    bool has_free_requested; /* some traces leave them out; then blocks are not pending before free_completed */
};

uint32_t state_space(struct undo *undo, uint16_t process, uint16_t device); /* NONE32: no memory */
int state_add_piece(struct pieces *pieces, const struct piece *piece);
void state_sort_pieces(struct pieces *pieces); /* by space, then address */
struct piece state_piece_of_segment(const struct undo *undo, uint32_t index, uint32_t space); /* of the end state */

/* The mapped ranges at the moment, as segments. */
int state_collect_ranges(struct undo *undo);

/* Stacks and sizes of what the entries before the moment tell. */
int state_find_origins(struct undo *undo);

/* Segments and blocks into the result: overlaps out, blocks into their segments, holes filled. */
int state_build(struct undo *undo, struct state *result);

static inline uint16_t state_entry_process(const struct entries *entries, size_t i)
{
    return entries->process ? entries->process[i] : 0;
}

#endif
