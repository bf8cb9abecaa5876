/*
 * Snapshots of moments while the program runs: the copies that its processes make of their ring files (at an out of
 * memory, by a signal), and the state of all of them every so often.
 *
 * A process's own name, with a word before the suffix: snapshot.oom1.bin, snapshot.signal1.bin, snapshot.every1.bin;
 * processes other than the program's have their number in it, as snapshot.4711.oom1.bin.  oom and signal count for each
 * process, every for the recording: the files of one time have one number.  All are kept; what has the name from an
 * earlier recording is kept as NAME.old.
 */
#ifndef TOOLS_RECORD_MOMENTS_H
#define TOOLS_RECORD_MOMENTS_H

#include "base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_moments {
    const char *output;       /* as the user gave it */
    const char *ring_folder;
    char **keep_arguments;    /* of the program, for the snapshots; NULL: not asked for */
    int64_t every;            /* milliseconds, 0: not */
    /* The rest begins as zero. */
    int64_t program;          /* process that was started */
    int64_t started;          /* on the monotonic clock, milliseconds */
    uint64_t periods;         /* that have gone by */
    int64_t plain;            /* the process that has the name without its number, 0: not settled */
    struct table numbers;     /* process and kind -> files so far */
    char *first;              /* name of the first file */
    size_t files;
    char **failed;            /* copies that could not be turned into snapshots */
    size_t failed_count, failed_capacity;
};

/* The program was started. */
void record_moments_begin(void *moments, int64_t program);

/* Do what is due.  Returns how many milliseconds may pass until the next look, -1: any. */
int record_moments_look(void *moments);

/* After the program: the copies that are left. */
void record_moments_end(struct record_moments *moments);

void record_moments_free(struct record_moments *moments);

#endif
