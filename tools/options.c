/*
 * Parsing by getopt_long(), whose tables are built from ours; values are checked here, once.  Uses base/size and
 * analyze/selection (to check selections before any file is opened).
 */
#include "tools/options.h"

#include "analyze/selection.h"
#include "base/size.h"
#include "tools/command.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_BASE = 1000, OPTION_HELP_PAGE = 999 };

static size_t options_count(const struct option_spec *specs)
{
    size_t count = 0;
    while (specs[count].name)
        count++;
    return count;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b; words are short. */
static size_t options_distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    size_t rows[3][LONGEST + 1];
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a > LONGEST || length_b > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[length_a % 3][length_b];
}

const char *options_nearest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t length = strlen(word), best = length / 3 + 2; /* a third of it may be wrong, and one more */
    for (size_t i = 0; i < count; i++) {
        size_t distance = options_distance(word, words[i]);
        if (length >= 3 && strncmp(word, words[i], length) == 0)
            distance = 1;
        if (distance < best && distance < strlen(words[i])) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest;
}

static int options_unknown(const struct command *command, const char *argument)
{
    if (strncmp(argument, "--", 2) != 0)
        return command_usage(command, "unknown option -%c", argument[0] == '-' ? argument[1] : argument[0]);
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    size_t count = options_count(command->options), known = 0;
    const char **names = calloc(count + 1, sizeof(*names));
    const char *nearest = NULL;
    if (names) {
        for (size_t i = 0; i < count; i++)
            if (!command->options[i].hidden)
                names[known++] = command->options[i].name;
        names[known++] = "help";
        nearest = options_nearest(name, names, known);
    }
    free(names);
    if (nearest)
        return command_usage(command, "unknown option --%s; did you mean --%s?", name, nearest);
    return command_usage(command, "unknown option --%s", name);
}

static bool options_has_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, text, length) == 0 && (at[length] == '|' || !at[length]) && length)
            return true;
    return false;
}

static int options_check(const struct command *command, struct option_given *given)
{
    const struct option_spec *spec = given->spec;
    struct error err = {0};
    if (!given->text)
        return 0;
    switch (spec->kind) {
    case OPTION_NUMBER:
    case OPTION_SIZE:
        if (size_parse(given->text, &given->number, &err)) {
            if (spec->kind == OPTION_NUMBER)
                return command_usage(command, "--%s: '%s' is no number", spec->name, given->text);
            return command_usage(command, "--%s: %s", spec->name, err.message);
        }
        return 0;
    case OPTION_CHOICE:
        if (!options_has_choice(spec->choices, given->text)) {
            char list[256];
            size_t used = 0;
            for (const char *at = spec->choices; *at && used + 3 < sizeof(list); at++) {
                if (*at == '|')
                    list[used++] = ',';
                list[used++] = *at == '|' ? ' ' : *at;
            }
            list[used] = '\0';
            return command_usage(command, "--%s: '%s' is none of %s", spec->name, given->text, list);
        }
        return 0;
    case OPTION_SELECTION: {
        struct selection selection;
        selection_init(&selection);
        int status = selection_set(&selection, spec->name, given->text, &err);
        selection_free(&selection);
        return status ? command_usage(command, "--%s: %s", spec->name, err.message) : 0;
    }
    default:
        return 0;
    }
}

struct options_tables {
    struct option *longs;
    char *letters;
};

/* getopt's tables: long options carry OPTION_BASE + index, letters stand for themselves. */
static bool options_build(const struct command *command, struct options_tables *tables)
{
    size_t count = options_count(command->options), used = 0;
    tables->longs = calloc(count + 2, sizeof(*tables->longs));
    tables->letters = calloc(3 * count + 12, 1);
    if (!tables->longs || !tables->letters)
        return false;
    tables->letters[used++] = command->program_follows ? '+' : '-'; /* '-': arguments in place, as option 1 */
    tables->letters[used++] = ':';
    tables->letters[used++] = 'h';
    if (!command->program_follows) { /* "-@peak": standard input at a moment is an argument, not options */
        memcpy(tables->letters + used, "@::", 3);
        used += 3;
    }
    for (size_t i = 0; i < count; i++) {
        const struct option_spec *spec = &command->options[i];
        int has = !spec->argument ? no_argument : spec->optional ? optional_argument : required_argument;
        tables->longs[i] = (struct option){spec->name, has, NULL, OPTION_BASE + (int)i};
        if (!spec->letter)
            continue;
        tables->letters[used++] = spec->letter;
        for (int colons = has; colons > 0; colons--)
            tables->letters[used++] = ':';
    }
    tables->longs[count] = (struct option){"help", no_argument, NULL, OPTION_HELP_PAGE};
    return true;
}

