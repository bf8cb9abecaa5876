/*
 * Snapshots of this process (include/cudamem/history.h): the allocators' segments and blocks, the history's entries, settings
 * and annotations, as PyTorch's have them.
 *
 * Each device is copied under its lock; the snapshot is built of the copies.  May use every room below.
 */
#include "api/history.h"
#include "api/report.h"
#include "api/snapshot_object.h"
#include "api/suballoc.h"
#include "base/array.h"
#include "format/ring_captured.h"
#include "record/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)ALLOCATOR_OOM == (int)ACTION_OOM, "an allocator's actions are the snapshot's");

/* What there is on one device, copied. */
struct device_copy {
    struct library_device *of;
    struct allocator_segment *segments;
    uint32_t *first_blocks; /* of each segment */
    struct allocator_block *blocks;
    size_t segment_count, segment_capacity, first_capacity, block_count, block_capacity;
    struct history_entry *entries;
    uint64_t entry_count, lost, max_entries;
    struct memory_stats stats;
};

struct taking {
    const cudamem_memory_snapshot_options *options;
    struct snapshot *snapshot;
    struct error *err;
    struct ring_captured_source source;
    struct ring_captured *captured; /* NULL: no stack was ever taken */
    struct table contexts;          /* of the history -> of the snapshot */
    struct ring_calibration now;
    struct device_copy device;      /* the one that is looked at */
};

/* --- copying a device ------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct taking *taking, struct pool_id pool)
{
    const cudamem_memory_snapshot_options *options = taking->options;
    return !options->has_pool || (pool.first == options->pool[0] && pool.second == options->pool[1]);
}

static int copy_segment(void *self, const struct allocator_segment *segment)
{
    struct device_copy *copy = self;
    size_t need = copy->segment_count + 1;
    if (array_reserve(&copy->segments, &copy->segment_capacity, need, sizeof(*copy->segments)) ||
        array_reserve(&copy->first_blocks, &copy->first_capacity, need, sizeof(*copy->first_blocks)))
        return STATUS_NO_MEMORY;
    copy->first_blocks[copy->segment_count] = (uint32_t)copy->block_count;
    copy->segments[copy->segment_count++] = *segment;
    return STATUS_OK;
}

static int copy_piece(void *self, const struct allocator_block *block)
{
    struct device_copy *copy = self;
    if (array_reserve(&copy->blocks, &copy->block_capacity, copy->block_count + 1, sizeof(*copy->blocks)))
        return STATUS_NO_MEMORY;
    copy->blocks[copy->block_count++] = *block;
    return STATUS_OK;
}

static int copy_block(void *self, const struct allocator_block *block)
{
    struct device_copy *copy = self;
    return suballoc_visit(copy->of, block, copy_piece, copy);
}

static size_t end_of_blocks(const struct device_copy *copy, size_t segment)
{
    return segment + 1 < copy->segment_count ? copy->first_blocks[segment + 1] : copy->block_count;
}

static uint64_t active_bytes(const struct taking *taking)
{
    const struct device_copy *copy = &taking->device;
    uint64_t bytes = 0;
    for (size_t i = 0; i < copy->segment_count; i++)
        for (size_t b = copy->first_blocks[i]; is_wanted(taking, copy->segments[i].pool) && b < end_of_blocks(copy, i); b++)
            bytes += copy->blocks[b].active ? copy->blocks[b].size : 0;
    return bytes;
}

static int copy_locked(struct taking *taking, struct library_device *device)
{
    struct device_copy *copy = &taking->device;
    const struct history_ring *ring = &history.rings[device->ordinal];
    const struct allocator_visitor visitor = {copy_segment, copy_block, copy};
    copy->of = device;
    copy->stats = *allocator_stats(device->allocator);
    copy->lost = ring->lost;
    copy->max_entries = ring->max_entries;
    if (!taking->options->without_traces) {
        copy->entries = history_ring_copy(ring);
        if (!copy->entries)
            return error_no_memory(taking->err);
        copy->entry_count = ring->count;
    }
    if (allocator_visit(device->allocator, &visitor))
        return error_no_memory(taking->err);
    const struct pool_id pool = {taking->options->pool[0], taking->options->pool[1]};
    history_mark_snapshot(device, active_bytes(taking), taking->options->has_pool ? pool : (struct pool_id){0, 0});
    return STATUS_OK;
}

static void forget_copy(struct device_copy *copy)
{
    free(copy->segments);
    free(copy->first_blocks);
    free(copy->blocks);
    free(copy->entries);
    *copy = (struct device_copy){.of = NULL};
}

/* --- contexts ----------------------------------------------------------------------------------------------------------- */

