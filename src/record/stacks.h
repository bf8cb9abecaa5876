/*
 * Stacks without a recording: what the recorder captures, numbers and keeps, in memory instead of a file.  For a process
 * that keeps its own history (src/api).  One of them in a process, and not beside recorder_start() in the same library.
 *
 * A capture allocates nothing once its stack was seen, takes no lock then, and is fork aware as the recorder's are.  What
 * is kept stays: the tables only grow, up to millions of frames; beyond that stacks are lost and counted.
 */
#ifndef RECORD_STACKS_H
#define RECORD_STACKS_H

#include "record/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* May be called again, to choose anew, while others take stacks; by one thread at a time.  depth: frames of each kind at most.  -1 with
 * the reason in message: none are taken.  With 0 a message says what is left out (no libunwind). */
int recorder_stacks_start(unsigned depth, bool native, bool python, char *message, size_t message_size);

/* This thread's stack now, without the innermost frames in this library: numbers as in the ring file.  Of native frames
 * RING_STACK_NONE where they are not asked for; of Python's also where no Python runs.  false: lost, and counted. */
bool recorder_stacks_take(uint32_t *native, uint32_t *python);

/* A time, and what turns it into one that means something. */
uint64_t recorder_stacks_ticks(void);
void recorder_stacks_sample(struct ring_calibration *sample);

/* What was kept so far, for who makes sense of the numbers: valid numbers stay so.  The header's tables count; a copy is
 * the caller's.  NULL: no memory. */
const struct ring_header *recorder_stacks_header(void);
void *recorder_stacks_copy(enum ring_table_name table, uint64_t *count);

#endif
