/* cudamem svg: pictures of a snapshot. */
#include "analyze/flame.h"
#include "base/size.h"
#include "render/svg_flame.h"
#include "tools/command.h"
#include "tools/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec svg_options[] = {
    {"segments", 0, NULL, OPTION_FLAG, "a flame graph by stream, segment, state and stack"},
    {"memory", 0, NULL, OPTION_FLAG, "a flame graph by stream, state and stack"},
    {"title", 0, "TEXT", OPTION_TEXT, "the picture's title (default: the file's name)"},
    OPTIONS_OUTPUT,
    OPTIONS_INPUT,
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    {"stream", 0, "S", OPTION_SELECTION, "only this stream"},
    {"pool", 0, "A:B", OPTION_SELECTION, "only this pool"},
    {"size", 0, "MIN..MAX", OPTION_SELECTION, "only blocks of sizes in this range"},
    {"stack", 0, "REGEX", OPTION_SELECTION, "only stacks with a matching frame"},
    {"not-stack", 0, "REGEX", OPTION_SELECTION, "only stacks without one"},
    {"annotation", 0, "REGEX", OPTION_SELECTION, "only blocks made in a range whose name matches"},
    {"frames", 0, "user|all", OPTION_SELECTION, "user: leave out the frameworks' own frames", "user|all"},
    OPTIONS_END,
};

static const char *view_name(enum flame_view view)
{
    return view == FLAME_SEGMENTS ? "segments" : "memory";
}

/* snapshot.bin@peak -> snapshot.peak.segments.svg, beside it; NAME.pickle.gz loses both suffixes.  NULL: no memory. */
static char *default_name(const struct load *load, enum flame_view view)
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
                 view_name(view)) < 0)
        return NULL;
    for (char *c = name + (base - load->file) + length; *c; c++)
        if (*c == ':' || *c == '#' || *c == '/')
            *c = '-'; /* of the moment: @mark:NAME, @#4711 */
    return name;
}

/* "190.00 MiB reserved in 9 segments: 74.00 MiB allocated, ..." of what is drawn. */
static void subtitle_of(const struct load *load, const struct flame_tree *tree, char *text, size_t room)
{
    uint64_t allocated = 0, pending = 0, inactive = 0;
    size_t segments = 0;
    char size[4][SIZE_TEXT], waits[SIZE_TEXT + 32] = "";
    const struct state *state = load->state;
    for (size_t i = 0; i < state->segment_count; i++)
        segments += selection_has_segment(&load->selection, &state->segments[i]);
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct flame_node *node = &tree->nodes[i];
        if (node->kind == FLAME_KIND_ALLOCATED)
            allocated += node->total;
        else if (node->kind == FLAME_KIND_PENDING)
            pending += node->total;
        else if (node->kind == FLAME_KIND_INACTIVE)
            inactive += node->total;
    }
    if (pending)
        snprintf(waits, sizeof(waits), ", %s waiting to be freed", size_format(pending, size[3]));
    snprintf(text, room, "%s %s in %zu segment%s: %s allocated%s, %s inactive%s",
             size_format(tree->nodes[0].total, size[0]),
             selection_is_everything(&load->selection) ? "reserved" : "selected", segments, segments == 1 ? "" : "s",
             size_format(allocated, size[1]), waits, size_format(inactive, size[2]),
             state->exact || (load->moment == load->snapshot->entries.count && !load->is_part) ? "" : " (block sizes rebuilt by rounding)");
}

static int draw(struct command_line *line, const struct load *load, enum flame_view view, struct output *output)
{
    struct error err = {0};
    struct flame_tree tree;
    char title[400], subtitle[400];
    const char *given = options_text(line, "title"), *slash = strrchr(load->file, '/');
    int status = flame_tree_build(load->snapshot, load->state, view, &load->selection, &tree, &err);
    if (!status) {
        snprintf(title, sizeof(title), "%s%s%s: memory by %s", slash ? slash + 1 : load->file,
                 load->has_moment ? "@" : "", load->has_moment ? load->moment_text : "",
                 view == FLAME_SEGMENTS ? "segment and stack" : "stack");
        subtitle_of(load, &tree, subtitle, sizeof(subtitle));
        struct svg_flame_options options = {given ? given : title, subtitle};
        status = svg_flame(&tree, &options, output, &err);
        flame_tree_free(&tree);
    }
    return status ? command_error(load->file, &err) : EXIT_DONE;
}

static int svg_run(struct command_line *line)
{
    bool segments = options_has(line, "segments"), memory = options_has(line, "memory");
    enum flame_view view = memory ? FLAME_MEMORY : FLAME_SEGMENTS;
    struct load load;
    struct output *output;
    if (segments == memory)
        return command_usage(line->command, "say which picture: --segments or --memory");
    int status = load_open(line, line->arguments[0], LOAD_STATE | LOAD_STATE_ONLY, &load);
    if (status)
        return status;
    bool is_stream = options_has(line, "output") || strcmp(load.file, "-") == 0;
    char *name = is_stream ? NULL : default_name(&load, view);
    if (!is_stream && !name) {
        struct error err = {0};
        error_no_memory(&err);
        load_close(&load);
        return command_error(NULL, &err);
    }
    status = command_open_output(line, CONTENT_BINARY, name, &output);
    if (!status) {
        status = draw(line, &load, view, output);
        if (status)
            output_abandon(output);
        else
            status = command_close_output(output, EXIT_DONE);
        if (!status && name)
            command_note("wrote %s", name);
    }
    free(name);
    load_close(&load);
    return status;
}

const struct command command_svg = {
    .name = "svg",
    .summary = "draw a flame graph of what holds memory",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = svg_options,
    .run = svg_run,
};
