/* What ring_build.c and ring_build_state.c share while a snapshot is made.  Not for others. */
#ifndef FORMAT_RING_BUILDER_H
#define FORMAT_RING_BUILDER_H

#include "base/table.h"
#include "format/ring_reader.h"

struct build {
    struct ring_reader *reader;
    struct snapshot *snapshot;
    uint32_t *stacks;     /* trie node -> snapshot's, NONE32: not made yet */
    uint32_t *path;       /* nodes of one stack, on the way down */
    struct table frames;  /* module, offset -> frame */
    struct table pools;   /* handle -> pool */
    double rate;          /* nanoseconds a tick */
    struct ring_calibration clock; /* where times count from */
    uint32_t *calls;
};

/* The snapshot's context of a stack, and its pool of a handle (NONE32: no memory). */
int ring_build_context(struct build *build, uint32_t node, uint32_t *context);
uint32_t ring_build_pool(struct build *build, uint64_t handle);

/* What lives at the end, when the entries are there; and the numbers of the devices where blocks are known. */
int ring_build_state(struct build *build);

#endif
