/* PyTorch's text views.  Uses src/analyze, src/snapshot, src/base and Python's repr(). */
#include "render/torch_text.h"

#include "analyze/compare.h"
#include "analyze/segsum.h"
#include "analyze/trace_view.h"
#include "render/python_repr.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *torch_size(double bytes, char buffer[TORCH_SIZE_TEXT])
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi"};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++, bytes /= 1024.0) {
        if (fabs(bytes) < 1024.0) {
            snprintf(buffer, TORCH_SIZE_TEXT, "%3.1f%sB", bytes, units[i]);
            return buffer;
        }
    }
    snprintf(buffer, TORCH_SIZE_TEXT, "%.1fYiB", bytes);
    return buffer;
}

static void write_free(struct output *output, const struct segsum_bytes *bytes)
{
    char size[TORCH_SIZE_TEXT];
    double total = bytes->external + bytes->internal;
    output_text(output, torch_size(total, size));
    if (total != 0)
        output_printf(output, " (%.1f%% internal)", bytes->internal / total * 100);
}

static void write_segsum_row(struct output *output, const struct segsum_row *row)
{
    char size[TORCH_SIZE_TEXT];
    output_char(output, '[');
    output_write(output, row->pages, row->page_count);
    output_printf(output, "%s] %s allocated, ", row->is_cut ? "..." : "",
                  torch_size((double)row->segment->total_size, size));
    write_free(output, &row->bytes);
    output_text(output, " free");
    if (row->segment->stream != 0)
        output_printf(output, " stream_%" PRId64, row->segment->stream);
    output_char(output, '\n');
}

static const char legend[] =
    "\n"
    "Legend:\n"
    "    [a     ] - a segment in the allocator\n"
    "     ^-- a page 20.0MiB of memory in the segment\n"
    "    a-z: pages filled with a single block's content\n"
    "    ' ': page is completely free\n"
    "    *: page if completely full with multiple blocks\n"
    "    0-9: page is partially full with tensors of multiple blocks (9 == 90% full)\n"
    "    (X% internal) - of the free memory, X% is free because we rounded the size of the allocation.\n";

int torch_text_segsum(const struct snapshot *snapshot, const struct state *state, struct output *output,
                      struct error *err)
{
    struct segsum *segsum;
    struct segsum_row row;
    char size[TORCH_SIZE_TEXT];
    int status = segsum_new(snapshot, state, &segsum, err);
    if (status)
        return status;
    output_printf(output, "Summary of segments >= %s in size\n", torch_size((double)SEGSUM_PAGE, size));
    while ((status = segsum_next(segsum, &row)) == 1)
        write_segsum_row(output, &row);
    struct segsum_bytes totals = segsum_totals(segsum);
    output_printf(output, "segments: %zu\n", state->segment_count);
    output_printf(output, "total_reserved: %s\n", torch_size(segsum_reserved(segsum), size));
    output_printf(output, "total_allocated: %s\n", torch_size(totals.allocated, size));
    output_text(output, "total_free: ");
    write_free(output, &totals);
    output_char(output, '\n');
    output_text(output, legend);
    segsum_free(segsum);
    return status ? error_no_memory(err) : 0;
}

/* 0, 1, ... as a, b, ... z, a1, b1, ... */
static void write_name(struct output *output, uint32_t number)
{
    output_char(output, (char)('a' + number % 26));
    if (number >= 26)
        output_printf(output, "%" PRIu32, number / 26);
}

static void write_name_or_address(struct output *output, const struct trace_line *line, uint64_t address)
{
    if (line->name == NONE32)
        output_printf(output, "%" PRIu64, address);
    else
        write_name(output, line->name);
}

static void write_alloc(struct output *output, const struct trace_line *line, const char *size)
{
    write_name(output, line->name);
    output_text(output, " = ");
    if (line->place == TRACE_IN_NAMED)
        write_name(output, line->place_number);
    else if (line->place == TRACE_IN_SEGMENT)
        output_printf(output, "seg_%" PRIu32, line->place_number);
    else
        output_text(output, "MEM");
    output_printf(output, "[%" PRIu64 ":%s]\n", line->offset, size);
}

static int write_entry(const struct snapshot *snapshot, const struct trace_line *line, struct output *output,
                       struct error *err)
{
    const struct entries *entries = &snapshot->entries;
    uint64_t address = entries->address[line->entry];
    char size[TORCH_SIZE_TEXT], left[TORCH_SIZE_TEXT];
    torch_size((double)entries->size[line->entry], size);
    switch (line->kind) {
    case TRACE_LINE_ALLOC:
        write_alloc(output, line, size);
        return 0;
    case TRACE_LINE_FREE_REQUESTED:
        output_text(output, "del ");
        write_name_or_address(output, line, address);
        output_printf(output, " # %s\n", size);
        return 0;
    case TRACE_LINE_FREE_COMPLETED:
        output_text(output, "# free completed for ");
        write_name_or_address(output, line, address);
        output_printf(output, " %s\n", size);
        return 0;
    case TRACE_LINE_SEGMENT_ALLOC:
        write_name(output, line->name);
        output_printf(output, " = cudaMalloc(%" PRIu64 ", %s)\n", address, size);
        return 0;
    case TRACE_LINE_SEGMENT_FREE:
        output_text(output, "cudaFree(");
        write_name_or_address(output, line, address);
        output_printf(output, ") # %s\n", size);
        return 0;
    case TRACE_LINE_OOM:
        output_printf(output, "raise OutOfMemoryError # %s requested, %s free in CUDA\n", size,
                      torch_size((double)address, left));
        return 0;
    default: {
        int status = repr_entry(snapshot, line->entry, output, err);
        output_char(output, '\n');
        return status;
    }
    }
}

