/*
 * A command of cudamem: one tools/cmd_NAME.c, one entry in main.c's list, one man page, one folder of tests.
 * What every command needs besides its options: errors to stderr with the right exit status, and where results go.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "base/error.h"
#include "base/output.h"
#include "render/emitter.h"
#include "tools/options.h"

#define ARGUMENTS_ANY SIZE_MAX

struct command {
    const char *name;
    const char *summary;                 /* one line for the list of commands */
    const char *arguments;               /* as the usage line shows them: "[FILE[@MOMENT]]"; "" for none */
    size_t least, most;                  /* how many arguments; ARGUMENTS_ANY */
    bool program_follows;                /* the first word that is no option ends ours (record) */
    const char *words;                   /* completions of the first argument, "a|b"; "COMMAND": commands; NULL: files */
    const struct option_spec *options;   /* ends with OPTIONS_END */
    int (*run)(struct command_line *line); /* returns the exit status */
};

enum exit_status { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_OUTPUT = 4 };

/* main.c's list. */
extern const struct command *const commands[];
extern const size_t command_count;
const struct command *command_find(const char *name); /* NULL if there is none */

/* "cudamem: FILE: message (at byte N)" on stderr (file NULL: left out), without control characters; returns the exit
 * status that belongs to the error. */
int command_error(const char *file, const struct error *err);

/* "cudamem COMMAND: ..." and where to read more; returns EXIT_USAGE. */
int command_usage(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "cudamem: ..." on stderr, for remarks. */
void command_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum command_content { CONTENT_TEXT, CONTENT_BINARY }; /* pictures count as binary */

/* Open -o FILE, or `otherwise` (NULL: standard output).  A binary is not written to a terminal.  0, or an exit status
 * after a line on stderr. */
int command_open_output(const struct command_line *line, enum command_content content, const char *otherwise,
                        struct output **output);

/* Commit; a closed pipe ends quietly.  Returns the exit status: `status` if all is well. */
int command_close_output(struct output *output, int status);

/* --json, --bytes, --color (those that the command has), --json last. */
struct emitter_options command_emitter_options(const struct command_line *line);

/* emitter_finish() and command_close_output() together; emitter NULL: there was no memory for one. */
int command_finish(struct emitter *emitter, struct output *output, int status);

#endif
