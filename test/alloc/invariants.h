/* What holds of every allocator after every step, found from outside: from its visit and its statistics. */
#ifndef TEST_ALLOC_INVARIANTS_H
#define TEST_ALLOC_INVARIANTS_H

#include "pair.h"

/* NULL, or what does not hold. */
const char *invariants_broken(const struct side *side, const struct memory_stats *stats);

#endif
