/*
 * A snapshot as JSON: PyTorch's dict with its keys in its order, stacks and strings once (`stacks`, referred to by
 * number), and what recorded snapshots know beyond it (`cudamem`: processes, devices, modules, pools).  Streamed, so its
 * cost is its size.  Integers are written as they are, whatever their size; bytes that are no UTF-8 as lone surrogates.
 */
#ifndef FORMAT_JSON_WRITE_H
#define FORMAT_JSON_WRITE_H

#include "base/error.h"
#include "base/output.h"
#include "snapshot/snapshot.h"

int json_write(const struct snapshot *snapshot, struct output *output, struct error *err);

#endif
