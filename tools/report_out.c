/* The tables of `cudamem report`.  Uses analyze, render and base. */
#include "tools/report_out.h"

#include "base/size.h"
#include "tools/report_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_COLUMN 7 /* of each list: its key is the group's */
static const struct emitter_column report_columns[] = {
    {"bytes", NULL, EMITTER_NUMBER},     {"percent", "%", EMITTER_NUMBER}, {"requested", NULL, EMITTER_NUMBER},
    {"waste", NULL, EMITTER_NUMBER},     {"pending", NULL, EMITTER_NUMBER}, {"count", NULL, EMITTER_NUMBER},
    {"alive", NULL, EMITTER_NUMBER},
};

/* --- order ---------------------------------------------------------------------------------------------------------- */

struct order {
    const struct report *report;
    const char *sort;
};

static uint64_t sort_key(const struct report_amount *amount, const char *sort)
{
    return strcmp(sort, "count") == 0       ? amount->count
           : strcmp(sort, "waste") == 0     ? report_waste(amount)
           : strcmp(sort, "requested") == 0 ? amount->requested
                                            : amount->bytes;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct report_row *x = *(const struct report_row *const *)a, *y = *(const struct report_row *const *)b;
    const struct order *order = context;
    if (strcmp(order->sort, "name") == 0) {
        int names = stack_tree_compare(&order->report->stacks, x->stack, y->stack);
        if (names)
            return names;
    } else {
        uint64_t first = sort_key(&x->amount, order->sort), second = sort_key(&y->amount, order->sort);
        if (first != second)
            return first > second ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* they lie in the measure's own order */
}

static const struct report_row **sorted_rows(const struct command_line *line, const struct report *report)
{
    const struct report_row **rows = malloc((report->count + 1) * sizeof(*rows));
    struct order order = {report, options_text(line, "sort")};
    for (size_t i = 0; rows && i < report->count; i++)
        rows[i] = &report->rows[i];
    if (rows && order.sort && report->count > 1)
        qsort_r(rows, report->count, sizeof(*rows), compare_rows, &order);
    return rows;
}

/* --- out ------------------------------------------------------------------------------------------------------------ */

static uint64_t share_of(const struct report_amount *amount, enum report_by by)
{
    return by == REPORT_TEMPORARY ? amount->count : by == REPORT_WASTE ? report_waste(amount) : amount->bytes;
}

static void amount_out(struct emitter *emitter, const struct report_amount *amount)
{
    emitter_size(emitter, "requested", amount->requested);
    emitter_size(emitter, "waste", report_waste(amount));
    emitter_size(emitter, "pending", amount->pending);
    emitter_count(emitter, "count", amount->count);
    emitter_count(emitter, "alive", amount->alive);
}

static void total_out(struct emitter *emitter, const struct report *report, const struct load *load, uint64_t since)
{
    const struct report_amount *total = &report->total;
    emitter_begin_object(emitter, "report", NULL);
    emitter_text(emitter, "file", load->file);
    emitter_count(emitter, "moment", load->moment);
    emitter_count(emitter, "since", since);
    emitter_bool(emitter, "is_exact", report->is_exact);
    emitter_end(emitter);
    emitter_begin_object(emitter, "total", NULL);
    emitter_size(emitter, "bytes", total->bytes);
    amount_out(emitter, total);
    emitter_size(emitter, "requested_unknown", total->unknown);
    emitter_size(emitter, "outside", total->outside);
    emitter_count(emitter, "allocations", total->of);
    emitter_size(emitter, "cached", report->cached);
    emitter_size(emitter, "host", report->host);
    emitter_end(emitter);
}

static const char *sized(uint64_t bytes, bool exact, char text[SIZE_TEXT])
{
    if (!exact)
        return size_format(bytes, text);
    snprintf(text, SIZE_TEXT, "%" PRIu64 " B", bytes);
    return text;
}

static void heading_out(struct emitter *emitter, const struct report *report, const struct report_options *options, bool exact)
{
    static const char *const what[] = {"living blocks", "allocations", "blocks allocated since and alive",
                                       "temporary allocations", "living blocks"};
    const struct report_amount *total = &report->total;
    char first[SIZE_TEXT], second[SIZE_TEXT];
    if (options->by == REPORT_TEMPORARY)
        emitter_note(emitter, "temporary allocations: %" PRIu64 " of %" PRIu64 ", of %s together, freed at most %" PRIu64
                     " entries later", total->count, total->of, sized(total->bytes, exact, first), options->within);
    else if (options->by == REPORT_WASTE)
        emitter_note(emitter, "living blocks: %" PRIu64 " of %s, larger than asked by %s together", total->count,
                     sized(total->bytes, exact, first), sized(report_waste(total), exact, second));
    else
        emitter_note(emitter, "%s: %" PRIu64 " of %s, of which %s were asked for", what[options->by], total->count,
                     sized(total->bytes, exact, first), sized(total->requested, exact, second));
    if (total->unknown)
        emitter_note(emitter, "%s are of blocks of which nobody knows what was asked for: they waste nothing here",
                     sized(total->unknown, exact, first));
    if (total->pending)
        emitter_note(emitter, "%s are freed and wait for a stream", sized(total->pending, exact, first));
    if (total->outside)
        emitter_note(emitter, "%s are beside the framework's allocator", sized(total->outside, exact, first));
    if (options->by == REPORT_LEAK && report->cached)
        emitter_note(emitter, "cached, not leaked: %s that an allocator keeps and nobody uses", sized(report->cached, exact, first));
    if (report->host_blocks)
        emitter_note(emitter, "pinned memory of the host is left out: %s", sized(report->host, exact, first));
    if (!report->is_exact && options->by != REPORT_ALLOCATED && options->by != REPORT_TEMPORARY)
        emitter_note(emitter, "the trace tells requested sizes: block sizes of the past are rounded up from them");
}

static void key_out(struct emitter *emitter, const struct report *report, uint32_t node, bool is_stack, const char *key)
{
    size_t length = 0, shown = 0, limit = emitter_is_aligned(emitter) ? REPORT_SHOWN_FRAMES : SIZE_MAX;
    const char *text = NULL;
    if (!is_stack) {
        text = report_frame(report, &node, &length);
        emitter_string(emitter, key, text ? text : "", length);
        return;
    }
    emitter_begin_strings(emitter, key);
    while ((text = report_frame(report, &node, &length)))
        if (shown++ < limit)
            emitter_item(emitter, text, length);
    if (shown > limit) {
        char rest[40];
        int used = snprintf(rest, sizeof(rest), "... %zu more", shown - limit);
        emitter_item(emitter, rest, (size_t)used);
    }
    emitter_end_strings(emitter);
}

static void rows_out(struct emitter *emitter, const struct command_line *line, const struct report *report,
                     const struct report_options *options, const struct report_row **rows)
{
    struct emitter_column columns[LAST_COLUMN + 1];
    const char *key = options_text(line, "group") ? options_text(line, "group") : "stack";
    uint64_t limit = options_number(line, "rows", UINT64_MAX), whole = share_of(&report->total, options->by);
    bool is_stack = options->group == REPORT_STACK;
    memcpy(columns, report_columns, sizeof(report_columns));
    columns[LAST_COLUMN] = (struct emitter_column){key, NULL, is_stack ? EMITTER_LIST : EMITTER_STRING};
    emitter_begin_table(emitter, "rows", "", columns, LAST_COLUMN + 1);
    for (size_t i = 0; i < report->count && i < limit; i++) {
        const struct report_amount *amount = &rows[i]->amount;
        emitter_row(emitter);
        emitter_size(emitter, "bytes", amount->bytes);
        emitter_percent(emitter, "percent", whole ? 100.0 * (double)share_of(amount, options->by) / (double)whole : 0);
        amount_out(emitter, amount);
        key_out(emitter, report, rows[i]->stack, is_stack, key);
    }
    emitter_end(emitter);
}

int report_out(const struct command_line *line, const struct load *load, const struct report *report,
                      const struct report_options *options)
{
    struct output *output = NULL;
    struct error err = {0};
    const struct report_row **rows = sorted_rows(line, report);
    struct report_tree *tree = options_has(line, "tree") ? report_tree_new(report, options_number(line, "rows", UINT64_MAX)) : NULL;
    bool failed = !rows || (options_has(line, "tree") && !tree);
    int status = failed ? (error_no_memory(&err), command_error(NULL, &err))
                        : command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options how = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &how);
        if (emitter && emitter_is_json(emitter))
            total_out(emitter, report, load, options->since);
        else if (emitter)
            heading_out(emitter, report, options, how.exact_bytes);
        if (emitter && tree)
            report_tree_out(emitter, tree);
        else if (emitter)
            rows_out(emitter, line, report, options, rows);
        status = command_finish(emitter, output, EXIT_DONE);
    }
    report_tree_free(tree);
    free(rows);
    return status;
}
