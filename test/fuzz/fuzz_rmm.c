/*
 * Any bytes as an RMM log: refused with a line, or read as a snapshot that is valid, whose times do not go backwards,
 * whose statistics are those of its end, whose state can be found at any moment, and that is the same behind
 * snapshot.bin.  What the reader takes, the door of all formats takes, too.
 */
#include "base/input.h"
#include "base/output.h"
#include "format/bin_write.h"
#include "format/format.h"
#include "format/rmm_read.h"
#include "snapshot/state.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct snapshot *read_log(const uint8_t *data, size_t size)
{
    struct snapshot *snapshot = NULL;
    struct input *input;
    struct error err = {0};
    if (input_from_memory(data, size, UINT64_C(16) << 20, &input, &err))
        return NULL;
    int status = rmm_read(input, data[0] % 4, &snapshot, &err);
    bool is_line = strncmp(err.message, "line ", 5) == 0;
    if ((status != 0) != (snapshot == NULL) || (status && !is_line && !input_is_gzip(input)))
        abort();
    input_close(input);
    return snapshot;
}

static void check(const struct snapshot *snapshot)
{
    uint64_t bytes = 0;
    struct error err = {0};
    const struct device *device = &snapshot->devices[0];
    if (!snapshot_is_valid(snapshot, &err) || snapshot->device_count != 1)
        abort();
    for (size_t i = 1; i < snapshot->entries.count; i++)
        if (snapshot->entries.time[i] < snapshot->entries.time[i - 1] && !(snapshot->entries.flags[i] & ENTRY_NO_TIME))
            abort();
    for (size_t i = 0; i < snapshot->end.segment_count; i++)
        bytes += snapshot->end.segments[i].total_size;
    if (device->has_stats &&
        (uint64_t)device->stats.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].current != bytes)
        abort();
    for (size_t moment = 0; moment < snapshot->entries.count && moment < 8; moment++) {
        struct state state;
        if (state_at(snapshot, moment, &state, &err))
            abort();
        state_free(&state);
    }
}

static void check_written(const struct snapshot *snapshot)
{
    struct output *output;
    struct snapshot *again;
    unsigned char *bytes;
    size_t length;
    if (output_to_memory(&bytes, &length, &output, NULL) || bin_write(snapshot, output, NULL) ||
        output_commit(output, NULL) || format_read_memory(bytes, length, NULL, &again, NULL))
        abort();
    if (again->source != SOURCE_RMM || again->entries.count != snapshot->entries.count ||
        again->end.segment_count != snapshot->end.segment_count)
        abort();
    snapshot_free(again);
    free(bytes);
}

/* A log's first column may have the name of another format's mark, which comes first then. */
static bool is_of_another_format(const uint8_t *data, size_t size)
{
    for (const struct format *format = format_list(); format->detect != rmm_is_log; format++)
        if (format->detect && format->detect(data, size))
            return true;
    return false;
}

static void check_door(const uint8_t *data, size_t size, const struct snapshot *snapshot)
{
    struct snapshot *again;
    if (is_of_another_format(data, size))
        return;
    if (format_read_memory(data, size, NULL, &again, NULL))
        abort();
    if (again->source != SOURCE_RMM || again->entries.count != snapshot->entries.count)
        abort();
    snapshot_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot *snapshot = size ? read_log(data, size) : NULL;
    if (!snapshot)
        return 0;
    check(snapshot);
    check_written(snapshot);
    check_door(data, size, snapshot);
    snapshot_free(snapshot);
    return 0;
}
