/* cudamem diff: what grew between two states or over several, by stack or segment.  Uses analyze, render and base. */
#include "tools/command.h"
#include "tools/diff_parts.h"
#include "tools/diff_svg.h"
#include "tools/load.h"

#include <stdlib.h>

static const struct option_spec diff_options[] = {
    {"group", 0, "KEY", OPTION_CHOICE, "what is compared: stack (default), annotation or segment", "stack|annotation|segment"},
    {"format", 0, "NAME", OPTION_CHOICE, "pytorch: the text of PyTorch's compare, with --group segment", "pytorch"},
    {"svg", 0, NULL, OPTION_FLAG, "draw both as one flame graph: red grew, blue shrank"},
    {"width", 0, "OF", OPTION_CHOICE, "of the picture's boxes: the larger of both (default), after or change", "larger|after|change"},
    {"reverse", 0, NULL, OPTION_FLAG, "in the picture, callers below what they called"},
    {"ignore-lines", 0, NULL, OPTION_FLAG, "compare stacks without their line numbers, across edited code"},
    {"across", 0, "WHAT", OPTION_CHOICE, "of three or more: steps, what only grows (default); ranks, who stands out", "steps|ranks"},
    {"min-delta", 0, "SIZE", OPTION_SIZE, "only what changed by at least this much"},
    {"exit-code", 0, NULL, OPTION_FLAG, "exit with 1 if something grew"},
    OPTIONS_ROWS("delta|before|after|blocks"),
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_SELECTION,
    OPTIONS_END,
};

/* All of the command line are open at once. */
static int many_run(const struct command_line *line, bool by_segment)
{
    struct error err = {0};
    size_t opened = 0;
    int status = EXIT_DONE;
    if (by_segment || options_has(line, "svg"))
        return command_usage(line->command, "--group segment and --svg compare two states, without --across");
    if (options_has(line, "sort"))
        return command_usage(line->command, "--sort goes with two states: more have an order of their own");
    struct load *loads = calloc(line->argument_count + 1, sizeof(*loads));
    if (!loads) {
        error_no_memory(&err);
        return command_error(NULL, &err);
    }
    while (opened < line->argument_count && !status) {
        status = load_open(line, line->arguments[opened], LOAD_STATE, &loads[opened]);
        opened += !status;
    }
    if (!status)
        status = diff_many_run(line, loads, opened);
    while (opened > 0)
        load_close(&loads[--opened]);
    free(loads);
    return status;
}

static int diff_run(struct command_line *line)
{
    struct load before, after;
    bool by_segment = options_is(line, "group", "segment");
    bool is_many = line->argument_count > 2 || options_has(line, "across");
    if (options_has(line, "format") && !by_segment)
        return command_usage(line->command, "--format pytorch goes with --group segment");
    if (options_has(line, "format") && options_has(line, "json"))
        return command_usage(line->command, "--format pytorch and --json are two formats");
    int status = diff_svg_check(line);
    if (status)
        return status;
    if (is_many)
        return many_run(line, by_segment);
    status = load_open(line, line->arguments[0], LOAD_STATE, &before);
    if (status)
        return status;
    status = load_open(line, line->arguments[1], LOAD_STATE, &after);
    if (!status) {
        /* by their addresses, which several processes share */
        if (by_segment && (status = load_one_process(line, &before)) == EXIT_DONE)
            status = load_one_process(line, &after);
        if (!status)
            status = options_has(line, "svg") ? diff_svg_run(line, &before, &after)
                     : by_segment           ? diff_segments_run(line, &before, &after) : diff_stacks_run(line, &before, &after);
        load_close(&after);
    }
    load_close(&before);
    return status;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "what grew between two states, and who allocated it",
    .arguments = "A[@MOMENT] B[@MOMENT] [C[@MOMENT]...]",
    .least = 2,
    .most = ARGUMENTS_ANY,
    .options = diff_options,
    .run = diff_run,
};
