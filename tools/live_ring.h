/*
 * The ring file that a running process writes, found by the process's number and mapped, to be steered through it.
 *
 * The process itself says which file it is: the one that it has mapped, and that has its number in it (a forked child
 * has its parent's mapped until it records).  Checked as by the reader, and that nobody else may write it.
 */
#ifndef TOOLS_LIVE_RING_H
#define TOOLS_LIVE_RING_H

#include "base/error.h"
#include "record/ring.h"

#include <stdbool.h>
#include <stdint.h>

struct live_ring {
    int64_t pid;
    char *path;                /* by which this process reaches the file */
    struct ring_header *header;
    struct ring_device *devices;
    void *map;
    uint64_t size;
};

/* STATUS_INPUT with the reason: no such process, another user's, not recorded, a recording of another version. */
int live_ring_open(int64_t pid, struct live_ring *ring, struct error *err);
void live_ring_close(struct live_ring *ring);

/* Does the process still run, with this file? */
bool live_ring_runs(const struct live_ring *ring);

#endif
