/*
 * Running the program: started as the shell would, waited for, signals handed on, and its end made ours.
 */
#ifndef TOOLS_RECORD_LAUNCH_H
#define TOOLS_RECORD_LAUNCH_H

#include "tools/record_env.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record_run {
    pid_t pid;
    int exec_error;      /* errno of a program that could not be started, else 0 */
    int status;          /* as wait(2) gave it */
    int64_t start, end;  /* microseconds since the epoch */
};

/* What is done while the program runs: when files come into the folder, and when look() asked to be called again. */
struct record_watch {
    const char *folder;
    void (*begin)(void *context, int64_t program); /* once, when it runs */
    int (*look)(void *context);                    /* milliseconds until the next time at the latest, -1: no matter */
    void *context;
    int signal;                                    /* handed on like the usual ones, 0: none */
};

/* Run argv[0] with the environment added and wait.  only: name the process to the recorder as the only one to record.
 * watch NULL: nothing is done meanwhile.  0, or a status if no process could be made. */
int record_launch(char **argv, const struct record_env *env, bool only, const struct record_watch *watch,
                  struct record_run *run, struct error *err);

/* Exit status of a finished run; does not return if the program died of a signal: then so do we. */
int record_end_like(const struct record_run *run);

#endif
