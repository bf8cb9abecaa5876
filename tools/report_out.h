/* What `cudamem report` prints: a heading and rows, or the tree. */
#ifndef TOOLS_REPORT_OUT_H
#define TOOLS_REPORT_OUT_H

#include "analyze/report.h"
#include "tools/load.h"

/* To -o FILE or standard output; returns the exit status. */
int report_out(const struct command_line *line, const struct load *load, const struct report *report,
               const struct report_options *options);

#endif