static int begin_contexts(struct taking *taking)
{
    struct ring_captured_source *source = &taking->source;
    if (!atomic_load_explicit(&history.is_started, memory_order_acquire))
        return STATUS_OK;
    recorder_stacks_sample(&taking->now);
    source->header = recorder_stacks_header();
    source->nodes = recorder_stacks_copy(RING_NODES, &source->node_count);
    source->modules = recorder_stacks_copy(RING_MODULES, &source->module_count);
    source->python_nodes = recorder_stacks_copy(RING_PYTHON_NODES, &source->python_node_count);
    source->codes = recorder_stacks_copy(RING_CODES, &source->code_count);
    source->strings = recorder_stacks_copy(RING_STRINGS, &source->string_count); /* last: those before it name them */
    if (!source->nodes || !source->modules || !source->python_nodes || !source->codes || !source->strings)
        return error_no_memory(taking->err);
    return ring_captured_begin(source, taking->snapshot, &taking->captured, taking->err);
}

static void end_contexts(struct taking *taking)
{
    ring_captured_end(taking->captured);
    free(taking->source.nodes);
    free(taking->source.modules);
    free(taking->source.python_nodes);
    free(taking->source.codes);
    free(taking->source.strings);
    table_free(&taking->contexts);
}

/* One context of the snapshot for each call. */
static int context_of(struct taking *taking, uint64_t context, uint32_t *result)
{
    uint32_t native, python;
    *result = CONTEXT_NONE;
    if (!context || !taking->captured)
        return STATUS_OK;
    *result = table_get(&taking->contexts, context, CONTEXT_NONE);
    if (*result != CONTEXT_NONE)
        return STATUS_OK;
    history_context_stacks(context, &native, &python);
    if (ring_captured_context(taking->captured, native, python, result) || table_set(&taking->contexts, context, *result))
        return error_no_memory(taking->err);
    return STATUS_OK;
}

/* --- building ----------------------------------------------------------------------------------------------------------- */

/* Microseconds since the epoch, by the two samples. */
static int64_t time_of(const struct taking *taking, uint64_t ticks)
{
    const struct ring_calibration *first = &history.start, *last = &taking->now;
    double rate = last->ticks > first->ticks ? (double)(last->monotonic - first->monotonic) /
                                                   (double)(last->ticks - first->ticks) : 1;
    return (first->realtime + (int64_t)((double)(int64_t)(ticks - first->ticks) * rate)) / 1000;
}

static int build_entry(struct taking *taking, uint16_t device, const struct history_entry *from)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = (enum action)from->action;
    entry.device = device;
    entry.address = from->address;
    entry.size = from->size;
    entry.stream = from->stream;
    entry.time = time_of(taking, from->ticks);
    entry.pool = snapshot_pool(taking->snapshot, from->pool.first, from->pool.second);
    int status = context_of(taking, from->context, &entry.context);
    if (status)
        return status;
    return entry.pool == NONE32 || snapshot_add_entry(taking->snapshot, &entry) ? error_no_memory(taking->err) : STATUS_OK;
}

static int build_block(struct taking *taking, const struct allocator_block *from, struct segment *segment)
{
    struct block block = {.address = from->address, .size = from->size, .requested = from->requested,
                          .state = from->allocated ? BLOCK_ACTIVE_ALLOCATED
                                   : from->active  ? BLOCK_ACTIVE_PENDING_FREE
                                                   : BLOCK_INACTIVE};
    int status = context_of(taking, from->context, &block.context);
    if (status)
        return status;
    segment->allocated_size += from->allocated ? from->size : 0;
    segment->active_size += from->active ? from->size : 0;
    segment->requested_size += from->active ? from->requested : 0;
    return state_add_block(&taking->snapshot->end, &block) ? error_no_memory(taking->err) : STATUS_OK;
}

static int build_segment(struct taking *taking, uint16_t device, size_t number)
{
    const struct device_copy *copy = &taking->device;
    const struct allocator_segment *from = &copy->segments[number];
    struct state *state = &taking->snapshot->end;
    struct segment segment = {.address = from->address, .total_size = from->size, .stream = from->stream, .device = device,
                              .is_large = from->is_large, .is_expandable = from->is_expandable,
                              .pool = snapshot_pool(taking->snapshot, from->pool.first, from->pool.second)};
    int status = context_of(taking, from->context, &segment.context);
    if (status)
        return status;
    if (segment.pool == NONE32 || state_add_segment(state, &segment))
        return error_no_memory(taking->err);
    for (size_t b = copy->first_blocks[number]; b < end_of_blocks(copy, number) && !status; b++)
        status = build_block(taking, &copy->blocks[b], &segment);
    struct segment *made = &state->segments[state->segment_count - 1];
    made->allocated_size = segment.allocated_size;
    made->active_size = segment.active_size;
    made->requested_size = segment.requested_size;
    return status;
}

