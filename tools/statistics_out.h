/* Statistics through the emitter, for the commands that print them. */
#ifndef TOOLS_STATISTICS_OUT_H
#define TOOLS_STATISTICS_OUT_H

#include "analyze/statistics.h"
#include "render/emitter.h"
#include "tools/load.h"

/* Is a set's device selected? */
bool statistics_are_selected(const struct load *load, const struct statistics *set);

/* "devices": a list with an object for each selected set: facts, bounds, and the numbers, nested in JSON and as
 * "key value" in text.  glob NULL: all keys.  In text a line "# device N" stands before each if there are several. */
void statistics_out(struct emitter *emitter, const struct load *load, const struct statistics_list *list, const char *glob);

/* A remark: what the device had taken beyond what is known, where somebody looked.  Text only. */
void statistics_outside(struct emitter *emitter, const struct load *load, const struct statistics *set);

/* The text-only remarks that belong below numbers: lost entries, what the marks mean. */
void statistics_notes(struct emitter *emitter, const struct load *load, const struct statistics *set);

#endif
