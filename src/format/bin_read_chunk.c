/* Reading a chunk of entries, column after column; nothing in it is trusted.  Uses src/base, src/snapshot. */
#include "format/bin_chunk.h"

#include <string.h>

#define BIN_COLUMNS 64

struct bin_chunk {
    struct bin_column columns[BIN_COLUMNS];
    bool present[BIN_COLUMNS];
    struct entries *entries;
    size_t base, count;
    struct bin_work *work;
};

/* A column of exactly `count` numbers; one that is absent is all 0. */
static bool chunk_get(const struct bin_chunk *chunk, unsigned number, uint64_t *values, size_t count)
{
    if (!chunk->present[number]) {
        memset(values, 0, count * sizeof(*values));
        return true;
    }
    return chunk->columns[number].count == count && bin_decode_column(&chunk->columns[number], values);
}

static bool chunk_find_columns(struct bin_chunk *chunk, struct bin_cursor *cursor)
{
    struct bin_column column;
    while (bin_get_column(cursor, &column)) {
        if (column.number == 0)
            return true;
        if (column.number < BIN_COLUMNS) {
            if (chunk->present[column.number])
                return false;
            chunk->columns[column.number] = column;
            chunk->present[column.number] = true;
        }
    }
    return false;
}

bool bin_chunk_bounds(struct bin_cursor cursor, uint64_t *first, uint64_t *count)
{
    uint64_t rows;
    struct bin_column column;
    bool has_first = false;
    if (!bin_get_table(&cursor, &rows))
        return false;
    *count = rows;
    while (!has_first && bin_get_column(&cursor, &column) && column.number != 0)
        if (column.number == BIN_ENTRY_FIRST)
            has_first = column.count == 1 && bin_decode_column(&column, first);
    return has_first;
}

static bool chunk_get_actions(struct bin_chunk *chunk)
{
    uint64_t *numbers = chunk->work->numbers;
    uint8_t *action = chunk->entries->action + chunk->base;
    if (!chunk_get(chunk, BIN_ENTRY_ACTION, numbers, chunk->count))
        return false;
    for (size_t i = 0; i < chunk->count; i++) {
        if (numbers[i] >= ACTION_COUNT)
            return false;
        action[i] = (uint8_t)numbers[i];
    }
    return true;
}

static bool chunk_get_partners(struct bin_chunk *chunk)
{
    struct bin_work *work = chunk->work;
    const uint8_t *action = chunk->entries->action + chunk->base;
    uint64_t *ranks[BIN_LIST_COUNT] = {work->numbers, work->others, work->more};
    size_t count[BIN_LIST_COUNT] = {0}, at[BIN_LIST_COUNT] = {0};
    for (size_t i = 0; i < chunk->count; i++) {
        int list = bin_list_released_by(action[i]);
        if (list >= 0)
            count[list]++;
    }
    for (int list = 0; list < BIN_LIST_COUNT; list++) {
        bin_live_clear(&work->lists[list], chunk->count);
        if (!chunk_get(chunk, BIN_ENTRY_RANK + (unsigned)list, ranks[list], count[list]))
            return false;
    }
    for (size_t i = 0; i < chunk->count; i++) {
        int made = bin_list_made_by(action[i]), released = bin_list_released_by(action[i]);
        work->partner[i] = NONE32;
        uint64_t rank = released >= 0 ? ranks[released][at[released]++] : 0;
        if (rank) {
            struct bin_live *live = &work->lists[released];
            if (rank > live->count)
                return false;
            work->partner[i] = bin_live_find(live, (uint32_t)(rank - 1));
            bin_live_remove(live, work->partner[i]);
        }
        if (made >= 0)
            bin_live_add(&work->lists[made], (uint32_t)i);
    }
    return true;
}