static const struct option_spec *options_spec_of(const struct command *command, int got)
{
    if (got >= OPTION_BASE)
        return &command->options[got - OPTION_BASE];
    for (const struct option_spec *spec = command->options; spec->name; spec++)
        if (spec->letter == got)
            return spec;
    return NULL;
}

static int options_check_arguments(const struct command_line *line)
{
    const struct command *command = line->command;
    if (line->argument_count < command->least)
        return command_usage(command, "it needs %s", command->arguments);
    if (line->argument_count > command->most) {
        if (!command->most)
            return command_usage(command, "it takes no arguments, but '%s' was given", line->arguments[0]);
        return command_usage(command, "'%s' is one argument too many", line->arguments[command->most]);
    }
    return 0;
}

/* A missing argument, an ambiguous, unknown or misused option, as getopt tells them. */
static int options_refuse(const struct command *command, int got, const char *word)
{
    const struct option_spec *spec = optopt ? options_spec_of(command, optopt) : NULL;
    if (got == ':' && spec)
        return command_usage(command, "--%s needs its %s", spec->name, spec->argument);
    if (spec && !spec->argument && strchr(word, '='))
        return command_usage(command, "--%s takes no argument", spec->name);
    char letter[3] = {'-', (char)optopt, '\0'};
    return options_unknown(command, optopt && optopt < OPTION_HELP_PAGE ? letter : word);
}

static int options_walk(int argc, char **argv, struct command_line *line, const struct options_tables *tables)
{
    const struct command *command = line->command;
    optind = 0;
    opterr = 0;
    for (;;) {
        int word = optind ? optind : 1;
        optopt = 0;
        int got = getopt_long(argc, argv, tables->letters, tables->longs, NULL);
        if (got == -1)
            break;
        if (got == 1) {
            line->arguments[line->argument_count++] = optarg;
        } else if (got == '@' && optarg && strncmp(optarg - 2, "-@", 2) == 0 && strcmp(optarg - 2, argv[optind - 1]) == 0) {
            line->arguments[line->argument_count++] = argv[optind - 1];
        } else if (got == '@') {
            return options_unknown(command, "-@");
        } else if (got == 'h') {
            line->help_short = true;
            return 0;
        } else if (got == OPTION_HELP_PAGE) {
            line->help_page = true;
            return 0;
        } else if (got == '?' || got == ':') {
            return options_refuse(command, got, argv[word < argc ? word : argc - 1]);
        } else {
            struct option_given *given = &line->given[line->given_count++];
            *given = (struct option_given){options_spec_of(command, got), optarg, 0};
            int status = options_check(command, given);
            if (status)
                return status;
        }
    }
    for (int i = optind; i < argc; i++)
        line->arguments[line->argument_count++] = argv[i];
    return options_check_arguments(line);
}

int options_parse(const struct command *command, int argc, char **argv, struct command_line *line)
{
    struct options_tables tables = {0};
    int status;
    memset(line, 0, sizeof(*line));
    line->command = command;
    /* A word holds at most as many options as it has letters. */
    size_t most = 1;
    for (int i = 1; i < argc; i++)
        most += strlen(argv[i]) + 1;
    line->given = calloc(most, sizeof(*line->given));
    line->arguments = calloc((size_t)argc + 1, sizeof(*line->arguments));
    if (!line->given || !line->arguments || !options_build(command, &tables)) {
        struct error err;
        error_no_memory(&err);
        status = command_error(NULL, &err);
    } else {
        status = options_walk(argc, argv, line, &tables);
    }
    free(tables.longs);
    free(tables.letters);
    if (status)
        options_free(line);
    return status;
}

void options_free(struct command_line *line)
{
    free(line->given);
    free(line->arguments);
    line->given = NULL;
    line->arguments = NULL;
    line->given_count = line->argument_count = 0;
}

static const struct option_given *options_last(const struct command_line *line, const char *name)
{
    const struct option_given *last = NULL;
    for (size_t i = 0; i < line->given_count; i++)
        if (strcmp(line->given[i].spec->name, name) == 0)
            last = &line->given[i];
    return last;
}

bool options_has(const struct command_line *line, const char *name)
{
    return options_last(line, name) != NULL;
}

const char *options_text(const struct command_line *line, const char *name)
{
    const struct option_given *given = options_last(line, name);
    return given ? given->text : NULL;
}

uint64_t options_number(const struct command_line *line, const char *name, uint64_t otherwise)
{
    const struct option_given *given = options_last(line, name);
    return given && given->text ? given->number : otherwise;
}

bool options_is(const struct command_line *line, const char *name, const char *choice)
{
    const char *text = options_text(line, name);
    return text && strcmp(text, choice) == 0;
}

const struct option_given *options_nth(const struct command_line *line, const char *name, size_t index)
{
    for (size_t i = 0; i < line->given_count; i++)
        if (strcmp(line->given[i].spec->name, name) == 0 && index-- == 0)
            return &line->given[i];
    return NULL;
}
