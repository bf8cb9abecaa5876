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

/* Run argv[0] with the environment added and wait.  only: name the process to the recorder as the only one to record.
 * 0, or a status if no process could be made. */
int record_launch(char **argv, const struct record_env *env, bool only, struct record_run *run, struct error *err);

/* Exit status of a finished run; does not return if the program died of a signal: then so do we. */
int record_end_like(const struct record_run *run);

#endif