/* The field's numbers of all entries into work->more. */
static bool chunk_get_pair(struct bin_chunk *chunk, enum bin_pair_field field, uint64_t limit)
{
    struct bin_work *work = chunk->work;
    size_t mine = 0, m = 0, p = 0;
    for (size_t i = 0; i < chunk->count; i++)
        mine += work->partner[i] == NONE32;
    if (!chunk_get(chunk, BIN_ENTRY_MINE + (unsigned)field, work->numbers, mine) ||
        !chunk_get(chunk, BIN_ENTRY_PAIRED + (unsigned)field, work->others, chunk->count - mine))
        return false;
    uint64_t highest = 0;
    for (size_t i = 0; i < chunk->count; i++) {
        uint32_t partner = work->partner[i];
        uint64_t number =
            partner == NONE32 ? work->numbers[m++] : work->more[partner] + bin_unzigzag(work->others[p++]);
        work->more[i] = number;
        highest = number > highest ? number : highest;
    }
    return highest <= limit;
}

static bool chunk_get_pairs(struct bin_chunk *chunk)
{
    struct entries *entries = chunk->entries;
    const uint64_t *numbers = chunk->work->more;
    size_t base = chunk->base, count = chunk->count;
    if (!chunk_get_pair(chunk, BIN_PAIR_ADDRESS, UINT64_MAX))
        return false;
    memcpy(entries->address + base, numbers, count * sizeof(*numbers));
    if (!chunk_get_pair(chunk, BIN_PAIR_SIZE, UINT64_MAX))
        return false;
    memcpy(entries->size + base, numbers, count * sizeof(*numbers));
    if (!chunk_get_pair(chunk, BIN_PAIR_STREAM, UINT32_MAX))
        return false;
    for (size_t i = 0; i < count; i++)
        entries->stream[base + i] = (uint32_t)numbers[i];
    if (!chunk_get_pair(chunk, BIN_PAIR_DEVICE, UINT16_MAX))
        return false;
    for (size_t i = 0; i < count; i++)
        entries->device[base + i] = (uint16_t)numbers[i];
    if (entries->process && !chunk_get_pair(chunk, BIN_PAIR_PROCESS, UINT16_MAX))
        return false;
    for (size_t i = 0; entries->process && i < count; i++)
        entries->process[base + i] = (uint16_t)numbers[i];
    if (entries->pool && !chunk_get_pair(chunk, BIN_PAIR_POOL, UINT32_MAX))
        return false;
    for (size_t i = 0; entries->pool && i < count; i++)
        entries->pool[base + i] = (uint32_t)numbers[i] - 1;
    if (entries->kind && !chunk_get_pair(chunk, BIN_PAIR_KIND, UINT8_MAX))
        return false;
    for (size_t i = 0; entries->kind && i < count; i++)
        entries->kind[base + i] = (uint8_t)numbers[i];
    return true;
}

static bool chunk_get_time(struct bin_chunk *chunk)
{
    int64_t *time = chunk->entries->time + chunk->base;
    const uint64_t *numbers = chunk->work->numbers;
    if (!chunk_get(chunk, BIN_ENTRY_TIME, chunk->work->numbers, chunk->count))
        return false;
    uint64_t before = 0;
    for (size_t i = 0; i < chunk->count; i++)
        time[i] = (int64_t)(before += bin_unzigzag(numbers[i]));
    return true;
}

static bool chunk_get_context(struct bin_chunk *chunk)
{
    struct bin_work *work = chunk->work;
    uint32_t *context = chunk->entries->context + chunk->base;
    uint32_t before = CONTEXT_NONE;
    uint64_t next;
    size_t explicit_count = 0, e = 0;
    if (!chunk_get(chunk, BIN_ENTRY_CONTEXT_NEXT, &next, 1) || next > CONTEXT_NONE ||
        !chunk_get(chunk, BIN_ENTRY_CONTEXT, work->numbers, chunk->count))
        return false;
    for (size_t i = 0; i < chunk->count; i++)
        explicit_count += work->numbers[i] == BIN_CONTEXT_EXPLICIT;
    if (!chunk_get(chunk, BIN_ENTRY_CONTEXT_VALUE, work->others, explicit_count))
        return false;
    for (size_t i = 0; i < chunk->count; i++) {
        uint32_t partner = work->partner[i];
        uint64_t number = before;
        switch (work->numbers[i]) {
        case BIN_CONTEXT_SAME:
            break;
        case BIN_CONTEXT_NEW:
            number = next;
            break;
        case BIN_CONTEXT_ABSENT:
            number = CONTEXT_NONE;
            break;
        case BIN_CONTEXT_PAIRED:
            if (partner == NONE32)
                return false;
            number = context[partner];
            break;
        case BIN_CONTEXT_EXPLICIT:
            number = work->others[e++];
            break;
        default:
            return false;
        }
        if (number > CONTEXT_NONE)
            return false;
        if (number >= next && number != CONTEXT_NONE)
            next = number + 1;
        before = context[i] = (uint32_t)number;
    }
    return true;
}

