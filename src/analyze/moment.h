/*
 * Moments: the MOMENT of FILE@MOMENT, as a number of entries.  Moment n is the state after the first n entries; if they
 * are numbered from 0, that is just before entry n.
 *
 *   end  start  peak  peak-reserved  oom  oomN  #4711  12.5s  -10s  mark:NAME        (with or without the '@')
 *
 * peak: most allocated bytes, over all devices or the one selected; what lived before the trace counts.  oom: the state
 * in which the N-th failure was recorded, its own entry included.  Times count from the first entry (or back from the
 * last).  mark: the last entry before the first mark, or annotation START, of that name.  Cost: one pass over the
 * entries for the peaks, O(1) or a binary search for the others.
 */
#ifndef ANALYZE_MOMENT_H
#define ANALYZE_MOMENT_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

#define MOMENT_ALL_DEVICES (-1)

enum moment_kind {
    MOMENT_END,
    MOMENT_START,
    MOMENT_PEAK,
    MOMENT_PEAK_RESERVED,
    MOMENT_OOM,
    MOMENT_ENTRY,
    MOMENT_SINCE_START,
    MOMENT_BEFORE_END,
    MOMENT_MARK,
};

struct moment {
    enum moment_kind kind;
    uint64_t number;      /* of the oom (from 1) or entry */
    int64_t microseconds;
    char name[256];       /* of a mark */
};

/* True if text (with or without '@') reads as a moment: to tell "file@peak" from a file name. */
bool moment_is(const char *text);

int moment_parse(const char *text, struct moment *moment, struct error *err);

/* To a number of entries, 0 <= *result <= entries.count.  STATUS_NOT_FOUND if the trace has no such moment. */
int moment_resolve(const struct snapshot *snapshot, const struct moment *moment, int device, uint64_t *result,
                   struct error *err);

/* The peaks of a trace, exact as far as its entries and end state tell. */
struct moment_peak {
    uint64_t moment;      /* after this many entries the value was first reached */
    uint64_t bytes;       /* all selected devices together */
};
/* allocated: requested bytes as the trace has them (block bytes where nothing caches); reserved: segment bytes. */
int moment_peaks(const struct snapshot *snapshot, int device, struct moment_peak *allocated,
                 struct moment_peak *reserved, struct error *err);

#endif
