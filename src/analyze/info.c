/* Counts over a snapshot.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/info.h"

#include "analyze/statistics.h"
#include "analyze/usage.h"
#include "base/array.h"
#include "base/table.h"
#include "snapshot/state.h"

#include <stdlib.h>
#include <string.h>

struct counting {
    const struct snapshot *snapshot;
    struct info *info;
    struct table index; /* process, device -> info->devices */
};

const char *info_source_name(const struct snapshot *snapshot)
{
    static const char *const names[] = {"recording of cudamem", "PyTorch snapshot", "RMM log"};
    return names[snapshot->source <= SOURCE_RMM ? snapshot->source : SOURCE_TORCH];
}

static struct info_device *find_device(struct counting *c, uint16_t process, uint16_t ordinal)
{
    struct info *info = c->info;
    uint32_t *slot = table_at(&c->index, (uint64_t)process << 16 | ordinal, NONE32);
    if (!slot)
        return NULL;
    if (*slot == NONE32) {
        if (array_reserve(&info->devices, &info->device_capacity, info->device_count + 1, sizeof(*info->devices)))
            return NULL;
        struct info_device *added = &info->devices[info->device_count];
        memset(added, 0, sizeof(*added));
        added->process = process;
        added->ordinal = ordinal;
        added->device = NONE32;
        *slot = (uint32_t)info->device_count++;
    }
    return &info->devices[*slot];
}

static int count_devices(struct counting *c)
{
    for (size_t i = 0; i < c->snapshot->device_count; i++) {
        const struct device *device = &c->snapshot->devices[i];
        struct info_device *counted = find_device(c, device->process, device->ordinal);
        if (!counted)
            return STATUS_NO_MEMORY;
        counted->device = (uint32_t)i;
        counted->lost_entries = device->lost_entries;
        counted->max_entries = device->max_entries;
        counted->overflowed = device->lost_entries > 0;
        c->info->lost_entries += device->lost_entries;
    }
    for (size_t i = 0; i < c->snapshot->process_count; i++) {
        c->info->lost_stacks += c->snapshot->processes[i].lost_stacks;
        c->info->lost_state += c->snapshot->processes[i].lost_state;
        c->info->unrecorded += c->snapshot->processes[i].unrecorded;
    }
    return STATUS_OK;
}

static void count_time(struct info *info, int64_t time)
{
    if (!info->has_times || time < info->first_time)
        info->first_time = time;
    if (!info->has_times || time > info->last_time)
        info->last_time = time;
    info->has_times = true;
}

static int count_entries(struct counting *c)
{
    const struct entries *entries = &c->snapshot->entries;
    struct info *info = c->info;
    info->entries = entries->count;
    for (size_t i = 0; i < entries->count; i++) {
        struct info_device *device = find_device(c, entries->process ? entries->process[i] : 0, entries->device[i]);
        if (!device)
            return STATUS_NO_MEMORY;
        device->entries++;
        device->actions[entries->action[i]]++;
        info->actions[entries->action[i]]++;
        info->entries_without_stack += snapshot_context_stack(c->snapshot, entries->context[i]) == STACK_EMPTY;
        info->bad_entries += (entries->flags[i] & ENTRY_BAD) != 0;
        if (!(entries->flags[i] & ENTRY_NO_TIME))
            count_time(info, entries->time[i]);
        info->streams[entries->stream[i]].entries += !(entries->flags[i] & ENTRY_STREAM_UNKNOWN);
    }
    return STATUS_OK;
}

static int count_state(struct counting *c, const struct state *state)
{
    const struct snapshot *snapshot = c->snapshot;
    struct info *info = c->info;
    for (size_t s = 0; s < state->segment_count; s++) {
        const struct segment *segment = &state->segments[s];
        struct info_device *device = find_device(c, segment->process, segment->device);
        if (!device)
            return STATUS_NO_MEMORY;
        struct info_pool *pool = &info->pools[segment->pool < snapshot->pool_count ? segment->pool : snapshot->pool_count];
        bool is_devices = usage_is_devices(segment->kind);
        device->segments++;
        device->reserved += is_devices ? segment->total_size : 0;
        device->cached += is_devices ? segment->total_size : 0;
        pool->segments++;
        pool->reserved += segment->total_size;
        uint32_t stream = table_get(&snapshot->stream_index, (uint64_t)segment->stream, NONE32);
        if (stream < info->stream_count)
            info->streams[stream].segments++;
        for (uint32_t b = 0; b < segment->block_count; b++) {
            const struct block *block = &state->blocks[segment->first_block + b];
            if (block->state != BLOCK_ACTIVE_ALLOCATED && block->state != BLOCK_ACTIVE_PENDING_FREE)
                continue;
            device->blocks++;
            device->allocated += is_devices ? block->size : 0;
            device->cached -= is_devices ? block->size : 0;
            pool->allocated += block->size;
            bool before = block->flags & BLOCK_BEFORE_RECORDING;
            device->before_blocks += before;
            device->before_bytes += before ? block->size : 0;
        }
    }
    return STATUS_OK;
}

static int count_peaks(struct counting *c, struct error *err)
{
    struct statistics_list list;
    int status = statistics_collect(c->snapshot, &c->snapshot->end, NULL, NULL, &list, err);
    for (size_t i = 0; !status && i < list.count; i++) {
        const struct statistics *set = &list.items[i];
        uint32_t at = table_get(&c->index, (uint64_t)set->process << 16 | set->device, NONE32);
        if (at == NONE32)
            continue;
        struct info_device *device = &c->info->devices[at];
        device->peak_requested = (uint64_t)set->values.kinds[MEMORY_STAT_REQUESTED_BYTES][MEMORY_POOL_ALL].peak;
        device->peak_reserved = (uint64_t)set->values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
    }
    if (!status)
        statistics_free(&list);
    return status;
}

