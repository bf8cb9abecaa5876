/* --memory-limit.  Uses analyze and base. */
#include "tools/replay_options.h"

#include "base/size.h"

#include <stdio.h>
#include <string.h>

int replay_options_limit(const struct command_line *line, struct replay_options *options)
{
    const char *text = options_text(line, "memory-limit"), *at;
    char size[64];
    struct error err = {0};
    options->limit = REPLAY_NO_LIMIT;
    options->limit_entry = 0;
    if (!text)
        return EXIT_DONE;
    at = strchr(text, '@');
    snprintf(size, sizeof(size), "%.*s", (int)(at ? at - text : (long)strlen(text)), text);
    if (size_parse(size, &options->limit, &err) || (at && size_parse(at + 1, &options->limit_entry, &err)))
        return command_usage(line->command, "--memory-limit %.80s: %s", text, err.message);
    return EXIT_DONE;
}
