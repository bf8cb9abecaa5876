/* What every command needs: errors and remarks on stderr, where results go.  Uses base and render/emitter. */
#include "tools/command.h"

#include "base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* One line, whole, without anything that a terminal would obey. */
static void command_line_out(const char *before, const char *file, const char *message)
{
    struct text line = {0};
    text_add(&line, before);
    if (file) {
        text_add_printable(&line, file, strlen(file));
        text_add(&line, ": ");
    }
    text_add_printable(&line, message, strlen(message));
    text_char(&line, '\n');
    fputs(text_string(&line), stderr);
    text_free(&line);
}

static int command_status(int status)
{
    switch (status) {
    case STATUS_OK: return EXIT_DONE;
    case STATUS_USAGE: return EXIT_USAGE;
    case STATUS_OUTPUT: return EXIT_OUTPUT;
    default: return EXIT_INPUT;
    }
}

int command_error(const char *file, const struct error *err)
{
    char message[sizeof(err->message) + 40];
    if (err->has_offset)
        snprintf(message, sizeof(message), "%s (at byte %" PRIu64 ")", err->message, err->offset);
    else
        snprintf(message, sizeof(message), "%s", err->message);
    command_line_out("cudamem: ", file, message);
    return command_status(err->status);
}

int command_usage(const struct command *command, const char *format, ...)
{
    char message[600], before[64];
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used < sizeof(message))
        snprintf(message + used, sizeof(message) - (size_t)used, " (cudamem %s -h shows its options)", command->name);
    snprintf(before, sizeof(before), "cudamem %s: ", command->name);
    command_line_out(before, NULL, message);
    return EXIT_USAGE;
}

void command_note(const char *format, ...)
{
    char message[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    command_line_out("cudamem: ", NULL, message);
}

/* Would writing `path` replace one of the files that this command reads?  Arguments may end with @MOMENT. */
static bool is_an_input(const struct command_line *line, const char *path)
{
    struct stat out, in;
    if (strcmp(path, "-") == 0 || stat(path, &out) || !S_ISREG(out.st_mode))
        return false;
    for (size_t i = 0; i < line->argument_count; i++) {
        char name[PATH_MAX];
        if (snprintf(name, sizeof(name), "%s", line->arguments[i]) >= (int)sizeof(name))
            continue;
        char *moment = strrchr(name, '@');
        bool there = stat(name, &in) == 0;
        if (!there && moment) {
            *moment = '\0';
            there = stat(name, &in) == 0;
        }
        if (there && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return true;
    }
    return false;
}

int command_open_output(const struct command_line *line, enum command_content content, const char *otherwise,
                        struct output **output)
{
    struct error err = {0};
    const char *path = options_text(line, "output");
    if (!path)
        path = otherwise;
    if (path && is_an_input(line, path))
        return command_usage(line->command, "the output would replace the input %s; give it another name", path);
    if (output_open(path, output, &err))
        return command_error(NULL, &err);
    if (content == CONTENT_BINARY && output_is_terminal(*output)) {
        output_abandon(*output);
        *output = NULL;
        return command_usage(line->command, "this does not go to a terminal; name a file with -o FILE");
    }
    return EXIT_DONE;
}

int command_close_output(struct output *output, int status)
{
    struct error err = {0};
    bool quiet = output_pipe_closed(output);
    int failed = output_commit(output, &err);
    if (!failed || quiet)
        return status;
    return command_error(NULL, &err);
}

struct emitter_options command_emitter_options(const struct command_line *line)
{
    struct emitter_options options = {0};
    options.json = options_has(line, "json");
    options.exact_bytes = options_has(line, "bytes");
    if (emitter_color_parse(options_text(line, "color"), &options.color, NULL)) /* the choice was checked */
        options.color = EMITTER_COLOR_AUTO;
    return options;
}

int command_finish(struct emitter *emitter, struct output *output, int status)
{
    struct error err = {0};
    int failed = emitter ? emitter_finish(emitter, &err) : error_no_memory(&err);
    if (failed && !output_failed(output)) {
        output_abandon(output);
        return command_error(NULL, &err);
    }
    return command_close_output(output, status);
}
