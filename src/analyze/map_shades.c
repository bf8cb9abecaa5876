/* What the map's blocks are coloured by: size, age, owner.  Uses src/analyze, src/snapshot and src/base. */
#include "analyze/map.h"

#include "analyze/flame.h"
#include "analyze/ranges.h"
#include "base/array.h"
#include "base/size.h"
#include "base/table.h"
#include "base/text.h"
#include "snapshot/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWNERS_SHOWN 7                   /* with a colour of their own */
#define OWNER_OTHERS OWNERS_SHOWN
#define OWNER_NONE (OWNERS_SHOWN + 1)

/* --- whose blocks ------------------------------------------------------------------------------------------------- */

static bool is_user(struct map *map, uint32_t frame)
{
    uint8_t *known = &map->frame_is_user[frame];
    if (!*known)
        *known = selection_is_plumbing(map->snapshot, frame) || frame_label(map->texts, frame) == FRAME_LEFT_OUT ? 1 : 2;
    return *known == 2;
}

static size_t stack_labels(struct map *map, uint32_t stack, bool user, uint32_t *labels, size_t most, bool *is_more)
{
    const struct snapshot *snapshot = map->snapshot;
    size_t count = 0;
    for (; stack != STACK_EMPTY; stack = snapshot->stacks[stack].parent) {
        uint32_t frame = snapshot->stacks[stack].frame, label = frame_label(map->texts, frame);
        if (label == FRAME_LEFT_OUT || (user && !is_user(map, frame)))
            continue;
        if (count == most) {
            *is_more = true;
            break;
        }
        labels[count++] = label;
    }
    return count;
}

size_t map_block_frames(struct map *map, uint32_t block, uint32_t *labels, size_t most, bool *is_more)
{
    uint32_t stack = snapshot_context_stack(map->snapshot, map->state->blocks[block].context);
    *is_more = false;
    size_t count = stack_labels(map, stack, true, labels, most, is_more);
    if (!count)
        count = stack_labels(map, stack, false, labels, most, is_more);
    if (!count && map->history && map->history[block] != NONE32)
        labels[count++] = map->history[block];
    return count;
}

uint32_t map_block_owner(struct map *map, uint32_t block)
{
    uint32_t label;
    bool is_more;
    return map_block_frames(map, block, &label, 1, &is_more) ? label : NONE32;
}

/* Files before 2.0 have frames in a history beside the block: its newest one is enough. */
struct histories {
    struct map *map;
    uint32_t *labels;
    size_t capacity;
};

static int take_history(void *context, const struct flame_line *line)
{
    struct histories *histories = context;
    uint32_t *label = &histories->map->history[line->block];
    if (line->leaf != FLAME_STACK || *label != NONE32)
        return 0;
    size_t count = flame_line_labels(histories->map->texts, line, &histories->labels, &histories->capacity);
    if (count == SIZE_MAX)
        return STATUS_NO_MEMORY;
    if (count)
        *label = histories->labels[count - 1];
    return 0;
}

static int find_histories(struct map *map)
{
    const struct state *state = map->state;
    bool is_old = false;
    for (size_t i = 0; i < state->block_count && !is_old && map->snapshot->odd_count; i++)
        is_old = state->blocks[i].shape != SHAPE_OURS && state->blocks[i].context == CONTEXT_NONE;
    if (!is_old)
        return 0;
    struct histories histories = {.map = map};
    map->history = malloc((state->block_count + 1) * sizeof(*map->history));
    int status = map->history ? 0 : STATUS_NO_MEMORY;
    for (size_t i = 0; !status && i < state->block_count; i++)
        map->history[i] = NONE32;
    for (size_t i = 0; !status && i < state->segment_count; i++)
        status = flame_segment_lines(map->snapshot, state, i, take_history, &histories);
    free(histories.labels);
    return status;
}

/* --- why there is no stack ------------------------------------------------------------------------------------------ */

static bool lacks_stack(const struct map *map)
{
    const struct state *state = map->state;
    for (uint32_t i = 0; i < state->block_count; i++)
        if (map_is_living(map_block_kind(map, i)) &&
            snapshot_context_stack(map->snapshot, state->blocks[i].context) == STACK_EMPTY)
            return true;
    return false;
}

static int find_reasons(struct map *map, struct error *err)
{
    const struct snapshot *snapshot = map->snapshot;
    struct state marked = {0};
    if (snapshot->first_entry || !lacks_stack(map)) /* of entries that were cut away nothing can be said */
        return 0;
    int status = no_stacks_open(snapshot, &map->reasons, err);
    if (status)
        return status;
    map->is_before = calloc(map->state->block_count + 1, sizeof(*map->is_before));
    status = !map->is_before || state_copy(&marked, map->state) ? STATUS_NO_MEMORY : 0;
    if (!status && snapshot->entries.count)
        status = state_mark_before_recording(snapshot, &marked, err);
    for (size_t i = 0; !status && i < marked.block_count; i++)
        map->is_before[i] = marked.blocks[i].flags & BLOCK_BEFORE_RECORDING;
    state_free(&marked);
    return status;
}

