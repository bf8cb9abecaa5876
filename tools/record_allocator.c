/* Which allocator serves the recorded program.  Uses alloc's settings and base: what makes no sense is told before the
 * program starts. */
#include "tools/record_allocator.h"

#include "alloc/settings.h"
#include "base/size.h"

#include <stdlib.h>

/* What the settings would be in the program: the option's, or those of the environment. */
static int check_conf(struct command_line *line, const char *option)
{
    struct settings settings;
    struct error err = {0};
    const char *conf = option ? option : getenv("CUDAMEM_ALLOC_CONF");
    settings_init(&settings);
    if (!conf || settings_parse(&settings, conf, &err) == STATUS_OK)
        return EXIT_DONE;
    return command_usage(line->command, "%s: %s", option ? "--conf" : "CUDAMEM_ALLOC_CONF", err.message);
}

int record_allocator_read(struct command_line *line, struct record_settings *settings)
{
    struct error err = {0};
    const char *conf = options_text(line, "conf"), *limit = options_text(line, "memory-limit");
    settings->caching = options_is(line, "allocator", "caching");
    if (!settings->caching && (conf || limit))
        return command_usage(line->command, "%s: settings of the caching allocator; give --allocator caching, too",
                             conf ? "--conf" : "--memory-limit");
    if (!settings->caching)
        return EXIT_DONE;
    settings->conf = conf;
    settings->memory_limit = 0;
    if (limit && size_parse(limit, &settings->memory_limit, &err))
        return command_usage(line->command, "--memory-limit: %s", err.message);
    if (limit && !settings->memory_limit)
        return command_usage(line->command, "--memory-limit %s: more than nothing", limit);
    return check_conf(line, conf);
}
