/* The options of record, as settings of the recorder and of the moments that are kept. */
#ifndef TOOLS_RECORD_OPTIONS_H
#define TOOLS_RECORD_OPTIONS_H

#include "tools/command.h"
#include "tools/record_env.h"
#include "tools/record_moments.h"

/* Fill both; EXIT_DONE, or the status of a usage error that was told. */
int record_options_read(struct command_line *line, struct record_settings *settings, struct record_moments *moments);

#endif
