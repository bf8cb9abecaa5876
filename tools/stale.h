/*
 * Ring files that recordings left behind: those whose process is gone and that no `cudamem record` still works on.
 * Only folders and files of this user are looked at.  The list belongs to the caller: stale_free().
 */
#ifndef TOOLS_STALE_H
#define TOOLS_STALE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stale {
    char *path;
    int64_t pid;
    uint64_t size;       /* bytes on disk */
    int64_t modified;    /* microseconds since the epoch */
    bool runs;           /* its process is running */
    bool in_use;         /* its process, or the command that records it, is running */
    bool is_copy;        /* that a process made of its file at a moment */
    char program[512];   /* "" where not known */
};

/* All ring files of this user in the folders where recordings put them, sorted by path. */
int stale_list(struct stale **list, size_t *count, struct error *err);
void stale_free(struct stale *list, size_t count);

#endif
