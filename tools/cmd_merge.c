/* cudamem merge: several processes or ranks in one file, on one time axis.  Uses format. */
#include "format/format.h"
#include "format/merge.h"
#include "tools/command.h"
#include "tools/load.h"

#include <inttypes.h>

static const struct option_spec merge_options[] = {
    OPTIONS_OUTPUT,
    OPTIONS_INPUT,
    OPTIONS_END,
};

static int add_file(struct command_line *line, const char *argument, struct merge *merge)
{
    struct load load;
    struct error err = {0};
    int status = load_open(line, argument, 0, &load);
    if (status)
        return status;
    if (load.has_moment)
        status = command_usage(line->command, "%s: whole files are merged, without a moment; cudamem convert --entries "
                                              "makes a file of a part", argument);
    else if (merge_add(merge, load.snapshot, load.file, &err))
        status = command_error(NULL, &err); /* the message names the files */
    load_close(&load);
    return status;
}

/* What a reader of times must know. */
static void tell_clocks(const struct merge_facts *facts)
{
    if (facts->moved)
        command_note("a clock was set between the starts of the processes: the times of %zu were moved by up to %" PRId64
                     ".%06" PRId64 " s", facts->moved, facts->largest_step / 1000000, facts->largest_step % 1000000);
    if (facts->hosts + (facts->nowhere > 0) > 1)
        command_note("processes of %zu machines: their clocks are taken as they are, what they are apart is not known",
                     facts->hosts + (facts->nowhere > 0));
    if (facts->untimed)
        command_note("%zu of the files have no times: their entries stand before those of the others", facts->untimed);
}

static int write_result(struct command_line *line, const struct snapshot *snapshot)
{
    struct output *output;
    struct error err = {0};
    int status = command_open_output(line, CONTENT_BINARY, NULL, &output);
    if (status)
        return status;
    if (format_write(snapshot, "bin", NULL, output, &err)) {
        output_abandon(output);
        return command_error(NULL, &err);
    }
    status = command_close_output(output, EXIT_DONE);
    if (!status)
        command_note("merged %" PRIu64 " entries of %zu process%s", (uint64_t)snapshot->entries.count,
                     snapshot->process_count, snapshot->process_count == 1 ? "" : "es");
    return status;
}

static int merge_run(struct command_line *line)
{
    struct snapshot *result = NULL;
    struct merge_facts facts;
    struct error err = {0};
    if (!options_has(line, "output"))
        return command_usage(line->command, "say where to: -o OUT");
    struct merge *merge = merge_new();
    if (!merge) {
        error_no_memory(&err);
        return command_error(NULL, &err);
    }
    int status = EXIT_DONE;
    for (size_t i = 0; i < line->argument_count && !status; i++)
        status = add_file(line, line->arguments[i], merge);
    if (!status && merge_finish(merge, &result, &facts, &err))
        status = command_error(NULL, &err);
    merge_free(merge);
    if (!status)
        status = write_result(line, result);
    if (!status)
        tell_clocks(&facts);
    snapshot_free(result);
    return status;
}

const struct command command_merge = {
    .name = "merge",
    .summary = "several processes or ranks in one file, on one time axis",
    .arguments = "FILE...",
    .least = 1,
    .most = ARGUMENTS_ANY,
    .options = merge_options,
    .run = merge_run,
};
