/* Selection by annotations: a part of selection.h, bound with it. */
#ifndef ANALYZE_SELECTION_RANGES_H
#define ANALYZE_SELECTION_RANGES_H

#include "analyze/ranges.h"

#include <regex.h>

struct selection_ranges {
    uint8_t *inside; /* by entry: a range with a matching name was open */
    struct ranges_index index;
};

int selection_ranges_bind(struct selection_ranges *ranges, const regex_t *expression, const struct snapshot *snapshot,
                          struct error *err);
void selection_ranges_free(struct selection_ranges *ranges);

/* Was it made inside?  One that no entry made was not. */
bool selection_ranges_has_block(const struct selection_ranges *ranges, const struct state *state, const struct block *block);

#endif
