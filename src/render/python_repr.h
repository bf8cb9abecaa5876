/*
 * Rows and values of a snapshot as Python's repr() writes them, for PyTorch's trace view.
 *
 * Strings: Python's quoting rules; bytes that are no UTF-8 as \xNN, lone surrogates as \udNNN.  Containers that hold
 * themselves end in [...] as in Python; one repr of more than REPR_LIMIT bytes is refused (shared lists can be made to
 * expand without end).  Floats: the shortest text that reads back equal.
 */
#ifndef RENDER_PYTHON_REPR_H
#define RENDER_PYTHON_REPR_H

#include "base/error.h"
#include "base/output.h"
#include "snapshot/snapshot.h"

#define REPR_LIMIT (UINT64_C(1) << 26)

/* An entry as the dict it is in PyTorch's file (of ours: as PyTorch would write it). */
int repr_entry(const struct snapshot *snapshot, size_t entry, struct output *output, struct error *err);

int repr_value(const struct snapshot *snapshot, value content, struct output *output, struct error *err);

void repr_string(struct output *output, const char *bytes, size_t length);
void repr_float(struct output *output, double number);

#endif
