/*
 * What may be set in a ring file while its process runs, by others through a mapping of their own as by the process
 * itself.  Each is one atomic step or a place that is claimed first: nobody waits, and one who dies in between leaves at
 * worst a place that nobody uses.
 *
 * Uses the layout in ring.h only: the header is given.
 */
#ifndef RECORD_CONTROL_H
#define RECORD_CONTROL_H

#include "record/ring.h"

#include <stdbool.h>

#define CONTROL_MARK_NAME (sizeof(((struct ring_mark *)0)->name) - 1) /* bytes at most */

/* The clock that the events of this file have, as it stands now on this machine. */
uint64_t control_ticks(const struct ring_header *header);

/* False if it was so already. */
bool control_pause(struct ring_header *header, bool pause);

/* What was recorded until now is not shown any more: memory that lives is older than the recording. */
void control_forget(struct ring_header *header);

/* A moment gets a name of 1 to CONTROL_MARK_NAME bytes.  False: all places are taken. */
bool control_mark(struct ring_header *header, const char *name, size_t length);

#endif
