/*
 * What the recorded program finds in its environment: our libraries in LD_PRELOAD, before and after those that were
 * there, and the recorder's settings as CUDAMEM_*.
 *
 * The libraries are found relative to this command's own file, in the build tree and where it is installed.  The
 * forwarding object goes along only if the real driver was found and lacks nothing in our list of exports; otherwise
 * `remark` says what that means.
 */
#ifndef TOOLS_RECORD_ENV_H
#define TOOLS_RECORD_ENV_H

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_settings {
    const char *output;      /* base name, for the ring's header */
    const char *ring_folder; /* NULL: the recorder chooses */
    const char *stacks;      /* "native,python" or a part of it, or "none" */
    bool host, no_follow;
    uint64_t depth, max_entries; /* 0: as the recorder likes */
    const char *on_oom;      /* "snapshot" or "ignore" */
    int signal;              /* that asks for a snapshot, 0: none */
    bool start_paused;
    bool torch_history;      /* PyTorch's own recorder, too */
    bool caching;            /* our allocator serves memory, with: */
    const char *conf;        /* NULL: as CUDAMEM_ALLOC_CONF has it */
    uint64_t memory_limit;   /* 0: none */
    bool sim;
    const char *sim_devices; /* "N:SIZE" or "N", NULL: as it likes */
};

struct record_variable {
    char *name, *value;
};

struct record_env {
    struct record_variable *variables;
    size_t count, capacity;
    char remark[480]; /* one line for the user, or "" */
    char allocator_remark[240]; /* the same */
};

int record_env_make(const struct record_settings *settings, struct record_env *env, struct error *err);
void record_env_free(struct record_env *env);

/* Is this process itself being recorded?  Of a recording within a recording, the inner one gets the events. */
bool record_env_is_nested(void);

/* Put them into this process's environment. */
int record_env_apply(const struct record_env *env, struct error *err);

/* NAME=VALUE lines, quoted for a shell where that is needed. */
void record_env_print(const struct record_env *env, struct text *text);

#endif