static int build_device(struct taking *taking, uint16_t ordinal)
{
    const struct device_copy *copy = &taking->device;
    uint32_t number = snapshot_device(taking->snapshot, 0, ordinal);
    if (number == NONE32)
        return error_no_memory(taking->err);
    struct device *device = &taking->snapshot->devices[number];
    device->total = library_devices[ordinal].total_bytes;
    device->has_stats = device->stats_exact = !taking->options->has_pool;
    if (device->has_stats)
        device->stats = copy->stats;
    device->max_entries = copy->max_entries == UINT64_MAX ? 0 : copy->max_entries;
    device->lost_entries = copy->lost;
    int status = STATUS_OK;
    for (size_t i = 0; i < copy->segment_count && !status; i++)
        if (is_wanted(taking, copy->segments[i].pool))
            status = build_segment(taking, ordinal, i);
    for (uint64_t i = 0; i < copy->entry_count && !status; i++)
        if (is_wanted(taking, copy->entries[i].pool))
            status = build_entry(taking, ordinal, &copy->entries[i]);
    return status;
}

static int take_device(struct taking *taking, struct library_device *device)
{
    int status = library_enter(device, taking->err);
    if (status)
        return status;
    status = copy_locked(taking, device);
    library_leave(device);
    return status;
}

/* Stacks are copied, and the clock is looked at, after the entries that need them. */
static int take_devices(struct taking *taking)
{
    struct device_copy *copies = calloc(LIBRARY_DEVICES, sizeof(*copies));
    int status = copies ? STATUS_OK : error_no_memory(taking->err);
    for (struct library_device *d = library_next_device(0); d && !status; d = library_next_device(d->ordinal + 1)) {
        status = take_device(taking, d);
        copies[d->ordinal] = taking->device;
        taking->device = (struct device_copy){.of = NULL};
    }
    if (!status)
        status = begin_contexts(taking);
    for (struct library_device *d = library_next_device(0); d && !status; d = library_next_device(d->ordinal + 1)) {
        taking->device = copies[d->ordinal];
        status = build_device(taking, (uint16_t)d->ordinal);
    }
    for (size_t i = 0; copies && i < LIBRARY_DEVICES; i++)
        forget_copy(&copies[i]);
    free(copies);
    return status;
}

/* --- annotations and settings ------------------------------------------------------------------------------------------- */

static int add_annotations(struct taking *taking)
{
    size_t count = taking->options->without_traces ? 0 : history.annotation_count;
    for (size_t i = 0; i < count; i++) {
        const struct history_annotation *from = &history.annotations[(history.annotation_next + i) % count];
        const char *name = strings_text(history.names, from->name);
        struct annotation annotation = {.device = from->device, .stage = from->is_end, .time = time_of(taking, from->ticks)};
        uint32_t content = snapshot_string(taking->snapshot, name, strlen(name));
        annotation.name = content == STRING_NONE ? STRING_NONE : snapshot_string_object(taking->snapshot, content);
        if (annotation.name == STRING_NONE || snapshot_add_annotation(taking->snapshot, &annotation) == NONE32)
            return error_no_memory(taking->err);
    }
    return STATUS_OK;
}

static int take_annotations(struct taking *taking)
{
    int status = history_enter(taking->err);
    if (status)
        return status;
    status = add_annotations(taking);
    history_leave();
    return status;
}

static int add_setting(struct taking *taking, const char *name, value content)
{
    uint32_t key = snapshot_string(taking->snapshot, name, strlen(name));
    return key == STRING_NONE || snapshot_add_setting(taking->snapshot, key, content) == NONE32 ||
                   values_failed(taking->snapshot->values) ? error_no_memory(taking->err) : STATUS_OK;
}

static value bool_value(bool is_true)
{
    return value_make(is_true ? VALUE_TRUE : VALUE_FALSE, 0);
}

static value text_value(struct snapshot *snapshot, const char *text)
{
    return value_make(VALUE_STRING, snapshot_shared_string(snapshot, text, strlen(text)));
}

/* {"1": divisions, "2": ..., "32768": ...}: by the MiB from which they count. */
static value divisions_value(struct snapshot *snapshot, const struct settings *settings)
{
    value dict = values_container(snapshot->values, VALUE_DICT);
    for (unsigned i = 0; i < SETTINGS_ROUNDUP_ENTRIES; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%u", 1u << i);
        const value pair[2] = {text_value(snapshot, key), values_int(snapshot->values, settings->roundup_divisions[i])};
        values_append(snapshot->values, dict, pair, 2);
    }
    return dict;
}

