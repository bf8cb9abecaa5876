/* Shared by timeline's files; not for others. */
#ifndef ANALYZE_TIMELINE_INTERNAL_H
#define ANALYZE_TIMELINE_INTERNAL_H

#include "analyze/timeline.h"
#include "base/table.h"

/* Of an entry: the other end of the life that it begins or ends. */
#define LIFE_NONE NONE32         /* it begins and ends none */
#define LIFE_ON (NONE32 - 1)     /* begins one that lasts to the end */
#define LIFE_BEFORE (NONE32 - 2) /* ends one that was there before the trace */

/* One device of one process. */
struct timeline_space {
    uint16_t process, device;
    bool implied;                  /* nothing caches: a segment is an allocation */
    bool has_end;                  /* the file says what there was at the end */
    struct table blocks, segments; /* address -> the entry that ends what lives there, or entries.count + its number at the end */
    uint64_t before;               /* allocated before the first entry */
    uint64_t reserved, outside;    /* segments that were there then */
    __int128 mapped, mapped_outside; /* virtual memory mapped then */
};

struct timeline_lives {
    const struct snapshot *snapshot;
    const struct selection *selection; /* NULL: everything */
    struct selection of_blocks, of_segments; /* without ranges of entries; of_segments without what only blocks have */
    bool selects_blocks, selects_segments;
    uint32_t *partner; /* by entry */
    struct timeline_space *spaces;
    size_t space_count, space_capacity, left_out;
    struct table space_index;
    uint32_t last_space;
};

int timeline_lives_find(const struct snapshot *snapshot, const struct selection *selection, struct timeline_lives *lives,
                        struct error *err);
void timeline_lives_free(struct timeline_lives *lives);

/* The space of an entry, NONE32: not drawn. */
uint32_t timeline_space_of(struct timeline_lives *lives, size_t entry);

bool timeline_is_counted(const struct entries *entries, size_t entry); /* it makes sense, and is of device memory */
bool timeline_has_block(const struct timeline_lives *lives, size_t alloc);   /* a life that began there is selected */
bool timeline_has_ended(const struct timeline_lives *lives, size_t free);    /* one from before that ended there */
bool timeline_has_segment(const struct timeline_lives *lives, size_t entry);

static inline bool timeline_is_segment_action(enum action action)
{
    return action >= ACTION_SEGMENT_ALLOC && action <= ACTION_SEGMENT_UNMAP;
}
static inline bool timeline_is_map(enum action action)
{
    return action == ACTION_SEGMENT_MAP || action == ACTION_SEGMENT_UNMAP;
}
/* A correcting entry takes a free back, so it works as an alloc would. */
static inline bool timeline_brings(const struct entries *entries, size_t i)
{
    bool takes = entries->action[i] == ACTION_SEGMENT_FREE || entries->action[i] == ACTION_SEGMENT_UNMAP;
    return takes == ((entries->flags[i] & ENTRY_FAILED) != 0);
}

/* Columns: the moments of column c are starts[c] <= m < starts[c + 1]; with time on the axis, the moment before
 * counts, too: it lasts into the column. */
int timeline_columns(struct timeline *timeline, const struct selection *selection, const struct timeline_options *options,
                     uint64_t **starts, struct error *err);
uint32_t timeline_column_of_time(const struct timeline *timeline, int64_t since); /* since first_time; clamped */
uint32_t timeline_column_of_moment(const struct timeline *timeline, uint64_t moment);

int timeline_totals(struct timeline *timeline, struct timeline_lives *lives, const uint64_t *starts);
int timeline_bands(struct timeline *timeline, struct timeline_lives *lives, uint32_t most);
int timeline_ranges(struct timeline *timeline);

int timeline_add_event(struct timeline_chart *chart, enum timeline_event_kind kind, uint32_t column, uint64_t entry);

#endif
