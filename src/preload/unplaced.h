/*
 * Addresses for memory that has none: what contexts, modules and graphs took, physical memory that is mapped nowhere.
 * From 2^56 on, where no device and no program has memory, each with room for its size, so that nothing overlaps.
 */
#ifndef PRELOAD_UNPLACED_H
#define PRELOAD_UNPLACED_H

#include <stdatomic.h>
#include <stdint.h>

#define UNPLACED_FIRST (UINT64_C(1) << 56)
#define UNPLACED_PAGE (UINT64_C(2) << 20)
#define UNPLACED_LARGEST (UINT64_C(1) << 48)

extern _Atomic uint64_t unplaced_next; /* pages given so far; in measure.c */

static inline uint64_t unplaced_address(uint64_t size)
{
    uint64_t pages = size < UNPLACED_LARGEST ? size / UNPLACED_PAGE + 1 : UNPLACED_LARGEST / UNPLACED_PAGE;
    return UNPLACED_FIRST + atomic_fetch_add(&unplaced_next, pages) * UNPLACED_PAGE;
}

#endif
