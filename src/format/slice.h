/*
 * A range of entries out of a snapshot: the entries, what hangs on them, and the state after the last of them.
 */
#ifndef FORMAT_SLICE_H
#define FORMAT_SLICE_H

#include "base/error.h"
#include "snapshot/snapshot.h"

/* Keep the entries [first, last) and the state after them.  `before`, if there is one, is a state of before the last
 * entry that knows the origin of blocks which the snapshot's own entries do not tell.  end_is_far: more entries than
 * the snapshot has were cut off already, so that its end is not the end of its source.  What belonged to the whole
 * file or to rows that are gone (odd values, `raw`) goes. */
int slice_entries(struct snapshot *snapshot, uint64_t first, uint64_t last, const struct state *before, bool end_is_far,
                  struct error *err);

#endif
