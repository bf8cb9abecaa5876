/*
 * FILE[@MOMENT] of a command line, opened: the snapshot, the moment, the state then, the selection.
 *
 *     struct load load;
 *     int status = load_open(line, line->arguments[0], LOAD_STATE, &load);   // NULL: snapshot.bin in this folder
 *     if (status)
 *         return status;                                                     // the line on stderr is out
 *     ... load.snapshot, load.state, &load.selection ...
 *     load_close(&load);
 *
 * A file whose whole name exists wins; otherwise the last '@' splits.  "-" is standard input.  The common options are
 * applied: --max-input and the selection.  Native frames of a ring file are given names here.
 */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include "analyze/moment.h"
#include "analyze/selection.h"
#include "snapshot/snapshot.h"
#include "tools/command.h"

enum load_flag {
    LOAD_STATE = 1,     /* work the state at the moment out */
    LOAD_NO_TRACES = 2, /* skip the entries; only @end is taken then */
    LOAD_STATE_ONLY = 4, /* with LOAD_STATE: the entries are not looked at, so that at @#N a snapshot.bin is read in part */
    LOAD_SLICE = 8,     /* the same where the entries of --entries and before @#N are all that is wanted */
};

struct load {
    struct snapshot *snapshot;
    char *file;                   /* without the moment, as the user wrote it; "-" for standard input */
    bool has_moment;              /* one was named */
    bool is_part;                 /* the snapshot holds nothing but what the flags asked for */
    char *moment_text;            /* without '@'; "end" if none was named */
    uint64_t moment;              /* entries.count for @end */
    const struct state *state;    /* with LOAD_STATE: at the moment; else the end state */
    struct state own_state;
    struct selection selection;   /* bound to the snapshot */
};

/* 0, or an exit status after a line on stderr; nothing is to be closed then. */
int load_open(const struct command_line *line, const char *argument, unsigned flags, struct load *load);
void load_close(struct load *load);

/* For commands that work on one process: 0, or EXIT_USAGE after a line if the file holds several. */
int load_one_process(const struct command_line *line, const struct load *load);

#endif
