/*
 * A ring file's pieces become a snapshot: facts, stacks and entries.  May use src/base, the ring's layout and the
 * snapshot.
 */
#include "format/ring_builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- time --------------------------------------------------------------------------------------------------------- */

static bool is_sample(const struct ring_calibration *sample)
{
    return sample->monotonic > 0 && sample->check == RING_CALIBRATION_CHECK(sample);
}

/* The rate from the two samples that are furthest apart. */
static void find_rate(struct build *build)
{
    const struct ring_header *header = &build->reader->header;
    const struct ring_calibration *first = &header->calibrations[0], *last = first;
    build->clock = *first;
    build->rate = 1;
    if (header->clock == RING_CLOCK_NANOSECONDS)
        return;
    for (int i = 1; i < RING_CALIBRATIONS; i++)
        if (is_sample(&header->calibrations[i]) && header->calibrations[i].ticks > last->ticks)
            last = &header->calibrations[i];
    if (last != first && last->monotonic > first->monotonic)
        build->rate = (double)(last->monotonic - first->monotonic) / (double)(last->ticks - first->ticks);
}

/* Microseconds since the epoch. */
static int64_t time_of(const struct build *build, uint64_t ticks)
{
    int64_t distance = (int64_t)(ticks - build->clock.ticks);
    double nanoseconds = (double)distance * build->rate;
    if (nanoseconds > 9e18 || nanoseconds < -9e18)
        nanoseconds = 0;
    return (int64_t)((uint64_t)build->clock.realtime + (uint64_t)(int64_t)nanoseconds) / 1000;
}

/* --- facts -------------------------------------------------------------------------------------------------------- */

static uint32_t text(struct build *build, const char *bytes)
{
    return *bytes ? snapshot_string(build->snapshot, bytes, strlen(bytes)) : STRING_NONE;
}

static void build_process(struct build *build)
{
    const struct ring_header *header = &build->reader->header;
    struct process *process = &build->snapshot->processes[0];
    process->pid = header->pid;
    process->parent = header->parent;
    process->program = text(build, header->program);
    process->host = text(build, header->host);
    process->boot_id = text(build, header->boot_id);
    process->arguments = STRING_NONE;
    process->driver = STRING_NONE;
    if (header->driver_version > 0) {
        char version[64];
        int length = snprintf(version, sizeof(version), "%" PRId32 ".%" PRId32, header->driver_version / 1000,
                              header->driver_version % 1000 / 10);
        process->driver = snapshot_string(build->snapshot, version, (size_t)length);
    }
    process->rank = header->rank;
    process->start_time = header->start_time / 1000;
    process->end_time = header->end_time / 1000;
    process->exit_status = -1;
    process->implied_blocks = !build->reader->has_blocks;
    process->lost_stacks = header->lost_stacks;
    process->lost_state = header->lost_live;
    process->incomplete = header->lost_stacks || header->lost_live || header->dropped_nested ||
                          header->dropped_device || header->dropped_waiting || header->grow_failures;
    process->clock_realtime = header->calibrations[0].realtime / 1000;
    process->clock_monotonic = header->calibrations[0].monotonic / 1000;
}

/* Without a caching allocator a segment is an allocation: both kinds count the same. */
static void build_statistics(const struct ring_device *from, struct memory_stats *stats)
{
    static const enum memory_stat_kind kinds[RING_MEASURES][3] = {
        [RING_COUNT] = {MEMORY_STAT_ALLOCATION, MEMORY_STAT_SEGMENT, MEMORY_STAT_ACTIVE},
        [RING_BYTES] = {MEMORY_STAT_ALLOCATED_BYTES, MEMORY_STAT_RESERVED_BYTES, MEMORY_STAT_ACTIVE_BYTES},
        [RING_REQUESTED] = {MEMORY_STAT_REQUESTED_BYTES, MEMORY_STAT_REQUESTED_BYTES, MEMORY_STAT_REQUESTED_BYTES},
    };
    memory_stats_init(stats);
    for (int measure = 0; measure < RING_MEASURES; measure++) {
        for (int class = 0; class < RING_CLASSES; class++) {
            const struct ring_stat *stat = &from->stats[measure][class];
            for (int i = 0; i < 3; i++)
                stats->kinds[kinds[measure][i]][class] =
                    (struct memory_stat){stat->current, stat->peak, stat->allocated, stat->freed};
        }
    }
    stats->num_device_alloc = from->device_allocs;
    stats->num_device_free = from->device_frees;
    stats->num_ooms = from->ooms;
}

