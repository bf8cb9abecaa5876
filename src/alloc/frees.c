/* Giving blocks back, at once or when other streams are done.  Uses src/base, src/device's interface. */
#include "alloc/internal.h"

#include "base/array.h"

#include <string.h>

int free_block(struct allocator *a, uint32_t index, uint64_t context)
{
    struct block *block = &a->blocks[index];
    return free_block_now(a, index, block, &a->pools[block->pool], context);
}

static int queue_push(struct stream *stream, uint64_t event, uint32_t block)
{
    if (stream->queue_head && stream->queue_head * 2 > stream->queue_count) {
        size_t left = stream->queue_count - stream->queue_head;
        for (size_t i = 0; i < left; i++)
            stream->queue[i] = stream->queue[stream->queue_head + i];
        stream->queue_head = 0;
        stream->queue_count = left;
    }
    if (array_reserve(&stream->queue, &stream->queue_capacity, stream->queue_count + 1, sizeof(*stream->queue)))
        return STATUS_NO_MEMORY;
    stream->queue[stream->queue_count++] = (struct pending){event, block};
    return STATUS_OK;
}

/* Put an event down on every stream that used the block. */
static int events_insert(struct allocator *a, uint32_t index)
{
    struct block *block = &a->blocks[index];
    for (uint32_t use = block->uses; use; use = a->uses[use].next) {
        struct stream *stream = &a->streams[a->uses[use].stream];
        uint64_t event = 0;
        int status =
            a->device.event_record ? a->device.event_record(a->device.self, stream->handle, &event) : STATUS_OK;
        if (!status)
            status = queue_push(stream, event, index);
        if (status)
            return status;
        a->pending_count++;
        a->is_unusual = true;
        block->event_count++;
    }
    block_uses_clear(a, block);
    return STATUS_OK;
}

/* Uses recorded while a scope was open are over by now. */
static void uses_in_scope_drop(struct allocator *a, struct block *block)
{
    uint32_t *link = &block->uses;
    while (*link) {
        uint32_t use = *link;
        if (!a->uses[use].in_scope) {
            link = &a->uses[use].next;
            continue;
        }
        *link = a->uses[use].next;
        a->uses[use].next = a->free_uses;
        a->free_uses = use;
    }
}

static int deferred_insert(struct allocator *a, uint64_t context)
{
    int status = STATUS_OK;
    size_t done = 0;
    for (; done < a->deferred_count && !status; done++) {
        uint32_t index = a->deferred[done];
        a->blocks[index].deferred = false;
        uses_in_scope_drop(a, &a->blocks[index]);
        status = events_insert(a, index);
        if (!status && !a->blocks[index].event_count)
            status = free_block(a, index, context);
    }
    if (done) {
        memmove(a->deferred, a->deferred + done, (a->deferred_count - done) * sizeof(*a->deferred));
        a->deferred_count -= done;
    }
    return status;
}

