/* --memory-limit SIZE[@ENTRY], for the commands that replay. */
#ifndef TOOLS_REPLAY_OPTIONS_H
#define TOOLS_REPLAY_OPTIONS_H

#include "analyze/replay.h"
#include "tools/command.h"

#define OPTIONS_LIMIT {"memory-limit", 0, "SIZE[@ENTRY]", OPTION_TEXT, "the limit that the allocator had, from this entry on"}

/* Fills limit and limit_entry of *options.  0, or an exit status after a line on stderr. */
int replay_options_limit(const struct command_line *line, struct replay_options *options);

#endif
