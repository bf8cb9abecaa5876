/* An explanation's frame: its helpers, and the order of its sections.  May use src/analyze and src/base. */
#include "render/explain_text.h"

#include "analyze/selection.h"
#include "analyze/stack_tree.h"
#include "render/explain_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *explain_size(const struct explain_writer *writer, uint64_t bytes, char buffer[SIZE_TEXT])
{
    if (!writer->words->exact_bytes)
        return size_format(bytes, buffer);
    snprintf(buffer, SIZE_TEXT, "%" PRIu64 " B", bytes);
    return buffer;
}

const char *explain_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void add_frame(const struct explain_writer *writer, uint32_t frame)
{
    struct text text = {0};
    stack_tree_frame_text(writer->explain->snapshot, &writer->explain->snapshot->frames[frame], false, &text);
    text_add_printable(writer->text, text_string(&text), text.length);
    writer->text->failed |= text_failed(&text);
    text_free(&text);
}

/* Of the frameworks, or the call of CUDA itself, which a program may have within. */
static bool is_passed_over(const struct snapshot *snapshot, uint32_t frame)
{
    const char *name = snapshot_object_text(snapshot, snapshot->frames[frame].name, NULL);
    return selection_is_plumbing(snapshot, frame) || strncmp(name, "cudaMalloc", 10) == 0 || strncmp(name, "cuMem", 5) == 0;
}

void explain_site(const struct explain_writer *writer, uint32_t context, bool is_before)
{
    const struct snapshot *snapshot = writer->explain->snapshot;
    uint32_t stack = snapshot_context_stack(snapshot, context), found = stack;
    if (stack == STACK_EMPTY) {
        enum no_stack reason = no_stack_of(&writer->no_stacks, writer->explain->process, writer->explain->device, context,
                                           is_before);
        text_add(writer->text, no_stack_text(reason));
        return;
    }
    while (found != STACK_EMPTY && is_passed_over(snapshot, snapshot->stacks[found].frame))
        found = snapshot->stacks[found].parent;
    add_frame(writer, snapshot->stacks[found != STACK_EMPTY ? found : stack].frame);
}

void explain_frames(const struct explain_writer *writer, uint32_t context)
{
    const struct snapshot *snapshot = writer->explain->snapshot;
    uint32_t stack = snapshot_context_stack(snapshot, context);
    for (; writer->words->whole_stacks && stack != STACK_EMPTY; stack = snapshot->stacks[stack].parent) {
        text_add(writer->text, "        ");
        add_frame(writer, snapshot->stacks[stack].frame);
        text_char(writer->text, '\n');
    }
}

static void line_begin(const struct explain_writer *writer, const char *label, const char *shown)
{
    text_printf(writer->text, "  %-15s %*s", label, writer->words->exact_bytes ? 16 : 11, shown);
}

static void add_list(struct text *text, const char *format, va_list list)
{
    char remark[1024];
    vsnprintf(remark, sizeof(remark), format, list);
    text_printf(text, "%s%s\n", *remark ? "  " : "", remark);
}

void explain_line(const struct explain_writer *writer, const char *label, const char *shown, const char *format, ...)
{
    va_list list;
    line_begin(writer, label, shown);
    va_start(list, format);
    add_list(writer->text, format, list);
    va_end(list);
}

void explain_bytes_line(const struct explain_writer *writer, const char *label, uint64_t bytes, const char *format, ...)
{
    char size[SIZE_TEXT];
    va_list list;
    line_begin(writer, label, explain_size(writer, bytes, size));
    va_start(list, format);
    add_list(writer->text, format, list);
    va_end(list);
}

int explain_text(const struct explain *explain, const struct explain_words *words, struct text *text, struct error *err)
{
    struct explain_writer writer = {.explain = explain, .words = words, .text = text};
    int status = no_stacks_open(explain->snapshot, &writer.no_stacks, err);
    if (status)
        return status;
    explain_sentence(&writer);
    explain_numbers(&writer);
    if (explain->is_failure) {
        explain_hole_section(&writer);
        explain_pin_section(&writer);
    }
    explain_settings_section(&writer);
    explain_outside_section(&writer);
    explain_holder_section(&writer);
    explain_unknown_section(&writer);
    no_stacks_close(&writer.no_stacks);
    return text_failed(text) ? error_no_memory(err) : STATUS_OK;
}
