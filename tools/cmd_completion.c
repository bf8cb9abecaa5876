/* cudamem completion: scripts for bash, zsh and fish, from the same option tables as everything else. */
#include "base/text.h"
#include "tools/command.h"

#include <string.h>

static const struct option_spec completion_options[] = {
    OPTIONS_OUTPUT,
    {"dump-options", 0, NULL, OPTION_FLAG, "the option tables, a line each (for tests)", NULL, false, true},
    OPTIONS_END,
};

/* -h and --help, which stand in no table. */
static const struct option_spec completion_help = {"help", 'h', NULL, OPTION_FLAG, "show help", NULL, false, false};

typedef void (*completion_visit)(struct output *output, const struct command *command, const struct option_spec *spec);

static void completion_each(struct output *output, const struct command *command, completion_visit visit)
{
    for (const struct option_spec *spec = command->options; spec->name; spec++)
        if (!spec->hidden)
            visit(output, command, spec);
    visit(output, command, &completion_help);
}

/* "a|b" as "a b". */
static void completion_words(struct output *output, const char *words)
{
    for (; *words; words++)
        output_char(output, *words == '|' ? ' ' : *words);
}

static void completion_commands(struct output *output)
{
    for (size_t i = 0; i < command_count; i++)
        output_printf(output, "%s%s", i ? " " : "", commands[i]->name);
}

static bool completion_takes_commands(const struct command *command)
{
    return command->words && strcmp(command->words, "COMMAND") == 0;
}

/* Text inside single quotes of a shell; `special` characters get a backslash. */
static void completion_quoted(struct output *output, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            output_text(output, "'\\''");
        else {
            if (strchr(special, *text))
                output_char(output, '\\');
            output_char(output, *text);
        }
    }
}

/* bash */

static void completion_bash_option(struct output *output, const struct command *command, const struct option_spec *spec)
{
    (void)command;
    output_printf(output, " --%s", spec->name);
    if (spec->letter)
        output_printf(output, " -%c", spec->letter);
}

static void completion_bash_argument(struct output *output, const struct command *command, const struct option_spec *spec)
{
    (void)command;
    if (!spec->argument || spec->optional)
        return;
    output_printf(output, "        --%s", spec->name);
    if (spec->letter)
        output_printf(output, "|-%c", spec->letter);
    output_text(output, ") ");
    if (spec->kind == OPTION_FILE) {
        output_text(output, "kind=files");
    } else {
        output_text(output, "kind=words; words='");
        completion_words(output, spec->choices ? spec->choices : "");
        output_char(output, '\'');
    }
    output_text(output, " ;;\n");
}

static void completion_bash(struct output *output)
{
    output_text(output, "# bash completion for cudamem; made by: cudamem completion bash\n"
                        "_cudamem() {\n"
                        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                        "    local command=${COMP_WORDS[1]} kind=files words='' options=''\n"
                        "    if (( COMP_CWORD == 1 )); then\n"
                        "        kind=words words='");
    completion_commands(output);
    output_text(output, "'\n    else case $command in\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *command = commands[i];
        output_printf(output, "    %s)\n        options='", command->name);
        completion_each(output, command, completion_bash_option);
        output_text(output, "'\n");
        if (command->words) {
            output_text(output, "        kind=words words='");
            if (completion_takes_commands(command))
                completion_commands(output);
            else
                completion_words(output, command->words);
            output_text(output, "'\n");
        } else if (command->program_follows) {
            output_text(output, "        kind=programs\n");
        } else if (!command->most) {
            output_text(output, "        kind=words\n");
        }
        output_text(output, "        case $prev in\n");
        completion_each(output, command, completion_bash_argument);
        output_text(output, "        *) [[ $cur == -* ]] && kind=words words=$options ;;\n        esac ;;\n");
    }
    output_text(output, "    esac fi\n"
                        "    case $kind in\n"
                        "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;\n"
                        "    programs) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"; compgen -f -- \"$cur\") ;;\n"
                        "    *) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
                        "    esac\n"
                        "}\n"
                        "complete -o filenames -F _cudamem cudamem\n");
}

/* zsh */

static void completion_zsh_option(struct output *output, const struct command *command, const struct option_spec *spec)
{
    (void)command;
    if (spec->letter)
        output_printf(output, "            '(-%c --%s)'{-%c,--%s}'[", spec->letter, spec->name, spec->letter, spec->name);
    else
        output_printf(output, "            '--%s%s[", spec->name, spec->optional ? "=-" : "");
    completion_quoted(output, spec->help, "[]:\\");
    output_char(output, ']');
    if (spec->argument) {
        output_text(output, spec->optional ? "::" : ":");
        completion_quoted(output, spec->argument, "[]:\\");
        output_char(output, ':');
        if (spec->kind == OPTION_FILE) {
            output_text(output, "_files");
        } else if (spec->choices) {
            output_char(output, '(');
            completion_words(output, spec->choices);
            output_char(output, ')');
        }
    }
    output_text(output, "' \\\n");
}

