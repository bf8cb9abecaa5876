/* cudamem record: run a program and keep every GPU memory event.  Parses, starts, collects. */
#include "base/size.h"
#include "device/driver_find.h"
#include "device/sim_devices.h"
#include "tools/command.h"
#include "tools/record_collect.h"
#include "tools/record_folder.h"

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
    {"stacks", 0, "WHICH", OPTION_TEXT, "native frames or none", "native|none"},
    {"depth", 0, "N", OPTION_NUMBER, "native frames of a stack at most (default: 64)"},
    {"max-entries", 0, "N", OPTION_NUMBER, "newest entries kept, a device (default: 256Ki)"},
    {"host", 0, NULL, OPTION_FLAG, "pinned host memory, too"},
    {"no-follow", 0, NULL, OPTION_FLAG, "not the program's children"},
    {"keep-args", 0, NULL, OPTION_FLAG, "keep the program's arguments in the snapshot"},
    {"sim", 0, "N[:SIZE]", OPTION_TEXT, "on simulated devices: so many, so big", .optional = true},
    {"env", 0, NULL, OPTION_FLAG, "print the environment instead of running"},
    OPTIONS_END,
};

/* Told now rather than by a program whose cuInit fails. */
static int check_sim(struct command_line *line, const struct record_settings *settings)
{
    struct sim_devices devices;
    struct error err = {0};
    const char *list = settings->sim_devices ? settings->sim_devices : getenv("CUDAMEM_SIM");
    if (!settings->sim || sim_devices_parse(list, &devices, &err) == STATUS_OK)
        return EXIT_DONE;
    return command_usage(line->command, "%s: %s", settings->sim_devices ? "--sim" : "CUDAMEM_SIM", err.message);
}

/* Words after the option are checked before anything starts. */
static int read_settings(struct command_line *line, struct record_settings *settings)
{
    const char *stacks = options_text(line, "stacks");
    if (stacks && strstr(stacks, "python"))
        return command_usage(line->command, "--stacks python: Python frames are not recorded by this version");
    if (stacks && strcmp(stacks, "native") != 0 && strcmp(stacks, "none") != 0)
        return command_usage(line->command, "--stacks %s: native or none", stacks);
    settings->output = options_text(line, "output") ? options_text(line, "output") : "snapshot.bin";
    settings->no_stacks = stacks && strcmp(stacks, "none") == 0;
    settings->depth = options_number(line, "depth", 0);
    settings->max_entries = options_number(line, "max-entries", 0);
    settings->host = options_has(line, "host");
    settings->no_follow = options_has(line, "no-follow");
    settings->sim = options_has(line, "sim");
    settings->sim_devices = options_text(line, "sim");
    if (options_has(line, "depth") && (settings->depth < 1 || settings->depth > 512))
        return command_usage(line->command, "--depth: 1 to 512 frames (--stacks none for no stacks)");
    if (options_has(line, "max-entries") && settings->max_entries < 1)
        return command_usage(line->command, "--max-entries: at least 1");
    if (settings->output[0] == 0 || strcmp(settings->output, "-") == 0)
        return command_usage(line->command, "-o: a file; standard output is the program's");
    return check_sim(line, settings);
}

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
        if (access(folder, in_folder ? W_OK | X_OK : X_OK))
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
    int status = record_env_make(settings, &env, &err);
    if (!status) {
        if (env.remark[0])
            command_note("%s", env.remark);
        status = record_launch(job->argv, &env, settings->no_follow, &job->run, &err);
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
        record_collect(job);
    }
    return record_end_like(&job->run);
}

static int run_record(struct command_line *line)
{
    struct record_settings settings = {0};
    int status = read_settings(line, &settings);
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
    };
    return record_program(&settings, &job);
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
