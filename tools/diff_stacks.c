/* `diff` of two states by stack or annotation.  Uses analyze, render and base. */
#include "analyze/diff.h"
#include "base/size.h"
#include "tools/diff_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct emitter_column diff_columns[] = {
    {"delta", "change", EMITTER_NUMBER},       {"before", NULL, EMITTER_NUMBER},       {"after", NULL, EMITTER_NUMBER},
    {"blocks_delta", "blocks", EMITTER_NUMBER}, {"blocks_before", "were", EMITTER_NUMBER},
    {"blocks_after", "are", EMITTER_NUMBER},   {"requested_delta", "requested", EMITTER_NUMBER},
    {"stack", NULL, EMITTER_LIST},
};

/* Rows that are worth showing, in the order asked for. */
struct chosen {
    const struct diff_row **rows;
    size_t count;
    bool grew;
};

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

static int compare_by(const struct diff_row *x, const struct diff_row *y, const char *sort)
{
    uint64_t a = x->after.bytes, b = y->after.bytes;
    if (strcmp(sort, "before") == 0) {
        a = x->before.bytes;
        b = y->before.bytes;
    } else if (strcmp(sort, "blocks") == 0) {
        a = magnitude((int64_t)(x->after.blocks - x->before.blocks));
        b = magnitude((int64_t)(y->after.blocks - y->before.blocks));
    }
    if (a != b)
        return a > b ? -1 : 1;
    return x < y ? -1 : x > y; /* rows lie sorted by delta already */
}

static int compare_chosen(const void *a, const void *b, void *sort)
{
    return compare_by(*(const struct diff_row *const *)a, *(const struct diff_row *const *)b, sort);
}

static bool choose_rows(const struct command_line *line, const struct diff *diff, struct chosen *chosen)
{
    uint64_t least = options_number(line, "min-delta", 0);
    const char *sort = options_text(line, "sort");
    memset(chosen, 0, sizeof(*chosen));
    chosen->rows = malloc((diff->count + 1) * sizeof(*chosen->rows));
    if (!chosen->rows)
        return false;
    for (size_t i = 0; i < diff->count; i++) {
        const struct diff_row *row = &diff->rows[i];
        int64_t delta = diff_delta(row);
        bool changed = delta || row->before.blocks != row->after.blocks;
        if (!changed || magnitude(delta) < least)
            continue;
        chosen->grew = chosen->grew || delta > 0;
        chosen->rows[chosen->count++] = row;
    }
    if (sort && strcmp(sort, "delta") != 0 && chosen->count)
        qsort_r(chosen->rows, chosen->count, sizeof(*chosen->rows), compare_chosen, (void *)(uintptr_t)sort);
    return true;
}

void diff_stack_out(struct emitter *emitter, const struct stack_tree *stacks, uint32_t node)
{
    size_t length, shown = 0, limit = emitter_is_aligned(emitter) ? DIFF_SHOWN_FRAMES : SIZE_MAX;
    const char *text;
    emitter_begin_strings(emitter, NULL);
    while ((text = stack_tree_frame(stacks, &node, &length))) {
        if (shown++ < limit)
            emitter_item(emitter, text, length);
    }
    if (shown > limit) {
        char rest[40];
        int used = snprintf(rest, sizeof(rest), "... %zu more", shown - limit);
        emitter_item(emitter, rest, (size_t)used);
    }
    emitter_end_strings(emitter);
}

static void row_out(struct emitter *emitter, const struct diff *diff, const struct diff_row *row)
{
    emitter_row(emitter);
    emitter_delta(emitter, "delta", diff_delta(row));
    emitter_size(emitter, "before", row->before.bytes);
    emitter_size(emitter, "after", row->after.bytes);
    emitter_count_delta(emitter, "blocks_delta", (int64_t)(row->after.blocks - row->before.blocks));
    emitter_count(emitter, "blocks_before", row->before.blocks);
    emitter_count(emitter, "blocks_after", row->after.blocks);
    emitter_delta(emitter, "requested_delta", (int64_t)(row->after.requested - row->before.requested));
    diff_stack_out(emitter, &diff->stacks, row->stack);
}

