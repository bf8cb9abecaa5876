/*
 * Programs that use CUDA and escape the recorder, because something on their way cleared LD_PRELOAD: while the program
 * runs, its processes are looked at in /proc, often at first, then seldom.  One that has the driver's library and not
 * ours is told at the end.  Nothing is done to the processes.
 */
#ifndef TOOLS_RECORD_ESCAPE_H
#define TOOLS_RECORD_ESCAPE_H

#include "base/table.h"
#include "tools/record_launch.h"

#include <stdint.h>

struct record_escape {
    int64_t pid;         /* of the process that escaped, 0: none seen */
    char program[256];   /* its file */
    /* The rest begins as zero. */
    struct record_watch inner; /* what else is done meanwhile; look NULL: nothing */
    int64_t root;        /* the process that was started */
    int64_t next, pause; /* milliseconds: the next look, on the monotonic clock; the time between two */
    struct table carry;  /* processes that have both libraries: not looked at again */
};

/* Put the looking into *watch, around what is there if `keeps`. */
void record_escape_watch(struct record_escape *escape, bool keeps, struct record_watch *watch);

/* A line on stderr, if there is something to say. */
void record_escape_tell(const struct record_escape *escape);
void record_escape_free(struct record_escape *escape);

#endif