static int build_device(struct build *build, uint16_t ordinal)
{
    const struct ring_reader *reader = build->reader;
    const struct ring_device *from = &reader->devices[ordinal];
    uint32_t number = snapshot_device(build->snapshot, 0, ordinal);
    if (number == NONE32)
        return error_no_memory(build->reader->err);
    struct device *device = &build->snapshot->devices[number];
    char name[sizeof(from->name) + 1] = {0};
    memcpy(name, from->name, sizeof(from->name));
    device->name = from->known & RING_DEVICE_NAME ? text(build, name) : STRING_NONE;
    device->has_uuid = from->known & RING_DEVICE_UUID;
    memcpy(device->uuid, from->uuid, sizeof(device->uuid));
    device->total = from->known & RING_DEVICE_TOTAL ? from->total : 0;
    device->free_at_end = from->known & RING_DEVICE_FREE ? from->free_bytes : 0;
    device->max_entries = reader->header.max_entries;
    device->lost_entries = from->head > reader->shown[ordinal] ? from->head - reader->shown[ordinal] : 0;
    device->lost_entries += from->ring_failed;
    device->has_stats = true;
    device->stats_exact = !reader->statistics_torn && !(reader->header.state & RING_STATS_INEXACT) &&
                          !from->ring_failed && !reader->header.dropped_nested && !reader->header.dropped_waiting;
    build_statistics(from, &device->stats);
    return STATUS_OK;
}

static int build_devices(struct build *build)
{
    for (uint16_t ordinal = 0; ordinal < RING_DEVICES; ordinal++) {
        const struct ring_device *device = &build->reader->devices[ordinal];
        if (!device->head && !device->known && !device->ring_failed)
            continue;
        if (build_device(build, ordinal))
            return STATUS_NO_MEMORY;
        build->snapshot->trace_count = ordinal + 1u;
    }
    return STATUS_OK;
}

static int build_modules(struct build *build)
{
    const struct ring_reader *reader = build->reader;
    for (uint64_t i = 0; i < reader->module_count; i++) {
        const struct ring_module *from = &reader->modules[i];
        if (from->path > reader->string_count || from->path_length > reader->string_count - from->path ||
            from->build_id_length > sizeof(from->build_id))
            return error_set(reader->err, STATUS_INPUT, "has a module (number %" PRIu64 ") that makes no sense", i);
        struct module module = {.load_address = from->load_address, .size = from->size,
                                .build_id_length = (uint8_t)from->build_id_length};
        memcpy(module.build_id, from->build_id, sizeof(module.build_id));
        module.path = snapshot_string(build->snapshot, reader->strings + from->path, from->path_length);
        if (module.path == STRING_NONE || snapshot_add_module(build->snapshot, &module) == NONE32)
            return error_no_memory(build->reader->err);
    }
    return STATUS_OK;
}

static int build_settings(struct build *build)
{
    struct snapshot *snapshot = build->snapshot;
    const char *variable = build->reader->header.environment;
    for (; *variable; variable += strlen(variable) + 1) {
        const char *equals = strchr(variable, '=');
        if (!equals || equals == variable)
            continue;
        uint32_t key = snapshot_string(snapshot, variable, (size_t)(equals - variable));
        uint32_t content = snapshot_shared_string(snapshot, equals + 1, strlen(equals + 1));
        if (key == STRING_NONE || content == STRING_NONE ||
            snapshot_add_setting(snapshot, key, value_make(VALUE_STRING, content)) == NONE32)
            return error_no_memory(build->reader->err);
    }
    return STATUS_OK;
}

/* What is told of a framework's blocks: that they are here, or that its allocator did not tell of any. */
static int build_blocks_setting(struct build *build)
{
    const struct snapshot *snapshot = build->snapshot;
    const char *found = build->reader->has_blocks ? "recorded" : NULL;
    for (size_t i = 0; i < snapshot->module_count && !found; i++) {
        const char *path = snapshot_content_text(snapshot, snapshot->modules[i].path, NULL);
        const char *slash = strrchr(path, '/');
        if (!strcmp(slash ? slash + 1 : path, "libc10_cuda.so"))
            found = "none seen";
    }
    if (!found)
        return STATUS_OK;
    uint32_t key = snapshot_string(build->snapshot, "framework_blocks", strlen("framework_blocks"));
    uint32_t content = snapshot_shared_string(build->snapshot, found, strlen(found));
    return key == STRING_NONE || content == STRING_NONE ||
           snapshot_add_setting(build->snapshot, key, value_make(VALUE_STRING, content)) == NONE32
               ? error_no_memory(build->reader->err) : STATUS_OK;
}

