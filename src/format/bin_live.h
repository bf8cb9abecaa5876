/*
 * What is live within a chunk of entries, for predicting what a release says: a free names the address, size, stream
 * and device of one of the things that are live, so it is enough to say which one, counted from the youngest.
 *
 * A list holds entry numbers of the chunk.  All operations take O(log n), n the entries of the chunk.  Writer and reader
 * share it.
 */
#ifndef FORMAT_BIN_LIVE_H
#define FORMAT_BIN_LIVE_H

#include "format/bin_layout.h"
#include "snapshot/snapshot.h"

struct bin_live {
    uint32_t count, size;        /* size: a power of two that is not below the entries of the chunk */
    uint32_t *sums;       /* a Fenwick tree of presence, size + 1 numbers */
};

void bin_live_clear(struct bin_live *live, size_t entries);
void bin_live_add(struct bin_live *live, uint32_t entry);
void bin_live_remove(struct bin_live *live, uint32_t entry);
uint32_t bin_live_younger(const struct bin_live *live, uint32_t entry); /* how many have a higher number */
uint32_t bin_live_find(const struct bin_live *live, uint32_t younger);  /* younger < count */

/* Which list an action adds to or takes from; -1: none. */
int bin_list_made_by(unsigned action);
int bin_list_released_by(unsigned action);

/* Room for one chunk's work, writing or reading.  A zeroed struct is an empty one. */
struct bin_work {
    uint64_t *numbers, *others, *more;
    uint32_t *partner; /* the entry it releases, NONE32 for those that stand for themselves */
    struct bin_live lists[BIN_LIST_COUNT];
    void *memory;
    size_t capacity; /* entries */
};

int bin_work_reserve(struct bin_work *work, size_t entries); /* 0 or STATUS_NO_MEMORY; what was there is lost */
void bin_work_free(struct bin_work *work);

#endif
