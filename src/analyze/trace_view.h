/*
 * PyTorch's trace view as data: the entries of each device in order, with names for what they make.
 *
 * An alloc or segment_alloc gets the next name, number 0, 1, 2, ... (shown as a..z, a1..z1, ...).  An alloc lies in
 *   - the first segment_alloc of the trace so far whose range holds it, even if that was freed long ago (PyTorch never
 *     forgets one, and the first wins), else in
 *   - the first segment of the state whose first allocated_size bytes hold it, else in none.
 * A free carries the name of the last alloc at its address.
 *
 * Borrows snapshot and state.  Cost: O(n log n) in entries and segments; 4 to 20 bytes an entry of memory.
 */
#ifndef ANALYZE_TRACE_VIEW_H
#define ANALYZE_TRACE_VIEW_H

#include "analyze/selection.h"
#include "base/error.h"
#include "snapshot/snapshot.h"

enum trace_line_kind {
    TRACE_LINE_DEVICE,  /* a device's trace begins: device, process, count */
    TRACE_LINE_ALLOC,   /* name, place, place_number, offset */
    TRACE_LINE_FREE_REQUESTED, /* name or NONE32, as for the next three */
    TRACE_LINE_FREE_COMPLETED,
    TRACE_LINE_SEGMENT_ALLOC,
    TRACE_LINE_SEGMENT_FREE,
    TRACE_LINE_OOM,
    TRACE_LINE_OTHER,
    TRACE_LINE_TOTAL    /* a device's trace ends: total */
};

enum trace_place { TRACE_IN_NAMED, TRACE_IN_SEGMENT, TRACE_NOWHERE };

struct trace_line {
    enum trace_line_kind kind;
    size_t entry;          /* of the snapshot */
    uint16_t device, process;
    uint64_t count;        /* entries of the device that are chosen */
    uint32_t name;         /* NONE32: the address has none */
    enum trace_place place;
    uint32_t place_number; /* the name of the segment_alloc, or the number of the segment */
    uint64_t offset;       /* in that place; the address if there is none */
    double total;          /* PyTorch's "TOTAL MEM": the last entry's number, plus its size if alloc, less if freed */
};

struct trace_view;

/* Of the first `entries` entries; state is the one after them.  A selection (bound; NULL: all) leaves entries out of
 * the lines and counts, not out of the naming. */
int trace_view_new(const struct snapshot *snapshot, const struct state *state, uint64_t entries,
                   const struct selection *selection, struct trace_view **result, struct error *err);
void trace_view_free(struct trace_view *view);

/* The next line: 1, 0 at the end, or STATUS_NO_MEMORY. */
int trace_view_next(struct trace_view *view, struct trace_line *line);

#endif
