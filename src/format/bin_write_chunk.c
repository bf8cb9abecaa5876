/* Writing a chunk of entries.  The reader's half is bin_read_chunk.c.  Uses src/base, src/snapshot. */
#include "format/bin_chunk.h"

#include "base/table.h"

#include <string.h>

struct bin_chunk {
    struct bin_sink *sink;
    const struct entries *entries;
    size_t first, count;
    struct bin_work *work;
};

static uint64_t chunk_field(const struct bin_chunk *chunk, enum bin_pair_field field, size_t i)
{
    const struct entries *entries = chunk->entries;
    size_t row = chunk->first + i;
    switch (field) {
    case BIN_PAIR_ADDRESS:
        return entries->address[row];
    case BIN_PAIR_SIZE:
        return entries->size[row];
    case BIN_PAIR_STREAM:
        return entries->stream[row];
    case BIN_PAIR_DEVICE:
        return entries->device[row];
    case BIN_PAIR_PROCESS:
        return entries->process ? entries->process[row] : 0;
    case BIN_PAIR_POOL:
        return entries->pool ? (uint32_t)(entries->pool[row] + 1) : 0;
    default:
        return entries->kind ? entries->kind[row] : 0;
    }
}

static uint64_t chunk_key(const struct bin_chunk *chunk, size_t i)
{
    return chunk_field(chunk, BIN_PAIR_ADDRESS, i) ^
           hash_mix(chunk_field(chunk, BIN_PAIR_DEVICE, i) << 16 | chunk_field(chunk, BIN_PAIR_PROCESS, i));
}

/* Who releases whom; the ranks of each list go out as a column. */
static void chunk_put_partners(struct bin_chunk *chunk)
{
    struct bin_work *work = chunk->work;
    struct table known[BIN_LIST_COUNT] = {0};
    uint64_t *ranks[BIN_LIST_COUNT] = {work->numbers, work->others, work->more};
    size_t rank_count[BIN_LIST_COUNT] = {0};
    for (int list = 0; list < BIN_LIST_COUNT; list++)
        bin_live_clear(&work->lists[list], chunk->count);
    for (size_t i = 0; i < chunk->count; i++) {
        unsigned action = chunk->entries->action[chunk->first + i];
        int made = bin_list_made_by(action), released = bin_list_released_by(action);
        uint64_t key = made >= 0 || released >= 0 ? chunk_key(chunk, i) : 0;
        work->partner[i] = NONE32;
        if (released >= 0) {
            uint32_t partner = table_get(&known[released], key, NONE32);
            uint64_t rank = 0;
            if (partner != NONE32) {
                rank = 1 + bin_live_younger(&work->lists[released], partner);
                bin_live_remove(&work->lists[released], partner);
                table_remove(&known[released], key);
            }
            work->partner[i] = partner;
            ranks[released][rank_count[released]++] = rank;
        }
        if (made >= 0) {
            bin_live_add(&work->lists[made], (uint32_t)i);
            if (table_set(&known[made], key, (uint32_t)i))
                chunk->sink->bytes.failed = true;
        }
    }
    for (int list = 0; list < BIN_LIST_COUNT; list++) {
        if (rank_count[list])
            bin_put_column(chunk->sink, BIN_ENTRY_RANK + (unsigned)list, ranks[list], rank_count[list]);
        table_free(&known[list]);
    }
}

/* A column that may be left out when all of it is 0. */
static void chunk_put(struct bin_chunk *chunk, unsigned number, const uint64_t *values, size_t count)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= values[i];
    if (any)
        bin_put_column(chunk->sink, number, values, count);
}

static void chunk_put_pair(struct bin_chunk *chunk, enum bin_pair_field field)
{
    struct bin_work *work = chunk->work;
    size_t mine = 0, paired = 0;
    for (size_t i = 0; i < chunk->count; i++) {
        uint64_t number = chunk_field(chunk, field, i);
        if (work->partner[i] == NONE32)
            work->numbers[mine++] = number;
        else
            work->others[paired++] = bin_zigzag(number - chunk_field(chunk, field, work->partner[i]));
    }
    chunk_put(chunk, BIN_ENTRY_MINE + (unsigned)field, work->numbers, mine);
    chunk_put(chunk, BIN_ENTRY_PAIRED + (unsigned)field, work->others, paired);
}

static void chunk_put_time(struct bin_chunk *chunk)
{
    const int64_t *time = chunk->entries->time + chunk->first;
    uint64_t before = 0;
    for (size_t i = 0; i < chunk->count; i++) {
        chunk->work->numbers[i] = bin_zigzag((uint64_t)time[i] - before);
        before = (uint64_t)time[i];
    }
    chunk_put(chunk, BIN_ENTRY_TIME, chunk->work->numbers, chunk->count);
}

