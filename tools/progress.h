/*
 * "cudamem: reading snapshot.bin: 45%" on stderr, only if that is a terminal and only after half a second.
 *
 * A timer does the work: the busy loop just stores how far it is in a plain counter (progress_at()), so it pays
 * nothing.  One at a time in a process.  progress_stop() wipes the line.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdint.h>

void progress_start(const char *what, uint64_t total); /* total 0: unknown, only the time is shown */
void progress_at(uint64_t done);
void progress_stop(void);

#endif
