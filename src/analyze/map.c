/* Groups, items and sums of the map.  Uses src/snapshot and src/base. */
#include "analyze/map.h"

#include "analyze/usage.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define GAP_PART 8                                /* an unmapped part is drawn no longer than 1/8 of what is mapped */
#define RESERVED_MOST ((uint64_t)1 << 40)         /* addresses of one expandable segment, where the device is not known */

bool map_is_living(enum map_kind kind)
{
    return kind == MAP_ALLOCATED || kind == MAP_PENDING;
}

enum map_kind map_block_kind(const struct map *map, uint32_t number)
{
    const struct block *block = &map->state->blocks[number];
    if (map->selection && !selection_has_block(map->selection, map->state, block))
        return MAP_UNSELECTED;
    switch (block->state) {
    case BLOCK_ACTIVE_ALLOCATED:
        return MAP_ALLOCATED;
    case BLOCK_ACTIVE_PENDING_FREE:
        return MAP_PENDING;
    case BLOCK_INACTIVE:
        return MAP_INACTIVE;
    default:
        return MAP_OTHER;
    }
}

/* --- groups ------------------------------------------------------------------------------------------------------ */

#define ORDER(a, b)                                                                                                    \
    if ((a) != (b))                                                                                                    \
    return (a) < (b) ? -1 : 1

static int compare_groups(const struct snapshot *snapshot, const struct segment *x, const struct segment *y)
{
    ORDER(x->process, y->process);
    ORDER(usage_is_devices(y->kind), usage_is_devices(x->kind)); /* the host's memory comes last */
    ORDER(x->device, y->device);
    ORDER(x->is_outside, y->is_outside);
    ORDER(x->kind, y->kind);
    if (x->pool != y->pool) {
        bool has_x = x->pool < snapshot->pool_count, has_y = y->pool < snapshot->pool_count;
        ORDER(!has_x, !has_y);
        for (int i = 0; has_x && i < 2; i++)
            ORDER(snapshot->pools[x->pool].id[i], snapshot->pools[y->pool].id[i]);
    }
    ORDER(x->stream, y->stream);
    return 0;
}

static int compare_segments(const void *a, const void *b, void *context)
{
    const struct map *map = context;
    const struct segment *x = &map->state->segments[*(const uint32_t *)a];
    const struct segment *y = &map->state->segments[*(const uint32_t *)b];
    int order = compare_groups(map->snapshot, x, y);
    if (order)
        return order;
    ORDER(x->address, y->address);
    ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
    return 0;
}

static int choose_segments(struct map *map, struct error *err)
{
    const struct state *state = map->state;
    map->order = malloc((state->segment_count + 1) * sizeof(*map->order));
    if (!map->order || state->segment_count >= NONE32)
        return error_no_memory(err);
    for (uint32_t i = 0; i < state->segment_count; i++)
        if (!map->selection || selection_has_segment(map->selection, &state->segments[i]))
            map->order[map->order_count++] = i;
    if (map->order_count > 1)
        qsort_r(map->order, map->order_count, sizeof(*map->order), compare_segments, map);
    return 0;
}

/* --- sums -------------------------------------------------------------------------------------------------------- */

static void count_block(const struct map *map, struct map_sums *sums, uint32_t number)
{
    const struct block *block = &map->state->blocks[number];
    enum map_kind kind = map_block_kind(map, number);
    sums->bytes[kind] += block->size;
    sums->blocks += map_is_living(kind);
    if (map_is_living(kind) && !(block->flags & BLOCK_REQUESTED_UNKNOWN) && block->requested < block->size)
        sums->wasted += block->size - block->requested;
    if (kind == MAP_INACTIVE && block->size > sums->largest_hole)
        sums->largest_hole = block->size;
}

static void count_segment(const struct map *map, struct map_sums *sums, const struct segment *segment)
{
    uint64_t covered = 0;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        count_block(map, sums, segment->first_block + i);
        covered += map->state->blocks[segment->first_block + i].size;
    }
    sums->segments++;
    sums->reserved += segment->total_size;
    sums->bytes[MAP_BARE] += covered < segment->total_size ? segment->total_size - covered : 0;
}

static void add_sums(struct map_sums *sums, const struct map_sums *more)
{
    sums->segments += more->segments;
    sums->blocks += more->blocks;
    sums->reserved += more->reserved;
    sums->wasted += more->wasted;
    for (int i = 0; i < MAP_KIND_COUNT; i++)
        sums->bytes[i] += more->bytes[i];
    if (more->largest_hole > sums->largest_hole)
        sums->largest_hole = more->largest_hole;
}

/* --- groups, few enough ------------------------------------------------------------------------------------------ */

struct found {
    uint32_t first, count; /* of order */
    uint64_t reserved;
    bool is_kept;
};

static int larger_first(const void *a, const void *b, void *context)
{
    const struct found *all = context, *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
    ORDER(y->reserved, x->reserved);
    ORDER(x->first, y->first);
    return 0;
}

/* The largest are kept, so that with the one for the rest there are no more than MAP_GROUP_MOST. */
static int keep_largest(struct found *found, size_t count)
{
    uint32_t *order = malloc((count + 1) * sizeof(*order));
    if (!order)
        return STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (count > 1) /* else there may be no array */
        qsort_r(order, count, sizeof(*order), larger_first, found);
    for (size_t i = 0; i < count; i++)
        found[order[i]].is_kept = count <= MAP_GROUP_MOST || i + 1 < MAP_GROUP_MOST;
    free(order);
    return 0;
}

