/* cudamem record: run a program and keep every GPU memory event.  Parses, starts, collects. */
#include "tools/command.h"
#include "tools/record_allocator.h"
#include "tools/record_collect.h"
#include "tools/record_escape.h"
#include "tools/record_folder.h"
#include "tools/record_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum record_exit { EXIT_NOT_STARTED = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

static const struct option_spec record_options[] = {
    {"output", 'o', "FILE", OPTION_FILE,
     "snapshot to write: %p pid, %r rank, %h host, %n program (default: snapshot.bin)"},
    {"stacks", 0, "WHICH", OPTION_TEXT, "frames that are taken (default: native,python)", "native,python|python|native|none"},
    {"depth", 0, "N", OPTION_NUMBER, "frames of a stack at most, of each kind (default: 64)"},
    {"max-entries", 0, "N", OPTION_NUMBER, "newest entries kept, a device (default: 256Ki)"},
    RECORD_ALLOCATOR_OPTIONS,
    {"host", 0, NULL, OPTION_FLAG, "pinned host memory, too"},
    {"on-oom", 0, "WHAT", OPTION_CHOICE, "keep the state at the first out of memories, or not (default: snapshot)",
     "snapshot|ignore"},
    {"signal", 0, "NAME", OPTION_TEXT, "keep the state when this signal comes to the program: USR2, RTMIN+1", "USR1|USR2"},
    {"every", 0, "TIME", OPTION_TEXT, "keep the state again and again: 500ms, 30s, 5m, 1h"},
    {"start-paused", 0, NULL, OPTION_FLAG, "record from cudamem ctl PID resume on"},
    {"torch-history", 0, NULL, OPTION_FLAG, "PyTorch's own history, too: requested sizes, pools, ends of frees"},
    {"no-follow", 0, NULL, OPTION_FLAG, "not the program's children"},
    {"keep-args", 0, NULL, OPTION_FLAG, "keep the program's arguments in the snapshot"},
    {"sim", 0, "N[:SIZE]", OPTION_TEXT, "on simulated devices: so many, so big", .optional = true},
    {"env", 0, NULL, OPTION_FLAG, "print the environment instead of running"},
    OPTIONS_END,
};

/* Better now than when the program has run for a week: all that is known of the name before the program ran. */
static int check_output(const char *output)
{
    char folder[PATH_MAX];
    struct stat facts;
    struct error err = {0};
    size_t known = strcspn(output, "%"), length = known;
    bool whole = output[known] == 0;
    while (length > 0 && output[length - 1] != '/')
        length--;
    bool in_folder = strchr(output + length, '/') == NULL; /* and not in one whose name is not known yet */
    if (length >= sizeof(folder)) {
        error_set(&err, STATUS_OUTPUT, "name too long");
    } else if (whole && stat(output, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        error_set(&err, STATUS_OUTPUT, "is a directory");
    } else if (whole && stat(output, &facts) == 0 && !S_ISREG(facts.st_mode)) { /* a device or pipe: written in place */
        if (access(output, W_OK))
            error_set(&err, STATUS_OUTPUT, "cannot be written: %s", strerror(errno));
    } else {
        snprintf(folder, sizeof(folder), "%.*s", length ? (int)length : 1, length ? output : ".");
        if (record_folder_is_gone(folder))
            error_set(&err, STATUS_OUTPUT, "cannot be written there: the folder was deleted");
        else if (access(folder, in_folder ? W_OK | X_OK : X_OK))
            error_set(&err, STATUS_OUTPUT, "cannot be written there: %s", strerror(errno));
        else if (whole && lstat(output, &facts) && errno == ENAMETOOLONG)
            error_set(&err, STATUS_OUTPUT, "name too long");
    }
    if (!err.status)
        return EXIT_DONE;
    command_error(output, &err);
    return EXIT_NOT_STARTED;
}

static int print_environment(struct record_settings *settings)
{
    struct record_env env;
    struct error err = {0};
    struct text text = {0};
    if (record_env_make(settings, &env, &err)) {
        command_error(NULL, &err);
        record_env_free(&env);
        return EXIT_NOT_STARTED;
    }
    record_env_print(&env, &text);
    if (env.remark[0])
        command_note("%s", env.remark);
    if (env.allocator_remark[0])
        command_note("%s", env.allocator_remark);
    fputs(text_string(&text), stdout);
    text_free(&text);
    record_env_free(&env);
    return fflush(stdout) ? EXIT_OUTPUT : EXIT_DONE;
}

/* The program did not start: the shell's words and statuses. */
static int say_not_started(const char *program, int error)
{
    struct error err = {0};
    error_set(&err, STATUS_INPUT, "%s", error == ENOENT ? "not found" : strerror(error));
    command_error(program, &err);
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int record_program(struct record_settings *settings, struct record_job *job)
{
    struct record_env env;
    struct error err = {0};
    char folder[PATH_MAX];
    const char *disable = getenv("CUDAMEM_DISABLE");
    bool disabled = disable && *disable && strcmp(disable, "0") != 0;
    if (record_folder_make(folder, sizeof(folder), &err)) {
        command_error(NULL, &err);
        return EXIT_NOT_STARTED;
    }
    settings->ring_folder = job->ring_folder = folder;
    struct record_watch watch = {.folder = folder, .begin = record_moments_begin, .look = record_moments_look,
                                 .context = job->moments, .signal = settings->signal};
    bool keeps = job->moments->every || settings->signal || strcmp(settings->on_oom, "ignore") != 0;
    struct record_escape escape = {0};
    record_escape_watch(&escape, keeps, &watch);
    job->moments->ring_folder = folder;
    int status = record_env_make(settings, &env, &err);
    if (!status) {
        if (env.remark[0])
            command_note("%s", env.remark);
        if (env.allocator_remark[0])
            command_note("%s", env.allocator_remark);
        if (record_env_is_nested())
            command_note("this is itself being recorded: the events of %s go to this recording alone", job->argv[0]);
        status = record_launch(job->argv, &env, settings->no_follow, &watch, &job->run, &err);
    }
    record_env_free(&env);
    if (status)
        command_error(NULL, &err);
    if (status || job->run.exec_error || disabled) {
        record_folder_remove(folder);
        if (status)
            return EXIT_NOT_STARTED;
        if (job->run.exec_error)
            return say_not_started(job->argv[0], job->run.exec_error);
        command_note("CUDAMEM_DISABLE is set: nothing was recorded");
    } else {
        record_escape_tell(&escape);
        record_collect(job);
    }
    record_escape_free(&escape);
    return record_end_like(&job->run);
}

static int run_record(struct command_line *line)
{
    struct record_settings settings = {0};
    struct record_moments moments = {0};
    int status = record_options_read(line, &settings, &moments);
    if (status)
        return status;
    if (options_has(line, "env"))
        return print_environment(&settings);
    if (line->argument_count == 0)
        return command_usage(line->command, "a program is missing");
    status = check_output(settings.output);
    if (status)
        return status;
    struct record_job job = {
        .output = settings.output,
        .argv = line->arguments,
        .keep_args = options_has(line, "keep-args"),
        .torch_history = options_has(line, "torch-history"),
        .moments = &moments,
    };
    moments.output = settings.output;
    moments.keep_arguments = job.keep_args ? job.argv : NULL;
    status = record_program(&settings, &job);
    record_moments_free(&moments);
    return status;
}

const struct command command_record = {
    .name = "record",
    .summary = "run a program and keep every GPU memory event",
    .arguments = "PROGRAM [ARG...]",
    .least = 0,
    .most = ARGUMENTS_ANY,
    .program_follows = true,
    .options = record_options,
    .run = run_record,
};
