/*
 * torch.cuda.memory_summary() as data: the rows of its table with the unit that each column of a row has.  A column's
 * unit is chosen by the value of the metric's "all" row, as PyTorch does, so rows of one metric share it.
 * No allocation; thread safe.
 */
#ifndef ANALYZE_SUMMARY_H
#define ANALYZE_SUMMARY_H

#include "analyze/statistics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum summary_column { SUMMARY_CURRENT, SUMMARY_PEAK, SUMMARY_ALLOCATED, SUMMARY_FREED, SUMMARY_COLUMNS };

struct summary_cell {
    int64_t shown;    /* in the unit */
    uint8_t unit;     /* of bytes: 0 B, 1 KiB, ... 5 PiB; of counts: 0 one, 1 K, 2 M */
    uint8_t bound;    /* enum statistics_bound */
};

struct summary_row {
    const char *name;
    bool is_bytes;
    bool starts_metric; /* a rule stands above it */
    struct summary_cell cells[SUMMARY_COLUMNS];
};

#define SUMMARY_MAX_ROWS 29

/* Fills rows[SUMMARY_MAX_ROWS], returns how many; abbreviated: without the pools' rows. */
size_t summary_rows(const struct statistics *statistics, bool abbreviated, struct summary_row *rows);

#endif
