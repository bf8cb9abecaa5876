/*
 * What recorded programs hold at this moment: the ring files of this user whose process runs, or of one process.
 *
 *     struct top_view view = {.pid = 0, .most_stacks = 5};
 *     top_view_look(&view, &err)      // again and again; rates are since the last look
 *     ... view.processes ...
 *     top_view_free(&view);
 *
 * Uses format, symbol (by tools/top_stacks.h) and tools/stale.h.
 */
#ifndef TOOLS_TOP_VIEW_H
#define TOOLS_TOP_VIEW_H

#include "base/error.h"
#include "format/ring_read.h"
#include "tools/top_stacks.h"

struct top_process {
    struct ring_facts facts;
    struct snapshot *snapshot; /* without entries */
    double rate;               /* events a second: since the last look, at the first one since its start */
    bool runs;                 /* else: it ended, and its recording is being collected */
};

/* What a look remembers for the next one. */
struct top_memory {
    int64_t pid, start_time, when;
    uint64_t events;
};

struct top_view {
    int64_t pid;          /* 0: all */
    size_t most_stacks;
    struct top_process *processes;
    size_t count, capacity;
    struct top_stack *stacks;
    size_t stack_count;
    struct top_memory *memory;
    size_t memory_count, memory_capacity;
    struct top_names names;
    size_t unread;        /* recordings that run and cannot be read, for another reason than having gone */
    char *unread_path;    /* of the first: it, and why */
    struct error unread_error;
};

/* Only memory is a failure. */
int top_view_look(struct top_view *view, struct error *err);
void top_view_free(struct top_view *view);

#endif
