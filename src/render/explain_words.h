/* What the files of the explanation's text share. */
#ifndef RENDER_EXPLAIN_WORDS_H
#define RENDER_EXPLAIN_WORDS_H

#include "analyze/no_stack.h"
#include "base/size.h"
#include "render/explain_text.h"

#include <inttypes.h>

struct explain_writer {
    const struct explain *explain;
    const struct explain_words *words;
    struct no_stacks no_stacks;
    struct text *text;
};

/* "1.50 GiB", or with --bytes "1610612736 B"; returns the buffer. */
const char *explain_size(const struct explain_writer *writer, uint64_t bytes, char buffer[SIZE_TEXT]);
const char *explain_plural(uint64_t count); /* "" or "s" */

/* The first frame of a stack that is the program's own, as FILE:LINE:NAME; or why there is no stack. */
void explain_site(const struct explain_writer *writer, uint32_t context, bool is_before);
/* With whole stacks its frames, a line each, innermost first; otherwise nothing. */
void explain_frames(const struct explain_writer *writer, uint32_t context);

/* "  label   value  remark". */
void explain_line(const struct explain_writer *writer, const char *label, const char *shown, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void explain_bytes_line(const struct explain_writer *writer, const char *label, uint64_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The sections. */
void explain_sentence(const struct explain_writer *writer);
void explain_numbers(const struct explain_writer *writer);
void explain_hole_section(const struct explain_writer *writer);
void explain_pin_section(const struct explain_writer *writer);
void explain_outside_section(const struct explain_writer *writer);
void explain_settings_section(const struct explain_writer *writer);
void explain_holder_section(const struct explain_writer *writer);
void explain_unknown_section(const struct explain_writer *writer);

#endif