static int take_settings(struct taking *taking)
{
    struct settings settings;
    char conf[4096];
    struct snapshot *snapshot = taking->snapshot;
    library_settings(&settings, conf, sizeof(conf));
    int64_t max_split = settings.max_split_size == SETTINGS_UNLIMITED ? -1 : (int64_t)settings.max_split_size;
    int64_t threads = settings.pinned_num_register_threads ? (int64_t)settings.pinned_num_register_threads : 1;
    const struct {
        const char *name;
        value content;
    } all[] = {
        {"PYTORCH_CUDA_ALLOC_CONF", text_value(snapshot, conf)},
        {"max_split_size", values_int(snapshot->values, max_split)},
        {"garbage_collection_threshold", values_float(snapshot->values, settings.garbage_collection_threshold)},
        {"expandable_segments", bool_value(settings.expandable_segments)},
        {"pinned_num_register_threads", values_int(snapshot->values, threads)},
        {"release_lock_on_cudamalloc", bool_value(settings.release_lock_on_device_malloc)},
        {"pinned_use_cuda_host_register", bool_value(settings.pinned_use_host_register)},
        {"graph_capture_record_stream_reuse", bool_value(settings.graph_capture_record_stream_reuse)},
        {"roundup_power2_divisions", divisions_value(snapshot, &settings)},
    };
    int status = STATUS_OK;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !status; i++)
        status = add_setting(taking, all[i].name, all[i].content);
    return status;
}

/* --- all of it ---------------------------------------------------------------------------------------------------------- */

static int take_all(struct taking *taking)
{
    struct snapshot *snapshot = taking->snapshot;
    int count = 0, status;
    snapshot->processes[0].pid = getpid(); /* names of generated code are found by it */
    if (library_is_used()) {
        status = library_device_count(&count, taking->err);
        snapshot->trace_count = status ? 0 : (uint32_t)count;
        if (!status)
            status = take_devices(taking);
        if (!status && taking->captured) /* else nothing was ever recorded */
            status = take_annotations(taking);
        if (status)
            return status;
    }
    status = take_settings(taking);
    if (!status && snapshot_order_by_time(snapshot))
        status = error_no_memory(taking->err);
    return status;
}

int snapshot_take(const cudamem_memory_snapshot_options *options, cudamem_snapshot **result, struct error *err)
{
    struct taking taking = {.options = options, .err = err, .snapshot = snapshot_new(SOURCE_TORCH)};
    if (!taking.snapshot)
        return error_no_memory(err);
    int status = library_native_only("snapshots", err);
    if (!status)
        status = library_check_outside(err);
    if (!status)
        status = take_all(&taking);
    end_contexts(&taking);
    taking.snapshot->end.moment = taking.snapshot->entries.count;
    if (!status)
        return snapshot_object_new(taking.snapshot, true, result, err);
    snapshot_free(taking.snapshot);
    return status;
}

EXPORT int cudamem_memory_snapshot(const cudamem_memory_snapshot_options *options, cudamem_snapshot **snapshot,
                                   cudamem_error *error)
{
    struct error err = {0};
    cudamem_memory_snapshot_options ours;
    if (!snapshot)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the snapshot was given"));
    *snapshot = NULL;
    api_take(&ours, sizeof(ours), options);
    int status = snapshot_take(&ours, snapshot, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_pool_snapshot(const cudamem_pool *pool, int include_traces, cudamem_snapshot **snapshot,
                                 cudamem_error *error)
{
    struct error err = {0};
    if (!pool)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no pool was given"));
    const cudamem_pool_id id = cudamem_pool_get_id(pool);
    const cudamem_memory_snapshot_options options = {
        .struct_size = sizeof(options), .pool = {id.first, id.second}, .has_pool = 1, .without_traces = !include_traces};
    return cudamem_memory_snapshot(&options, snapshot, error);
}

EXPORT int cudamem_dump_snapshot(const char *path, cudamem_error *error)
{
    cudamem_snapshot *snapshot;
    const char *name = path ? path : "dump_snapshot.pickle";
    size_t length = strlen(name);
    bool is_bin = length >= 4 && strcmp(name + length - 4, ".bin") == 0;
    int status = cudamem_memory_snapshot(NULL, &snapshot, error);
    if (status)
        return status;
    status = cudamem_snapshot_save(snapshot, name, is_bin ? "bin" : "pickle", error);
    cudamem_snapshot_close(snapshot);
    return status;
}
