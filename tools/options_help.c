/* The -h screen of a command, from its table.  Uses base/output. */
#include "base/output.h"
#include "tools/command.h"
#include "tools/options.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 26, HELP_WIDTH = 100 };

/* Words of text, wrapped and indented to the help column. */
static void options_help_wrapped(struct output *output, const char *text)
{
    size_t column = HELP_COLUMN;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
            output_printf(output, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            output_char(output, ' ');
            column++;
        }
        output_write(output, text, word);
        column += word;
        text += word + (text[word] == ' ');
    }
    output_char(output, '\n');
}

static void options_help_line(struct output *output, const struct option_spec *spec)
{
    char left[128];
    int used = snprintf(left, sizeof(left), "  %c%c%s--%s", spec->letter ? '-' : ' ', spec->letter ? spec->letter : ' ',
                        spec->letter ? ", " : "  ", spec->name);
    if (spec->argument && used > 0 && (size_t)used < sizeof(left))
        used += snprintf(left + used, sizeof(left) - (size_t)used, spec->optional ? "[=%s]" : " %s", spec->argument);
    if (used + 2 > HELP_COLUMN)
        output_printf(output, "%s\n%*s", left, HELP_COLUMN, "");
    else
        output_printf(output, "%-*s", HELP_COLUMN, left);
    options_help_wrapped(output, spec->help);
}

void options_help(const struct command *command, struct output *output)
{
    static const struct option_spec help = {"help", 'h', NULL, OPTION_FLAG, "this screen; --help: the manual page",
                                            NULL, false, false};
    output_printf(output, "cudamem %s: %s\n", command->name, command->summary);
    output_printf(output, "usage: cudamem %s [OPTIONS]%s%s\n\n", command->name, *command->arguments ? " " : "",
                  command->arguments);
    for (const struct option_spec *spec = command->options; spec->name; spec++)
        if (!spec->hidden)
            options_help_line(output, spec);
    options_help_line(output, &help);
}
