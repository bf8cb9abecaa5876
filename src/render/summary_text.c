/* memory_summary's table as text.  May use src/analyze and src/base. */
#include "render/summary_text.h"

#include "analyze/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INNER 75 /* columns between the bars */
#define CELL 12  /* columns of a cell, its blanks included */

static void rule(struct text *text, char c)
{
    text_char(text, '|');
    for (int i = 0; i < INNER; i++)
        text_char(text, c);
    text_add(text, "|\n");
}

static const char *mark_of(enum statistics_bound bound)
{
    return bound == STATISTICS_AT_LEAST ? ">=" : bound == STATISTICS_AT_MOST ? "<=" : "";
}

/* The twelve columns of a cell: " 76801 KiB " or, marked, " >=76801 KiB" with the blank before given up. */
static void add_cell(struct text *text, const struct summary_cell *cell, bool is_bytes)
{
    static const char *const byte_units[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const char *const count_units[] = {" ", "K", "M"};
    char number[32], shown[64];
    if (cell->bound == STATISTICS_UNKNOWN)
        snprintf(number, sizeof(number), "?");
    else
        snprintf(number, sizeof(number), "%s%" PRId64, mark_of((enum statistics_bound)cell->bound), cell->shown);
    if (is_bytes)
        snprintf(shown, sizeof(shown), "%7s %s", number, byte_units[cell->unit]);
    else
        snprintf(shown, sizeof(shown), "%8s %s ", number, count_units[cell->unit]);
    text_printf(text, "%-*s", CELL, shown); /* eleven columns, or twelve of a long marked number */
}

static void add_row(struct text *text, const struct summary_row *row)
{
    text_printf(text, "| %-21s ", row->name);
    for (int i = 0; i < SUMMARY_COLUMNS; i++) {
        text_char(text, '|');
        add_cell(text, &row->cells[i], row->is_bytes);
    }
    text_add(text, "|\n");
}

static void add_counter(char *shown, size_t size, int64_t count, int64_t bound)
{
    snprintf(shown, size, "%s%" PRId64, mark_of((enum statistics_bound)bound), count);
}

void summary_text(const struct statistics *statistics, bool abbreviated, struct text *text)
{
    struct summary_row rows[SUMMARY_MAX_ROWS];
    size_t count = summary_rows(statistics, abbreviated, rows);
    char ooms[40], retries[40];
    add_counter(ooms, sizeof(ooms), statistics->values.num_ooms, statistics->bounds.num_ooms);
    add_counter(retries, sizeof(retries), statistics->values.num_alloc_retries, statistics->bounds.num_alloc_retries);
    rule(text, '=');
    text_printf(text, "| %16s PyTorch CUDA memory summary, device ID %-17u |\n", "", statistics->device);
    rule(text, '-');
    text_printf(text, "|  %9s CUDA OOMs: %-12s | %6s cudaMalloc retries: %-8s  |\n", "", ooms, "", retries);
    rule(text, '=');
    text_add(text, "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n");
    for (size_t i = 0; i < count; i++) {
        if (rows[i].starts_metric)
            rule(text, '-');
        add_row(text, &rows[i]);
    }
    rule(text, '=');
}