static size_t find_groups(const struct map *map, struct found *found)
{
    const struct segment *segments = map->state->segments;
    size_t count = 0;
    for (uint32_t i = 0; i < map->order_count; i++) {
        const struct segment *segment = &segments[map->order[i]];
        if (!i || compare_groups(map->snapshot, &segments[map->order[i - 1]], segment))
            found[count++] = (struct found){.first = i};
        found[count - 1].count++;
        found[count - 1].reserved += segment->total_size;
    }
    return count;
}

/* A gap between two mapped parts belongs to one expandable segment if one reservation of addresses can hold all. */
static bool is_same_range(const struct map *map, const struct segment *first, const struct segment *before,
                          const struct segment *segment)
{
    const struct snapshot *snapshot = map->snapshot;
    uint64_t most = RESERVED_MOST;
    if (!before->is_expandable || !segment->is_expandable || before->is_large != segment->is_large ||
        compare_groups(snapshot, before, segment) || before->address + before->total_size > segment->address)
        return false;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == segment->process && snapshot->devices[i].ordinal == segment->device &&
            snapshot->devices[i].total)
            most = snapshot->devices[i].total / 8 * 9; /* as PyTorch reserves */
    return segment->address + segment->total_size - first->address <= most;
}

/* The item's size: what is mapped, and the gaps between, none of them too long. */
static int measure_item(struct map *map, struct map_item *item)
{
    const struct segment *segments = map->state->segments;
    const uint32_t *order = map->order + item->first;
    uint64_t mapped = 0;
    for (uint32_t i = 0; i < item->count; i++)
        mapped += segments[order[i]].total_size;
    item->gap_most = mapped / GAP_PART;
    item->size = mapped;
    for (uint32_t i = 1; i < item->count; i++) {
        const struct segment *before = &segments[order[i - 1]];
        uint64_t gap = segments[order[i]].address - before->address - before->total_size;
        if (__builtin_add_overflow(item->size, gap < item->gap_most ? gap : item->gap_most, &item->size))
            return STATUS_INPUT;
    }
    return __builtin_add_overflow(map->drawn, item->size, &map->drawn) ? STATUS_INPUT : 0;
}

static int add_items(struct map *map, struct map_group *group, uint32_t first, uint32_t count)
{
    const struct segment *segments = map->state->segments;
    for (uint32_t i = first; i < first + count;) {
        const struct segment *start = &segments[map->order[i]];
        struct map_item item = {.first = i, .count = 1};
        while (++i < first + count && is_same_range(map, start, &segments[map->order[i - 1]], &segments[map->order[i]])) {
            const struct segment *before = &segments[map->order[i - 1]];
            group->sums.bytes[MAP_UNMAPPED] += segments[map->order[i]].address - before->address - before->total_size;
            item.count++;
        }
        int status = measure_item(map, &item);
        if (!status && array_reserve(&map->items, &map->item_capacity, map->item_count + 1, sizeof(*map->items)))
            status = STATUS_NO_MEMORY;
        if (status)
            return status;
        map->items[map->item_count++] = item;
        group->item_count++;
    }
    for (uint32_t i = first; i < first + count; i++)
        count_segment(map, &group->sums, &segments[map->order[i]]);
    return 0;
}

static int add_group_items(struct map *map, struct map_group *group, const struct found *found)
{
    group->stands_for++;
    return add_items(map, group, found->first, found->count);
}

static struct map_group *new_group(struct map *map, const struct found *found)
{
    struct map_group *group = &map->groups[map->group_count++];
    *group = (struct map_group){.segment = map->order[found->first], .first_item = (uint32_t)map->item_count};
    return group;
}

static int make_groups(struct map *map)
{
    struct found *found = malloc((map->order_count + 1) * sizeof(*found));
    size_t count = found ? find_groups(map, found) : 0;
    map->groups = calloc(MAP_GROUP_MOST, sizeof(*map->groups));
    int status = found && map->groups ? keep_largest(found, count) : STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && !status; i++)
        if (found[i].is_kept)
            status = add_group_items(map, new_group(map, &found[i]), &found[i]);
    struct map_group *rest = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        if (found[i].is_kept)
            continue;
        rest = rest ? rest : new_group(map, &found[i]);
        status = add_group_items(map, rest, &found[i]);
    }
    for (size_t i = 0; i < map->group_count && !status; i++)
        add_sums(&map->total, &map->groups[i].sums);
    free(found);
    return status;
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static bool is_sum_too_large(const struct map *map)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < map->order_count; i++)
        if (__builtin_add_overflow(sum, map->state->segments[map->order[i]].total_size, &sum))
            return true;
    return false;
}

int map_build(const struct snapshot *snapshot, const struct state *state, const struct selection *selection,
              enum map_color color, struct map *map, struct error *err)
{
    *map = (struct map){.snapshot = snapshot, .state = state, .color = color};
    map->selection = selection && !selection_is_everything(selection) ? selection : NULL;
    map->texts = frame_texts_new(snapshot);
    map->frame_is_user = calloc(snapshot->frame_count + 1, 1);
    int status = map->texts && map->frame_is_user ? choose_segments(map, err) : error_no_memory(err);
    if (!status) {
        status = is_sum_too_large(map) ? STATUS_INPUT : make_groups(map);
        if (status == STATUS_NO_MEMORY)
            error_no_memory(err);
        else if (status)
            error_set(err, STATUS_INPUT, "the segments add up to more than 64 bits hold");
    }
    if (!status)
        status = map_shade_blocks(map, err);
    if (status)
        map_free(map);
    return status;
}

void map_free(struct map *map)
{
    for (size_t i = 0; i < MAP_SHADES; i++)
        free(map->shades[i].text);
    frame_texts_free(map->texts);
    free(map->order);
    free(map->groups);
    free(map->items);
    free(map->shade_of);
    free(map->history);
    free(map->frame_is_user);
    free(map->is_before);
    no_stacks_close(&map->reasons);
    *map = (struct map){0};
}
