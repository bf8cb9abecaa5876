/*
 * Names for native frames: program counters become functions, files and lines.
 *
 * A frame of a module is looked up in that module's file, if it is a regular file with the build id that was recorded,
 * and in its debug information (separate files and debuginfod as elfutils finds them).  What the compiler inlined
 * becomes frames of its own.  Without debug information the symbol tables give the function; the file is then the
 * module and the line 0.  A frame without a module is looked up in /tmp/perf-PID.map.  What is found nowhere is called
 * `library.so+0x1234` and stays unsymbolized, so that it can be looked up elsewhere.
 *
 * Addresses are return addresses: the call before them is looked up.  Each distinct (module, offset) is looked up once.
 * The stack tree and the contexts are rebuilt; frames keep their numbers.  Not thread safe.
 */
#ifndef SYMBOL_SYMBOLIZE_H
#define SYMBOL_SYMBOLIZE_H

#include "base/error.h"
#include "snapshot/snapshot.h"

struct symbolize_counts {
    uint64_t frames;    /* native frames that had no name */
    uint64_t lookups;   /* distinct (module, offset) that were looked up */
    uint64_t found;     /* ... and found */
    uint64_t inlined;   /* frames added */
    uint64_t modules;   /* files opened whose build id agreed */
    uint64_t refused;   /* modules whose file is missing, of another build or no regular file */
};

struct symbolize_options {
    bool without_perf_map;  /* do not look for /tmp/perf-PID.map */
    bool without_lines;     /* functions only: no debug information */
    const char *perf_folder; /* NULL: /tmp */
    struct symbolize_counts *counts; /* filled if not NULL */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* may be NULL */
    void *progress_context;
};

/* options may be NULL.  Missing files are no failure; only memory is. */
int symbolize_snapshot(struct snapshot *snapshot, const struct symbolize_options *options, struct error *err);

#endif
