/* Segments that were there before the allocator: a replay whose beginning is lost starts from them.  Uses src/base. */
#include "alloc/internal.h"

#include "base/array.h"

#define OTHER_STREAM (INT64_MIN + 78) /* stands for those that a pending free waits for */

/* Where the blocks of an adopted segment go: between two neighbours, in a pool. */
struct adoption {
    uint32_t pool, stream, space;
    uint32_t previous, next;
};

static uint32_t owner_of(struct allocator *a, struct pool_id id)
{
    for (uint32_t i = 0; i < a->owner_count; i++)
        if (a->owners[i].alive && a->owners[i].id.first == id.first && a->owners[i].id.second == id.second)
            return i;
    return UINT32_MAX;
}

/* An expandable segment's reservation around a range, all unmapped. */
static int space_around(struct allocator *a, const struct adoption *adoption, const struct allocator_segment *segment)
{
    uint64_t free_bytes, total;
    uint64_t page = a->pools[adoption->pool].is_small ? ALLOCATOR_SMALL_SEGMENT : a->settings.large_segment_size;
    a->device.memory_info(a->device.self, &free_bytes, &total);
    uint64_t size = (total + total / 8 + page - 1) / page * page;
    if (size < segment->size)
        size = segment->size;
    if (size > UINT64_MAX - segment->address)
        size = UINT64_MAX - segment->address;
    if (array_reserve(&a->spaces, &a->space_capacity, a->space_count + 1, sizeof(*a->spaces)))
        return STATUS_NO_MEMORY;
    uint32_t block = block_new(a, adoption->pool, adoption->stream, segment->address, size);
    if (!block)
        return STATUS_NO_MEMORY;
    a->blocks[block].mapped = false;
    a->blocks[block].space = (uint32_t)a->space_count;
    a->spaces[a->space_count++] = (struct space){.address = segment->address, .size = size, .page = page,
                                                 .stream = adoption->stream, .pool = adoption->pool, .first = block,
                                                 .alive = true};
    return block_put(a, block);
}

/* The unmapped block that holds a range: of a reservation that is known, or a new one. */
static uint32_t unmapped_around(struct allocator *a, const struct adoption *adoption,
                                const struct allocator_segment *segment)
{
    struct free_set *unmapped = pool_unmapped(a, adoption->pool, adoption->stream);
    for (int attempt = 0; unmapped && attempt < 2; attempt++) {
        struct free_position at;
        for (bool more = free_set_first(unmapped, &at); more; more = free_set_next(unmapped, &at)) {
            const struct block *block = &a->blocks[free_set_block(unmapped, at)];
            if (segment->address >= block->address && segment->address - block->address < block->size &&
                segment->size <= block->size - (segment->address - block->address))
                return free_set_block(unmapped, at);
        }
        if (attempt || space_around(a, adoption, segment))
            return 0;
        unmapped = pool_unmapped(a, adoption->pool, adoption->stream);
    }
    return 0;
}

/* Take the range out of the unmapped block: what lies before and after stays unmapped. */
static int carve(struct allocator *a, struct adoption *adoption, const struct allocator_segment *segment)
{
    uint32_t before = unmapped_around(a, adoption, segment);
    if (!before)
        return STATUS_NO_MEMORY;
    struct block whole = a->blocks[before];
    block_take(a, before);
    adoption->space = whole.space;
    adoption->previous = whole.previous;
    adoption->next = whole.next;
    uint64_t end = segment->address + segment->size;
    if (whole.address + whole.size > end) {
        uint32_t after = block_new(a, whole.pool, whole.stream, end, whole.address + whole.size - end);
        if (!after)
            return STATUS_NO_MEMORY;
        a->blocks[after].mapped = false;
        a->blocks[after].space = whole.space;
        a->blocks[after].next = whole.next;
        if (whole.next)
            a->blocks[whole.next].previous = after;
        adoption->next = after;
        if (block_put(a, after))
            return STATUS_NO_MEMORY;
    }
    if (segment->address == whole.address) {
        block_drop(a, before);
        return STATUS_OK;
    }
    a->blocks[before].size = segment->address - whole.address;
    a->blocks[before].next = 0;
    adoption->previous = before;
    return block_put(a, before);
}

