/* First-come coverage of addresses.  Uses src/base. */
#include "analyze/coverage.h"

#include "base/error.h"

#include <stdlib.h>

struct coverage {
    uint64_t *edges; /* first addresses of cells, sorted, distinct */
    size_t count, planned;
    uint32_t *owners; /* by cell */
    uint64_t *starts; /* of the owner's range */
    size_t *next;     /* the first cell from here on that is free: a union-find forest */
};

struct coverage *coverage_new(size_t ranges)
{
    struct coverage *coverage = calloc(1, sizeof(*coverage));
    if (coverage)
        coverage->edges = calloc(ranges + 1, 2 * sizeof(*coverage->edges));
    if (coverage && coverage->edges)
        return coverage;
    free(coverage);
    return NULL;
}

void coverage_free(struct coverage *coverage)
{
    if (!coverage)
        return;
    free(coverage->edges);
    free(coverage->owners);
    free(coverage->starts);
    free(coverage->next);
    free(coverage);
}

static uint64_t end_of(uint64_t address, uint64_t size) /* past the last one, UINT64_MAX at most */
{
    uint64_t end;
    return __builtin_add_overflow(address, size, &end) ? UINT64_MAX : end;
}

void coverage_plan(struct coverage *coverage, uint64_t address, uint64_t size)
{
    if (!size)
        return;
    coverage->edges[coverage->planned++] = address;
    coverage->edges[coverage->planned++] = end_of(address, size);
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int coverage_ready(struct coverage *coverage)
{
    qsort(coverage->edges, coverage->planned, sizeof(*coverage->edges), by_address);
    for (size_t i = 0; i < coverage->planned; i++)
        if (!i || coverage->edges[i] != coverage->edges[coverage->count - 1])
            coverage->edges[coverage->count++] = coverage->edges[i];
    size_t cells = coverage->count + 1;
    coverage->owners = malloc(cells * sizeof(*coverage->owners));
    coverage->starts = calloc(cells, sizeof(*coverage->starts));
    coverage->next = malloc(cells * sizeof(*coverage->next));
    if (!coverage->owners || !coverage->starts || !coverage->next)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < cells; i++) {
        coverage->owners[i] = UINT32_MAX;
        coverage->next[i] = i;
    }
    return 0;
}

/* The cell that holds address: the last edge at or below it; `count` if there is none. */
static size_t cell_of(const struct coverage *coverage, uint64_t address)
{
    size_t low = 0, high = coverage->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (coverage->edges[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : coverage->count;
}

static size_t free_from(struct coverage *coverage, size_t cell)
{
    size_t root = cell;
    while (coverage->next[root] != root)
        root = coverage->next[root];
    while (coverage->next[cell] != root) {
        size_t up = coverage->next[cell];
        coverage->next[cell] = root;
        cell = up;
    }
    return root;
}

void coverage_add(struct coverage *coverage, uint64_t address, uint64_t size, uint32_t owner)
{
    uint64_t end = end_of(address, size);
    if (!size)
        return;
    size_t cell = free_from(coverage, cell_of(coverage, address));
    while (cell < coverage->count && coverage->edges[cell] < end) {
        coverage->owners[cell] = owner;
        coverage->starts[cell] = address;
        coverage->next[cell] = cell + 1;
        cell = free_from(coverage, cell + 1);
    }
}

uint32_t coverage_find(const struct coverage *coverage, uint64_t address, uint64_t *start)
{
    size_t cell = cell_of(coverage, address);
    if (cell == coverage->count)
        return UINT32_MAX;
    *start = coverage->starts[cell];
    return coverage->owners[cell];
}