int torch_text_trace(const struct snapshot *snapshot, const struct state *state, uint64_t entries,
                     const struct selection *selection, struct output *output, struct error *err)
{
    struct trace_view *view;
    struct trace_line line;
    char size[TORCH_SIZE_TEXT];
    int status = trace_view_new(snapshot, state, entries, selection, &view, err);
    if (status)
        return status;
    while (!status && !output_failed(output) && (status = trace_view_next(view, &line)) == 1) {
        status = 0;
        if (line.kind == TRACE_LINE_DEVICE && snapshot->process_count > 1)
            output_printf(output, "Process %" PRId64 " ", snapshot->processes[line.process].pid);
        if (line.kind == TRACE_LINE_DEVICE)
            output_printf(output, "Device %u ----------------\n%" PRIu64 " entries\n", line.device, line.count);
        else if (line.kind == TRACE_LINE_TOTAL)
            output_printf(output, "TOTAL MEM: %s", torch_size(line.total, size));
        else
            status = write_entry(snapshot, &line, output, err);
        if (status)
            break;
    }
    trace_view_free(view);
    return status == STATUS_NO_MEMORY ? error_no_memory(err) : status;
}

struct fold {
    const struct snapshot *snapshot;
    struct frame_texts *texts;
    struct output *output;
    const char *prefix;
    enum flame_view view;
    uint32_t *labels;
    size_t capacity;
    bool is_terminal;
    struct text printable;
};

static void write_text(struct fold *fold, const char *bytes, size_t length)
{
    if (!fold->is_terminal) {
        output_write(fold->output, bytes, length);
        return;
    }
    text_clear(&fold->printable);
    text_add_printable(&fold->printable, bytes, length);
    output_write(fold->output, text_string(&fold->printable), fold->printable.length);
}

static int write_stack(struct fold *fold, const struct flame_line *line)
{
    size_t count = flame_line_labels(fold->texts, line, &fold->labels, &fold->capacity);
    if (count == SIZE_MAX)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *text = frame_label_text(fold->texts, fold->labels[i], &length);
        if (i)
            output_char(fold->output, ';');
        write_text(fold, text, length);
    }
    return 0;
}

static int write_line(void *context, const struct flame_line *line)
{
    struct fold *fold = context;
    struct output *output = fold->output;
    int status = 0;
    output_printf(output, "%sstream_%" PRId64 ";", fold->prefix, line->segment->stream);
    if (fold->view == FLAME_SEGMENTS)
        output_printf(output, "seg_%" PRIu64 ";", line->segment->address);
    write_text(fold, line->state, strlen(line->state));
    output_char(output, ';');
    switch (line->leaf) {
    case FLAME_STACK:
        status = write_stack(fold, line);
        break;
    case FLAME_NO_FRAMES:
        output_text(output, "<non-python>");
        break;
    case FLAME_NO_CONTEXT:
        output_text(output, "<no-context>");
        break;
    case FLAME_GAPS:
        output_text(output, "<gaps>");
        break;
    }
    output_printf(output, " %s%" PRIu64 "\n", line->is_negative ? "-" : "", line->bytes);
    return status;
}

static int fold_segments(const struct snapshot *snapshot, const struct state *state, enum flame_view view,
                         const char *prefix, const bool *members, struct output *output, struct error *err)
{
    struct fold fold = {.snapshot = snapshot, .output = output, .prefix = prefix, .view = view};
    fold.texts = frame_texts_new(snapshot);
    fold.is_terminal = output_is_terminal(output);
    int status = fold.texts ? 0 : STATUS_NO_MEMORY;
    for (size_t i = 0; i < state->segment_count && !status && !output_failed(output); i++)
        if (!members || members[i])
            status = flame_segment_lines(snapshot, state, i, write_line, &fold);
    if (!status && frame_texts_failed(fold.texts))
        status = STATUS_NO_MEMORY;
    frame_texts_free(fold.texts);
    text_free(&fold.printable);
    free(fold.labels);
    return status ? error_no_memory(err) : 0;
}

int torch_text_folded(const struct snapshot *snapshot, const struct state *state, enum flame_view view,
                      struct output *output, struct error *err)
{
    return fold_segments(snapshot, state, view, "", NULL, output, err);
}

static void write_addresses(struct output *output, const char *name, const struct compare_side *side)
{
    output_printf(output, "%s = [", name);
    for (size_t i = 0; i < side->count; i++)
        output_printf(output, "%s%" PRIu64, i ? ", " : "", side->addresses[i]);
    output_text(output, "]\n");
}

int torch_text_compare(const struct snapshot *before, const struct state *before_state, const struct snapshot *after,
                       const struct state *after_state, struct output *output, struct error *err)
{
    struct compare compare;
    int status = compare_segments(before_state, after_state, &compare, err);
    if (status)
        return status;
    write_addresses(output, "only_before", &compare.before);
    write_addresses(output, "only_after", &compare.after);
    status = fold_segments(before, before_state, FLAME_SEGMENTS, "only_before;", compare.before.members, output, err);
    if (!status)
        status = fold_segments(after, after_state, FLAME_SEGMENTS, "only_after;", compare.after.members, output, err);
    compare_free(&compare);
    return status;
}
