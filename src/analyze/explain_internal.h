/* What the files of explain share. */
#ifndef ANALYZE_EXPLAIN_INTERNAL_H
#define ANALYZE_EXPLAIN_INTERNAL_H

#include "alloc/settings.h"
#include "analyze/explain.h"

/* Is it memory of the explained device that the allocator (or the program itself) took? */
bool explain_is_ours(const struct explain *explain, const struct segment *segment);

static inline bool explain_is_live(const struct block *block)
{
    return block->state == BLOCK_ACTIVE_ALLOCATED || block->state == BLOCK_ACTIVE_PENDING_FREE;
}

/* explain_holes.c: memory, holes, reasons.  0 or no memory; settings are the recorded ones. */
int explain_holes(struct explain *explain, const struct settings *settings);
/* explain_pins.c, after the room is known. */
int explain_pins(struct explain *explain, const struct settings *settings);

/* explain_growth.c: holders and growing. */
int explain_stacks(struct explain *explain);

/* explain_outside.c */
int explain_outside(struct explain *explain, struct error *err);

/* explain_room.c: what there was to have, and why the request did not get it. */
void explain_room(struct explain *explain, const struct settings *settings, const struct explain_options *options);
void explain_judge_cause(struct explain *explain);

/* explain_settings.c */
int explain_settings(struct explain *explain, const struct explain_options *options, struct error *err);

#endif
