/*
 * struct snapshot as PyTorch's pickle.  What came from a pickle is written with the same objects and sharing; what was
 * recorded gets the layout of PyTorch 2.11, builtin types only, so that pickle.load and memory_viz open it.  Where
 * nothing caches, an allocation from the driver is written as its segment and as a block in it.  Streams: beside the
 * snapshot it holds 4 bytes a string object, frame and context.
 */
#ifndef FORMAT_TORCH_WRITE_H
#define FORMAT_TORCH_WRITE_H

#include "base/error.h"
#include "base/output.h"
#include "snapshot/snapshot.h"

/* The caller commits or abandons the output. */
int torch_write(const struct snapshot *snapshot, struct output *output, struct error *err);

#endif
