/*
 * PyTorch's memory snapshots (pickles) into struct snapshot: every layout from a bare list of segments to 2.11's and
 * newer.  Trace entries, segments, blocks, frames and annotations go into columns while the file is read; what columns
 * cannot hold (unknown keys, None, wrong types, giant numbers) is kept as odd values, and a file whose objects are shared
 * in ways that columns cannot express keeps its object graph as `raw` as well.  Reads once, front to back.
 *
 * The columns have every dict of every list as Python sees it: one that stands in several places has a row for each.
 * What that adds counts against the input's limit on decoded bytes, and may be 64 times the file and 256 MiB at most.
 */
#ifndef FORMAT_TORCH_READ_H
#define FORMAT_TORCH_READ_H

#include "base/error.h"
#include "base/input.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

struct torch_read_options {
    bool skip_traces;    /* walk over the trace entries without keeping them */
    bool no_fast_path;   /* for tests: every opcode through the general machine */
};

/* options may be NULL.  On failure *result is NULL.  The caller frees it with snapshot_free(). */
int torch_read(struct input *input, const struct torch_read_options *options, struct snapshot **result,
               struct error *err);

#endif
