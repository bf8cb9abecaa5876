/* `report --tree`: callers and what they call, the outermost first, each with all that is below it. */
#ifndef TOOLS_REPORT_TREE_H
#define TOOLS_REPORT_TREE_H

#include "analyze/report.h"
#include "render/emitter.h"

#define REPORT_SHOWN_FRAMES 8 /* of a stack on a terminal; pipes and JSON get all */

struct report_tree;

/* Of at most `limit` lines: those with the most bytes, so that a line's callers are among them.  NULL: no memory. */
struct report_tree *report_tree_new(const struct report *report, uint64_t limit);
void report_tree_out(struct emitter *emitter, const struct report_tree *tree); /* a table */
void report_tree_free(struct report_tree *tree);

#endif