int events_process(struct allocator *a, uint64_t context)
{
    if (a->deferred_count && deferred_insert(a, context))
        return STATUS_NO_MEMORY;
    if (!a->device.event_done)
        return STATUS_OK;
    for (size_t s = 0; s < a->stream_count; s++) {
        struct stream *stream = &a->streams[a->stream_order[s]];
        while (stream->queue_head < stream->queue_count) {
            const struct pending *oldest = &stream->queue[stream->queue_head];
            if (!a->device.event_done(a->device.self, oldest->event))
                break;
            uint32_t block = oldest->block;
            stream->queue_head++;
            a->pending_count--;
            if (--a->blocks[block].event_count == 0 && free_block(a, block, context))
                return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

int events_synchronize(struct allocator *a, uint64_t context, uint32_t owner)
{
    a->stats.num_sync_all_streams++;
    int status = deferred_insert(a, context);
    if (status)
        return status;
    for (size_t s = 0; s < a->stream_count; s++) {
        struct stream *stream = &a->streams[a->stream_order[s]];
        size_t kept = 0, count = stream->queue_count, head = stream->queue_head;
        for (size_t i = head; i < count; i++) {
            struct pending pending = stream->queue[i];
            if (owner != UINT32_MAX && a->pools[a->blocks[pending.block].pool].owner != owner) {
                stream->queue[kept++] = pending;
                continue;
            }
            if (a->device.event_wait)
                a->device.event_wait(a->device.self, pending.event);
            if (--a->blocks[pending.block].event_count == 0 && free_block(a, pending.block, context))
                status = STATUS_NO_MEMORY; /* the queue is gone through to its end all the same */
        }
        stream->queue_head = 0;
        stream->queue_count = kept;
        a->pending_count -= count - head - kept;
    }
    return status;
}

/* Forget the events of a block that ends by the caller's word. */
static void queue_forget(struct allocator *a, uint32_t block)
{
    for (size_t s = 0; s < a->stream_count && a->blocks[block].event_count; s++) {
        struct stream *stream = &a->streams[s];
        size_t kept = stream->queue_head;
        for (size_t i = stream->queue_head; i < stream->queue_count; i++) {
            if (stream->queue[i].block == block)
                a->blocks[block].event_count--;
            else
                stream->queue[kept++] = stream->queue[i];
        }
        a->pending_count -= stream->queue_count - kept;
        stream->queue_count = kept;
    }
}

static void deferred_forget(struct allocator *a, uint32_t block)
{
    size_t i = 0;
    if (!a->blocks[block].deferred)
        return;
    while (a->deferred[i] != block)
        i++;
    a->deferred_count--;
    memmove(a->deferred + i, a->deferred + i + 1, (a->deferred_count - i) * sizeof(*a->deferred));
    a->blocks[block].deferred = false;
}

int allocator_complete_free(struct allocator *a, uint64_t address, uint64_t context)
{
    uint32_t block = block_at(a, address);
    if (!block || a->blocks[block].allocated)
        return ALLOCATOR_INVALID;
    deferred_forget(a, block);
    queue_forget(a, block);
    block_uses_clear(a, &a->blocks[block]);
    return free_block(a, block, context);
}

/* Other streams still use the block. */
static __attribute__((noinline)) int free_later(struct allocator *a, uint32_t index)
{
    if (!a->scope_count)
        return events_insert(a, index);
    if (array_reserve(&a->deferred, &a->deferred_capacity, a->deferred_count + 1, sizeof(*a->deferred)))
        return STATUS_NO_MEMORY;
    a->deferred[a->deferred_count++] = index;
    a->blocks[index].deferred = true;
    a->is_unusual = true;
    return STATUS_OK;
}

int allocator_release(struct allocator *a, uint64_t address, uint64_t context)
{
    uint32_t index = address_map_get(&a->by_address, address);
    struct block *block = &a->blocks[index];
    if (!block->allocated) /* nor is what stands for no block */
        return ALLOCATOR_INVALID;
    const struct pool *pool = &a->pools[block->pool];
    struct memory_stat *stats = class_stats(a, pool);
    block->allocated = false;
    class_sub(a, stats, MEMORY_STAT_ALLOCATION, 1);
    class_sub(a, stats, MEMORY_STAT_ALLOCATED_BYTES, (int64_t)block->size);
    if (a->trace)
        trace_free(a, ALLOCATOR_FREE_REQUESTED, block, context);
    if (block->size >= a->settings.max_split_size)
        memory_stat_decrease(&a->stats.oversize_allocations, 1);
    return block->uses ? free_later(a, index) : free_block_now(a, index, block, pool, context);
}

int allocator_record_stream(struct allocator *a, uint64_t address, int64_t handle)
{
    uint32_t index = block_at(a, address);
    if (!index || !a->blocks[index].allocated)
        return ALLOCATOR_INVALID;
    uint32_t stream = stream_find(a, handle);
    if (stream == UINT32_MAX)
        return STATUS_NO_MEMORY;
    if (stream == a->blocks[index].stream)
        return STATUS_OK;
    return block_uses_add(a, &a->blocks[index], stream);
}
