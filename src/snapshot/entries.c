/* The columns of trace entries, and the lists of a state.  Uses src/base. */
#include "snapshot/snapshot.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* Every column grows with the same capacity. */
struct column {
    size_t pointer; /* offset in struct entries */
    size_t element;
    bool optional;
    int fill; /* byte that stands for "none" */
};

#define COLUMN(name, is_optional, none) \
    {offsetof(struct entries, name), sizeof(*((struct entries *)0)->name), is_optional, none}

static const struct column columns[] = {
    COLUMN(action, false, 0),
    COLUMN(flags, false, 0),
    COLUMN(device, false, 0),
    COLUMN(stream, false, 0),
    COLUMN(address, false, 0),
    COLUMN(size, false, 0),
    COLUMN(time, false, 0),
    COLUMN(context, false, 0xff),
    COLUMN(shape, false, 0),
    COLUMN(compile_context, true, 0xff),
    COLUMN(user_metadata, true, 0xff),
    COLUMN(process, true, 0),
    COLUMN(pool, true, 0xff),
    COLUMN(thread, true, 0),
    COLUMN(call, true, 0),
    COLUMN(kind, true, 0),
};
enum { COLUMN_COUNT = sizeof(columns) / sizeof(columns[0]) };

static void *column_get(const struct entries *entries, const struct column *column)
{
    void *data;
    memcpy(&data, (const char *)entries + column->pointer, sizeof(data));
    return data;
}

static void column_put(struct entries *entries, const struct column *column, void *data)
{
    memcpy((char *)entries + column->pointer, &data, sizeof(data));
}

int entries_reserve(struct entries *entries, size_t need)
{
    if (need <= entries->capacity)
        return STATUS_OK;
    if (need > SIZE_MAX / 16)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        void *data = column_get(entries, &columns[i]);
        if (!data && columns[i].optional)
            continue;
        void *moved = realloc(data, need * columns[i].element);
        if (!moved)
            return STATUS_NO_MEMORY;
        array_advise(moved, need * columns[i].element);
        column_put(entries, &columns[i], moved);
    }
    entries->capacity = need;
    return STATUS_OK;
}

static int entries_grow(struct entries *entries)
{
    if (entries->capacity > SIZE_MAX / 32)
        return STATUS_NO_MEMORY;
    return entries_reserve(entries, entries->capacity + entries->capacity / 2 + 1024);
}

/* Make an optional column, with "none" in every row so far. */
static int entries_need(struct entries *entries, size_t pointer)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (columns[i].pointer != pointer || column_get(entries, &columns[i]))
            continue;
        if (!entries->capacity && entries_grow(entries))
            return STATUS_NO_MEMORY;
        void *data = malloc(entries->capacity * columns[i].element);
        if (!data)
            return STATUS_NO_MEMORY;
        memset(data, columns[i].fill, entries->count * columns[i].element);
        column_put(entries, &columns[i], data);
    }
    return STATUS_OK;
}

int entries_need_process(struct entries *entries)
{
    return entries_need(entries, offsetof(struct entries, process));
}

int entries_need_pool(struct entries *entries)
{
    return entries_need(entries, offsetof(struct entries, pool));
}

int entries_need_thread(struct entries *entries)
{
    return entries_need(entries, offsetof(struct entries, thread));
}

int entries_need_call(struct entries *entries)
{
    return entries_need(entries, offsetof(struct entries, call));
}

int entries_need_kind(struct entries *entries)
{
    return entries_need(entries, offsetof(struct entries, kind));
}

int entries_need_compile_context(struct entries *entries)
{
    return entries_need(entries, offsetof(struct entries, compile_context));
}

int entries_need_user_metadata(struct entries *entries)
{
    return entries_need(entries, offsetof(struct entries, user_metadata));
}

void entry_init(struct entry *entry)
{
    memset(entry, 0, sizeof(*entry));
    entry->context = CONTEXT_NONE;
    entry->compile_context = entry->user_metadata = STRING_NONE;
    entry->pool = NONE32;
}

