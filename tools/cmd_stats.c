/* cudamem stats: PyTorch's memory_stats.  Uses analyze, render and base. */
#include "analyze/statistics.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/replay_options.h"
#include "tools/statistics_out.h"

#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

static const struct option_spec stats_options[] = {
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    OPTIONS_LIMIT,
    {"no-traces", 0, NULL, OPTION_FLAG, "do not read the trace: only what the segments and the file's statistics say"},
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    {"json", 0, NULL, OPTION_FLAG, "JSON: nested as memory_stats_as_nested_dict() has it"},
    OPTIONS_END,
};

static bool matches_a_key(const char *glob)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        if (fnmatch(glob, keys[i].name, 0) == 0)
            return true;
    return false;
}

/* "stats FILE", "stats GLOB FILE", "stats GLOB": a lone word is a key if it is one and no file has that name. */
static int split_arguments(const struct command_line *line, const char **glob, const char **file)
{
    *glob = line->argument_count == 2 ? line->arguments[0] : NULL;
    *file = line->argument_count ? line->arguments[line->argument_count - 1] : NULL;
    if (line->argument_count == 1 && access(*file, F_OK) && matches_a_key(*file)) {
        *glob = *file;
        *file = NULL;
    }
    if (*glob && !matches_a_key(*glob))
        return command_usage(line->command, "no key matches '%.80s'; keys look like allocated_bytes.all.peak", *glob);
    return EXIT_DONE;
}

static int stats_run(struct command_line *line)
{
    const char *glob, *file;
    struct load load;
    struct replay_options replay = {0};
    int status = split_arguments(line, &glob, &file);
    if (!status)
        status = replay_options_limit(line, &replay);
    if (!status)
        status = load_open(line, file, options_has(line, "no-traces") ? LOAD_STATE | LOAD_NO_TRACES : LOAD_STATE, &load);
    if (status)
        return status;
    struct error err = {0};
    struct statistics_list list = {0};
    struct output *output = NULL;
    if (!load.is_part)
        status = replay_options_check(line, &load, &replay);
    if (!status && statistics_collect(load.snapshot, load.state, replay_statistics, &replay, &list, &err))
        status = command_error(load.file, &err);
    if (!status)
        replay_options_tell_refuted(line, &load, &list);
    if (!status)
        status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options options = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &options);
        if (emitter) {
            emitter_set_lines(emitter, true);
            emitter_set_exact(emitter, true);
            statistics_out(emitter, &load, &list, glob);
        }
        status = command_finish(emitter, output, EXIT_DONE);
    }
    statistics_free(&list);
    load_close(&load);
    return status;
}

const struct command command_stats = {
    .name = "stats",
    .summary = "PyTorch's memory_stats, a key and its value a line",
    .arguments = "[KEY-GLOB] [FILE[@MOMENT]]",
    .least = 0,
    .most = 2,
    .options = stats_options,
    .run = stats_run,
};