static int build_calls(struct build *build)
{
    const struct ring_reader *reader = build->reader;
    const char *name = reader->calls, *end = name + reader->header.calls_size;
    build->calls = calloc(reader->header.call_count + 1u, sizeof(*build->calls));
    if (!build->calls)
        return error_no_memory(build->reader->err);
    for (uint32_t i = 0; i < reader->header.call_count && name < end; i++, name += strlen(name) + 1) {
        build->calls[i] = *name ? snapshot_call(build->snapshot, name) : 0;
        if (build->calls[i] == NONE32)
            return error_no_memory(build->reader->err);
    }
    return STATUS_OK;
}

/* --- stacks ------------------------------------------------------------------------------------------------------- */

/* Where a thread's stack naturally begins: the program's entry, the loader, the C library.  Elsewhere the unwinder
 * stopped for want of information, or the depth was reached. */
static bool is_stack_end(const struct build *build, const struct ring_node *node)
{
    if (node->module >= build->reader->module_count)
        return false;
    const struct ring_module *module = &build->reader->modules[node->module];
    return (module->flags & RING_MODULE_STACK_END) || ((module->flags & RING_MODULE_PROGRAM) &&
           node->offset >= module->entry && node->offset - module->entry < 64);
}

static uint32_t build_frame(struct build *build, const struct ring_node *node)
{
    bool cut = node->parent == RING_STACK_EMPTY && !is_stack_end(build, node);
    struct frame frame = {.name = STRING_NONE, .filename = STRING_NONE, .module = NONE32, .offset = node->offset,
                          .flags = (uint8_t)(FRAME_NATIVE | (cut ? FRAME_TRUNCATED : 0))};
    if (node->module < build->reader->module_count)
        frame.module = node->module;
    bool is_small = node->offset < UINT64_C(1) << 40 && (frame.module == NONE32 || frame.module < 1u << 22);
    uint64_t key = node->offset << 24 | (frame.module & 0x7fffff) << 1 | cut;
    uint32_t *known = is_small ? table_at(&build->frames, key, NONE32) : NULL;
    if (known && *known != NONE32)
        return *known;
    uint32_t number = snapshot_add_frame(build->snapshot, &frame);
    if (known)
        *known = number;
    return number;
}

/* The snapshot's stack for a node: up to the first one that is made already, then down again. */
static int build_stack(struct build *build, uint32_t node, uint32_t *stack)
{
    const struct ring_reader *reader = build->reader;
    size_t depth = 0;
    for (; node >= RING_STACK_FIRST; node = reader->nodes[node - RING_STACK_FIRST].parent) {
        if (node - RING_STACK_FIRST >= reader->node_count ||
            (depth && node >= build->path[depth - 1])) /* parents come first: no circles */
            return error_set(reader->err, STATUS_INPUT, "has a stack (number %" PRIu32 ") that is not linked", node);
        if (build->stacks[node - RING_STACK_FIRST] != NONE32)
            break;
        build->path[depth++] = node;
    }
    uint32_t at = node >= RING_STACK_FIRST ? build->stacks[node - RING_STACK_FIRST] : STACK_EMPTY;
    while (depth-- > 0) {
        uint32_t number = build->path[depth] - RING_STACK_FIRST;
        uint32_t frame = build_frame(build, &reader->nodes[number]);
        at = frame == NONE32 ? NONE32 : snapshot_push_frame(build->snapshot, at, frame);
        if (at == NONE32)
            return error_no_memory(build->reader->err);
        build->stacks[number] = at;
    }
    *stack = at;
    return STATUS_OK;
}

