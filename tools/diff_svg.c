/* cudamem diff --svg.  Uses analyze, render and base. */
#include "tools/diff_svg.h"

#include "analyze/flame.h"
#include "base/size.h"
#include "render/svg_flame.h"

#include <stdio.h>
#include <string.h>

struct change {
    uint64_t before, after;
};

int diff_svg_check(const struct command_line *line)
{
    static const char *const tables[] = {"json", "bytes", "rows", "sort", "format", "min-delta"};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && options_has(line, "svg"); i++)
        if (options_has(line, tables[i]))
            return command_usage(line->command, "--%s is of tables; --svg draws a picture", tables[i]);
    if (options_has(line, "svg") && options_is(line, "group", "annotation"))
        return command_usage(line->command, "--svg draws by stack or by segment, not by annotation");
    for (size_t i = 0; i < 2; i++) {
        const char *name = i ? "reverse" : "width";
        if (options_has(line, name) && !options_has(line, "svg"))
            return command_usage(line->command, "--%s goes with --svg", name);
    }
    return EXIT_DONE;
}

static enum flame_width width_of(const struct command_line *line)
{
    return options_is(line, "width", "after")    ? FLAME_WIDTH_AFTER
           : options_is(line, "width", "change") ? FLAME_WIDTH_CHANGE
                                                 : FLAME_WIDTH_LARGER;
}

/* Of the living blocks, by the nodes of their states. */
static struct change living_change(const struct flame_tree *tree)
{
    struct change living = {0, 0};
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->nodes[i].kind != FLAME_KIND_ALLOCATED && tree->nodes[i].kind != FLAME_KIND_PENDING)
            continue;
        living.before += tree->before[i];
        living.after += tree->after[i];
    }
    return living;
}

static int add_change(char *text, size_t room, const char *what, const struct change *change)
{
    char before[SIZE_TEXT], after[SIZE_TEXT], delta[SIZE_TEXT];
    return snprintf(text, room, "%s %s, then %s (%s)", what, size_format(change->before, before),
                    size_format(change->after, after), size_format_delta(change->before, change->after, delta));
}

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static int draw(const struct command_line *line, const struct load *before, const struct load *after,
                const struct flame_tree *tree, struct output *output, struct error *err)
{
    struct change living = living_change(tree), reserved = {tree->before[0], tree->after[0]};
    char title[1024], subtitle[400];
    bool is_everything = selection_is_everything(&before->selection);
    static const char *const widths[] = {"the larger of both", "of the second", "what changed"};
    snprintf(title, sizeof(title), "%s%s%s, then %s%s%s: what grew by %sstack", base_of(before->file),
             before->has_moment ? "@" : "", before->has_moment ? before->moment_text : "", base_of(after->file),
             after->has_moment ? "@" : "", after->has_moment ? after->moment_text : "",
             options_is(line, "group", "segment") ? "segment and " : "");
    int used = add_change(subtitle, sizeof(subtitle), "allocated", &living);
    used += snprintf(subtitle + used, sizeof(subtitle) - (size_t)used, "; ");
    used += add_change(subtitle + used, sizeof(subtitle) - (size_t)used, is_everything ? "reserved" : "selected", &reserved);
    snprintf(subtitle + used, sizeof(subtitle) - (size_t)used, "; widths are %s%s",
             widths[width_of(line)],
             before->state->exact && after->state->exact ? "" : " (block sizes of the past are rounded up)");
    struct svg_flame_options options = {.title = title, .subtitle = subtitle};
    return svg_flame(tree, &options, output, err);
}

static int build_tree(const struct command_line *line, const struct load *before, const struct load *after,
                      struct flame_tree *tree, struct error *err)
{
    struct flame_options how = {.view = options_is(line, "group", "segment") ? FLAME_SEGMENTS : FLAME_MEMORY,
                                .reversed = options_has(line, "reverse"), .whole_blocks = true, .selection = &before->selection};
    struct flame_tree first, second;
    int status = flame_tree_make(before->snapshot, before->state, &how, &first, err);
    if (status)
        return command_error(before->file, err);
    how.selection = &after->selection;
    status = flame_tree_make(after->snapshot, after->state, &how, &second, err);
    if (status) {
        status = command_error(after->file, err);
    } else {
        status = flame_tree_diff(&first, &second, width_of(line), options_has(line, "ignore-lines"), tree, err);
        status = status ? command_error(NULL, err) : EXIT_DONE;
        flame_tree_free(&second);
    }
    flame_tree_free(&first);
    return status;
}

int diff_svg_run(const struct command_line *line, const struct load *before, const struct load *after)
{
    struct error err = {0};
    struct output *output;
    struct flame_tree tree;
    int status = build_tree(line, before, after, &tree, &err);
    if (status)
        return status;
    struct change living = living_change(&tree);
    bool says_no = living.after > living.before && options_has(line, "exit-code");
    status = command_open_output(line, CONTENT_BINARY, NULL, &output);
    if (!status) {
        if (draw(line, before, after, &tree, output, &err)) {
            output_abandon(output);
            status = command_error(NULL, &err);
        } else {
            status = command_close_output(output, says_no ? EXIT_NO : EXIT_DONE);
        }
    }
    flame_tree_free(&tree);
    return status;
}
