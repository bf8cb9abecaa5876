/* The cudamem command: the list of commands, and the way to one of them. */
#include "base/output.h"
#include "tools/command.h"
#include "tools/help.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND(name) extern const struct command command_##name;
#include "tools/commands.h"
#undef COMMAND

#define COMMAND(name) &command_##name,
const struct command *const commands[] = {
#include "tools/commands.h"
};
#undef COMMAND
const size_t command_count = sizeof(commands) / sizeof(commands[0]);

/* A file that we open must not become standard output because that was closed: writing there shall fail instead. */
static void main_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
            return;
}

static int main_unknown(const char *word)
{
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; i < command_count && count < 64; i++)
        names[count++] = commands[i]->name;
    const char *nearest = options_nearest(word, names, count);
    if (word[0] == '-')
        command_note("unknown option %s; options follow the command: cudamem COMMAND [OPTIONS] (cudamem help lists the "
                     "commands)", word);
    else if (nearest)
        command_note("unknown command %s; did you mean %s? (cudamem help lists them)", word, nearest);
    else
        command_note("unknown command %s (cudamem help lists them)", word);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    main_standard_files();
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        struct text text = {0};
        help_commands_text(&text);
        fputs(text_string(&text), stderr);
        text_free(&text);
        return EXIT_USAGE;
    }
    if (strcmp(word, "-h") == 0)
        word = "help";
    if (strcmp(word, "--help") == 0)
        return help_page(NULL);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    const struct command *command = command_find(word);
    if (!command)
        return main_unknown(word);

    struct command_line line;
    int status = options_parse(command, argc - 1, argv + 1, &line);
    if (status)
        return status;
    if (line.help_page)
        status = help_page(command);
    else if (line.help_short)
        status = help_screen(command);
    else
        status = command->run(&line);
    options_free(&line);
    return status;
}
