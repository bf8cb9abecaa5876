/*
 * From a ring file to a snapshot file: reading, names for its addresses, the file's name, writing.  For `record`, while
 * the program runs and at its end, and for `ctl`.
 */
#ifndef TOOLS_RING_SNAPSHOT_H
#define TOOLS_RING_SNAPSHOT_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* The caller frees the snapshot.  Addresses that could not be given names are a line on stderr, no failure. */
int ring_snapshot_read(const char *path, struct snapshot **snapshot, struct error *err);

/* Keep the program's arguments in it. */
void ring_snapshot_arguments(struct snapshot *snapshot, char **argv);

/* Which moment it is, as "every 3": its setting kept_at.  STATUS_NO_MEMORY or STATUS_OK. */
int ring_snapshot_kept_at(struct snapshot *snapshot, const char *moment);

struct ring_name {
    const char *pattern; /* with %p, %r, %h, %n */
    const char *program, *host;
    int64_t pid, rank;   /* rank -1: none */
    bool with_pid;       /* put it before the suffix */
    const char *word;    /* and this behind it, as "oom1"; NULL: nothing */
};

/* The caller frees; NULL: no memory. */
char *ring_name_make(const struct ring_name *name);

/* As ring_name_make(), with what the snapshot says of its process. */
char *ring_snapshot_name(const struct snapshot *snapshot, const char *pattern, bool with_pid, const char *word);

/* Do names made from the pattern tell processes apart by themselves? */
bool ring_name_tells_apart(const char *pattern);

/* Whole or not at all; what has the name already is kept as NAME.old. */
int ring_snapshot_write(const struct snapshot *snapshot, const char *path, struct error *err);

#endif
