/*
 * Which entry made each block of a state, and whether anything after the state's moment frees it.
 *
 * Reads the snapshot only.  Cost: a pass back from the moment until every block is found, for `kept` one forward; memory
 * by block of the state.
 */
#ifndef ANALYZE_MAKERS_H
#define ANALYZE_MAKERS_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

#define MAKER_NONE UINT64_MAX /* no entry: it was there before, or its entry is lost */

struct makers {
    uint64_t *entry; /* by block of the state; of living ones */
    bool *kept;      /* likewise; NULL if it was not asked for */
};

int makers_find(const struct snapshot *snapshot, const struct state *state, bool need_kept, struct makers *makers,
                struct error *err);
void makers_free(struct makers *makers);

/* Entries that make an allocation, and that end one: of blocks, or of segments where nothing caches and beside a
 * framework's allocator. */
bool entry_makes(const struct snapshot *snapshot, size_t entry);
bool entry_ends(const struct snapshot *snapshot, size_t entry);

static inline bool block_is_living(const struct block *block)
{
    return block->state == BLOCK_ACTIVE_ALLOCATED || block->state == BLOCK_ACTIVE_PENDING_FREE;
}

#endif
