/* The parts of `cudamem diff`: each runs with its inputs open and returns the exit status. */
#ifndef TOOLS_DIFF_PARTS_H
#define TOOLS_DIFF_PARTS_H

#include "analyze/stack_tree.h"
#include "tools/load.h"

#define DIFF_SHOWN_FRAMES 8 /* of a stack on a terminal; pipes and JSON get all */

int diff_stacks_run(const struct command_line *line, const struct load *before, const struct load *after);
int diff_segments_run(const struct command_line *line, const struct load *before, const struct load *after);

/* Three or more states, or `--across`; `loads` are all of the command line's. */
int diff_many_run(const struct command_line *line, const struct load *loads, size_t count);

void diff_stack_out(struct emitter *emitter, const struct stack_tree *stacks, uint32_t node);

#endif
