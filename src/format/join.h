/*
 * A recording and PyTorch's own history of the same process become one snapshot: the entries and the state of PyTorch's
 * allocator as it told them itself (requested sizes, streams, pools, ends of frees), and beside them the memory that
 * others took, as it was recorded (ENTRY_OUTSIDE).
 *
 * Both saw the allocator's segments, in the same order: between two of these, times decide.  The end is that of the
 * history; what the allocator did afterwards is left out, the others' memory goes on to the end of the recording.
 */
#ifndef FORMAT_JOIN_H
#define FORMAT_JOIN_H

#include "base/error.h"
#include "snapshot/snapshot.h"

/* A history whose entries and end contradict one another is refused.  It loses what is not needed.  The caller owns the result, and still both sources. */
int join_history(const struct snapshot *recorded, struct snapshot *history, struct snapshot **result,
                 struct error *err);

#endif
