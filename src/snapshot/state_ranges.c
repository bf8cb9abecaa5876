/*
 * Mapped ranges at a moment (virtual memory: segments that grow and shrink).  As with addresses, the first map or unmap
 * after the moment decides, but for each byte of a range: ranges are cut at every end that occurs, and each cell is
 * painted by the first operation that covers it, with a union-find that skips painted cells.  O(k log k).
 * May use src/base and the snapshot.
 */
#include "snapshot/state_internal.h"

#include <stdlib.h>

struct cells {
    uint64_t *bounds; /* sorted, distinct */
    uint32_t *next;   /* union-find: the first unpainted cell at or after this one */
    uint32_t *painter; /* operation, NONE32 */
    size_t count;     /* of bounds; cell i is bounds[i] .. bounds[i + 1] */
};

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static size_t find_bound(const struct cells *cells, uint64_t address)
{
    size_t low = 0, high = cells->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cells->bounds[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t unpainted(struct cells *cells, uint32_t cell)
{
    uint32_t root = cell;
    while (cells->next[root] != root)
        root = cells->next[root];
    while (cells->next[cell] != root) {
        uint32_t following = cells->next[cell];
        cells->next[cell] = root;
        cell = following;
    }
    return root;
}

static void cells_free(struct cells *cells)
{
    free(cells->bounds);
    free(cells->next);
    free(cells->painter);
}

static int paint(const struct range_operation *ranges, size_t count, struct cells *cells)
{
    if (count > NONE32 / 2 - 1)
        return STATUS_NO_MEMORY;
    cells->bounds = malloc(2 * count * sizeof(*cells->bounds));
    cells->next = malloc((2 * count + 1) * sizeof(*cells->next));
    cells->painter = malloc((2 * count + 1) * sizeof(*cells->painter));
    if (!cells->bounds || !cells->next || !cells->painter)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        cells->bounds[2 * i] = ranges[i].start;
        cells->bounds[2 * i + 1] = ranges[i].end;
    }
    qsort(cells->bounds, 2 * count, sizeof(*cells->bounds), compare_numbers);
    for (size_t i = 0; i < 2 * count; i++)
        if (!i || cells->bounds[i] != cells->bounds[cells->count - 1])
            cells->bounds[cells->count++] = cells->bounds[i];
    for (uint32_t i = 0; i <= cells->count; i++) {
        cells->next[i] = i;
        cells->painter[i] = NONE32;
    }
    for (uint32_t i = 0; i < count; i++) { /* in the order of the entries */
        size_t end = find_bound(cells, ranges[i].end);
        uint32_t at = unpainted(cells, (uint32_t)find_bound(cells, ranges[i].start));
        while (at < end) {
            cells->painter[at] = i;
            cells->next[at] = at + 1;
            at = unpainted(cells, at);
        }
    }
    return STATUS_OK;
}

/* A segment of the end state less what was painted. */
static int subtract(struct undo *undo, const struct cells *cells, const struct piece *segment)
{
    uint64_t at = segment->address, end;
    if (__builtin_add_overflow(segment->address, segment->size, &end))
        return STATUS_OK;
    size_t cell = cells->count ? find_bound(cells, at) : 0;
    if (cell)
        cell--;
    for (; cell + 1 < cells->count && cells->bounds[cell] < end; cell++) {
        if (cells->painter[cell] == NONE32 || cells->bounds[cell + 1] <= at)
            continue;
        if (cells->bounds[cell] > at) {
            struct piece part = *segment;
            part.address = at;
            part.size = cells->bounds[cell] - at;
            if (state_add_piece(&undo->segments, &part))
                return STATUS_NO_MEMORY;
        }
        at = cells->bounds[cell + 1];
    }
    if (at < end) {
        struct piece part = *segment;
        part.address = at;
        part.size = end - at;
        return state_add_piece(&undo->segments, &part);
    }
    return STATUS_OK;
}

static struct piece piece_of_range(const struct undo *undo, const struct range_operation *range, uint64_t start,
                                   uint64_t end)
{
    const struct entries *entries = &undo->snapshot->entries;
    bool implied = undo->spaces[range->space].implied;
    uint64_t size = range->end - range->start;
    return (struct piece){.address = start,
                          .size = end - start,
                          .space = range->space,
                          .context = CONTEXT_NONE,
                          .pool = entries->pool ? entries->pool[range->entry] : NONE32,
                          .stream = undo->snapshot->streams[entries->stream[range->entry]],
                          .end_segment = NONE32,
                          .kind = entries->kind ? entries->kind[range->entry] : MEMORY_VIRTUAL,
                          .is_large = implied ? size > SMALL_SIZE : size % LARGE_BUFFER == 0,
                          .class_known = implied,
                          .is_expandable = !implied,
                          .is_outside = entries->flags[range->entry] & ENTRY_OUTSIDE};
}

/* Painted cells that an unmap took later; cells of one operation that touch are one piece. */
static int restore_cells(struct undo *undo, const struct range_operation *ranges, const struct cells *cells)
{
    for (size_t i = 0; i + 1 < cells->count;) {
        uint32_t painter = cells->painter[i];
        size_t end = i + 1;
        while (end + 1 < cells->count && cells->painter[end] == painter)
            end++;
        if (painter != NONE32 && ranges[painter].restores) {
            struct piece piece = piece_of_range(undo, &ranges[painter], cells->bounds[i], cells->bounds[end]);
            if (state_add_piece(&undo->segments, &piece))
                return STATUS_NO_MEMORY;
        }
        i = end;
    }
    return STATUS_OK;
}

/* Pieces of one reservation that touch were one segment. */
static void merge_touching(struct undo *undo, size_t from)
{
    struct piece *items = undo->segments.items;
    size_t kept = from;
    for (size_t i = from; i < undo->segments.count; i++) {
        struct piece *last = kept > from ? &items[kept - 1] : NULL, *piece = &items[i];
        bool touches = last && last->space == piece->space && last->address + last->size == piece->address &&
                       last->stream == piece->stream && last->is_expandable && piece->is_expandable &&
                       (!last->class_known || !piece->class_known || last->is_large == piece->is_large) &&
                       (last->pool == piece->pool || last->pool == NONE32 || piece->pool == NONE32);
        if (!touches) {
            items[kept++] = *piece;
            continue;
        }
        last->size += piece->size;
        if (last->pool == NONE32)
            last->pool = piece->pool;
        if (!last->class_known && piece->class_known) {
            last->is_large = piece->is_large;
            last->class_known = true;
        }
    }
    undo->segments.count = kept;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range_operation *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

struct range_segment {
    uint32_t space, index;
};

static int compare_range_segments(const void *a, const void *b)
{
    const struct range_segment *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The end state's mapped segments, by space. */
static struct range_segment *range_segments(struct undo *undo, size_t *count)
{
    const struct state *end = &undo->snapshot->end;
    struct range_segment *found = malloc((end->segment_count + 1) * sizeof(*found));
    *count = 0;
    for (uint32_t s = 0; found && s < end->segment_count; s++) {
        const struct segment *segment = &end->segments[s];
        if (!segment->is_expandable && segment->kind != MEMORY_VIRTUAL)
            continue;
        uint32_t space = state_space(undo, segment->process, segment->device);
        if (table_has(&undo->spaces[space].segments, segment->address))
            continue; /* came and went as a whole */
        found[(*count)++] = (struct range_segment){space, s};
    }
    if (found && *count)
        qsort(found, *count, sizeof(*found), compare_range_segments);
    return found;
}

/* One space: its operations, its segments of the end state. */
static int collect_space(struct undo *undo, const struct range_operation *ranges, size_t range_count,
                         const struct range_segment *kept, size_t kept_count)
{
    struct cells cells = {0};
    int status = range_count ? paint(ranges, range_count, &cells) : STATUS_OK;
    for (size_t i = 0; i < kept_count && !status; i++) {
        struct piece piece = state_piece_of_segment(undo, kept[i].index, kept[i].space);
        status = subtract(undo, &cells, &piece);
    }
    if (!status && range_count)
        status = restore_cells(undo, ranges, &cells);
    cells_free(&cells);
    return status;
}

int state_collect_ranges(struct undo *undo)
{
    if (undo->range_count)
        qsort(undo->ranges, undo->range_count, sizeof(*undo->ranges), compare_ranges);
    size_t kept_count, range = 0, kept = 0, first = undo->segments.count;
    struct range_segment *segments = range_segments(undo, &kept_count);
    if (!segments)
        return STATUS_NO_MEMORY;
    int status = STATUS_OK;
    for (uint32_t space = 0; space < undo->space_count && !status; space++) {
        size_t range_end = range, kept_end = kept;
        while (range_end < undo->range_count && undo->ranges[range_end].space == space)
            range_end++;
        while (kept_end < kept_count && segments[kept_end].space == space)
            kept_end++;
        const struct range_operation *ranges = undo->ranges ? undo->ranges + range : NULL;
        status = collect_space(undo, ranges, range_end - range, segments + kept, kept_end - kept);
        range = range_end;
        kept = kept_end;
    }
    free(segments);
    if (!status && undo->segments.count) {
        struct pieces part = {.items = undo->segments.items + first, .count = undo->segments.count - first};
        if (part.count)
            state_sort_pieces(&part);
        merge_touching(undo, first);
    }
    return status;
}