/* Numbers by the last entry of the same action, into work->numbers. */
static bool chunk_get_by_action(struct bin_chunk *chunk, unsigned column, uint64_t limit)
{
    uint64_t *numbers = chunk->work->numbers;
    const uint8_t *action = chunk->entries->action + chunk->base;
    uint64_t last[ACTION_COUNT] = {0};
    uint64_t highest = 0;
    if (!chunk_get(chunk, column, numbers, chunk->count))
        return false;
    for (size_t i = 0; i < chunk->count; i++) {
        numbers[i] = last[action[i]] += bin_unzigzag(numbers[i]);
        highest = numbers[i] > highest ? numbers[i] : highest;
    }
    return highest <= limit;
}

static bool chunk_get_plain(struct bin_chunk *chunk)
{
    struct entries *entries = chunk->entries;
    const uint64_t *numbers = chunk->work->numbers;
    size_t base = chunk->base, count = chunk->count;
    if (!chunk_get_by_action(chunk, BIN_ENTRY_FLAGS, UINT8_MAX))
        return false;
    for (size_t i = 0; i < count; i++)
        entries->flags[base + i] = (uint8_t)numbers[i];
    if (!chunk_get_by_action(chunk, BIN_ENTRY_SHAPE, UINT16_MAX))
        return false;
    for (size_t i = 0; i < count; i++)
        entries->shape[base + i] = (uint16_t)numbers[i];
    if (entries->call && !chunk_get_by_action(chunk, BIN_ENTRY_CALL, UINT16_MAX))
        return false;
    for (size_t i = 0; entries->call && i < count; i++)
        entries->call[base + i] = (uint16_t)numbers[i];
    if (entries->thread && !chunk_get_by_action(chunk, BIN_ENTRY_THREAD, UINT32_MAX))
        return false;
    for (size_t i = 0; entries->thread && i < count; i++)
        entries->thread[base + i] = (uint32_t)numbers[i];
    return true;
}

static bool chunk_get_objects(struct bin_chunk *chunk, unsigned column, uint32_t *objects)
{
    uint64_t *numbers = chunk->work->numbers;
    uint64_t before = 0, stride = 1;
    if (!objects)
        return true;
    if (!chunk_get(chunk, column, numbers, chunk->count))
        return false;
    for (size_t i = 0; i < chunk->count; i++) {
        uint64_t object = STRING_NONE;
        if (numbers[i]) {
            object = before + stride + bin_unzigzag(numbers[i] - 1);
            if (object >= STRING_NONE)
                return false;
            stride = object - before;
            before = object;
        }
        objects[chunk->base + i] = (uint32_t)object;
    }
    return true;
}

bool bin_get_chunk(struct bin_cursor cursor, struct entries *entries, struct bin_work *work)
{
    struct bin_chunk chunk = {.entries = entries, .base = entries->count, .work = work};
    uint64_t rows;
    if (!bin_get_table(&cursor, &rows) || !chunk_find_columns(&chunk, &cursor) ||
        rows > entries->capacity - entries->count)
        return false;
    chunk.count = (size_t)rows;
    if (!chunk_get_actions(&chunk) || !chunk_get_partners(&chunk) || !chunk_get_pairs(&chunk) ||
        !chunk_get_time(&chunk) || !chunk_get_context(&chunk) || !chunk_get_plain(&chunk))
        return false;
    size_t base = chunk.base;
    if (!chunk_get_objects(&chunk, BIN_ENTRY_COMPILE_CONTEXT, entries->compile_context) ||
        !chunk_get_objects(&chunk, BIN_ENTRY_USER_METADATA, entries->user_metadata))
        return false;
    entries->count = base + chunk.count;
    return true;
}
