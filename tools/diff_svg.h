/* cudamem diff --svg: two states as one flame graph, red where memory grew and blue where it shrank. */
#ifndef TOOLS_DIFF_SVG_H
#define TOOLS_DIFF_SVG_H

#include "tools/command.h"
#include "tools/load.h"

/* Options that go with --svg: 0, or EXIT_USAGE after a line. */
int diff_svg_check(const struct command_line *line);

/* The exit status; EXIT_NO with --exit-code if what is alive grew. */
int diff_svg_run(const struct command_line *line, const struct load *before, const struct load *after);

#endif
