/* cudamem trace: PyTorch's view of the trace as a program. */
#include "render/torch_text.h"
#include "tools/command.h"
#include "tools/load.h"

static const struct option_spec trace_options[] = {
    OPTIONS_OUTPUT,
    OPTIONS_INPUT,
    OPTIONS_SELECTION,
    OPTIONS_END,
};

static int trace_run(struct command_line *line)
{
    struct error err = {0};
    struct load load;
    struct output *output;
    int status = load_open(line, line->arguments[0], LOAD_STATE, &load);
    if (status)
        return status;
    status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status && torch_text_trace(load.snapshot, load.state, load.moment, &load.selection, output, &err)) {
        output_abandon(output);
        status = command_error(load.file, &err);
    } else if (!status) {
        /* PyTorch's text has no last newline; a terminal gets one. */
        if (output_is_terminal(output))
            output_char(output, '\n');
        status = command_close_output(output, EXIT_DONE);
    }
    load_close(&load);
    return status;
}

const struct command command_trace = {
    .name = "trace",
    .summary = "every entry of the trace as a line, as PyTorch's memory_viz prints it",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = trace_options,
    .run = trace_run,
};
