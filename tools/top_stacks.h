/*
 * Which stacks hold most of what a process has, one line each: for `cudamem top`, which asks again and again.  Only the
 * biggest are given names, and names once looked up are kept.
 */
#ifndef TOOLS_TOP_STACKS_H
#define TOOLS_TOP_STACKS_H

#include "base/table.h"
#include "snapshot/snapshot.h"

struct top_stack {
    int64_t pid;
    uint64_t bytes, blocks;
    const char *where; /* the innermost frame that is no plumbing; lives in the names */
};

struct top_names {
    struct table known; /* content of a stack -> text */
    char **texts;
    size_t count, capacity;
};

void top_names_free(struct top_names *names);

/* The biggest living stacks of a process into stacks[0..most), with those of other processes that are there already;
 * returns how many there are then, SIZE_MAX without memory. */
size_t top_stacks_add(struct top_names *names, const struct snapshot *snapshot, struct top_stack *stacks, size_t count,
                      size_t most);

#endif
