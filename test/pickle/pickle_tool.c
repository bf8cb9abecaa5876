/*
 * For the pickle tests and benchmarks:
 *     pickle_tool convert IN OUT [general]   read a pickle and write it again; "general": without the fast path
 *     pickle_tool read IN [skip|general]     read only; prints seconds, counts and the peak of anonymous memory
 *     pickle_tool digest IN [general]        what the columns hold, as text
 */
#include "base/input.h"
#include "base/output.h"
#include "format/torch_read.h"
#include "format/torch_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What the processor worked for us: the clock on the wall is no measure on a busy machine. */
static double worked(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static long status_kib(const char *key)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static int fail(const char *path, const struct error *err)
{
    fprintf(stderr, "pickle_tool: %s: %s", path, err->message);
    if (err->has_offset)
        fprintf(stderr, " (at byte %" PRIu64 ")", err->offset);
    fprintf(stderr, "\n");
    return -err->status;
}

static void digest(const struct snapshot *snapshot)
{
    printf("raw %d bare %d traces %u odd %zu devices %zu\n", snapshot->has_raw, snapshot->is_bare_list,
           snapshot->trace_count, snapshot->odd_count, snapshot->device_count);
    for (size_t i = 0; i < snapshot->entries.count; i++) {
        struct entry e = snapshot_entry(snapshot, i);
        printf("entry %d %d flags %d addr %" PRIu64 " size %" PRIu64 " stream %" PRId64 " time %" PRId64
               " context %d stack %u cc %d um %d pool %d shape %u\n",
               e.action, e.device, e.flags, e.address, e.size, e.stream, e.time, (int)e.context,
               snapshot_context_stack(snapshot, e.context), (int)e.compile_context, (int)e.user_metadata, (int)e.pool,
               snapshot->shapes[e.shape].count);
    }
    for (size_t i = 0; i < snapshot->end.segment_count; i++) {
        const struct segment *s = &snapshot->end.segments[i];
        printf("segment %u %" PRIu64 " total %" PRIu64 " allocated %" PRIu64 " active %" PRIu64 " requested %" PRIu64
               " stream %" PRId64 " large %d expandable %d pool %d context %d blocks %u\n",
               s->device, s->address, s->total_size, s->allocated_size, s->active_size, s->requested_size, s->stream,
               s->is_large, s->is_expandable, (int)s->pool, (int)s->context, s->block_count);
        for (uint32_t k = 0; k < s->block_count; k++) {
            const struct block *b = &snapshot->end.blocks[s->first_block + k];
            printf("block %" PRIu64 " size %" PRIu64 " requested %" PRIu64 " state %d flags %d context %d\n", b->address,
                   b->size, b->requested, b->state, b->flags, (int)b->context);
        }
    }
    for (size_t i = 0; i < snapshot->annotation_count; i++)
        printf("annotation %d %u %" PRId64 " %s\n", snapshot->annotations[i].stage, snapshot->annotations[i].device,
               snapshot->annotations[i].time, snapshot_object_text(snapshot, snapshot->annotations[i].name, NULL));
    for (size_t i = 0; i < snapshot->device_count; i++)
        printf("device %u max %" PRIu64 "\n", snapshot->devices[i].ordinal, snapshot->devices[i].max_entries);
    printf("incomplete %d\n", snapshot->processes[0].incomplete);
}

static int write_file(const struct snapshot *snapshot, const char *path)
{
    struct error err = {0};
    struct output *output;
    if (output_open(path, &output, &err))
        return fail(path, &err);
    if (torch_write(snapshot, output, &err)) {
        output_abandon(output);
        return fail(path, &err);
    }
    return output_commit(output, &err) ? fail(path, &err) : 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    bool converts = strcmp(argv[1], "convert") == 0;
    const char *how = argc > (converts ? 4 : 3) ? argv[converts ? 4 : 3] : "";
    struct torch_read_options options = {.skip_traces = strcmp(how, "skip") == 0,
                                         .no_fast_path = strcmp(how, "general") == 0};
    struct input *input;
    struct snapshot *snapshot;
    struct error err = {0};
    double start = seconds();
    if (input_open(argv[2], 0, &input, &err))
        return fail(argv[2], &err);
    int status = torch_read(input, &options, &snapshot, &err);
    double took = seconds() - start;
    uint64_t bytes = input_offset(input);
    input_close(input);
    if (status && strcmp(argv[1], "read") == 0)
        printf("refused, peak anonymous %ld KiB\n", status_kib("VmHWM") - status_kib("RssFile"));
    if (status)
        return fail(argv[2], &err);
    if (strcmp(argv[1], "read") == 0)
        printf("%.3f s (%.3f worked) %.1f MB/s %" PRIu64 " bytes, %zu entries, %zu blocks, peak anonymous %ld KiB\n",
               took, worked(), (double)bytes / worked() / 1e6, bytes, snapshot->entries.count,
               snapshot->end.block_count, status_kib("VmHWM") - status_kib("RssFile"));
    if (strcmp(argv[1], "digest") == 0)
        digest(snapshot);
    status = converts && argc > 3 ? write_file(snapshot, argv[3]) : 0;
    snapshot_free(snapshot);
    return status;
}
