/* Expandable segments: reserved address space whose pages come and go.  Uses src/base, src/device's interface. */
#include "alloc/internal.h"

#include "base/array.h"

static bool block_is_usable(const struct allocator *a, uint32_t block)
{
    const struct block *b = &a->blocks[block];
    return block && !b->allocated && !b->event_count && !b->uses;
}

/* Reserve 9/8 of the device for a pool and stream; made is its one unmapped block. */
static int space_new(struct allocator *a, const struct request *request, uint32_t *made)
{
    uint64_t free_bytes, total, address;
    uint64_t page = a->pools[request->pool].is_small ? ALLOCATOR_SMALL_SEGMENT : a->settings.large_segment_size;
    a->device.memory_info(a->device.self, &free_bytes, &total);
    uint64_t size = (total + total / 8 + page - 1) / page * page;
    if (array_reserve(&a->spaces, &a->space_capacity, a->space_count + 1, sizeof(*a->spaces)))
        return STATUS_NO_MEMORY;
    int status = a->device.address_reserve(a->device.self, size, &address);
    if (status)
        return status == MEMORY_DEVICE_FULL ? ALLOCATOR_OUT_OF_MEMORY : status;
    uint32_t block = block_new(a, request->pool, request->stream, address, size);
    if (block) {
        a->blocks[block].mapped = false;
        a->blocks[block].space = (uint32_t)a->space_count;
    }
    if (!block || block_put(a, block)) {
        if (block)
            block_drop(a, block);
        a->device.address_release(a->device.self, address, size);
        return STATUS_NO_MEMORY;
    }
    a->spaces[a->space_count++] = (struct space){
        .address = address, .size = size, .page = page, .stream = request->stream, .pool = request->pool,
        .first = block, .alive = true};
    *made = block;
    return STATUS_OK;
}

/* The block from which `size` bytes can be had by mapping what lies unmapped to its right. */
static int expandable_find(struct allocator *a, const struct request *request, uint32_t *found)
{
    struct free_set *unmapped = pool_unmapped(a, request->pool, request->stream);
    struct free_position at;
    for (bool more = unmapped && free_set_first(unmapped, &at); more; more = free_set_next(unmapped, &at)) {
        uint32_t candidate = free_set_block(unmapped, at);
        if (block_is_usable(a, a->blocks[candidate].previous))
            candidate = a->blocks[candidate].previous;
        uint64_t room = 0;
        for (uint32_t b = candidate; room < request->size && block_is_usable(a, b); b = a->blocks[b].next)
            room += a->blocks[b].size;
        if (room >= request->size) {
            *found = candidate;
            return STATUS_OK;
        }
    }
    return space_new(a, request, found);
}

/* An unmapped tail split off behind a block. */
static int block_cut_tail(struct allocator *a, uint32_t index, uint64_t keep, bool mapped)
{
    struct block was = a->blocks[index];
    uint32_t tail = block_new(a, was.pool, was.stream, was.address + keep, was.size - keep);
    if (!tail)
        return STATUS_NO_MEMORY;
    struct block *block = &a->blocks[index];
    a->blocks[tail].mapped = mapped;
    a->blocks[tail].space = was.space;
    a->blocks[tail].previous = index;
    a->blocks[tail].next = block->next;
    if (block->next)
        a->blocks[block->next].previous = tail;
    block->next = tail;
    block->size = keep;
    return block_put(a, tail);
}

/* Map the first `wanted` bytes of an unmapped block; afterwards it is a free block, merged with its neighbours. */
static int expandable_map(struct allocator *a, uint32_t index, uint64_t wanted, uint64_t context)
{
    struct block *block = &a->blocks[index];
    const struct space *space = &a->spaces[block->space];
    uint64_t address = block->address;
    uint64_t end = (address - space->address + wanted + space->page - 1) / space->page * space->page;
    uint64_t got = end - (address - space->address);
    if (got > block->size)
        got = block->size;
    int status = a->device.map(a->device.self, address, got, space->page);
    if (status)
        return status == MEMORY_DEVICE_FULL ? ALLOCATOR_OUT_OF_MEMORY : status;
    block_take(a, index);
    block->mapped = true;
    status = got < block->size ? block_cut_tail(a, index, got, false) : STATUS_OK;
    block = &a->blocks[index];
    block_merge(a, index, block->previous);
    block_merge(a, index, block->next);
    if (!status)
        status = block_put(a, index);
    a->reserved += got;
    pool_owner(a, block->pool)->reserved += got;
    stat_add(a, block->pool, MEMORY_STAT_RESERVED_BYTES, (int64_t)got);
    a->stats.num_device_alloc++;
    trace_event(a, ALLOCATOR_SEGMENT_MAP, address, got, block->stream, block->pool, context);
    if (!block->previous && !block->segment_context)
        block->segment_context = context;
    return status;
}

