/* cudamem help: the list of commands, or a manual page. */
#include "tools/command.h"
#include "tools/help.h"

#include <string.h>

static const struct option_spec help_options[] = {OPTIONS_END};

/* Pages that belong to no command. */
static const struct {
    const char *word, *page, *section;
} help_others[] = {
    {"cudamem", "cudamem", "1"},
    {"snapshot", "cudamem-snapshot", "5"},
};

static int help_run(struct command_line *line)
{
    if (!line->argument_count)
        return help_commands();
    const char *word = line->arguments[0];
    const struct command *command = command_find(word);
    if (command)
        return help_page(command);
    for (size_t i = 0; i < sizeof(help_others) / sizeof(help_others[0]); i++)
        if (strcmp(word, help_others[i].word) == 0) {
            if (help_show(help_others[i].page, help_others[i].section))
                return EXIT_DONE;
            command_note("cannot show the page %s(%s); install man-db or mandoc", help_others[i].page,
                         help_others[i].section);
            return EXIT_INPUT;
        }
    const char *names[80];
    size_t count = 0;
    for (size_t i = 0; i < command_count && count < 64; i++)
        names[count++] = commands[i]->name;
    for (size_t i = 0; i < sizeof(help_others) / sizeof(help_others[0]); i++)
        names[count++] = help_others[i].word;
    const char *nearest = options_nearest(word, names, count);
    return nearest ? command_usage(line->command, "there is no page for %s; did you mean %s?", word, nearest)
                   : command_usage(line->command, "there is no page for %s", word);
}

const struct command command_help = {
    .name = "help",
    .summary = "show this list, or a command's manual page",
    .arguments = "[COMMAND]",
    .most = 1,
    .words = "COMMAND",
    .options = help_options,
    .run = help_run,
};
