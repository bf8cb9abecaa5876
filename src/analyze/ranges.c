/* Ranges among the entries.  May use src/snapshot and src/base. */
#include "analyze/ranges.h"

#include "base/array.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_OUT 64u /* ranges around the innermost one that are looked through for the one that ends */

/* --- the walk ----------------------------------------------------------------------------------------------------- */

struct place { /* of a process */
    size_t next, end; /* in order */
    uint64_t same;    /* entries at its last time so far */
    int64_t time;
};

struct walk {
    const struct snapshot *snapshot;
    const struct ranges_visitor *visitor;
    uint32_t *order; /* annotations by process, each process's in the order of the file */
    struct place *places;
};

static int begin(struct walk *walk)
{
    const struct snapshot *snapshot = walk->snapshot;
    size_t count = snapshot->annotation_count, at = 0;
    walk->order = malloc((count + 1) * sizeof(*walk->order));
    walk->places = calloc(snapshot->process_count + 1, sizeof(*walk->places));
    if (!walk->order || !walk->places)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        walk->places[snapshot->annotations[i].process].end++;
    for (size_t p = 0; p < snapshot->process_count; p++) {
        walk->places[p].next = at;
        at += walk->places[p].end;
        walk->places[p].end = walk->places[p].next;
    }
    for (size_t i = 0; i < count; i++)
        walk->order[walk->places[snapshot->annotations[i].process].end++] = (uint32_t)i;
    return STATUS_OK;
}

/* Annotations that come before the process's entry at this time. */
static int advance(struct walk *walk, struct place *place, int64_t time)
{
    int status = STATUS_OK;
    if (place->time != time)
        place->same = 0;
    place->time = time;
    for (; place->next < place->end && !status; place->next++) {
        const struct annotation *annotation = &walk->snapshot->annotations[walk->order[place->next]];
        if (annotation->time > time || (annotation->time == time && annotation->later > place->same))
            break;
        status = walk->visitor->annotation(walk->visitor->context, walk->order[place->next]);
    }
    place->same++;
    return status;
}

int ranges_walk(const struct snapshot *snapshot, const struct ranges_visitor *visitor)
{
    struct walk walk = {.snapshot = snapshot, .visitor = visitor};
    const struct entries *entries = &snapshot->entries;
    int status = begin(&walk);
    for (size_t i = 0; i < entries->count && !status; i++) {
        struct place *place = &walk.places[entries->process ? entries->process[i] : 0];
        if (!(entries->flags[i] & ENTRY_NO_TIME))
            status = advance(&walk, place, entries->time[i]);
        if (!status)
            status = visitor->entry(visitor->context, i);
    }
    free(walk.order);
    free(walk.places);
    return status;
}

/* --- the innermost range ------------------------------------------------------------------------------------------ */

struct open {
    uint32_t name, outer; /* outer: the one around it, NONE32 */
};

struct naming {
    const struct snapshot *snapshot;
    struct open *open;
    size_t count, capacity;
    struct table innermost; /* thread -> open */
    uint32_t *names;        /* by entry */
};

static bool is_named(const struct naming *naming, uint32_t name, uint32_t other)
{
    const uint32_t *contents = naming->snapshot->string_objects;
    return name == other || (name != STRING_NONE && other != STRING_NONE && contents[name] == contents[other]);
}

static int name_range(void *context, size_t number)
{
    struct naming *naming = context;
    const struct annotation *annotation = &naming->snapshot->annotations[number];
    if (annotation->stage > 1)
        return STATUS_OK;
    uint32_t *last = table_at(&naming->innermost, ranges_thread(annotation->process, annotation->thread), NONE32);
    if (!last)
        return STATUS_NO_MEMORY;
    if (annotation->stage == 0) {
        if (naming->count >= NONE32 ||
            array_reserve(&naming->open, &naming->capacity, naming->count + 1, sizeof(*naming->open)))
            return STATUS_NO_MEMORY;
        naming->open[naming->count] = (struct open){annotation->name, *last};
        *last = (uint32_t)naming->count++;
        return STATUS_OK;
    }
    for (unsigned i = 0; *last != NONE32 && i < LOOK_OUT; i++, last = &naming->open[*last].outer)
        if (is_named(naming, naming->open[*last].name, annotation->name)) {
            *last = naming->open[*last].outer;
            break;
        }
    return STATUS_OK;
}

static int name_entry(void *context, size_t number)
{
    struct naming *naming = context;
    const struct entries *entries = &naming->snapshot->entries;
    uint16_t process = entries->process ? entries->process[number] : 0;
    uint32_t thread = entries->thread ? entries->thread[number] : 0;
    uint32_t last = table_get(&naming->innermost, ranges_thread(process, thread), NONE32);
    if (last == NONE32)
        last = table_get(&naming->innermost, ranges_thread(process, 0), NONE32);
    naming->names[number] = last == NONE32 ? STRING_NONE : naming->open[last].name;
    return STATUS_OK;
}

uint32_t *ranges_innermost(const struct snapshot *snapshot)
{
    struct naming naming = {.snapshot = snapshot};
    const struct ranges_visitor visitor = {name_range, name_entry, &naming};
    naming.names = malloc((snapshot->entries.count + 1) * sizeof(*naming.names));
    if (naming.names && ranges_walk(snapshot, &visitor)) {
        free(naming.names);
        naming.names = NULL;
    }
    free(naming.open);
    table_free(&naming.innermost);
    return naming.names;
}

/* --- who made a block --------------------------------------------------------------------------------------------- */

static int compare_made(const void *a, const void *b)
{
    const struct ranges_made *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

int ranges_index_make(struct ranges_index *index, const struct snapshot *snapshot)
{
    const struct entries *entries = &snapshot->entries;
    size_t capacity = 0;
    *index = (struct ranges_index){0};
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->action[i] != ACTION_ALLOC && entries->action[i] != ACTION_SEGMENT_ALLOC &&
            entries->action[i] != ACTION_SEGMENT_MAP)
            continue;
        if (array_reserve(&index->made, &capacity, index->count + 1, sizeof(*index->made)))
            return STATUS_NO_MEMORY;
        uint32_t process = entries->process ? entries->process[i] : 0;
        index->made[index->count++] =
            (struct ranges_made){process << 16 | entries->device[i], entries->address[i], i};
    }
    if (index->count)
        qsort(index->made, index->count, sizeof(*index->made), compare_made);
    return STATUS_OK;
}

void ranges_index_free(struct ranges_index *index)
{
    free(index->made);
    *index = (struct ranges_index){0};
}

size_t ranges_maker(const struct ranges_index *index, const struct state *state, const struct block *block)
{
    const struct segment *segment = &state->segments[block->segment];
    struct ranges_made key = {(uint32_t)segment->process << 16 | segment->device, block->address, state->moment};
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_made(&index->made[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct ranges_made *made = low ? &index->made[low - 1] : NULL;
    return made && made->space == key.space && made->address == key.address ? (size_t)made->entry : SIZE_MAX;
}
