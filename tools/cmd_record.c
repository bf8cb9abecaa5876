/* cudamem record: run a program and keep every GPU memory event.  Parses, starts, collects. */
#include "base/duration.h"
#include "base/signal_name.h"
#include "base/size.h"
#include "device/driver_find.h"
#include "device/sim_devices.h"
#include "tools/command.h"
#include "tools/record_allocator.h"
#include "tools/record_collect.h"
#include "tools/record_escape.h"
#include "tools/record_folder.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum record_exit { EXIT_NOT_STARTED = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

#define EVERY_LEAST 50 /* milliseconds */

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

/* A fault's own signal must end the program; others nobody can catch. */
static bool is_sensible(int signal)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGCHLD};
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        if (signal == never[i])
            return false;
    return signal != 0;
}

/* When states are kept, and from when on there is a recording. */
static int read_moments(struct command_line *line, struct record_settings *settings, struct record_moments *moments)
{
    const char *signal = options_text(line, "signal"), *every = options_text(line, "every");
    settings->on_oom = options_is(line, "on-oom", "ignore") ? "ignore" : "snapshot";
    settings->signal = signal ? signal_number(signal) : 0;
    settings->start_paused = options_has(line, "start-paused");
    if (signal && !settings->signal)
        return command_usage(line->command, "--signal %s: no such signal; USR1, USR2 and RTMIN+1 are good ones", signal);
    if (signal && !is_sensible(settings->signal))
        return command_usage(line->command, "--signal %s: not this one; USR1, USR2 and RTMIN+1 are good ones", signal);
    if (every && !duration_parse(every, &moments->every))
        return command_usage(line->command, "--every %s: a time such as 500ms, 30s, 5m or 1h", every);
    if (every && moments->every < EVERY_LEAST)
        return command_usage(line->command, "--every %s: at least %dms", every, EVERY_LEAST);
    if (every && options_has(line, "env"))
        return command_usage(line->command, "--every is done by the command that runs the program: not with --env");
    return EXIT_DONE;
}

/* As the recorder's setting has it; NULL: no such words. */
static const char *stacks_of(const char *words)
{
    static const char *const known[] = {"native,python", "native", "python", "none"};
    if (!words || strcmp(words, "python,native") == 0)
        return known[0];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(words, known[i]) == 0)
            return known[i];
    return NULL;
}

/* Words after the option are checked before anything starts. */
static int read_settings(struct command_line *line, struct record_settings *settings)
{
    const char *stacks = options_text(line, "stacks");
    settings->stacks = stacks_of(stacks);
    if (!settings->stacks)
        return command_usage(line->command, "--stacks %s: native,python, native, python or none", stacks);
    settings->output = options_text(line, "output") ? options_text(line, "output") : "snapshot.bin";
    settings->depth = options_number(line, "depth", 0);
    settings->max_entries = options_number(line, "max-entries", 0);
    settings->host = options_has(line, "host");
    settings->no_follow = options_has(line, "no-follow");
    settings->torch_history = options_has(line, "torch-history");
    settings->sim = options_has(line, "sim");
    settings->sim_devices = options_text(line, "sim");
    if (options_has(line, "depth") && (settings->depth < 1 || settings->depth > 512))
        return command_usage(line->command, "--depth: 1 to 512 frames (--stacks none for no stacks)");
    if (options_has(line, "max-entries") && settings->max_entries < 1)
        return command_usage(line->command, "--max-entries: at least 1");
    if (settings->output[0] == 0 || strcmp(settings->output, "-") == 0)
        return command_usage(line->command, "-o: a file; standard output is the program's");
    int status = record_allocator_read(line, settings);
    return status ? status : check_sim(line, settings);
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
    int status = read_settings(line, &settings);
    if (!status)
        status = read_moments(line, &settings, &moments);
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
