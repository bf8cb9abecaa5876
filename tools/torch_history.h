/*
 * PyTorch's own history of a recorded process (record --torch-history), left in the ring's folder by our sitecustomize:
 *
 *     PID.on.torch      it is being kept            PID.asked.torch   somebody wants it now (an empty file)
 *     PID.end.torch     at the process's end        PID.now.torch     the answer
 *     PID.oomN.torch    at its Nth out of memory    PID.failed.torch  why there is none, in words
 *
 * Uses format, snapshot and base.
 */
#ifndef TOOLS_TORCH_HISTORY_H
#define TOOLS_TORCH_HISTORY_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* Does the process of this ring file keep one? */
bool torch_history_is_on(const char *ring, int64_t pid);

/* Is the one of this word there? */
bool torch_history_is_there(const char *ring, int64_t pid, const char *word);

/* Ask for it; true once "now" is there, false after some seconds. */
bool torch_history_ask(const char *ring, int64_t pid);

/* Put what it says into the snapshot, which is replaced, and remove its file.  What is wrong with it is a line on stderr,
 * and the snapshot stays as it was recorded.  False: there is none. */
bool torch_history_join(const char *ring, int64_t pid, const char *word, struct snapshot **snapshot);

/* A line if the process was to keep one and left none; has_blocks: PyTorch was there. */
void torch_history_explain(const char *ring, int64_t pid, bool has_blocks);

/* Remove what is left in the folder. */
void torch_history_clean(const char *folder);

#endif
