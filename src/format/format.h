/*
 * Snapshot files of every kind, told by content and not by name: the one door for those who open or write a file.
 *
 *     struct snapshot *snapshot;
 *     struct format_options options = FORMAT_OPTIONS_ALL;
 *     if (format_read(path, &options, &snapshot, &err)) -> err says what is wrong; nothing is left
 *
 * The caller owns the snapshot and frees it with snapshot_free().  A reader either hands out a snapshot that
 * snapshot_is_valid() or fails; a file is read once, in memory proportional to what it says, bounded by max_input.
 * Any thread may use this, each with its own snapshot.
 *
 * Uses src/base, src/snapshot and the readers and writers of this room.  Never prints.
 */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "base/error.h"
#include "base/input.h"
#include "base/output.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct format_options {
    uint64_t max_input;   /* decoded bytes at most; 0: what the machine has free */
    bool skip_traces;     /* no entries: for those who look at the segments only */
    uint64_t first_entry; /* entries first_entry <= n < last_entry are wanted; 0 or UINT64_MAX as last_entry: to the end. */
    uint64_t last_entry;  /* Then `end` is the state after the last entry kept, snapshot->first_entry the first one's
                             number in the file. */
};
#define FORMAT_OPTIONS_ALL ((struct format_options){0, false, 0, UINT64_MAX})

struct format_write_options {
    const char *view; /* csv: "entries" (NULL means this), "segments" or "blocks" */
};

struct format {
    const char *name;        /* "bin", "pickle", ...: what --to takes */
    const char *suffix;      /* of default output names: ".pickle" */
    const char *description; /* a few words, for help and `info` */
    bool is_binary;          /* never to a terminal */

    /* Could the file start like this?  NULL: not read. */
    bool (*detect)(const unsigned char *start, size_t length);
    /* path is for those that need the file itself; input stands at its start. */
    int (*read)(const char *path, struct input *input, const struct format_options *options, struct snapshot **result,
                struct error *err);
    /* NULL: not written. */
    int (*write)(const struct snapshot *snapshot, const struct format_write_options *options, struct output *output,
                 struct error *err);
};

/* All formats, ended by one without a name. */
const struct format *format_list(void);
const struct format *format_by_name(const char *name); /* NULL: none */

/* Which format the open input has by its first bytes (nothing is consumed); NULL with err saying what it looks like and
 * what would be read. */
const struct format *format_detect(struct input *input, struct error *err);

/* Open and read path ("-": standard input; gzip is unpacked).  options NULL: all of it. */
int format_read(const char *path, const struct format_options *options, struct snapshot **result, struct error *err);

/* The same from memory, for tests and fuzzers. */
int format_read_memory(const void *bytes, size_t length, const struct format_options *options, struct snapshot **result,
                       struct error *err);

/* Write by name; the caller commits or abandons the output.  options may be NULL. */
int format_write(const struct snapshot *snapshot, const char *format_name, const struct format_write_options *options,
                 struct output *output, struct error *err);

#endif
