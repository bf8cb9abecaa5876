/*
 * Options as data: a command has one table; parsing, -h, the completions and the check of its man page come from it.
 *
 *     static const struct option_spec stats_options[] = {
 *         {"kind", 'k', "KIND", OPTION_CHOICE, "which ones", .choices = "all|peak"},
 *         OPTIONS_INPUT, OPTIONS_OUTPUT, OPTIONS_TABLE, OPTIONS_SELECTION,
 *         OPTIONS_END,
 *     };
 *
 * -h and --help belong to every command and stand in no table.  Numbers, sizes and choices are checked while parsing,
 * so that the getters cannot fail; asking for an option that is not in the table is a mistake of the program.  Of an
 * option given twice the last one counts, except where a command walks through all (options_nth()).
 * Texts belong to argv and live as long as the process.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,      /* no argument */
    OPTION_TEXT,
    OPTION_FILE,      /* completed as a file name */
    OPTION_NUMBER,    /* a whole number; binary suffixes as in 256Ki are fine */
    OPTION_SIZE,      /* base/size.h */
    OPTION_CHOICE,    /* one of `choices` */
    OPTION_SELECTION, /* checked and applied by analyze/selection.h */
};

struct option_spec {
    const char *name;     /* long name, without dashes */
    char letter;          /* 0: none */
    const char *argument; /* as -h shows it: "FILE"; NULL for flags */
    enum option_kind kind;
    const char *help;     /* a few words, no full stop */
    const char *choices;  /* "a|b|c": checked for OPTION_CHOICE, offered by the completions for any kind */
    bool optional;        /* the argument may be left out: --sim or --sim=2:1GiB */
    bool hidden;          /* neither in -h nor completed */
};

#define OPTIONS_INPUT {"max-input", 0, "SIZE", OPTION_SIZE, "refuse more decoded bytes than this (default: free memory)"}
#define OPTIONS_OUTPUT {"output", 'o', "FILE", OPTION_FILE, "write there, whole or not at all (- is standard output)"}
#define OPTIONS_TABLE                                                                                            \
    {"json", 0, NULL, OPTION_FLAG, "JSON: stable keys, bytes as integers"},                                      \
    {"bytes", 0, NULL, OPTION_FLAG, "exact bytes instead of KiB, MiB, GiB"},                                     \
    {"color", 0, "WHEN", OPTION_CHOICE, "auto, always or never", "auto|always|never"}
#define OPTIONS_ROWS(keys)                                                                                       \
    {"rows", 'n', "N", OPTION_NUMBER, "at most N rows"},                                                         \
    {"sort", 0, "KEY", OPTION_CHOICE, "order of the rows", keys}
#define OPTIONS_SELECTION                                                                                        \
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},                                         \
    {"stream", 0, "S", OPTION_SELECTION, "only this stream"},                                                    \
    {"pool", 0, "A:B", OPTION_SELECTION, "only this pool"},                                                      \
    {"size", 0, "MIN..MAX", OPTION_SELECTION, "only sizes in this range"},                                       \
    {"entries", 0, "A..B", OPTION_SELECTION, "only trace entries in this range"},                                \
    {"time", 0, "A..B", OPTION_SELECTION, "only this time, in seconds from the start"},                          \
    {"action", 0, "LIST", OPTION_SELECTION, "only these actions",                                                \
     "alloc|free_requested|free_completed|segment_alloc|segment_free|segment_map|segment_unmap|snapshot|oom"},   \
    {"stack", 0, "REGEX", OPTION_SELECTION, "only stacks with a matching frame"},                                \
    {"not-stack", 0, "REGEX", OPTION_SELECTION, "only stacks without one"},                                      \
    {"annotation", 0, "REGEX", OPTION_SELECTION, "only what was done in a range whose name matches"},            \
    {"frames", 0, "user|all", OPTION_SELECTION, "user: leave out the frameworks' own frames", "user|all"}
#define OPTIONS_END {NULL}

struct command;

struct option_given {
    const struct option_spec *spec;
    const char *text;  /* NULL: a flag, or an optional argument left out */
    uint64_t number;   /* of OPTION_NUMBER and OPTION_SIZE */
};

struct command_line {
    const struct command *command;
    struct option_given *given; /* in the order of the command line */
    size_t given_count;
    char **arguments;           /* what is no option; NULL-terminated */
    size_t argument_count;
    bool help_short, help_page; /* -h, --help: nothing else was looked at */
};

/* Parse argv (argv[0] is the command's name).  0, or an exit status after a line on stderr. */
int options_parse(const struct command *command, int argc, char **argv, struct command_line *line);
void options_free(struct command_line *line);

bool options_has(const struct command_line *line, const char *name);
const char *options_text(const struct command_line *line, const char *name);    /* NULL: not given */
uint64_t options_number(const struct command_line *line, const char *name, uint64_t otherwise); /* sizes, too */
bool options_is(const struct command_line *line, const char *name, const char *choice); /* given, and this choice */

/* All of an option that may be repeated: index 0, 1, ... ; NULL after the last. */
const struct option_given *options_nth(const struct command_line *line, const char *name, size_t index);

/* The -h screen to a stream. */
struct output;
void options_help(const struct command *command, struct output *output);

/* The nearest of the words, NULL if none is near: for "did you mean". */
const char *options_nearest(const char *word, const char *const *words, size_t count);

#endif
