/* --categories FILE and the shipped rules.  Uses format and base. */
#include "tools/category_files.h"

#include "format/categories_read.h"
#include "tools/command.h"

#include <string.h>

int category_files_open(const struct command_line *line, struct category_files *files)
{
    const char *path = options_text(line, "categories");
    struct error err = {0};
    memset(files, 0, sizeof(*files));
    if (path) {
        if (categories_read(path, &files->rules[0], &err))
            return command_error(path, &err);
        files->sets[files->count] = &files->rules[files->count];
        files->count++;
    }
    if (categories_read_shipped(&files->rules[files->count], &err)) {
        category_files_close(files);
        return command_error(NULL, &err);
    }
    files->sets[files->count] = &files->rules[files->count];
    files->count++;
    return EXIT_DONE;
}

void category_files_close(struct category_files *files)
{
    category_rules_free(&files->rules[0]);
    category_rules_free(&files->rules[1]);
}
