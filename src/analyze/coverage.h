/*
 * "Which range was the first to hold this address?", for ranges that are added one by one and never removed.
 *
 * All ranges are planned first, so that the address space falls into cells between their ends; adding a range then
 * takes the cells that no earlier one took.  Each cell is taken once: O(n log n) for everything, O(log n) a question.
 */
#ifndef ANALYZE_COVERAGE_H
#define ANALYZE_COVERAGE_H

#include <stddef.h>
#include <stdint.h>

struct coverage;

struct coverage *coverage_new(size_t ranges); /* how many will be planned; NULL: no memory */
void coverage_free(struct coverage *coverage);

void coverage_plan(struct coverage *coverage, uint64_t address, uint64_t size);
int coverage_ready(struct coverage *coverage); /* 0 or STATUS_NO_MEMORY */

/* A planned range; owner is what coverage_find() gives back. */
void coverage_add(struct coverage *coverage, uint64_t address, uint64_t size, uint32_t owner);

/* The owner and start of the first range added that holds address, or UINT32_MAX. */
uint32_t coverage_find(const struct coverage *coverage, uint64_t address, uint64_t *start);

#endif
