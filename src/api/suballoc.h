/*
 * Pieces of blocks that the program hands out itself.  Everything here is under the device's lock.  Not for others than
 * the history's files.
 */
#ifndef API_SUBALLOC_H
#define API_SUBALLOC_H

#include "api/history.h"

/* What the allocator does with a block that has pieces: entries for these go through history_keep().  true: the event itself
 * is no entry. */
bool suballoc_event(struct library_device *device, const struct allocator_event *event);

/* For snapshots: the blocks that stand for this one, in order of address, tiling it.  Without pieces: the block itself. */
int suballoc_visit(struct library_device *device, const struct allocator_block *block,
                   int (*visit)(void *self, const struct allocator_block *piece), void *self);

#endif
