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

int64_t ring_build_time(const struct build *build, uint64_t ticks)
{
    return time_of(build, ticks);
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
    process->unrecorded = header->skipped_paused;
    for (size_t i = 0; i < RING_DEVICES; i++)
        process->unrecorded += build->reader->forgotten[i];
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
    device->has_sample = (from->known & RING_DEVICE_FREE) && (from->known & RING_DEVICE_TOTAL);
    device->known_bytes = device->has_sample ? from->known_bytes : 0;
    device->pool_bytes = device->has_sample ? from->pool_bytes : 0;
    device->max_entries = reader->header.max_entries;
    uint64_t known = reader->shown[ordinal] + reader->forgotten[ordinal];
    device->lost_entries = from->head > known ? from->head - known : 0;
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

int ring_build_modules(struct build *build)
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

/* Of a copy that the process made of its file: what it was made for. */
static int build_copy_setting(struct build *build)
{
    static const char *const words[RING_COPIES] = {NULL, "out of memory", "signal"};
    const struct ring_header *header = &build->reader->header;
    char text[48];
    if (header->copy == RING_COPY_NONE || header->copy >= RING_COPIES)
        return STATUS_OK;
    int length = snprintf(text, sizeof(text), "%s %" PRIu32, words[header->copy], header->copy_number);
    uint32_t key = snapshot_string(build->snapshot, "kept_at", strlen("kept_at"));
    uint32_t content = snapshot_shared_string(build->snapshot, text, (size_t)length);
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
    entry.flags = (uint8_t)((entry.flags & ~ENTRY_FAILED) | ENTRY_REQUESTED_UNKNOWN | ENTRY_OUTSIDE);
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
    if (event->life != NONE32 && !lives[event->life].holds_blocks)
        entry->flags |= ENTRY_OUTSIDE;
    if (!status)
        status = add_entry(build, entry);
    if (!status && !ends && event->life != NONE32)
        status = add_implied(build, entry, ACTION_ALLOC, &lives[event->life]);
    entry->action = ACTION_FREE_COMPLETED;
    bool is_told = action != ACTION_FREE_REQUESTED || (event->slot.notes & RING_FREE_TOLD);
    return status || is_told ? status : add_entry(build, entry);
}

/* What happens in one call shares its context. */
static int event_context(struct build *build, struct ring_event *event)
{
    uint32_t *last = build->reader->has_blocks ? table_at(&build->parts, event->slot.thread + UINT64_C(1), CONTEXT_NONE) : NULL;
    if (last && (event->slot.notes & RING_SAME_CALL) && *last != CONTEXT_NONE) {
        event->context = *last;
        return STATUS_OK;
    }
    int status = ring_build_context(build, event->slot.stack, event->slot.python_stack, &event->context);
    if (last)
        *last = event->context;
    return status;
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
    if (ring_is_block_action(slot->action) && event->requested != UINT64_MAX)
        entry.size = event->requested;
    entry.time = time_of(build, slot->ticks);
    entry.thread = slot->thread;
    entry.call = slot->call < build->reader->header.call_count ? (uint16_t)build->calls[slot->call] : 0;
    if (slot->flags & RING_STREAM_UNKNOWN)
        entry.flags |= ENTRY_STREAM_UNKNOWN;
    if (event->is_step)
        entry.flags |= ENTRY_OUTSIDE;
    if ((slot->flags & RING_SIZE_UNKNOWN) || (slot->notes & RING_REQUESTED_UNKNOWN))
        entry.flags |= ENTRY_REQUESTED_UNKNOWN;
    if (slot->result && (slot->action == ACTION_SEGMENT_FREE || slot->action == ACTION_SEGMENT_UNMAP ||
                         slot->action == ACTION_FREE_COMPLETED))
        entry.flags |= ENTRY_FAILED;
    entry.pool = ring_build_pool(build, event->pool);
    int status = event_context(build, event);
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
    int status = ring_build_modules(build);
    if (!status)
        status = build_devices(build);
    if (!status)
        status = build_settings(build);
    if (!status)
        status = build_blocks_setting(build);
    if (!status)
        status = build_copy_setting(build);
    if (!status)
        status = ring_python_setting(build);
    if (!status)
        status = build_calls(build);
    if (!status)
        status = ring_marks_begin(build);
    for (size_t i = 0; i < reader->event_count && !status; i++) {
        status = ring_marks_until(build, &reader->events[i]);
        if (!status)
            status = ring_annotations_until(build, &reader->events[i]);
        if (!status)
            status = build_entry(build, &build->reader->events[i]);
    }
    if (!status)
        status = ring_marks_until(build, NULL);
    if (!status)
        status = ring_annotations_until(build, NULL);
    if (!status)
        status = ring_annotations_setting(build);
    return status ? status : ring_build_state(build);
}

int ring_build(struct ring_reader *reader, struct snapshot *snapshot)
{
    struct build build = {.reader = reader, .snapshot = snapshot};
    int status = ring_stacks_begin(&build);
    if (!status)
        status = build_all(&build);
    ring_stacks_free(&build);
    free(build.calls);
    ring_marks_free(&build);
    ring_annotations_free(&build);
    table_free(&build.pools);
    table_free(&build.parts);
    return status;
}
