/* What was asked of record, checked before anything starts.  Uses base and the simulated devices' words. */
#include "tools/record_options.h"

#include "base/duration.h"
#include "base/signal_name.h"
#include "device/sim_devices.h"
#include "tools/record_allocator.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_LEAST 50 /* milliseconds */

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

int record_options_read(struct command_line *line, struct record_settings *settings, struct record_moments *moments)
{
    int status = read_settings(line, settings);
    if (!status)
        status = read_moments(line, settings, moments);
    if (!status && settings->torch_history && (settings->caching || settings->start_paused))
        status = command_usage(line->command, "--torch-history: PyTorch's history is whole, of its own allocator; not with %s",
                               settings->caching ? "--allocator caching" : "--start-paused");
    return status;
}
