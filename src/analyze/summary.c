/* The rows of memory_summary.  May use src/analyze and src/base. */
#include "analyze/summary.h"

#include <string.h>

/* Python's integer division, which rounds down. */
static int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return a % b != 0 && a < 0 ? quotient - 1 : quotient;
}

static struct summary_cell make_cell(int64_t number, int64_t preferred, bool is_bytes, int64_t bound)
{
    struct summary_cell cell = {.shown = number, .bound = (uint8_t)bound};
    int64_t factor = is_bytes ? 1024 : 1000;
    double weight = (double)preferred, limit = is_bytes ? 768.0 * 1024 : 750.0 * 1000;
    for (uint8_t units = is_bytes ? 5 : 2; cell.unit < units && weight >= limit; cell.unit++) {
        cell.shown = floor_divide(cell.shown, factor);
        weight /= (double)factor;
    }
    return cell;
}

static void fill_row(struct summary_row *row, const struct memory_stat *stat, const struct memory_stat *all,
                     const struct memory_stat *bound)
{
    row->cells[SUMMARY_CURRENT] = make_cell(stat->current, all->current, row->is_bytes, bound->current);
    row->cells[SUMMARY_PEAK] = make_cell(stat->peak, all->peak, row->is_bytes, bound->peak);
    row->cells[SUMMARY_ALLOCATED] = make_cell(stat->allocated, all->allocated, row->is_bytes, bound->allocated);
    row->cells[SUMMARY_FREED] = make_cell(stat->freed, all->freed, row->is_bytes, bound->freed);
}

size_t summary_rows(const struct statistics *statistics, bool abbreviated, struct summary_row *rows)
{
    static const struct {
        const char *name;
        enum memory_stat_kind kind;
        bool is_bytes;
    } metrics[] = {
        {"Allocated memory", MEMORY_STAT_ALLOCATED_BYTES, true},
        {"Active memory", MEMORY_STAT_ACTIVE_BYTES, true},
        {"Requested memory", MEMORY_STAT_REQUESTED_BYTES, true},
        {"GPU reserved memory", MEMORY_STAT_RESERVED_BYTES, true},
        {"Non-releasable memory", MEMORY_STAT_INACTIVE_SPLIT_BYTES, true},
        {"Allocations", MEMORY_STAT_ALLOCATION, false},
        {"Active allocs", MEMORY_STAT_ACTIVE, false},
        {"GPU reserved segments", MEMORY_STAT_SEGMENT, false},
        {"Non-releasable allocs", MEMORY_STAT_INACTIVE_SPLIT, false},
    };
    static const struct {
        const char *name;
        enum memory_pool_class pool;
    } pools[] = {{NULL, MEMORY_POOL_ALL}, {"      from large pool", MEMORY_POOL_LARGE}, {"      from small pool", MEMORY_POOL_SMALL}};
    size_t count = 0;
    for (size_t m = 0; m < sizeof(metrics) / sizeof(metrics[0]); m++) {
        const struct memory_stat *stats = statistics->values.kinds[metrics[m].kind];
        const struct memory_stat *bounds = statistics->bounds.kinds[metrics[m].kind];
        for (size_t p = 0; p < (abbreviated ? 1 : 3); p++) {
            struct summary_row *row = &rows[count++];
            row->name = p ? pools[p].name : metrics[m].name;
            row->is_bytes = metrics[m].is_bytes;
            row->starts_metric = p == 0;
            fill_row(row, &stats[pools[p].pool], &stats[MEMORY_POOL_ALL], &bounds[pools[p].pool]);
        }
    }
    rows[count] = (struct summary_row){.name = "Oversize allocations", .starts_metric = true};
    fill_row(&rows[count++], &statistics->values.oversize_allocations, &statistics->values.oversize_allocations,
             &statistics->bounds.oversize_allocations);
    rows[count] = (struct summary_row){.name = "Oversize GPU segments", .starts_metric = true};
    fill_row(&rows[count++], &statistics->values.oversize_segments, &statistics->values.oversize_segments,
             &statistics->bounds.oversize_segments);
    return count;
}