const char *map_block_reason(const struct map *map, uint32_t number)
{
    const struct block *block = &map->state->blocks[number];
    const struct segment *segment = &map->state->segments[block->segment];
    if (!map->is_before)
        return NULL;
    return no_stack_text(no_stack_of(&map->reasons, segment->process, segment->device, block->context, map->is_before[number]));
}

/* --- shades ------------------------------------------------------------------------------------------------------ */

static bool is_shaded(const struct map *map, uint32_t block)
{
    const struct segment *segment = &map->state->segments[map->state->blocks[block].segment];
    return map_is_living(map_block_kind(map, block)) &&
           (!map->selection || selection_has_segment(map->selection, segment));
}

static void shade_block(struct map *map, uint32_t block, unsigned shade)
{
    map->shade_of[block] = (uint8_t)shade;
    map->shades[shade].blocks++;
    map->shades[shade].bytes += map->state->blocks[block].size;
}

static int name_shade(struct map *map, unsigned shade, const char *text)
{
    if (shade >= map->shade_count)
        map->shade_count = shade + 1;
    free(map->shades[shade].text);
    map->shades[shade].text = strdup(text);
    return map->shades[shade].text ? 0 : STATUS_NO_MEMORY;
}

static int shade_by_size(struct map *map)
{
    static const uint64_t above[] = {0, 64 << 10, 1 << 20, 10 << 20, 64 << 20, 512 << 20};
    static const char *const names[] = {"up to 64 KiB", "up to 1 MiB",   "up to 10 MiB",
                                        "up to 64 MiB", "up to 512 MiB", "over 512 MiB"};
    enum { COUNT = sizeof(above) / sizeof(above[0]) };
    for (uint32_t i = 0; i < map->state->block_count; i++) {
        unsigned shade = COUNT - 1;
        while (shade && map->state->blocks[i].size <= above[shade])
            shade--;
        if (is_shaded(map, i))
            shade_block(map, i, shade);
    }
    for (unsigned i = 0; i < COUNT; i++)
        if (name_shade(map, i, names[i]))
            return STATUS_NO_MEMORY;
    return 0;
}

/* --- by age ------------------------------------------------------------------------------------------------------ */

static void span_text(char *text, size_t room, bool is_time, uint64_t span)
{
    if (!is_time)
        snprintf(text, room, "%" PRIu64 " %s", span, span == 1 ? "entry" : "entries");
    else if (span < 1000)
        snprintf(text, room, "%" PRIu64 " us", span);
    else if (span < 1000000)
        snprintf(text, room, "%" PRIu64 ".%" PRIu64 " ms", span / 1000, span % 1000 / 100);
    else
        snprintf(text, room, "%" PRIu64 ".%" PRIu64 " s", span / 1000000, span % 1000000 / 100000);
}

struct ages {
    struct ranges_index index;
    bool is_time;
    uint64_t now, start; /* entry numbers, or microseconds */
};

static uint64_t when(const struct map *map, const struct ages *ages, uint64_t entry)
{
    return ages->is_time ? (uint64_t)map->snapshot->entries.time[entry] : entry;
}

/* Times if every entry has one, else the entries' numbers. */
static void find_span(const struct map *map, struct ages *ages)
{
    const struct entries *entries = &map->snapshot->entries;
    uint64_t end = map->state->moment;
    ages->is_time = end > 0;
    for (uint64_t i = 0; i < end && ages->is_time; i++)
        ages->is_time = !(entries->flags[i] & ENTRY_NO_TIME) && entries->time[i] >= 0;
    ages->start = end ? when(map, ages, 0) : 0;
    ages->now = !end ? 0 : ages->is_time ? when(map, ages, end - 1) : end;
    if (ages->now < ages->start)
        ages->now = ages->start;
}

