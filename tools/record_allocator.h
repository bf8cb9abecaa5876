/* Which allocator serves the program that record runs, from the command line and the environment. */
#ifndef TOOLS_RECORD_ALLOCATOR_H
#define TOOLS_RECORD_ALLOCATOR_H

#include "tools/command.h"
#include "tools/record_env.h"

#define RECORD_ALLOCATOR_OPTIONS \
    {"allocator", 0, "WHICH", OPTION_CHOICE, \
     "who serves memory: the driver, or a caching allocator of ours (default: observe)", "observe|caching"}, \
    {"conf", 0, "SETTINGS", OPTION_TEXT, "the caching allocator's settings: as PYTORCH_CUDA_ALLOC_CONF"}, \
    {"memory-limit", 0, "SIZE", OPTION_TEXT, "what the caching allocator may reserve of a device"}

/* Fill settings; EXIT_DONE, or the status of a usage error that was told. */
int record_allocator_read(struct command_line *line, struct record_settings *settings);

#endif