int ring_build_context(struct build *build, uint32_t node, uint32_t *context)
{
    uint32_t stack = STACK_EMPTY;
    *context = CONTEXT_NONE;
    if (node == RING_STACK_NONE)
        return STATUS_OK;
    int status = build_stack(build, node, &stack);
    if (status)
        return status;
    *context = snapshot_add_context(build->snapshot, stack);
    return *context == CONTEXT_NONE ? error_no_memory(build->reader->err) : STATUS_OK;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* Handles of pools mean nothing outside the process: pools are (0, 1), (0, 2), ... as they appear; (0, 0) is none. */
uint32_t ring_build_pool(struct build *build, uint64_t handle)
{
    if (!handle)
        return snapshot_pool(build->snapshot, 0, 0);
    uint32_t *known = table_at(&build->pools, handle, NONE32);
    if (known && *known == NONE32)
        *known = snapshot_pool(build->snapshot, 0, (int64_t)build->pools.count);
    return known ? *known : NONE32;
}

static int add_entry(struct build *build, const struct entry *entry)
{
    return snapshot_add_entry(build->snapshot, entry) ? error_no_memory(build->reader->err) : STATUS_OK;
}

/* The entry of the one block that a segment is if nobody cut it. */
static int add_implied(struct build *build, const struct entry *like, enum action action, const struct ring_life *life)
{
    struct entry entry = *like;
    entry.action = action;
    entry.address = life->start;
    entry.size = life->size;
    entry.flags = (uint8_t)((entry.flags & ~ENTRY_FAILED) | ENTRY_REQUESTED_UNKNOWN);
    return life->holds_blocks || !life->size ? STATUS_OK : add_entry(build, &entry);
}

/* Where blocks are known, those of the others' segments are entries, too; a free that nobody said waits is complete. */
static int add_with_blocks(struct build *build, const struct ring_event *event, struct entry *entry)
{
    const struct ring_life *lives = build->reader->lives;
    enum action action = entry->action;
    bool ends = (action == ACTION_SEGMENT_FREE || action == ACTION_SEGMENT_UNMAP) && !(entry->flags & ENTRY_FAILED);
    int status = STATUS_OK;
    for (uint32_t life = ends ? event->life : NONE32; life != NONE32 && !status; life = lives[life].next) {
        status = add_implied(build, entry, ACTION_FREE_REQUESTED, &lives[life]);
        if (!status)
            status = add_implied(build, entry, ACTION_FREE_COMPLETED, &lives[life]);
    }
    if (!status)
        status = add_entry(build, entry);
    if (!status && !ends && event->life != NONE32)
        status = add_implied(build, entry, ACTION_ALLOC, &lives[event->life]);
    entry->action = ACTION_FREE_COMPLETED;
    return status || action != ACTION_FREE_REQUESTED ? status : add_entry(build, entry);
}

/* A free tells its stream and pool by what it frees. */
static int build_entry(struct build *build, struct ring_event *event)
{
    const struct ring_slot *slot = &event->slot;
    struct entry entry;
    entry_init(&entry);
    entry.action = (enum action)slot->action;
    entry.device = slot->device;
    entry.kind = slot->flags & RING_KIND_MASK;
    entry.stream = slot->stream;
    entry.address = slot->address;
    entry.size = slot->flags & RING_SIZE_UNKNOWN ? 0 : slot->size;
    entry.time = time_of(build, slot->ticks);
    entry.thread = slot->thread;
    entry.call = slot->call < build->reader->header.call_count ? (uint16_t)build->calls[slot->call] : 0;
    if (slot->flags & RING_STREAM_UNKNOWN)
        entry.flags |= ENTRY_STREAM_UNKNOWN;
    if ((slot->flags & RING_SIZE_UNKNOWN) || (slot->notes & RING_REQUESTED_UNKNOWN))
        entry.flags |= ENTRY_REQUESTED_UNKNOWN;
    if (slot->result && (slot->action == ACTION_SEGMENT_FREE || slot->action == ACTION_SEGMENT_UNMAP ||
                         slot->action == ACTION_FREE_COMPLETED))
        entry.flags |= ENTRY_FAILED;
    entry.pool = ring_build_pool(build, event->pool);
    int status = ring_build_context(build, slot->stack, &event->context);
    entry.context = event->context;
    if (status)
        return status;
    if (entry.pool == NONE32)
        return error_no_memory(build->reader->err);
    return build->reader->has_blocks ? add_with_blocks(build, event, &entry) : add_entry(build, &entry);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static int build_all(struct build *build)
{
    const struct ring_reader *reader = build->reader;
    find_rate(build);
    build_process(build);
    int status = build_modules(build);
    if (!status)
        status = build_devices(build);
    if (!status)
        status = build_settings(build);
    if (!status)
        status = build_blocks_setting(build);
    if (!status)
        status = build_calls(build);
    for (size_t i = 0; i < reader->event_count && !status; i++)
        status = build_entry(build, &build->reader->events[i]);
    return status ? status : ring_build_state(build);
}

int ring_build(struct ring_reader *reader, struct snapshot *snapshot)
{
    struct build build = {.reader = reader, .snapshot = snapshot};
    build.stacks = malloc((reader->node_count + 1) * sizeof(*build.stacks));
    build.path = malloc((reader->node_count + 1) * sizeof(*build.path));
    int status = build.stacks && build.path ? STATUS_OK : error_no_memory(reader->err);
    if (!status) {
        memset(build.stacks, 0xff, (reader->node_count + 1) * sizeof(*build.stacks));
        status = build_all(&build);
    }
    free(build.stacks);
    free(build.path);
    free(build.calls);
    table_free(&build.frames);
    table_free(&build.pools);
    return status;
}
