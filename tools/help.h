/*
 * Manual pages and help screens.  Pages are found beside the program: in the build tree or where it is installed, so
 * that `cudamem help X` shows the page that belongs to this program.
 */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include "base/text.h"
#include "tools/command.h"

/* All commands with a line each: to standard output (returns the exit status), or as text. */
int help_commands(void);
void help_commands_text(struct text *text);

/* -h. */
int help_screen(const struct command *command);

/* The manual page: in the reader's pager on a terminal, as plain text elsewhere, else the -h screen.  NULL: cudamem(1). */
int help_page(const struct command *command);

/* A page by its name, such as "cudamem-snapshot" in section "5"; false if it could not be shown. */
bool help_show(const char *name, const char *section);

#endif
