/*
 * After the program: its ring files become snapshot files.
 *
 * The program's own process gets the name that the user gave; other processes the name with their number before the
 * suffix; with %p, %r, %h or %n in the name those tell them apart.  Nothing is overwritten: what has the name already is
 * kept as NAME.old.  A program without a CUDA call gives an empty snapshot.
 */
#ifndef TOOLS_RECORD_COLLECT_H
#define TOOLS_RECORD_COLLECT_H

#include "tools/record_launch.h"
#include "tools/record_moments.h"

struct record_job {
    const char *output;      /* as given, with % words */
    const char *ring_folder;
    char **argv;             /* of the program */
    bool keep_args;
    bool torch_history;      /* processes leave PyTorch's own, too */
    struct record_moments *moments; /* NULL: none are kept */
    struct record_run run;
};

/* Write the files, print the lines on stderr.  Failures are lines, too: the exit status is the program's. */
void record_collect(const struct record_job *job);

#endif
