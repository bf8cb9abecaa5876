/* The rules of categories of a command line: --categories FILE, then the shipped ones. */
#ifndef TOOLS_CATEGORY_FILES_H
#define TOOLS_CATEGORY_FILES_H

#include "snapshot/category_rules.h"
#include "tools/options.h"

struct category_files {
    struct category_rules rules[2];
    const struct category_rules *sets[2];
    size_t count;
};

/* 0, or an exit status after a line on stderr; nothing is to be closed then. */
int category_files_open(const struct command_line *line, struct category_files *files);
void category_files_close(struct category_files *files);

#endif
