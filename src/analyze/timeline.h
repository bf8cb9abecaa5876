/*
 * The timeline as data: what was alive over time, reduced to columns, and the largest allocations as bands.
 *
 * A chart belongs to one device of one process.  Of each column it has the exact most bytes that were allocated and
 * that were reserved there; what the allocated bytes consist of is told for the moment in that column at which they
 * were the most (`moments`).  So in each column the bands, what was there before recording and the rest add up to the
 * bytes allocated at that moment, to the byte.
 *
 * Allocated are requested bytes as the trace has them, until their free is complete (the segments' bytes where nothing
 * caches), as @peak counts them.  An allocation lives between two entries of its address; where entries contradict one
 * another, it lives as state_at() has it.  Memory of the host and imported memory count nowhere; memory beside a
 * framework's allocator (ENTRY_OUTSIDE) only in `used`.
 *
 * Bands are the allocations that take most of the picture: bytes times the columns in which they live.  Cost: a pass
 * back and three forward over the entries, 4 bytes each; O(columns) memory a chart besides, O(columns * bands) time.
 */
#ifndef ANALYZE_TIMELINE_H
#define ANALYZE_TIMELINE_H

#include "analyze/selection.h"
#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_CHARTS 64u   /* at most; those of the first processes and devices */
#define TIMELINE_LANES 5u     /* of ranges, over one another */
#define TIMELINE_RANGES 1000u /* of a chart: the longest */
#define TIMELINE_ON UINT64_MAX /* of timeline_band.free: it is alive at the end of the trace */

enum timeline_axis { TIMELINE_AUTO, TIMELINE_TIME, TIMELINE_ENTRIES }; /* auto: time, if the entries tell it */

struct timeline_options {
    enum timeline_axis axis;
    uint32_t columns;  /* at most, and at least 1; fewer where there are fewer moments to show */
    uint32_t bands;    /* of a chart, at most */
    uint64_t moment;   /* the last one to show */
};

struct timeline_band {
    uint64_t size, weight;
    uint64_t alloc, free; /* entries */
    uint32_t from, to;    /* alive in the columns from <= c < to */
    bool is_range;        /* a mapping of virtual memory */
};

enum timeline_event_kind { TIMELINE_OOM, TIMELINE_SNAPSHOT, TIMELINE_MARK };

struct timeline_event { /* one of each kind a column */
    uint8_t kind;
    uint32_t column, count;
    uint64_t entry; /* the first one; of a mark its annotation */
};

struct timeline_range {
    uint32_t annotation, from, to; /* columns, both included */
    uint32_t lane;
    uint64_t first, last; /* moments */
    bool is_open;         /* nobody ended it */
};

struct timeline_chart {
    uint16_t process, device;
    const struct device *about; /* NULL: nothing is known */
    uint64_t *moments, *allocated, *before, *rest; /* by column; rest: what no band shows */
    uint64_t *reserved, *used;                     /* used: reserved and what is outside of the allocator */
    struct timeline_band *bands;                   /* from the bottom up */
    size_t band_count;
    uint64_t lives;                                /* allocations that live in some column, bands included */
    uint64_t peak_allocated, peak_moment, peak_reserved, peak_used;
    bool has_before, has_outside, has_reserved;    /* has_reserved: it is told, and differs from allocated */
    struct timeline_event *events;                 /* by column */
    size_t event_count, event_capacity;
    struct timeline_range *ranges;
    size_t range_count, range_capacity, ranges_left_out;
    uint32_t lanes;
};

struct timeline {
    const struct snapshot *snapshot;
    bool is_time;             /* else the axis counts entries */
    uint32_t columns;
    uint64_t first, last;     /* moments */
    int64_t first_time;       /* of the trace */
    int64_t time_low, time_high; /* microseconds from first_time, with is_time */
    struct timeline_chart *charts; /* by process and device */
    size_t count, left_out;   /* left_out: devices beyond TIMELINE_CHARTS */
};

/* selection: bound, or NULL for everything; its ranges of entries and times say what to show.  The caller frees with
 * timeline_free(); the snapshot must outlive it.  STATUS_NOT_FOUND says why there is nothing to show. */
int timeline_build(const struct snapshot *snapshot, const struct selection *selection,
                   const struct timeline_options *options, struct timeline *timeline, struct error *err);
void timeline_free(struct timeline *timeline);

/* Keep only the `most` bands that take most of the picture. */
int timeline_keep_bands(const struct timeline *timeline, struct timeline_chart *chart, size_t most);

#endif
