/* cudamem segsum: PyTorch's segment summary. */
#include "render/torch_text.h"
#include "tools/command.h"
#include "tools/load.h"

static const struct option_spec segsum_options[] = {
    OPTIONS_OUTPUT,
    OPTIONS_INPUT,
    OPTIONS_END,
};

static int segsum_run(struct command_line *line)
{
    struct error err = {0};
    struct load load;
    struct output *output;
    int status = load_open(line, line->arguments[0], LOAD_STATE | LOAD_STATE_ONLY, &load);
    if (status)
        return status;
    status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status && torch_text_segsum(load.snapshot, load.state, output, &err)) {
        output_abandon(output);
        status = command_error(load.file, &err);
    } else if (!status) {
        status = command_close_output(output, EXIT_DONE);
    }
    load_close(&load);
    return status;
}

const struct command command_segsum = {
    .name = "segsum",
    .summary = "how full each segment is, as PyTorch's memory_viz prints it",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = segsum_options,
    .run = segsum_run,
};
