/*
 * The allocations of a trace, one after the other as they end: which entry made each, what was asked, which entry freed
 * it and after how many others.  Those that are alive at the end come last, by address of memory in no special order.
 *
 * A free of something that no entry made tells of an allocation from before the trace: it comes with no maker.
 * Frees that the driver refused, and that a later entry takes back, are none.  A mapping that is given back together
 * with its neighbours ends with them.
 *
 * Reads the snapshot only.  Cost: one pass over the entries with a look-up each; memory for what is alive at a time.
 */
#ifndef ANALYZE_ALLOCATIONS_H
#define ANALYZE_ALLOCATIONS_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#define ALLOCATION_NO_ENTRY UINT64_MAX

struct allocation {
    uint64_t made, freed;   /* entries, ALLOCATION_NO_ENTRY; freed: its free was requested, or completed if only that is told */
    uint64_t address, size; /* as the entry has it: of blocks the requested bytes */
    uint64_t distance;      /* entries of its process and device between the two; where both are there */
    uint32_t context;       /* of the maker, CONTEXT_NONE without one */
    uint16_t process, device;
};

/* Not 0 stops and is returned. */
typedef int allocations_visit(void *context, const struct allocation *allocation);

/* Over the first `moment` entries; what is freed later counts as freed there, too, if `to_the_end`. */
int allocations_walk(const struct snapshot *snapshot, uint64_t moment, bool to_the_end, allocations_visit *visit,
                     void *context);

#endif
