/*
 * The public snapshot functions (include/cudamem/snapshot.h).  May use every room below; translates, decides nothing.
 *
 * Structs of the caller are size-tagged: never more of them is written than the caller says it knows.
 */
#include "api/report.h"
#include "api/snapshot_object.h"
#include "base/output.h"
#include "format/format.h"
#include "symbol/symbolize.h"

#include <cudamem/cudamem.h>
#include <stdlib.h>
#include <string.h>

int snapshot_object_new(struct snapshot *inner, bool lacks_names, cudamem_snapshot **snapshot, struct error *err)
{
    *snapshot = calloc(1, sizeof(**snapshot));
    if (!*snapshot) {
        snapshot_free(inner);
        return error_no_memory(err);
    }
    (*snapshot)->snapshot = inner;
    atomic_init(&(*snapshot)->lacks_names, lacks_names);
    pthread_mutex_init(&(*snapshot)->naming, NULL);
    return STATUS_OK;
}

/* What is looked at is not changed by it, but for the names. */
int snapshot_object_names(const cudamem_snapshot *snapshot, struct error *err)
{
    cudamem_snapshot *named = (cudamem_snapshot *)(uintptr_t)snapshot;
    if (!atomic_load_explicit(&named->lacks_names, memory_order_acquire))
        return STATUS_OK;
    int status = STATUS_OK;
    pthread_mutex_lock(&named->naming);
    if (atomic_load(&named->lacks_names))
        status = symbolize_snapshot(named->snapshot, NULL, err);
    atomic_store_explicit(&named->lacks_names, status != STATUS_OK, memory_order_release);
    pthread_mutex_unlock(&named->naming);
    return status;
}

EXPORT const char *cudamem_version(void)
{
    return CUDAMEM_VERSION_TEXT;
}

EXPORT int cudamem_snapshot_open(const char *path, const cudamem_open_options *options, cudamem_snapshot **snapshot,
                                 cudamem_error *error)
{
    struct error err = {0};
    if (!snapshot)
        return api_report(error, &err, error_set(&err, STATUS_USAGE, "no place for the snapshot was given"));
    *snapshot = NULL;
    if (!path)
        return api_report(error, &err, error_set(&err, STATUS_USAGE, "no path was given"));
    cudamem_open_options known = {0};
    if (options)
        memcpy(&known, options, options->struct_size < sizeof(known) ? options->struct_size : sizeof(known));
    struct format_options inner = {
        .max_input = known.max_input, .skip_traces = known.skip_entries != 0, .last_entry = UINT64_MAX};
    struct snapshot *read;
    int status = format_read(path, &inner, &read, &err);
    if (!status)
        status = snapshot_object_new(read, false, snapshot, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT void cudamem_snapshot_close(cudamem_snapshot *snapshot)
{
    if (!snapshot)
        return;
    snapshot_free(snapshot->snapshot);
    pthread_mutex_destroy(&snapshot->naming);
    free(snapshot);
}

EXPORT int cudamem_snapshot_save(const cudamem_snapshot *snapshot, const char *path, const char *format,
                                 cudamem_error *error)
{
    struct error err = {0};
    struct output *output;
    if (!snapshot || !path || !format)
        return api_report(error, &err, error_set(&err, STATUS_USAGE, "snapshot, path and format are all needed"));
    int status = snapshot_object_names(snapshot, &err);
    if (!status)
        status = output_open(path, &output, &err);
    if (status)
        return api_report(error, &err, status);
    status = format_write(snapshot->snapshot, format, NULL, output, &err);
    if (status)
        output_abandon(output);
    else
        status = output_commit(output, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT size_t cudamem_snapshot_entry_count(const cudamem_snapshot *snapshot)
{
    return snapshot->snapshot->entries.count;
}

EXPORT size_t cudamem_snapshot_segment_count(const cudamem_snapshot *snapshot)
{
    return snapshot->snapshot->end.segment_count;
}

EXPORT size_t cudamem_snapshot_block_count(const cudamem_snapshot *snapshot)
{
    return snapshot->snapshot->end.block_count;
}

EXPORT int cudamem_snapshot_entry(const cudamem_snapshot *snapshot, size_t index, cudamem_entry *entry)
{
    if (index >= snapshot->snapshot->entries.count)
        return CUDAMEM_ERROR_NOT_FOUND;
    struct entry row = snapshot_entry(snapshot->snapshot, index);
    cudamem_entry full = {
        .action = (int32_t)row.action,
        .device = row.device,
        .process = row.process,
        .context = row.context,
        .stream = row.stream,
        .address = row.address,
        .size = row.size,
        .time_us = row.flags & ENTRY_NO_TIME ? 0 : row.time,
    };
    return api_give(entry, &full, sizeof(full));
}

EXPORT int cudamem_snapshot_segment(const cudamem_snapshot *snapshot, size_t index, cudamem_segment *segment)
{
    if (index >= snapshot->snapshot->end.segment_count)
        return CUDAMEM_ERROR_NOT_FOUND;
    const struct segment *row = &snapshot->snapshot->end.segments[index];
    cudamem_segment full = {
        .device = row->device,
        .process = row->process,
        .address = row->address,
        .total_size = row->total_size,
        .allocated_size = row->allocated_size,
        .active_size = row->active_size,
        .requested_size = row->requested_size,
        .stream = row->stream,
        .context = row->context,
        .is_large = row->is_large,
        .is_expandable = row->is_expandable,
        .first_block = row->first_block,
        .block_count = row->block_count,
    };
    return api_give(segment, &full, sizeof(full));
}

EXPORT int cudamem_snapshot_block(const cudamem_snapshot *snapshot, size_t index, cudamem_block *block)
{
    if (index >= snapshot->snapshot->end.block_count)
        return CUDAMEM_ERROR_NOT_FOUND;
    const struct block *row = &snapshot->snapshot->end.blocks[index];
    cudamem_block full = {
        .address = row->address,
        .size = row->size,
        .requested_size = row->requested,
        .context = row->context,
        .state = row->state,
    };
    return api_give(block, &full, sizeof(full));
}

EXPORT size_t cudamem_snapshot_stack(const cudamem_snapshot *snapshot, uint32_t context, cudamem_frame *frames,
                                     size_t capacity)
{
    const struct snapshot *inner = snapshot->snapshot;
    if (snapshot_object_names(snapshot, NULL))
        return 0;
    uint32_t node = snapshot_context_stack(inner, context);
    size_t depth = inner->stacks[node].depth;
    for (size_t i = 0; i < depth && i < capacity; i++, node = inner->stacks[node].parent) {
        const struct frame *frame = &inner->frames[inner->stacks[node].frame];
        cudamem_frame full = {
            .name = snapshot_object_text(inner, frame->name, NULL),
            .filename = snapshot_object_text(inner, frame->filename, NULL),
            .line = frame->line,
        };
        if (api_give(&frames[i], &full, sizeof(full)))
            break;
    }
    return depth;
}

EXPORT const char *cudamem_action_name(int action)
{
    return action < 0 ? "other" : action_name((enum action)action);
}
