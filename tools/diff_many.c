/* `diff` of three or more states: what only grows, or who stands out.  Uses analyze, render and base. */
#include "analyze/growth.h"
#include "tools/diff_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BEFORE_SIDES 3 /* columns */
#define KEY_TEXT 24

struct many {
    const struct command_line *line;
    const struct load *loads;
    struct growth growth;
    struct emitter_column *columns;
    char (*keys)[KEY_TEXT]; /* "at_1", ... */
    bool is_ranks;
};

static const struct emitter_column step_columns[BEFORE_SIDES] = {
    {"growth", NULL, EMITTER_NUMBER}, {"per_step", "a step", EMITTER_NUMBER}, {"rises", NULL, EMITTER_NUMBER}};
static const struct emitter_column rank_columns[BEFORE_SIDES] = {
    {"apart", NULL, EMITTER_NUMBER}, {"median", NULL, EMITTER_NUMBER}, {"file", NULL, EMITTER_NUMBER}};

static int64_t difference(uint64_t before, uint64_t after)
{
    return (int64_t)(after - before);
}

/* Rows worth telling come first. */
static bool is_told(const struct many *many, const struct growth_row *row)
{
    const uint64_t *bytes = growth_bytes(&many->growth, row);
    uint64_t least = options_number(many->line, "min-delta", 0);
    if (many->is_ranks)
        return row->apart && row->apart >= least;
    return growth_only_grows(row) && bytes[many->growth.sides - 1] - bytes[0] >= least;
}

static bool make_columns(struct many *many)
{
    size_t sides = many->growth.sides;
    many->columns = malloc((sides + BEFORE_SIDES + 1) * sizeof(*many->columns));
    many->keys = malloc((sides + 1) * sizeof(*many->keys));
    if (!many->columns || !many->keys)
        return false;
    for (size_t i = 0; i < BEFORE_SIDES; i++)
        many->columns[i] = many->is_ranks ? rank_columns[i] : step_columns[i];
    for (size_t s = 0; s < sides; s++) {
        snprintf(many->keys[s], KEY_TEXT, "at_%zu", s + 1);
        many->columns[BEFORE_SIDES + s] = (struct emitter_column){many->keys[s], NULL, EMITTER_NUMBER};
    }
    many->columns[BEFORE_SIDES + sides] = (struct emitter_column){"stack", NULL, EMITTER_LIST};
    return true;
}

static void files_out(struct emitter *emitter, const struct many *many)
{
    static const struct emitter_column columns[] = {
        {"number", "file", EMITTER_NUMBER},   {"bytes", NULL, EMITTER_NUMBER},  {"requested", NULL, EMITTER_NUMBER},
        {"blocks", NULL, EMITTER_NUMBER},     {"moment", NULL, EMITTER_NUMBER}, {"is_exact", "exact", EMITTER_NUMBER},
        {"file", "name", EMITTER_STRING},
    };
    emitter_begin_table(emitter, "files", "", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t s = 0; s < many->growth.sides; s++) {
        const struct diff_amount *total = &many->growth.totals[s];
        emitter_row(emitter);
        emitter_count(emitter, "number", s + 1);
        emitter_size(emitter, "bytes", total->bytes);
        emitter_size(emitter, "requested", total->requested);
        emitter_count(emitter, "blocks", total->blocks);
        emitter_count(emitter, "moment", many->loads[s].moment);
        emitter_bool(emitter, "is_exact", many->loads[s].state->exact);
        emitter_text(emitter, "file", many->loads[s].file);
    }
    emitter_end(emitter);
}

static void row_out(struct emitter *emitter, const struct many *many, const struct growth_row *row)
{
    size_t sides = many->growth.sides;
    const uint64_t *bytes = growth_bytes(&many->growth, row);
    int64_t grown = difference(bytes[0], bytes[sides - 1]);
    emitter_row(emitter);
    if (many->is_ranks) {
        emitter_delta(emitter, "apart", difference(row->median, bytes[row->side]));
        emitter_size(emitter, "median", row->median);
        emitter_count(emitter, "file", row->side + 1);
    } else {
        emitter_delta(emitter, "growth", grown);
        emitter_delta(emitter, "per_step", sides > 1 ? grown / (int64_t)(sides - 1) : grown);
        emitter_count(emitter, "rises", row->rises);
    }
    for (size_t s = 0; s < sides; s++)
        emitter_size(emitter, many->keys[s], bytes[s]);
    diff_stack_out(emitter, &many->growth.stacks, row->stack);
}

static int many_out(struct many *many)
{
    struct output *output;
    bool found = false;
    int status = command_open_output(many->line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    struct emitter_options how = command_emitter_options(many->line);
    struct emitter *emitter = emitter_new(output, &how);
    uint64_t left = options_number(many->line, "rows", UINT64_MAX);
    if (emitter) {
        files_out(emitter, many);
        emitter_begin_table(emitter, "stacks", many->is_ranks ? "who stands out" : "what only grows", many->columns,
                            BEFORE_SIDES + many->growth.sides + 1);
        for (size_t i = 0; i < many->growth.count; i++) {
            if (!is_told(many, &many->growth.rows[i]))
                continue;
            found = true;
            if (left && left--)
                row_out(emitter, many, &many->growth.rows[i]);
        }
        emitter_end(emitter);
    }
    return command_finish(emitter, output, found && options_has(many->line, "exit-code") ? EXIT_NO : EXIT_DONE);
}

int diff_many_run(const struct command_line *line, const struct load *loads, size_t count)
{
    struct diff_options options = {.ignore_lines = options_has(line, "ignore-lines"),
                                   .user_frames = loads[0].selection.user_frames,
                                   .by_annotation = options_is(line, "group", "annotation")};
    struct many many = {.line = line, .loads = loads, .is_ranks = options_is(line, "across", "ranks")};
    struct diff_side *sides = calloc(count + 1, sizeof(*sides));
    struct error err = {0};
    int status = sides ? EXIT_DONE : (error_no_memory(&err), command_error(NULL, &err));
    for (size_t s = 0; s < count && !status; s++)
        sides[s] = (struct diff_side){loads[s].snapshot, loads[s].state, &loads[s].selection, false, 0};
    if (!status && growth_make(sides, count, &options, &many.growth, &err))
        status = command_error(NULL, &err);
    if (!status && many.is_ranks)
        growth_order_apart(&many.growth);
    if (!status && !make_columns(&many))
        status = (error_no_memory(&err), command_error(NULL, &err));
    if (!status)
        status = many_out(&many);
    growth_free(&many.growth);
    free(many.columns);
    free(many.keys);
    free(sides);
    return status;
}
