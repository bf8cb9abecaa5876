/* cudamem version: what this is and what it was built with. */
#include "tools/command.h"

#include <zlib.h>

static const struct option_spec version_options[] = {
    OPTIONS_OUTPUT,
    {"json", 0, NULL, OPTION_FLAG, "JSON"},
    OPTIONS_END,
};

static int version_run(struct command_line *line)
{
    struct output *output;
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    if (!options_has(line, "json")) {
        output_printf(output, "cudamem %s\n", CUDAMEM_VERSION_TEXT);
        return command_close_output(output, EXIT_DONE);
    }
    struct emitter_options options = command_emitter_options(line);
    struct emitter *emitter = emitter_new(output, &options);
    if (emitter) {
        emitter_text(emitter, "version", CUDAMEM_VERSION_TEXT);
        emitter_text(emitter, "zlib", zlibVersion());
    }
    return command_finish(emitter, output, EXIT_DONE);
}

const struct command command_version = {
    .name = "version",
    .summary = "print the version",
    .arguments = "",
    .options = version_options,
    .run = version_run,
};
