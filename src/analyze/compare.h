/*
 * PyTorch's compare: the segments, by address and size, that only one of two states has.
 *
 * Each list is sorted by address (PyTorch's own order is that of a hash set) without repetitions; `members` tells for
 * each segment of the state, in file order, whether only that side has it.  The caller frees with compare_free().
 * Cost: O(n log n) in segments.
 */
#ifndef ANALYZE_COMPARE_H
#define ANALYZE_COMPARE_H

#include "base/error.h"
#include "snapshot/snapshot.h"

struct compare_side {
    uint64_t *addresses;
    size_t count;
    bool *members; /* by segment of the state */
};

struct compare {
    struct compare_side before, after;
};

int compare_segments(const struct state *before, const struct state *after, struct compare *result, struct error *err);
void compare_free(struct compare *compare);

#endif
