/*
 * The public snapshot functions (include/cudamem/snapshot.h).  May use every room below; translates, decides nothing.
 *
 * Structs of the caller are size-tagged: never more of them is written than the caller says it knows.
 */
#include "base/output.h"
#include "format/format.h"
#include "snapshot/snapshot.h"

#include <cudamem/cudamem.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct cudamem_snapshot {
    struct snapshot *snapshot;
};

/* Copy as much of ours as the caller's struct holds; it keeps its own size. */
static int give(void *theirs, const void *ours, size_t known)
{
    size_t size;
    memcpy(&size, theirs, sizeof(size));
    if (size < sizeof(size_t) * 2)
        return CUDAMEM_ERROR_USAGE;
    size_t part = size < known ? size : known;
    memcpy((char *)theirs + sizeof(size), (const char *)ours + sizeof(size), part - sizeof(size));
    return CUDAMEM_OK;
}

static int report(cudamem_error *error, const struct error *err, int status)
{
    if (!error)
        return status;
    cudamem_error full = {.status = status, .has_offset = err->has_offset, .offset = err->offset};
    _Static_assert(sizeof(full.message) >= sizeof(err->message), "messages fit");
    memcpy(full.message, err->message, sizeof(err->message));
    give(error, &full, sizeof(full));
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
        return report(error, &err, error_set(&err, STATUS_USAGE, "no place for the snapshot was given"));
    *snapshot = NULL;
    if (!path)
        return report(error, &err, error_set(&err, STATUS_USAGE, "no path was given"));
    cudamem_open_options known = {0};
    if (options)
        memcpy(&known, options, options->struct_size < sizeof(known) ? options->struct_size : sizeof(known));
    struct format_options inner = {
        .max_input = known.max_input, .skip_traces = known.skip_entries != 0, .last_entry = UINT64_MAX};
    cudamem_snapshot *opened = calloc(1, sizeof(*opened));
    if (!opened)
        return report(error, &err, error_no_memory(&err));
    int status = format_read(path, &inner, &opened->snapshot, &err);
    if (status) {
        free(opened);
        return report(error, &err, status);
    }
    *snapshot = opened;
    return CUDAMEM_OK;
}

EXPORT void cudamem_snapshot_close(cudamem_snapshot *snapshot)
{
    if (!snapshot)
        return;
    snapshot_free(snapshot->snapshot);
    free(snapshot);
}

EXPORT int cudamem_snapshot_save(const cudamem_snapshot *snapshot, const char *path, const char *format,
                                 cudamem_error *error)
{
    struct error err = {0};
    struct output *output;
    if (!snapshot || !path || !format)
        return report(error, &err, error_set(&err, STATUS_USAGE, "snapshot, path and format are all needed"));
    int status = output_open(path, &output, &err);
    if (status)
        return report(error, &err, status);
    status = format_write(snapshot->snapshot, format, NULL, output, &err);
    if (status)
        output_abandon(output);
    else
        status = output_commit(output, &err);
    return status ? report(error, &err, status) : CUDAMEM_OK;
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
    return give(entry, &full, sizeof(full));
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
    return give(segment, &full, sizeof(full));
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
    return give(block, &full, sizeof(full));
}

EXPORT size_t cudamem_snapshot_stack(const cudamem_snapshot *snapshot, uint32_t context, cudamem_frame *frames,
                                     size_t capacity)
{
    const struct snapshot *inner = snapshot->snapshot;
    uint32_t node = snapshot_context_stack(inner, context);
    size_t depth = inner->stacks[node].depth;
    for (size_t i = 0; i < depth && i < capacity; i++, node = inner->stacks[node].parent) {
        const struct frame *frame = &inner->frames[inner->stacks[node].frame];
        cudamem_frame full = {
            .name = snapshot_object_text(inner, frame->name, NULL),
            .filename = snapshot_object_text(inner, frame->filename, NULL),
            .line = frame->line,
        };
        if (give(&frames[i], &full, sizeof(full)))
            break;
    }
    return depth;
}

EXPORT const char *cudamem_action_name(int action)
{
    return action < 0 ? "other" : action_name((enum action)action);
}
