/*
 * The map of memory: segments with their blocks and holes, as a picture lays them out.
 *
 * Segments are grouped by process, device, pool, kind of memory and stream, and stand by address.  An *item* is what
 * lies on a line of its own: a segment, or the mapped parts of one expandable segment with the unmapped ones between.
 * A *cell* is a piece of an item: a block, bytes that no block covers, an unmapped part (drawn no longer than an eighth
 * of what is mapped), or a run of neighbours of which each is smaller than `least` bytes.  Offsets and sizes of cells
 * are as drawn, their bytes are true; all sums are exact whatever is drawn as one.
 *
 * The state and the snapshot must outlive the map.  Cost: O(blocks + segments log segments); by age, a sort of the
 * entries that make something.
 */
#ifndef ANALYZE_MAP_H
#define ANALYZE_MAP_H

#include "analyze/frame_text.h"
#include "analyze/no_stack.h"
#include "analyze/selection.h"
#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

enum map_color { MAP_BY_STATE, MAP_BY_AGE, MAP_BY_SIZE, MAP_BY_STACK };

enum map_kind {
    MAP_ALLOCATED,
    MAP_PENDING,
    MAP_INACTIVE,
    MAP_OTHER,      /* a state that we do not know */
    MAP_BARE,       /* in a segment, but in no block */
    MAP_UNSELECTED, /* a block that was not asked for */
    MAP_UNMAPPED,
    MAP_KIND_COUNT
};

#define MAP_SHADES 9      /* of living blocks; by state there is one */
#define MAP_GROUP_MOST 64 /* the smallest beyond that share a group */

struct map_sums {
    uint64_t segments, blocks;    /* living ones, selected */
    uint64_t reserved;            /* all of bytes[] but what is not mapped */
    uint64_t bytes[MAP_KIND_COUNT];
    uint64_t wasted;              /* of living blocks: rounded up beyond what was requested */
    uint64_t largest_hole;
};

struct map_group {
    uint32_t segment;             /* one of its segments: what tells the group's name */
    uint32_t stands_for;          /* 1, or how many groups lie in this one */
    uint32_t first_item, item_count;
    struct map_sums sums;
};

struct map_item {
    uint32_t first, count;        /* of map->order */
    uint64_t size;                /* as drawn */
    uint64_t gap_most;            /* what an unmapped part is cut to */
};

struct map_cell {
    uint64_t offset, size;        /* in its item, as drawn */
    uint64_t bytes;
    uint64_t wasted;              /* at the block's end; of a run the sum */
    uint64_t living;              /* bytes; less than `bytes` only in runs */
    uint64_t pieces;              /* 1, or how many are drawn as one */
    uint64_t address;
    uint32_t segment;             /* of the state; of a run the first */
    uint32_t block;               /* NONE32: none, or a run */
    uint8_t kind;                 /* of a run: what most of it is, but not living ... */
    uint8_t shade, living_kind;   /* ... and what most of its living bytes are */
};

struct map_shade {
    char *text; /* of a legend */
    uint64_t bytes, blocks;
};

struct map {
    const struct snapshot *snapshot;
    const struct state *state;
    const struct selection *selection; /* NULL: everything */
    enum map_color color;
    struct frame_texts *texts;
    uint32_t *order;                   /* segments, by group and address */
    size_t order_count;
    struct map_group *groups;
    size_t group_count;
    struct map_item *items;
    size_t item_count, item_capacity;
    struct map_sums total;
    uint64_t drawn;                    /* the sizes of all items */
    uint8_t *shade_of;                 /* by block of the state; NULL by state */
    struct map_shade shades[MAP_SHADES];
    size_t shade_count;
    uint32_t *history;                 /* by block: the label of the frame that files before 2.0 have beside it; or NULL */
    uint8_t *frame_is_user;            /* by frame: 0 not asked, 1 no, 2 yes */
    struct no_stacks reasons;          /* where is_before is not NULL: */
    bool *is_before;                   /* by block: no entry tells of it; NULL: every living block has a stack */
};

int map_build(const struct snapshot *snapshot, const struct state *state, const struct selection *selection,
              enum map_color color, struct map *map, struct error *err);
void map_free(struct map *map);

bool map_is_living(enum map_kind kind);

/* Labels of a block's stack, innermost first: frames of the user's own, or if there are none whatever can be shown.
 * Returns how many, at most `most`; *is_more if there are others. */
size_t map_block_frames(struct map *map, uint32_t block, uint32_t *labels, size_t most, bool *is_more);

/* Why a block has no frames; NULL: the entries that are here do not tell. */
const char *map_block_reason(const struct map *map, uint32_t block);

/* The label for whoever owns a stack: its first frame as above; NONE32 if there is none. */
uint32_t map_block_owner(struct map *map, uint32_t block);

/* Walk the cells of an item in order. */
struct map_walk {
    const struct map *map;
    const struct map_item *item;
    uint64_t least, offset, at; /* at: the address */
    uint32_t part, block;
    bool is_inside, has_next;
    struct map_cell next;       /* read, but not given yet */
};
void map_walk_start(struct map_walk *walk, const struct map *map, const struct map_item *item, uint64_t least);
bool map_walk_next(struct map_walk *walk, struct map_cell *cell);

/* How many items, from this one on and before `end`, are drawn as one: 1, or a run of those smaller than least, which
 * is told as one cell. */
size_t map_item_run(const struct map *map, size_t item, size_t end, uint64_t least, struct map_cell *cell);

/* The smallest `least` with which at most about `most` cells are drawn; 1 if that is all of them. */
uint64_t map_least(const struct map *map, uint64_t most);

/* map.c's, for map_shades.c: what a block is, and the numbers of its shade. */
enum map_kind map_block_kind(const struct map *map, uint32_t block);
int map_shade_blocks(struct map *map, struct error *err);

#endif