/* The optional columns that this entry has something to say in. */
static int entries_need_for(struct entries *entries, const struct entry *entry)
{
    if ((entry->process && entries_need_process(entries)) ||
        (entry->pool != NONE32 && entries_need_pool(entries)) || (entry->thread && entries_need_thread(entries)) ||
        (entry->call && entries_need_call(entries)) || (entry->kind && entries_need_kind(entries)) ||
        (entry->compile_context != STRING_NONE && entries_need_compile_context(entries)) ||
        (entry->user_metadata != STRING_NONE && entries_need_user_metadata(entries)))
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

int snapshot_add_entry(struct snapshot *snapshot, const struct entry *entry)
{
    struct entries *entries = &snapshot->entries;
    uint32_t stream = snapshot_stream(snapshot, entry->stream);
    if (stream == NONE32 || (entries->count == entries->capacity && entries_grow(entries)) ||
        entries_need_for(entries, entry))
        return STATUS_NO_MEMORY;
    size_t row = entries->count++;
    entries->action[row] = (uint8_t)entry->action;
    entries->flags[row] = entry->flags;
    entries->device[row] = entry->device;
    entries->stream[row] = stream;
    entries->address[row] = entry->address;
    entries->size[row] = entry->size;
    entries->time[row] = entry->time;
    entries->context[row] = entry->context;
    entries->shape[row] = entry->shape;
    if (entries->compile_context)
        entries->compile_context[row] = entry->compile_context;
    if (entries->user_metadata)
        entries->user_metadata[row] = entry->user_metadata;
    if (entries->process)
        entries->process[row] = entry->process;
    if (entries->pool)
        entries->pool[row] = entry->pool;
    if (entries->thread)
        entries->thread[row] = entry->thread;
    if (entries->call)
        entries->call[row] = entry->call;
    if (entries->kind)
        entries->kind[row] = entry->kind;
    return STATUS_OK;
}

struct entry snapshot_entry(const struct snapshot *snapshot, size_t index)
{
    const struct entries *entries = &snapshot->entries;
    return (struct entry){
        .action = (enum action)entries->action[index],
        .flags = entries->flags[index],
        .device = entries->device[index],
        .process = entries->process ? entries->process[index] : 0,
        .shape = entries->shape[index],
        .call = entries->call ? entries->call[index] : 0,
        .kind = entries->kind ? entries->kind[index] : 0,
        .stream = snapshot->streams[entries->stream[index]],
        .address = entries->address[index],
        .size = entries->size[index],
        .time = entries->time[index],
        .context = entries->context[index],
        .compile_context = entries->compile_context ? entries->compile_context[index] : STRING_NONE,
        .user_metadata = entries->user_metadata ? entries->user_metadata[index] : STRING_NONE,
        .pool = entries->pool ? entries->pool[index] : NONE32,
        .thread = entries->thread ? entries->thread[index] : 0,
    };
}

int entries_permute(struct entries *entries, const uint64_t *order)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        char *from = column_get(entries, &columns[i]);
        size_t element = columns[i].element;
        if (!from)
            continue;
        char *to = malloc(entries->capacity * element + 1);
        if (!to)
            return STATUS_NO_MEMORY;
        for (size_t row = 0; row < entries->count; row++)
            memcpy(to + row * element, from + order[row] * element, element);
        free(from);
        column_put(entries, &columns[i], to);
    }
    return STATUS_OK;
}

void entries_free(struct entries *entries); /* for snapshot.c alone */

void entries_free(struct entries *entries)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        free(column_get(entries, &columns[i]));
    memset(entries, 0, sizeof(*entries));
}

int state_add_segment(struct state *state, const struct segment *segment)
{
    if (state->segment_count >= NONE32 || array_reserve(&state->segments, &state->segment_capacity,
                                                        state->segment_count + 1, sizeof(*state->segments)))
        return STATUS_NO_MEMORY;
    struct segment *added = &state->segments[state->segment_count++];
    *added = *segment;
    added->first_block = (uint32_t)state->block_count;
    added->block_count = 0;
    return STATUS_OK;
}

int state_add_block(struct state *state, const struct block *block)
{
    if (!state->segment_count || state->block_count >= NONE32 ||
        array_reserve(&state->blocks, &state->block_capacity, state->block_count + 1, sizeof(*state->blocks)))
        return STATUS_NO_MEMORY;
    struct block *added = &state->blocks[state->block_count++];
    *added = *block;
    added->segment = (uint32_t)state->segment_count - 1;
    state->segments[state->segment_count - 1].block_count++;
    return STATUS_OK;
}

void state_free(struct state *state)
{
    free(state->segments);
    free(state->blocks);
    memset(state, 0, sizeof(*state));
}

int state_copy(struct state *to, const struct state *from)
{
    memset(to, 0, sizeof(*to));
    if (array_reserve(&to->segments, &to->segment_capacity, from->segment_count, sizeof(*to->segments)) ||
        array_reserve(&to->blocks, &to->block_capacity, from->block_count, sizeof(*to->blocks))) {
        state_free(to);
        return STATUS_NO_MEMORY;
    }
    if (from->segment_count)
        memcpy(to->segments, from->segments, from->segment_count * sizeof(*to->segments));
    if (from->block_count)
        memcpy(to->blocks, from->blocks, from->block_count * sizeof(*to->blocks));
    to->segment_count = from->segment_count;
    to->block_count = from->block_count;
    to->moment = from->moment;
    to->exact = from->exact;
    return STATUS_OK;
}