static void amount_out(struct emitter *emitter, const char *key, const struct diff_amount *amount)
{
    emitter_begin_object(emitter, key, NULL);
    emitter_size(emitter, "bytes", amount->bytes);
    emitter_size(emitter, "requested", amount->requested);
    emitter_count(emitter, "blocks", amount->blocks);
    emitter_end(emitter);
}

static void side_out(struct emitter *emitter, const char *key, const struct load *load)
{
    emitter_begin_object(emitter, key, NULL);
    emitter_text(emitter, "file", load->file);
    emitter_count(emitter, "moment", load->moment);
    emitter_bool(emitter, "is_exact", load->state->exact);
    emitter_end(emitter);
}

static void totals_out(struct emitter *emitter, const struct diff *diff, const struct load *before, const struct load *after,
                       const struct chosen *chosen, bool exact_bytes)
{
    if (emitter_is_json(emitter)) {
        emitter_begin_object(emitter, "files", NULL);
        side_out(emitter, "before", before);
        side_out(emitter, "after", after);
        emitter_end(emitter);
        emitter_begin_object(emitter, "total", NULL);
        amount_out(emitter, "before", &diff->before);
        amount_out(emitter, "after", &diff->after);
        emitter_delta(emitter, "delta", (int64_t)(diff->after.bytes - diff->before.bytes));
        emitter_end(emitter);
        return;
    }
    char first[SIZE_TEXT], second[SIZE_TEXT], change[SIZE_TEXT];
    if (exact_bytes) {
        snprintf(first, sizeof(first), "%" PRIu64, diff->before.bytes);
        snprintf(second, sizeof(second), "%" PRIu64, diff->after.bytes);
        snprintf(change, sizeof(change), "%+" PRId64, (int64_t)(diff->after.bytes - diff->before.bytes));
    } else {
        size_format(diff->before.bytes, first);
        size_format(diff->after.bytes, second);
        size_format_delta(diff->before.bytes, diff->after.bytes, change);
    }
    emitter_note(emitter, "living blocks: %" PRIu64 " of %s, then %" PRIu64 " of %s (net %s); stacks that changed: %zu",
                 diff->before.blocks, first, diff->after.blocks, second, change, chosen->count);
    if (!before->state->exact || !after->state->exact)
        emitter_note(emitter, "the trace tells requested sizes: block sizes of the past are rounded up from them");
}

int diff_stacks_run(const struct command_line *line, const struct load *before, const struct load *after)
{
    struct diff_options options = {.ignore_lines = options_has(line, "ignore-lines"),
                                   .user_frames = before->selection.user_frames,
                                   .by_annotation = options_is(line, "group", "annotation")};
    struct diff_side first = {before->snapshot, before->state, &before->selection};
    struct diff_side second = {after->snapshot, after->state, &after->selection};
    struct error err = {0};
    struct diff diff;
    struct chosen chosen = {0};
    struct output *output = NULL;
    if (diff_states(&first, &second, &options, &diff, &err))
        return command_error(NULL, &err);
    int status = choose_rows(line, &diff, &chosen) ? EXIT_DONE : (error_no_memory(&err), command_error(NULL, &err));
    if (!status)
        status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options how = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &how);
        uint64_t limit = options_number(line, "rows", UINT64_MAX);
        if (emitter) {
            totals_out(emitter, &diff, before, after, &chosen, how.exact_bytes);
            emitter_begin_table(emitter, "stacks", "", diff_columns, sizeof(diff_columns) / sizeof(diff_columns[0]));
            for (size_t i = 0; i < chosen.count && i < limit; i++)
                row_out(emitter, &diff, chosen.rows[i]);
            emitter_end(emitter);
        }
        status = command_finish(emitter, output, chosen.grew && options_has(line, "exit-code") ? EXIT_NO : EXIT_DONE);
    }
    free(chosen.rows);
    diff_free(&diff);
    return status;
}