static void chunk_put_context(struct bin_chunk *chunk, uint32_t *next)
{
    struct bin_work *work = chunk->work;
    const uint32_t *context = chunk->entries->context + chunk->first;
    uint32_t before = CONTEXT_NONE;
    size_t explicit_count = 0;
    uint64_t start = *next;
    for (size_t i = 0; i < chunk->count; i++) {
        uint32_t partner = work->partner[i];
        enum bin_context_code code = BIN_CONTEXT_EXPLICIT;
        if (context[i] == before)
            code = BIN_CONTEXT_SAME;
        else if (context[i] == CONTEXT_NONE)
            code = BIN_CONTEXT_ABSENT;
        else if (context[i] == *next)
            code = BIN_CONTEXT_NEW;
        else if (partner != NONE32 && context[i] == context[partner])
            code = BIN_CONTEXT_PAIRED;
        else
            work->others[explicit_count++] = context[i];
        if (context[i] >= *next && context[i] != CONTEXT_NONE)
            *next = context[i] + 1;
        work->numbers[i] = code;
        before = context[i];
    }
    bin_put_column(chunk->sink, BIN_ENTRY_CONTEXT_NEXT, &start, 1);
    chunk_put(chunk, BIN_ENTRY_CONTEXT, work->numbers, chunk->count);
    if (explicit_count)
        bin_put_column(chunk->sink, BIN_ENTRY_CONTEXT_VALUE, work->others, explicit_count);
}

static uint64_t chunk_plain(const struct bin_chunk *chunk, unsigned column, size_t i)
{
    const struct entries *entries = chunk->entries;
    size_t row = chunk->first + i;
    switch (column) {
    case BIN_ENTRY_FLAGS:
        return entries->flags[row];
    case BIN_ENTRY_SHAPE:
        return entries->shape[row];
    case BIN_ENTRY_CALL:
        return entries->call ? entries->call[row] : 0;
    default:
        return entries->thread ? entries->thread[row] : 0;
    }
}

static void chunk_put_by_action(struct bin_chunk *chunk, unsigned column)
{
    uint64_t last[256] = {0};
    for (size_t i = 0; i < chunk->count; i++) {
        unsigned action = chunk->entries->action[chunk->first + i];
        uint64_t number = chunk_plain(chunk, column, i);
        chunk->work->numbers[i] = bin_zigzag(number - last[action]);
        last[action] = number;
    }
    chunk_put(chunk, column, chunk->work->numbers, chunk->count);
}

static void chunk_put_objects(struct bin_chunk *chunk, unsigned column, const uint32_t *objects)
{
    uint64_t before = 0, stride = 1;
    for (size_t i = 0; objects && i < chunk->count; i++) {
        uint32_t object = objects[chunk->first + i];
        chunk->work->numbers[i] = 0;
        if (object == STRING_NONE)
            continue;
        chunk->work->numbers[i] = 1 + bin_zigzag(object - (before + stride));
        stride = object - before;
        before = object;
    }
    if (objects)
        chunk_put(chunk, column, chunk->work->numbers, chunk->count);
}

void bin_put_chunk(struct bin_sink *sink, const struct snapshot *snapshot, size_t first, size_t count,
                   uint32_t *context_next, struct bin_work *work)
{
    struct bin_chunk chunk = {sink, &snapshot->entries, first, count, work};
    uint64_t start = first;
    bin_put_table(sink, count);
    bin_put_column(sink, BIN_ENTRY_FIRST, &start, 1);
    for (size_t i = 0; i < count; i++)
        work->numbers[i] = snapshot->entries.action[first + i];
    bin_put_column(sink, BIN_ENTRY_ACTION, work->numbers, count);
    chunk_put_partners(&chunk);
    for (unsigned field = 0; field < BIN_PAIR_COUNT; field++)
        chunk_put_pair(&chunk, (enum bin_pair_field)field);
    chunk_put_time(&chunk);
    chunk_put_context(&chunk, context_next);
    for (unsigned column = BIN_ENTRY_FLAGS; column <= BIN_ENTRY_THREAD; column++)
        chunk_put_by_action(&chunk, column);
    chunk_put_objects(&chunk, BIN_ENTRY_COMPILE_CONTEXT, snapshot->entries.compile_context);
    chunk_put_objects(&chunk, BIN_ENTRY_USER_METADATA, snapshot->entries.user_metadata);
    bin_put_table_end(sink);
}
