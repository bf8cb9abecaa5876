/* cudamem svg: pictures of a snapshot.  The views themselves are in svg_view_*.c. */
#include "tools/svg_views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec svg_options[] = {
    {"segments", 0, NULL, OPTION_FLAG, "a flame graph by stream, segment, state and stack"},
    {"memory", 0, NULL, OPTION_FLAG, "a flame graph by stream, state and stack"},
    {"map", 0, NULL, OPTION_FLAG, "every segment with its blocks and holes, to one scale"},
    {"timeline", 0, NULL, OPTION_FLAG, "what was alive over time, the largest allocations as bands"},
    {"x", 0, "AXIS", OPTION_CHOICE, "of the timeline: time (default, if the trace has it) or entries", "time|entries"},
    {"detail", 0, "N", OPTION_NUMBER, "bands a device in the timeline (1000)"},
    {"reverse", 0, NULL, OPTION_FLAG, "in a flame graph, callers below what they called"},
    {"color", 0, "KEY", OPTION_CHOICE, "what a flame graph's or map's colours tell: state, age, size or stack", "state|age|size|stack"},
    {"title", 0, "TEXT", OPTION_TEXT, "the picture's title (default: the file's name)"},
    OPTIONS_OUTPUT,
    OPTIONS_INPUT,
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    {"stream", 0, "S", OPTION_SELECTION, "only this stream"},
    {"pool", 0, "A:B", OPTION_SELECTION, "only this pool"},
    {"size", 0, "MIN..MAX", OPTION_SELECTION, "only blocks of sizes in this range"},
    {"entries", 0, "A..B", OPTION_SELECTION, "the timeline of these entries only"},
    {"time", 0, "A..B", OPTION_SELECTION, "the timeline of this time only, in seconds from the start"},
    {"stack", 0, "REGEX", OPTION_SELECTION, "only stacks with a matching frame"},
    {"not-stack", 0, "REGEX", OPTION_SELECTION, "only stacks without one"},
    {"annotation", 0, "REGEX", OPTION_SELECTION, "only blocks made in a range whose name matches"},
    {"frames", 0, "user|all", OPTION_SELECTION, "user: leave out the frameworks' own frames", "user|all"},
    OPTIONS_END,
};

static const struct svg_view *const views[] = {&svg_view_segments, &svg_view_memory, &svg_view_map, &svg_view_timeline};
#define VIEW_COUNT (sizeof(views) / sizeof(views[0]))

/* The one that is asked for, NULL if none or several are. */
static const struct svg_view *view_of(const struct command_line *line)
{
    const struct svg_view *found = NULL;
    for (size_t i = 0; i < VIEW_COUNT; i++) {
        if (!options_has(line, views[i]->name))
            continue;
        if (found)
            return NULL;
        found = views[i];
    }
    return found;
}

static int refuse_views(const struct command_line *line)
{
    char list[200];
    size_t used = 0;
    for (size_t i = 0; i < VIEW_COUNT && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s--%s", !i ? "" : i + 1 < VIEW_COUNT ? ", " : " or ",
                                 views[i]->name);
    return command_usage(line->command, "say which picture: %s", list);
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at && *at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || !at[length]))
            return true;
    return false;
}

/* Options of other views are mistakes: 0, or EXIT_USAGE after a line. */
static int check_options(const struct command_line *line, const struct svg_view *view)
{
    for (size_t i = 0; i < line->given_count; i++) {
        const char *name = line->given[i].spec->name;
        bool is_others = false;
        for (size_t v = 0; v < VIEW_COUNT; v++)
            is_others = is_others || has_word(views[v]->options, name);
        if (is_others && !has_word(view->options, name))
            return command_usage(line->command, "--%s does nothing for --%s", name, view->name);
    }
    return EXIT_DONE;
}

/* snapshot.bin@peak -> snapshot.peak.segments.svg, beside it; NAME.pickle.gz loses both suffixes.  NULL: no memory. */
static char *default_name(const struct load *load, const struct svg_view *view)
{
    const char *slash = strrchr(load->file, '/');
    const char *base = slash ? slash + 1 : load->file;
    size_t length = strlen(base);
    static const char *const suffixes[] = {".gz", ".bin", ".pickle", ".pkl", ".ring", ".csv"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t size = strlen(suffixes[i]);
        if (length > size && memcmp(base + length - size, suffixes[i], size) == 0)
            length -= size;
    }
    char *name;
    const char *at = !load->has_moment             ? ""
                     : load->moment_text[0] == '#' ? ".entry"
                                                   : ".",
               *moment = load->has_moment ? load->moment_text : "";
    if (asprintf(&name, "%.*s%s%s.%s.svg", (int)(base - load->file + (ptrdiff_t)length), load->file, at, moment,
                 view->name) < 0)
        return NULL;
    for (char *c = name + (base - load->file) + length; *c; c++)
        if (*c == ':' || *c == '#' || *c == '/')
            *c = '-'; /* of the moment: @mark:NAME, @#4711 */
    return name;
}

void svg_view_title(const struct command_line *line, const struct load *load, const char *what, char *text, size_t room)
{
    const char *given = options_text(line, "title"), *slash = strrchr(load->file, '/');
    if (given)
        snprintf(text, room, "%s", given);
    else
        snprintf(text, room, "%s%s%s: %s", slash ? slash + 1 : load->file, load->has_moment ? "@" : "",
                 load->has_moment ? load->moment_text : "", what);
}

const char *svg_view_remark(const struct load *load)
{
    bool is_end = load->moment == load->snapshot->entries.count && !load->is_part;
    return load->state->exact || is_end ? "" : " (block sizes rebuilt by rounding)";
}

static int write_picture(const struct command_line *line, const struct svg_view *view, const struct load *load,
                         const char *name)
{
    struct output *output;
    struct error err = {0};
    int status = command_open_output(line, CONTENT_BINARY, name, &output);
    if (status)
        return status;
    if (view->draw(line, load, output, &err)) {
        output_abandon(output);
        return command_error(load->file, &err);
    }
    status = command_close_output(output, EXIT_DONE);
    if (!status && name)
        command_note("wrote %s", name);
    return status;
}

static int svg_run(struct command_line *line)
{
    const struct svg_view *view = view_of(line);
    struct load load;
    if (!view)
        return refuse_views(line);
    int status = check_options(line, view);
    if (status)
        return status;
    unsigned flags = view->more_flags ? view->more_flags(line, view->load_flags) : view->load_flags;
    status = load_open(line, line->arguments[0], flags, &load);
    if (status)
        return status;
    bool is_stream = options_has(line, "output") || strcmp(load.file, "-") == 0;
    char *name = is_stream ? NULL : default_name(&load, view);
    if (!is_stream && !name) {
        struct error err = {0};
        error_no_memory(&err);
        status = command_error(NULL, &err);
    } else {
        status = write_picture(line, view, &load, name);
    }
    free(name);
    load_close(&load);
    return status;
}

const struct command command_svg = {
    .name = "svg",
    .summary = "draw what holds memory: flame graphs, a map, a timeline",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = svg_options,
    .run = svg_run,
};
