/*
 * PyTorch's text views, byte for byte: segsum, trace, compare and the flame graphs' folded lines.
 *
 * What memory_viz leaves without a last newline (trace) has none here either.  Where the output is a terminal, control
 * characters of names are shown, not sent.  The caller owns everything and commits the output.
 */
#ifndef RENDER_TORCH_TEXT_H
#define RENDER_TORCH_TEXT_H

#include "analyze/flame.h"
#include "analyze/selection.h"
#include "base/error.h"
#include "base/output.h"
#include "snapshot/snapshot.h"

/* `12.5MiB`: PyTorch's size text.  Returns buffer. */
#define TORCH_SIZE_TEXT 40
const char *torch_size(double bytes, char buffer[TORCH_SIZE_TEXT]);

int torch_text_segsum(const struct snapshot *snapshot, const struct state *state, struct output *output,
                      struct error *err);

/* Of the first `entries` entries; state is the one after them.  With a selection (NULL: all) only chosen entries are
 * printed and counted; names stay what they are without it. */
int torch_text_trace(const struct snapshot *snapshot, const struct state *state, uint64_t entries,
                     const struct selection *selection, struct output *output, struct error *err);

/* The lines of `convert --to folded --view segments|memory`. */
int torch_text_folded(const struct snapshot *snapshot, const struct state *state, enum flame_view view,
                      struct output *output, struct error *err);

/* `diff --group segment --format pytorch`. */
int torch_text_compare(const struct snapshot *before, const struct state *before_state, const struct snapshot *after,
                       const struct state *after_state, struct output *output, struct error *err);

#endif