static int shade_by_age(struct map *map)
{
    static const uint64_t parts[] = {1000, 100, 10, 2, 1}; /* of the whole time */
    enum { COUNT = sizeof(parts) / sizeof(parts[0]) };
    struct ages ages = {0};
    char span[40], text[80];
    if (ranges_index_make(&ages.index, map->snapshot)) {
        ranges_index_free(&ages.index);
        return STATUS_NO_MEMORY;
    }
    find_span(map, &ages);
    uint64_t whole = ages.now - ages.start;
    for (uint32_t i = 0; i < map->state->block_count; i++) {
        if (!is_shaded(map, i))
            continue;
        size_t entry = ranges_maker(&ages.index, map->state, &map->state->blocks[i]);
        unsigned shade = COUNT;
        uint64_t made = entry == SIZE_MAX ? 0 : when(map, &ages, entry), age = ages.now > made ? ages.now - made : 0;
        if (entry != SIZE_MAX)
            for (shade = 0; shade + 1 < COUNT && age > whole / parts[shade];)
                shade++;
        shade_block(map, i, shade);
    }
    ranges_index_free(&ages.index);
    int status = name_shade(map, COUNT, "from before the trace");
    for (unsigned i = 0; i < COUNT && !status; i++) {
        span_text(span, sizeof(span), ages.is_time, i + 1 < COUNT ? whole / parts[i] : whole / parts[i - 1]);
        snprintf(text, sizeof(text), i + 1 < COUNT ? "up to %s old" : "older than %s", span);
        status = name_shade(map, i, text);
    }
    return status;
}

/* --- by owner ---------------------------------------------------------------------------------------------------- */

struct owner {
    uint32_t label;
    uint64_t bytes;
};

static int compare_owners(const void *a, const void *b, void *context)
{
    const struct map *map = context;
    const struct owner *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    int order = strcmp(frame_label_text(map->texts, x->label, NULL), frame_label_text(map->texts, y->label, NULL));
    return order ? order : (x->label > y->label) - (x->label < y->label);
}

static int name_owners(struct map *map, const struct owner *owners, size_t count)
{
    int status = 0;
    struct text name = {0};
    for (unsigned i = 0; i < OWNERS_SHOWN && i < count && !status; i++) {
        size_t length;
        const char *label = frame_label_text(map->texts, owners[i].label, &length);
        text_clear(&name);
        text_add_printable(&name, label, length);
        status = text_failed(&name) ? STATUS_NO_MEMORY : name_shade(map, i, text_string(&name));
    }
    text_free(&name);
    char text[48];
    snprintf(text, sizeof(text), "%zu more", count > OWNERS_SHOWN ? count - OWNERS_SHOWN : 0);
    if (!status)
        status = name_shade(map, OWNER_OTHERS, text);
    return status ? status : name_shade(map, OWNER_NONE, "no stack");
}

static int sum_owners(struct map *map, uint32_t *labels, struct table *numbers, struct owner **owners, size_t *count)
{
    size_t capacity = 0;
    for (uint32_t i = 0; i < map->state->block_count; i++) {
        labels[i] = is_shaded(map, i) ? map_block_owner(map, i) : NONE32;
        if (labels[i] == NONE32)
            continue;
        uint32_t *number = table_at(numbers, labels[i], NONE32);
        if (!number || array_reserve(owners, &capacity, *count + 1, sizeof(**owners)))
            return STATUS_NO_MEMORY;
        if (*number == NONE32) {
            (*owners)[*count] = (struct owner){labels[i], 0};
            *number = (uint32_t)(*count)++;
        }
        (*owners)[*number].bytes += map->state->blocks[i].size;
    }
    return 0;
}

static int shade_by_stack(struct map *map)
{
    uint32_t *labels = malloc((map->state->block_count + 1) * sizeof(*labels));
    struct table numbers = {0}, ranks = {0};
    struct owner *owners = NULL;
    size_t count = 0;
    int status = labels ? sum_owners(map, labels, &numbers, &owners, &count) : STATUS_NO_MEMORY;
    if (!status && count > 1)
        qsort_r(owners, count, sizeof(*owners), compare_owners, map);
    for (uint32_t i = 0; i < OWNERS_SHOWN && i < count && !status; i++)
        status = table_set(&ranks, owners[i].label, i);
    for (uint32_t i = 0; i < map->state->block_count && !status; i++)
        if (is_shaded(map, i))
            shade_block(map, i, labels[i] == NONE32 ? OWNER_NONE : table_get(&ranks, labels[i], OWNER_OTHERS));
    if (!status)
        status = name_owners(map, owners, count);
    free(labels);
    free(owners);
    table_free(&numbers);
    table_free(&ranks);
    return status;
}

int map_shade_blocks(struct map *map, struct error *err)
{
    int status = find_histories(map);
    if (!status)
        status = find_reasons(map, err);
    if (!status && map->color != MAP_BY_STATE) {
        map->shade_of = calloc(map->state->block_count + 1, 1);
        status = !map->shade_of                   ? STATUS_NO_MEMORY
                 : map->color == MAP_BY_SIZE      ? shade_by_size(map)
                 : map->color == MAP_BY_AGE       ? shade_by_age(map)
                                                  : shade_by_stack(map);
    }
    return status || frame_texts_failed(map->texts) ? error_no_memory(err) : 0;
}
