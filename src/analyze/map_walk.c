/* Cells of the map's items, small neighbours as one.  Uses src/snapshot. */
#include "analyze/map.h"

#include <string.h>

/* --- cells as they are ------------------------------------------------------------------------------------------- */

static struct map_cell plain_cell(enum map_kind kind, uint32_t segment, uint64_t address, uint64_t bytes)
{
    return (struct map_cell){.size = bytes, .bytes = bytes, .pieces = 1, .address = address, .segment = segment,
                             .block = NONE32, .kind = (uint8_t)kind, .living_kind = MAP_ALLOCATED};
}

static struct map_cell block_cell(const struct map *map, uint32_t number)
{
    const struct block *block = &map->state->blocks[number];
    enum map_kind kind = map_block_kind(map, number);
    struct map_cell cell = plain_cell(kind, block->segment, block->address, block->size);
    cell.block = number;
    if (!map_is_living(kind))
        return cell;
    cell.living = block->size;
    cell.living_kind = (uint8_t)kind;
    cell.shade = map->shade_of ? map->shade_of[number] : 0;
    if (!(block->flags & BLOCK_REQUESTED_UNKNOWN) && block->requested < block->size)
        cell.wasted = block->size - block->requested;
    return cell;
}

/* What lies between the mapped parts of an expandable segment. */
static bool take_gap(struct map_walk *walk, const struct segment *segment, uint32_t number, struct map_cell *cell)
{
    uint64_t gap = walk->part ? segment->address - walk->at : 0;
    *cell = plain_cell(MAP_UNMAPPED, number, walk->at, gap);
    cell->size = gap < walk->item->gap_most ? gap : walk->item->gap_most;
    walk->is_inside = true;
    walk->block = 0;
    walk->at = segment->address;
    return cell->size > 0;
}

static bool take_block(struct map_walk *walk, const struct segment *segment, uint32_t number, struct map_cell *cell)
{
    const struct map *map = walk->map;
    const struct block *block = &map->state->blocks[segment->first_block + walk->block];
    if (block->address > walk->at) {
        *cell = plain_cell(MAP_BARE, number, walk->at, block->address - walk->at);
        walk->at = block->address;
        return true;
    }
    *cell = block_cell(map, segment->first_block + walk->block);
    walk->block++;
    walk->at = block->address + block->size;
    return cell->size > 0;
}

static bool next_plain(struct map_walk *walk, struct map_cell *cell)
{
    const struct map *map = walk->map;
    while (walk->part < walk->item->count) {
        uint32_t number = map->order[walk->item->first + walk->part];
        const struct segment *segment = &map->state->segments[number];
        uint64_t end = segment->address + segment->total_size;
        bool found;
        if (!walk->is_inside) {
            found = take_gap(walk, segment, number, cell);
        } else if (walk->block < segment->block_count) {
            found = take_block(walk, segment, number, cell);
        } else {
            found = walk->at < end;
            if (found)
                *cell = plain_cell(MAP_BARE, number, walk->at, end - walk->at);
            walk->at = end;
            walk->is_inside = false;
            walk->part++;
        }
        if (found) {
            cell->offset = walk->offset;
            walk->offset += cell->size;
            return true;
        }
    }
    return false;
}

/* --- runs -------------------------------------------------------------------------------------------------------- */

struct run {
    struct map_cell cell;
    uint64_t kinds[MAP_KIND_COUNT], shades[2][MAP_SHADES]; /* bytes; allocated and pending */
};

static void run_add(struct run *run, const struct map_cell *cell)
{
    if (!run->cell.pieces) {
        run->cell = *cell;
    } else {
        run->cell.size += cell->size;
        run->cell.bytes += cell->bytes;
        run->cell.wasted += cell->wasted;
        run->cell.living += cell->living;
        run->cell.pieces += cell->pieces;
    }
    run->kinds[cell->kind] += cell->bytes - cell->living;
    if (cell->living)
        run->shades[cell->living_kind == MAP_PENDING][cell->shade] += cell->living;
}

/* A run of one is what it is; of more, what most of it is. */
static void run_end(struct run *run)
{
    uint64_t most = 0, most_living = 0;
    if (run->cell.pieces < 2)
        return;
    run->cell.block = NONE32;
    run->cell.kind = MAP_INACTIVE;
    for (int i = 0; i < MAP_KIND_COUNT; i++)
        if (run->kinds[i] > most) {
            most = run->kinds[i];
            run->cell.kind = (uint8_t)i;
        }
    for (int pending = 0; pending < 2; pending++)
        for (int i = 0; i < MAP_SHADES; i++)
            if (run->shades[pending][i] > most_living) {
                most_living = run->shades[pending][i];
                run->cell.living_kind = (uint8_t)(pending ? MAP_PENDING : MAP_ALLOCATED);
                run->cell.shade = (uint8_t)i;
            }
}

void map_walk_start(struct map_walk *walk, const struct map *map, const struct map_item *item, uint64_t least)
{
    *walk = (struct map_walk){.map = map, .item = item, .least = least};
    walk->has_next = next_plain(walk, &walk->next);
}

bool map_walk_next(struct map_walk *walk, struct map_cell *cell)
{
    struct run run = {0};
    if (!walk->has_next)
        return false;
    do {
        run_add(&run, &walk->next);
        walk->has_next = next_plain(walk, &walk->next);
    } while (walk->has_next && run.cell.size < walk->least && walk->next.size < walk->least);
    run_end(&run);
    *cell = run.cell;
    return true;
}

static void add_item(struct run *run, const struct map *map, const struct map_item *item)
{
    struct map_walk walk;
    struct map_cell cell;
    map_walk_start(&walk, map, item, 1);
    while (map_walk_next(&walk, &cell))
        run_add(run, &cell);
}

size_t map_item_run(const struct map *map, size_t item, size_t end, uint64_t least, struct map_cell *cell)
{
    uint64_t size = 0;
    size_t count = 0;
    while (item + count < end && map->items[item + count].size < least && size < least)
        size += map->items[item + count++].size;
    if (count < 2)
        return 1;
    struct run run = {0};
    for (size_t i = 0; i < count; i++)
        add_item(&run, map, &map->items[item + i]);
    run.cell.pieces = run.cell.pieces < 2 ? 2 : run.cell.pieces; /* a run, even of empty ones */
    run_end(&run);
    *cell = run.cell;
    return count;
}

/* --- how much is one --------------------------------------------------------------------------------------------- */

static uint64_t count_cells(const struct map *map, uint64_t least)
{
    uint64_t count = 0;
    struct map_walk walk;
    struct map_cell cell;
    for (size_t g = 0; g < map->group_count; g++) {
        size_t at = map->groups[g].first_item, end = at + map->groups[g].item_count;
        while (at < end) {
            size_t run = map_item_run(map, at, end, least, &cell);
            count += 2; /* an outline costs as much as a cell */
            if (run == 1)
                for (map_walk_start(&walk, map, &map->items[at], least); map_walk_next(&walk, &cell);)
                    count++;
            at += run;
        }
    }
    return count;
}

uint64_t map_least(const struct map *map, uint64_t most)
{
    uint64_t least = 1;
    if (count_cells(map, least) <= most)
        return least;
    for (least = map->drawn / (most * 64) + 1; least <= map->drawn / 2 && count_cells(map, least) > most; least += least)
        ;
    return least;
}