static void completion_zsh(struct output *output)
{
    output_text(output, "#compdef cudamem\n# zsh completion for cudamem; made by: cudamem completion zsh\n_cudamem() {\n"
                        "    local -a known\n    known=(\n");
    for (size_t i = 0; i < command_count; i++) {
        output_printf(output, "        '%s:", commands[i]->name);
        completion_quoted(output, commands[i]->summary, ":\\");
        output_text(output, "'\n");
    }
    output_text(output, "    )\n    if (( CURRENT == 2 )); then\n        _describe command known\n        return\n    fi\n"
                        "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *command = commands[i];
        output_printf(output, "    %s)\n        _arguments -s \\\n", command->name);
        completion_each(output, command, completion_zsh_option);
        if (command->program_follows) {
            output_text(output, "            '(-)1:program:_command_names -e' '*::arguments:_normal' ;;\n");
        } else if (command->words) {
            output_text(output, "            '1:word:(");
            if (completion_takes_commands(command))
                completion_commands(output);
            else
                completion_words(output, command->words);
            output_text(output, ")' ;;\n");
        } else {
            output_text(output, command->most ? "            '*:file:_files' ;;\n" : "            && return ;;\n");
        }
    }
    output_text(output, "    esac\n}\n"
                        "if [[ $funcstack[1] == _cudamem ]]; then\n    _cudamem \"$@\"\nelse\n    compdef _cudamem cudamem\nfi\n");
}

/* fish */

static void completion_fish_option(struct output *output, const struct command *command, const struct option_spec *spec)
{
    output_printf(output, "complete -c cudamem -n '__fish_seen_subcommand_from %s' -l %s", command->name, spec->name);
    if (spec->letter)
        output_printf(output, " -s %c", spec->letter);
    if (spec->argument && !spec->optional)
        output_text(output, spec->kind == OPTION_FILE ? " -r -F" : " -x");
    if (spec->choices) {
        output_text(output, " -a '");
        completion_words(output, spec->choices);
        output_char(output, '\'');
    }
    output_text(output, " -d '");
    completion_quoted(output, spec->help, "\\");
    output_text(output, "'\n");
}

static void completion_fish(struct output *output)
{
    output_text(output, "# fish completion for cudamem; made by: cudamem completion fish\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *command = commands[i];
        output_printf(output, "complete -c cudamem -f -n __fish_use_subcommand -a %s -d '", command->name);
        completion_quoted(output, command->summary, "\\");
        output_text(output, "'\n");
        if (command->words) {
            output_printf(output, "complete -c cudamem -f -n '__fish_seen_subcommand_from %s' -a '", command->name);
            if (completion_takes_commands(command))
                completion_commands(output);
            else
                completion_words(output, command->words);
            output_text(output, "'\n");
        }
        completion_each(output, command, completion_fish_option);
    }
}

static void completion_dump_option(struct output *output, const struct command *command, const struct option_spec *spec)
{
    output_printf(output, "%s\t--%s\t", command->name, spec->name);
    if (spec->letter)
        output_printf(output, "-%c", spec->letter);
    output_printf(output, "\t%s%s\t%s\n", spec->argument ? spec->argument : "", spec->optional ? "?" : "", spec->help);
}

static int completion_run(struct command_line *line)
{
    static const struct {
        const char *shell;
        void (*write)(struct output *output);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    struct output *output;
    int status;
    const char *shell = line->argument_count ? line->arguments[0] : NULL;
    bool dump = options_has(line, "dump-options");
    size_t which = 0;
    while (shell && which < 3 && strcmp(shells[which].shell, shell) != 0)
        which++;
    if (!dump && (!shell || which == 3))
        return command_usage(line->command, "name a shell: bash, zsh or fish");
    if ((status = command_open_output(line, CONTENT_TEXT, NULL, &output)))
        return status;
    if (dump)
        for (size_t i = 0; i < command_count; i++)
            completion_each(output, commands[i], completion_dump_option);
    else
        shells[which].write(output);
    return command_close_output(output, EXIT_DONE);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .arguments = "bash|zsh|fish",
    .most = 1,
    .words = "bash|zsh|fish",
    .options = completion_options,
    .run = completion_run,
};
