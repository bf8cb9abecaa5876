/* Pictures straight from the library (include/cudamem/svg.h).  May use every room below. */
#include "analyze/flame.h"
#include "api/report.h"
#include "api/snapshot_object.h"
#include "base/output.h"
#include "base/size.h"
#include "render/svg_flame.h"

#include <cudamem/history.h>
#include <cudamem/svg.h>
#include <stdio.h>

static void subtitle_of(const struct state *state, char *text, size_t room)
{
    uint64_t reserved = 0, allocated = 0, active = 0;
    char size[3][SIZE_TEXT];
    for (size_t i = 0; i < state->segment_count; i++) {
        reserved += state->segments[i].total_size;
        allocated += state->segments[i].allocated_size;
        active += state->segments[i].active_size;
    }
    snprintf(text, room, "%s reserved in %zu segment%s: %s allocated, %s inactive", size_format(reserved, size[0]),
             state->segment_count, state->segment_count == 1 ? "" : "s", size_format(allocated, size[1]),
             size_format(reserved > active ? reserved - active : 0, size[2]));
}

static int write_flame(const struct snapshot *snapshot, enum flame_view view, const char *path, struct error *err)
{
    struct flame_tree tree;
    struct output *output;
    char subtitle[400];
    int status = flame_tree_build(snapshot, &snapshot->end, view, NULL, &tree, err);
    if (status)
        return status;
    subtitle_of(&snapshot->end, subtitle, sizeof(subtitle));
    const struct svg_flame_options options = {
        view == FLAME_SEGMENTS ? "memory by segment and stack" : "memory by stack", subtitle};
    status = output_open(path, &output, err);
    if (!status) {
        status = svg_flame(&tree, &options, output, err);
        if (status)
            output_abandon(output);
        else
            status = output_commit(output, err);
    }
    flame_tree_free(&tree);
    return status;
}

static int save(const char *path, const cudamem_snapshot *given, enum flame_view view, cudamem_error *error)
{
    struct error err = {0};
    cudamem_snapshot *taken = NULL;
    const cudamem_memory_snapshot_options options = {.struct_size = sizeof(options), .without_traces = 1};
    int status = given ? STATUS_OK : snapshot_take(&options, &taken, &err);
    const cudamem_snapshot *snapshot = given ? given : taken;
    if (!status)
        status = snapshot_object_names(snapshot, &err);
    if (!status)
        status = write_flame(snapshot->snapshot, view, path ? path : "output.svg", &err);
    cudamem_snapshot_close(taken);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_save_segment_usage(const char *path, const cudamem_snapshot *snapshot, cudamem_error *error)
{
    return save(path, snapshot, FLAME_SEGMENTS, error);
}

EXPORT int cudamem_save_memory_usage(const char *path, const cudamem_snapshot *snapshot, cudamem_error *error)
{
    return save(path, snapshot, FLAME_MEMORY, error);
}
