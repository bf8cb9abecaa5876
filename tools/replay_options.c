/* --memory-limit, --pool, --scope.  Uses analyze and base. */
#include "tools/replay_options.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_POOLS 64
#define MOST_SCOPES 256

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

/* "A:B=": the pair, and what follows.  NULL: it is none. */
static const char *pool_read(const char *text, int64_t *first, int64_t *second)
{
    int length = 0;
    if (sscanf(text, "%" SCNd64 ":%" SCNd64 "=%n", first, second, &length) != 2 || !length)
        return NULL;
    return text + length;
}

static bool how_read(const char *text, struct replay_pool_option *pool)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        if (length == 8 && strncmp(text, "no_split", length) == 0)
            pool->no_split = true;
        else if (length == 10 && strncmp(text, "use_on_oom", length) == 0)
            pool->use_on_oom = true;
        else if (length != 5 || strncmp(text, "split", length) != 0)
            return false;
        if (!text[length])
            return true;
        text += length + 1;
    }
}

static bool range_read(const char *text, struct replay_scope_option *scope)
{
    int length = 0;
    return sscanf(text, "%" SCNu64 "..%" SCNu64 "%n", &scope->from, &scope->to, &length) == 2 && !text[length] &&
           scope->from <= scope->to;
}

int replay_options_pools(const struct command_line *line, struct replay_options *options)
{
    static struct replay_pool_option pools[MOST_POOLS];
    static struct replay_scope_option scopes[MOST_SCOPES];
    const struct option_given *given;
    options->pools = pools;
    options->scopes = scopes;
    while ((given = options_nth(line, "pool", options->pool_count))) {
        struct replay_pool_option *pool = &pools[options->pool_count++];
        const char *how = options->pool_count < MOST_POOLS ? pool_read(given->text, &pool->first, &pool->second) : NULL;
        if (how && !pool->first && !pool->second)
            return command_usage(line->command, "--pool %.80s: 0:0 is the default pool, which splits and lends nothing",
                                 given->text);
        if (!how || !how_read(how, pool))
            return command_usage(line->command, "--pool %.80s: A:B=no_split, A:B=use_on_oom, both with a comma, or A:B=split",
                                 given->text);
    }
    while ((given = options_nth(line, "scope", options->scope_count))) {
        struct replay_scope_option *scope = &scopes[options->scope_count++];
        const char *range = options->scope_count < MOST_SCOPES ? pool_read(given->text, &scope->first, &scope->second) : NULL;
        if (!range || !range_read(range, scope))
            return command_usage(line->command, "--scope %.80s: A:B=FROM..TO, with the numbers of two entries", given->text);
    }
    return EXIT_DONE;
}

void replay_options_device(const struct load *load, struct replay_options *options)
{
    struct replay_place places[REPLAY_PLACES];
    replay_options_places(load, places);
    options->moment = load->moment;
    options->process = places[0].process;
    options->device = places[0].device;
}

size_t replay_options_places(const struct load *load, struct replay_place places[REPLAY_PLACES])
{
    const struct entries *entries = &load->snapshot->entries;
    size_t count = 0, last = 0;
    for (size_t i = 0; i < entries->count && count < REPLAY_PLACES; i++) {
        struct replay_place place = {entries->process ? entries->process[i] : 0, entries->device[i]};
        if (entries->action[i] == ACTION_SNAPSHOT ||
            (load->selection.device >= 0 && place.device != (uint16_t)load->selection.device))
            continue;
        if (count && places[last].process == place.process && places[last].device == place.device)
            continue;
        for (last = 0; last < count; last++)
            if (places[last].process == place.process && places[last].device == place.device)
                break;
        if (last == count)
            places[count++] = place;
    }
    if (!count)
        places[count++] = (struct replay_place){0, (uint16_t)(load->selection.device >= 0 ? load->selection.device : 0)};
    return count;
}

const char *replay_options_approximate(const struct replay_result *result)
{
    return result->lost_beginning ? "the beginning of the recording is lost, what was there is rebuilt from its end"
                                  : "the recording tells requests only, not what an allocator did with them";
}

const char *replay_options_own_name(const struct replay_result *result)
{
    return result->approximate && !result->lost_beginning ? "(default)" : "(recorded)";
}
