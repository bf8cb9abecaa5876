/*
 * The table of torch.cuda.memory_summary(), byte for byte: 77 columns a line, ended by a newline.  Numbers that are
 * bounds stand there with ">=" or "<=", unknown ones as "?", in the same columns.
 */
#ifndef RENDER_SUMMARY_TEXT_H
#define RENDER_SUMMARY_TEXT_H

#include "analyze/statistics.h"
#include "base/text.h"

#include <stdbool.h>

void summary_text(const struct statistics *statistics, bool abbreviated, struct text *text);

#endif
