/* `diff --group segment`: the segments that only one of two states has.  Uses analyze, render and base. */
#include "analyze/compare.h"
#include "render/torch_text.h"
#include "tools/diff_parts.h"

static int pytorch_run(const struct command_line *line, const struct load *before, const struct load *after, bool grew)
{
    struct error err = {0};
    struct output *output;
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    if (torch_text_compare(before->snapshot, before->state, after->snapshot, after->state, output, &err)) {
        output_abandon(output);
        return command_error(NULL, &err);
    }
    return command_close_output(output, grew && options_has(line, "exit-code") ? EXIT_NO : EXIT_DONE);
}

static void segments_out(struct emitter *emitter, const struct load *load, const bool *members, const char *side,
                         uint64_t *left)
{
    for (size_t i = 0; i < load->state->segment_count; i++) {
        const struct segment *segment = &load->state->segments[i];
        if (!members[i] || !selection_has_segment(&load->selection, segment) || !*left)
            continue;
        --*left;
        emitter_row(emitter);
        emitter_text(emitter, "side", side);
        emitter_count(emitter, "device", segment->device);
        emitter_address(emitter, "address", segment->address);
        emitter_size(emitter, "total_size", segment->total_size);
        emitter_size(emitter, "allocated", segment->allocated_size);
        emitter_integer(emitter, "stream", segment->stream);
    }
}

static uint64_t reserved_bytes(const struct load *load)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < load->state->segment_count; i++)
        if (selection_has_segment(&load->selection, &load->state->segments[i]))
            sum += load->state->segments[i].total_size;
    return sum;
}

int diff_segments_run(const struct command_line *line, const struct load *before, const struct load *after)
{
    static const struct emitter_column columns[] = {
        {"side", NULL, EMITTER_STRING},        {"device", NULL, EMITTER_NUMBER},    {"address", NULL, EMITTER_NUMBER},
        {"total_size", "size", EMITTER_NUMBER}, {"allocated", NULL, EMITTER_NUMBER}, {"stream", NULL, EMITTER_NUMBER},
    };
    uint64_t first = reserved_bytes(before), second = reserved_bytes(after);
    bool grew = second > first && second - first >= options_number(line, "min-delta", 0);
    if (options_is(line, "format", "pytorch"))
        return pytorch_run(line, before, after, grew);
    struct error err = {0};
    struct compare compare;
    struct output *output = NULL;
    if (compare_segments(before->state, after->state, &compare, &err))
        return command_error(NULL, &err);
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options how = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &how);
        uint64_t left = options_number(line, "rows", UINT64_MAX);
        if (emitter) {
            emitter_begin_table(emitter, "segments", "", columns, sizeof(columns) / sizeof(columns[0]));
            segments_out(emitter, before, compare.before.members, "before", &left);
            segments_out(emitter, after, compare.after.members, "after", &left);
            emitter_end(emitter);
        }
        status = command_finish(emitter, output, grew && options_has(line, "exit-code") ? EXIT_NO : EXIT_DONE);
    }
    compare_free(&compare);
    return status;
}