static void count_block(struct allocator *a, uint32_t pool, const struct allocator_block *block)
{
    stat_add(a, pool, MEMORY_STAT_ALLOCATION, 1);
    stat_add(a, pool, MEMORY_STAT_ALLOCATED_BYTES, (int64_t)block->size);
    stat_add(a, pool, MEMORY_STAT_ACTIVE, 1);
    stat_add(a, pool, MEMORY_STAT_ACTIVE_BYTES, (int64_t)block->size);
    stat_add(a, pool, MEMORY_STAT_REQUESTED_BYTES, (int64_t)block->requested);
    if (block->size >= a->settings.max_split_size)
        memory_stat_increase(&a->stats.oversize_allocations, 1);
}

static int adopt_block(struct allocator *a, struct adoption *adoption, const struct allocator_block *block, bool is_split)
{
    uint32_t index = block_new(a, adoption->pool, adoption->stream, block->address, block->size);
    if (!index)
        return STATUS_NO_MEMORY;
    struct block *made = &a->blocks[index];
    made->space = adoption->space;
    made->requested = block->requested;
    made->previous = adoption->previous;
    if (made->previous)
        a->blocks[made->previous].next = index;
    else if (made->space != NO_SPACE)
        a->spaces[made->space].first = index;
    adoption->previous = index;
    made->allocated = made->active = block->active;
    if (block->active) {
        made->context = block->context;
        count_block(a, adoption->pool, block);
        return block_name(a, index);
    }
    if (is_split && made->space == NO_SPACE) {
        stat_add(a, adoption->pool, MEMORY_STAT_INACTIVE_SPLIT, 1);
        stat_add(a, adoption->pool, MEMORY_STAT_INACTIVE_SPLIT_BYTES, (int64_t)block->size);
    }
    return block_put(a, index);
}

static void count_segment(struct allocator *a, uint32_t pool, const struct allocator_segment *segment)
{
    a->reserved += segment->size;
    pool_owner(a, pool)->reserved += segment->size;
    a->stats.num_device_alloc++;
    stat_add(a, pool, MEMORY_STAT_RESERVED_BYTES, (int64_t)segment->size);
    if (segment->is_expandable)
        return;
    stat_add(a, pool, MEMORY_STAT_SEGMENT, 1);
    if (segment->size >= a->settings.max_split_size)
        memory_stat_increase(&a->stats.oversize_segments, 1);
}

/* Frees that wait, as if they had been asked for just now. */
static int request_frees(struct allocator *a, const struct allocator_block *blocks, size_t count)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < count && !status; i++) {
        if (!blocks[i].active || blocks[i].allocated)
            continue;
        status = allocator_record_stream(a, blocks[i].address, OTHER_STREAM);
        if (!status)
            status = allocator_release(a, blocks[i].address, 0);
    }
    return status;
}

int allocator_adopt(struct allocator *a, const struct allocator_segment *segment, const struct allocator_block *blocks,
                    size_t count)
{
    void (*trace)(void *self, const struct allocator_event *event) = a->trace;
    uint32_t owner = owner_of(a, segment->pool), stream = stream_find(a, segment->stream);
    if (owner == UINT32_MAX || !count)
        return ALLOCATOR_INVALID;
    if (stream == UINT32_MAX)
        return STATUS_NO_MEMORY;
    struct adoption adoption = {.pool = 2 * owner + segment->is_large, .stream = stream, .space = NO_SPACE};
    int status = segment->is_expandable ? carve(a, &adoption, segment) : STATUS_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = adopt_block(a, &adoption, &blocks[i], count > 1);
    if (status)
        return status;
    a->blocks[adoption.previous].next = adoption.next;
    if (adoption.next)
        a->blocks[adoption.next].previous = adoption.previous;
    count_segment(a, adoption.pool, segment);
    a->trace = NULL; /* nobody asked for anything */
    status = request_frees(a, blocks, count);
    a->trace = trace;
    return status;
}
