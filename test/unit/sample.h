/*
 * Snapshots for tests: a small one with something in every table, and long traces made from a seed.
 */
#ifndef TEST_SAMPLE_H
#define TEST_SAMPLE_H

#include "snapshot/snapshot.h"

/* Every table, every optional column, odd values, a graph of values with a cycle. */
struct snapshot *sample_full(void);

/* `entries` entries as PyTorch records them (alloc, free_requested, free_completed), with the blocks that are left. */
struct snapshot *sample_trace(size_t entries, uint64_t seed);

/* snapshot.bin of a snapshot; the caller frees it. */
unsigned char *sample_bin(const struct snapshot *snapshot, size_t *length);

#endif