static int count_stacks(struct counting *c)
{
    const struct snapshot *snapshot = c->snapshot;
    uint8_t *named = calloc(snapshot->stack_count + 1, 1);
    if (!named)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < snapshot->context_count; i++) {
        uint32_t stack = snapshot->contexts[i];
        if (stack == STACK_EMPTY || named[stack])
            continue;
        named[stack] = 1;
        c->info->stacks++;
        if (snapshot->stacks[stack].depth > c->info->deepest)
            c->info->deepest = snapshot->stacks[stack].depth;
    }
    free(named);
    return STATUS_OK;
}

static struct info_gpu *find_gpu(struct counting *c, const struct device *device)
{
    struct info *info = c->info;
    for (size_t i = 0; i < info->gpu_count; i++)
        if (memcmp(c->snapshot->devices[info->gpus[i].device].uuid, device->uuid, sizeof(device->uuid)) == 0)
            return &info->gpus[i];
    if (array_reserve(&info->gpus, &info->gpu_capacity, info->gpu_count + 1, sizeof(*info->gpus)))
        return NULL;
    info->gpus[info->gpu_count] = (struct info_gpu){.device = (uint32_t)(device - c->snapshot->devices)};
    return &info->gpus[info->gpu_count++];
}

/* One GPU of several processes: their devices with its uuid add up. */
static int count_gpus(struct counting *c)
{
    struct info *info = c->info;
    size_t kept = 0;
    for (size_t i = 0; i < info->device_count && c->snapshot->process_count > 1; i++) {
        const struct info_device *counted = &info->devices[i];
        if (counted->device == NONE32 || !c->snapshot->devices[counted->device].has_uuid)
            continue;
        struct info_gpu *gpu = find_gpu(c, &c->snapshot->devices[counted->device]);
        if (!gpu)
            return STATUS_NO_MEMORY;
        gpu->processes++;
        gpu->reserved += counted->reserved;
        gpu->allocated += counted->allocated;
    }
    for (size_t i = 0; i < info->gpu_count; i++)
        if (info->gpus[i].processes > 1)
            info->gpus[kept++] = info->gpus[i];
    info->gpu_count = kept;
    return STATUS_OK;
}

static int compare_devices(const void *a, const void *b)
{
    const struct info_device *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static int compare_streams(const void *a, const void *b)
{
    const struct info_stream *x = a, *y = b;
    return x->stream < y->stream ? -1 : x->stream > y->stream;
}

static int compare_pools(const void *a, const void *b)
{
    const struct info_pool *x = a, *y = b;
    if (x->is_known != y->is_known)
        return x->is_known ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (x->id[i] != y->id[i])
            return x->id[i] < y->id[i] ? -1 : 1;
    return 0;
}

static void sort_and_drop(struct info *info)
{
    size_t kept = 0;
    qsort(info->devices, info->device_count, sizeof(*info->devices), compare_devices);
    for (size_t i = 0; i < info->stream_count; i++)
        if (info->streams[i].entries || info->streams[i].segments)
            info->streams[kept++] = info->streams[i];
    info->stream_count = kept;
    qsort(info->streams, kept, sizeof(*info->streams), compare_streams);
    kept = 0;
    for (size_t i = 0; i < info->pool_count; i++)
        if (info->pools[i].segments)
            info->pools[kept++] = info->pools[i];
    info->pool_count = kept;
    qsort(info->pools, kept, sizeof(*info->pools), compare_pools);
}

static int count_all(struct counting *c, const struct state *state, struct error *err)
{
    const struct snapshot *snapshot = c->snapshot;
    struct info *info = c->info;
    struct state marked = {0};
    info->streams = calloc(snapshot->stream_count + 1, sizeof(*info->streams));
    info->pools = calloc(snapshot->pool_count + 1, sizeof(*info->pools));
    info->devices = NULL;
    if (!info->streams || !info->pools || array_reserve(&info->devices, &info->device_capacity, 1, sizeof(*info->devices)))
        return error_no_memory(err);
    info->stream_count = snapshot->stream_count;
    info->pool_count = snapshot->pool_count + 1;
    for (size_t i = 0; i < snapshot->stream_count; i++)
        info->streams[i].stream = snapshot->streams[i];
    for (size_t i = 0; i < snapshot->pool_count; i++)
        info->pools[i] = (struct info_pool){.id = {snapshot->pools[i].id[0], snapshot->pools[i].id[1]}, .is_known = true};
    int status = state_copy(&marked, state) ? error_no_memory(err) : STATUS_OK;
    if (!status && snapshot->entries.count)
        status = state_mark_before_recording(snapshot, &marked, err);
    if (!status && (count_devices(c) || count_entries(c) || count_state(c, &marked) || count_gpus(c) || count_stacks(c)))
        status = error_no_memory(err);
    state_free(&marked);
    if (!status)
        status = count_peaks(c, err);
    info->recording_was_off = !snapshot->entries.count && snapshot->source != SOURCE_RECORDED && snapshot->end.segment_count;
    if (!status)
        sort_and_drop(info);
    return status;
}

int info_collect(const struct snapshot *snapshot, const struct state *state, struct info *info, struct error *err)
{
    struct counting c = {.snapshot = snapshot, .info = info};
    memset(info, 0, sizeof(*info));
    int status = count_all(&c, state, err);
    table_free(&c.index);
    if (status)
        info_free(info);
    return status;
}

void info_free(struct info *info)
{
    free(info->devices);
    free(info->gpus);
    free(info->streams);
    free(info->pools);
    memset(info, 0, sizeof(*info));
}
