/* --memory-limit, --pool, --scope, and the devices they are about.  Uses analyze and base. */
#include "tools/replay_options.h"

#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_POOLS 64
#define MOST_SCOPES 256

/* Digits, the number of an entry; *text goes behind them.  false: none, or more than 64 bits hold. */
static bool entry_read(const char **text, uint64_t *entry)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *entry = strtoull(*text, &end, 10);
    *text = end;
    return !errno;
}

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
    if (size_parse(size, &options->limit, &err))
        return command_usage(line->command, "--memory-limit %.80s: %s", text, err.message);
    if (at && (at++, !entry_read(&at, &options->limit_entry) || *at))
        return command_usage(line->command, "--memory-limit %.80s: behind '@' stands the number of an entry", text);
    return EXIT_DONE;
}

/* One of the two numbers of a pool, and what ends it. */
static bool pool_number_read(const char **text, char stop, int64_t *number)
{
    char *end;
    if (!isdigit((unsigned char)(*text)[**text == '-']))
        return false;
    errno = 0;
    *number = strtoll(*text, &end, 10);
    *text = end + 1;
    return !errno && *end == stop;
}

/* "A:B=": the pair, and what follows.  NULL: it is none. */
static const char *pool_read(const char *text, int64_t *first, int64_t *second)
{
    return pool_number_read(&text, ':', first) && pool_number_read(&text, '=', second) ? text : NULL;
}

static bool how_read(const char *text, struct replay_pool_option *pool)
{
    static const struct {
        const char *how;
        bool no_split, use_on_oom;
    } ways[] = {{"split", false, false}, {"no_split", true, false}, {"use_on_oom", false, true},
                {"no_split,use_on_oom", true, true}, {"use_on_oom,no_split", true, true}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(text, ways[i].how) != 0)
            continue;
        pool->no_split = ways[i].no_split;
        pool->use_on_oom = ways[i].use_on_oom;
        return true;
    }
    return false;
}

static bool range_read(const char *text, struct replay_scope_option *scope)
{
    if (!entry_read(&text, &scope->from) || text[0] != '.' || text[1] != '.')
        return false;
    text += 2;
    return entry_read(&text, &scope->to) && !*text && scope->from <= scope->to;
}

static bool is_said_before(const struct replay_options *options, const struct replay_pool_option *pool)
{
    for (const struct replay_pool_option *said = options->pools; said < pool; said++)
        if (said->first == pool->first && said->second == pool->second)
            return true;
    return false;
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
        const char *how = pool_read(given->text, &pool->first, &pool->second);
        if (options->pool_count >= MOST_POOLS)
            return command_usage(line->command, "--pool: more than %d", MOST_POOLS - 1);
        if (how && !pool->first && !pool->second)
            return command_usage(line->command, "--pool %.80s: 0:0 is the default pool, which splits and lends nothing",
                                 given->text);
        if (!how || !how_read(how, pool))
            return command_usage(line->command, "--pool %.80s: A:B=no_split, A:B=use_on_oom, A:B=no_split,use_on_oom or "
                                 "A:B=split", given->text);
        if (is_said_before(options, pool))
            return command_usage(line->command, "--pool %.80s: this pool was told before", given->text);
    }
    while ((given = options_nth(line, "scope", options->scope_count))) {
        struct replay_scope_option *scope = &scopes[options->scope_count++];
        const char *range = pool_read(given->text, &scope->first, &scope->second);
        if (options->scope_count >= MOST_SCOPES)
            return command_usage(line->command, "--scope: more than %d", MOST_SCOPES - 1);
        if (!range || !range_read(range, scope))
            return command_usage(line->command, "--scope %.80s: A:B=FROM..TO, with the numbers of two entries", given->text);
    }
    return EXIT_DONE;
}

static int no_such_entry(const struct command_line *line, const char *option, uint64_t entry, size_t count)
{
    return command_usage(line->command, "--%s: there is no entry %" PRIu64 ": the trace has entries 0 to %zu", option, entry,
                         count - 1);
}

int replay_options_check(const struct command_line *line, const struct load *load, const struct replay_options *options)
{
    size_t count = load->snapshot->entries.count;
    if (!count) /* there is nothing to replay, whatever is said of it */
        return EXIT_DONE;
    if (options->limit_entry >= count)
        return no_such_entry(line, "memory-limit", options->limit_entry, count);
    for (size_t i = 0; i < options->scope_count; i++)
        if (options->scopes[i].to >= count)
            return no_such_entry(line, "scope", options->scopes[i].to, count);
    return EXIT_DONE;
}

void replay_options_tell_refuted(const struct command_line *line, const struct load *load, const struct statistics_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].refutes_limit && (load->selection.device < 0 || load->selection.device == list->items[i].device))
            command_note("%s: device %u: the recording does not come out under --memory-limit %.80s; left out of account",
                         load->file, list->items[i].device, options_text(line, "memory-limit"));
}

static bool has_device(const struct snapshot *snapshot, int device)
{
    bool found = device < 0;
    for (size_t i = 0; !found && i < snapshot->device_count; i++)
        found = snapshot->devices[i].ordinal == device;
    for (size_t i = 0; !found && i < snapshot->end.segment_count; i++)
        found = snapshot->end.segments[i].device == device;
    for (size_t i = 0; !found && i < snapshot->entries.count; i++)
        found = snapshot->entries.device[i] == device;
    return found;
}

int replay_options_error(const struct load *load, const struct error *err)
{
    return has_device(load->snapshot, load->selection.device) ? command_error(load->file, err) : EXIT_INPUT;
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