int expandable_allocate(struct allocator *a, const struct request *request, uint32_t *found)
{
    uint32_t candidate = 0;
    int status = expandable_find(a, request, &candidate);
    if (!status && !a->blocks[candidate].mapped) {
        uint64_t size = a->blocks[candidate].size;
        status = expandable_map(a, candidate, size < request->size ? size : request->size, request->context);
    }
    if (status)
        return status;
    while (a->blocks[candidate].size < request->size) {
        uint32_t next = a->blocks[candidate].next;
        uint64_t missing = request->size - a->blocks[candidate].size;
        uint64_t part = a->blocks[next].size < missing ? a->blocks[next].size : missing;
        status = expandable_map(a, next, part, request->context);
        if (status)
            return status; /* what was mapped stays, free */
        candidate = next;
    }
    block_take(a, candidate);
    *found = candidate;
    return STATUS_OK;
}

static void space_drop(struct allocator *a, uint32_t block)
{
    struct space *space = &a->spaces[a->blocks[block].space];
    block_take(a, block);
    a->device.address_release(a->device.self, space->address, space->size);
    space->alive = false;
    block_drop(a, block);
}

/* A mapped free piece of what is left beside an unmapped range. */
static int piece_before(struct allocator *a, uint32_t index, uint64_t bytes)
{
    struct block was = a->blocks[index];
    uint32_t piece = block_new(a, was.pool, was.stream, was.address, bytes);
    if (!piece)
        return STATUS_NO_MEMORY;
    struct block *block = &a->blocks[index];
    a->blocks[piece].space = was.space;
    a->blocks[piece].previous = was.previous;
    a->blocks[piece].next = index;
    if (was.previous)
        a->blocks[was.previous].next = piece;
    else
        a->spaces[was.space].first = piece;
    block->previous = piece;
    if (block->named)
        address_map_remove(&a->by_address, block->address);
    block->named = false;
    block->address += bytes;
    block->size -= bytes;
    return block_put(a, piece);
}

int expandable_unmap(struct allocator *a, uint32_t index, uint64_t context)
{
    struct block *block = &a->blocks[index];
    const struct space *space = &a->spaces[block->space];
    uint64_t begin = (block->address - space->address + space->page - 1) / space->page * space->page;
    uint64_t end = (block->address - space->address + block->size) / space->page * space->page;
    if (begin >= end)
        return STATUS_OK;
    uint64_t address = space->address + begin, size = end - begin;
    if (a->device.stream_wait)
        a->device.stream_wait(a->device.self, a->streams[block->stream].handle);
    a->device.unmap(a->device.self, address, size, space->page);
    block_take(a, index);
    int status = STATUS_OK;
    if (address > block->address)
        status = piece_before(a, index, address - block->address);
    block = &a->blocks[index];
    if (!status && block->size > size)
        status = block_cut_tail(a, index, size, true);
    block = &a->blocks[index];
    uint32_t pool = block->pool, stream = block->stream;
    block->mapped = false;
    block_merge(a, index, block->previous);
    block_merge(a, index, block->next);
    if (!status)
        status = block_put(a, index);
    a->reserved -= size;
    stat_sub(a, pool, MEMORY_STAT_RESERVED_BYTES, (int64_t)size);
    pool_owner(a, pool)->reserved -= size;
    a->stats.num_device_free++;
    trace_event(a, ALLOCATOR_SEGMENT_UNMAP, address, size, stream, pool, context ? context : block->segment_context);
    if (!block_is_split(&a->blocks[index]))
        space_drop(a, index);
    return status;
}

void expandable_forget(struct allocator *a, uint32_t pool)
{
    for (size_t i = 0; i < a->space_count; i++)
        if (a->spaces[i].alive && a->spaces[i].pool == pool)
            space_drop(a, a->spaces[i].first);
}
