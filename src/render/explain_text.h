/*
 * An explanation in words: a sentence that says the cause, then the numbers, each with what it means.
 *
 * Names from the snapshot are made printable.  Failure (no memory) is sticky in the text.
 */
#ifndef RENDER_EXPLAIN_TEXT_H
#define RENDER_EXPLAIN_TEXT_H

#include "analyze/explain.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct explain_words {
    bool exact_bytes; /* 1610612736 B, not 1.50 GiB */
    bool whole_stacks; /* not only the first frame of the program's own */
    size_t rows;       /* of each list at most */
    const char *moment; /* as the user may name it: "peak", "#4711" */
};

int explain_text(const struct explain *explain, const struct explain_words *words, struct text *text, struct error *err);

#endif
