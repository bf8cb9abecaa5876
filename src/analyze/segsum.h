/*
 * PyTorch's segment summary: how full each segment of a page (20 MiB) or more is, and the sums over all segments.
 * Rows come sorted as PyTorch sorts them: by size, then by bytes in allocated blocks, else in file order.
 *
 * Borrows snapshot and state.  Cost: O(n log n) in segments, O(blocks), and one byte a page of the row being read.
 */
#ifndef ANALYZE_SEGSUM_H
#define ANALYZE_SEGSUM_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#define SEGSUM_PAGE (UINT64_C(20) << 20)
#define SEGSUM_MAX_PAGES (UINT64_C(1) << 20) /* 20 TiB; more pages of one segment are not drawn */

/* Doubles where PyTorch divides Python integers: bytes, free ones inside blocks (rounding) and outside. */
struct segsum_bytes {
    double allocated, external, internal;
};

struct segsum_row {
    const struct segment *segment;
    struct segsum_bytes bytes;
    const char *pages; /* one character a page; valid until the next row */
    uint64_t page_count;
    bool is_cut;       /* more pages than SEGSUM_MAX_PAGES */
};

struct segsum;

int segsum_new(const struct snapshot *snapshot, const struct state *state, struct segsum **result, struct error *err);
void segsum_free(struct segsum *segsum);

/* The next segment of at least a page: 1, 0 at the end, or STATUS_NO_MEMORY. */
int segsum_next(struct segsum *segsum, struct segsum_row *row);

/* Over all segments, of any size. */
struct segsum_bytes segsum_totals(const struct segsum *segsum);
double segsum_reserved(const struct segsum *segsum);

#endif
