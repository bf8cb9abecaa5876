/* What is at an address, told.  Uses analyze, render and base. */
#include "tools/blocks_address.h"

#include "analyze/find_address.h"
#include "analyze/no_stack.h"
#include "analyze/stack_tree.h"

#include <stdlib.h>

struct telling {
    struct emitter *emitter;
    const struct load *load;
    struct no_stacks reasons;
    struct text text;
};

static const char *const kinds[] = {"live", "hole", "freed", "never_seen"};

static void stack_out(struct telling *t, const char *key, uint16_t process, uint16_t device, uint32_t context, bool is_before)
{
    const struct snapshot *snapshot = t->load->snapshot;
    uint32_t stack = snapshot_context_stack(snapshot, context);
    emitter_begin_strings(t->emitter, key);
    if (stack == STACK_EMPTY) {
        text_clear(&t->text);
        text_add(&t->text, no_stack_text(no_stack_of(&t->reasons, process, device, context, is_before)));
        emitter_item(t->emitter, text_string(&t->text), t->text.length);
    }
    for (; stack != STACK_EMPTY; stack = snapshot->stacks[stack].parent) {
        text_clear(&t->text);
        stack_tree_frame_text(snapshot, &snapshot->frames[snapshot->stacks[stack].frame], false, &t->text);
        emitter_item(t->emitter, text_string(&t->text), t->text.length);
    }
    emitter_end_strings(t->emitter);
}

/* An entry that allocated or freed: its number, time, bytes and stack. */
static void entry_out(struct telling *t, const char *key, uint64_t number)
{
    const struct snapshot *snapshot = t->load->snapshot;
    const struct entries *entries = &snapshot->entries;
    if (number == FIND_NO_ENTRY)
        return;
    emitter_begin_object(t->emitter, key, NULL);
    emitter_count(t->emitter, "entry", snapshot->first_entry + number);
    if (!(entries->flags[number] & ENTRY_NO_TIME))
        emitter_time(t->emitter, "time", entries->time[number]);
    emitter_address(t->emitter, "address", entries->address[number]);
    emitter_size(t->emitter, "size", entries->size[number]);
    stack_out(t, "stack", entries->process ? entries->process[number] : 0, entries->device[number], entries->context[number],
              false);
    emitter_end(t->emitter);
}

static void segment_out(struct telling *t, const struct segment *segment)
{
    const struct snapshot *snapshot = t->load->snapshot;
    emitter_begin_object(t->emitter, "segment", NULL);
    emitter_address(t->emitter, "address", segment->address);
    emitter_size(t->emitter, "size", segment->total_size);
    emitter_count(t->emitter, "device", segment->device);
    emitter_integer(t->emitter, "stream", segment->stream);
    if (segment->pool < snapshot->pool_count) {
        emitter_integer(t->emitter, "pool_first", snapshot->pools[segment->pool].id[0]);
        emitter_integer(t->emitter, "pool_second", snapshot->pools[segment->pool].id[1]);
    }
    emitter_end(t->emitter);
}

static void block_out(struct telling *t, const struct find_answer *answer, uint64_t address)
{
    const struct state *state = t->load->state;
    const struct block *block = &state->blocks[answer->block];
    const struct segment *segment = &state->segments[block->segment];
    bool is_live = answer->kind == FIND_LIVE;
    emitter_begin_object(t->emitter, is_live ? "block" : "hole", NULL);
    emitter_address(t->emitter, "address", block->address);
    emitter_size(t->emitter, "size", block->size);
    emitter_size(t->emitter, "offset", address - block->address);
    if (is_live) {
        if (block->flags & BLOCK_REQUESTED_UNKNOWN)
            emitter_absent(t->emitter, "requested");
        else
            emitter_size(t->emitter, "requested", block->requested);
        emitter_text(t->emitter, "state", block_state_name((enum block_state)block->state));
        stack_out(t, "stack", segment->process, segment->device, block->context, answer->allocated == FIND_NO_ENTRY);
    }
    emitter_end(t->emitter);
}

static void answer_out(struct telling *t, const struct find_answer *answer, uint64_t address)
{
    const struct snapshot *snapshot = t->load->snapshot;
    static const char *const told[] = {
        "it lies in a living block",
        "not live: it lies in a segment, in no living block",
        "not live: no segment holds it at this moment; the trace tells of it",
        "not live: nothing up to this moment tells of it",
    };
    emitter_begin_object(t->emitter, NULL, "");
    emitter_text(t->emitter, "found", kinds[answer->kind]);
    emitter_text(t->emitter, "meaning", told[answer->kind]);
    if (snapshot->process_count > 1)
        emitter_integer(t->emitter, "pid", snapshot->processes[answer->process].pid);
    if (answer->block != SIZE_MAX)
        block_out(t, answer, address);
    if (answer->segment != SIZE_MAX)
        segment_out(t, &t->load->state->segments[answer->segment]);
    entry_out(t, answer->kind == FIND_LIVE ? "allocated" : "last_allocated", answer->allocated);
    entry_out(t, "freed", answer->freed);
    entry_out(t, "next_allocated", answer->next);
    emitter_end(t->emitter);
}

int blocks_address_run(const struct command_line *line, const struct load *load, uint64_t address)
{
    struct error err = {0};
    struct find_answers answers = {0};
    struct telling telling = {.load = load};
    struct output *output = NULL;
    int status = EXIT_DONE;
    if (find_address(load->snapshot, load->state, address, &answers, &err) ||
        no_stacks_open(load->snapshot, &telling.reasons, &err))
        status = command_error(load->file, &err);
    if (!status)
        status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options how = command_emitter_options(line);
        telling.emitter = emitter_new(output, &how);
        if (telling.emitter) {
            emitter_address(telling.emitter, "address", address);
            emitter_count(telling.emitter, "moment", load->moment);
            emitter_begin_list(telling.emitter, "answers", "");
            for (size_t i = 0; i < answers.count; i++)
                answer_out(&telling, &answers.items[i], address);
            emitter_end(telling.emitter);
        }
        status = command_finish(telling.emitter, output, EXIT_DONE);
    }
    text_free(&telling.text);
    no_stacks_close(&telling.reasons);
    find_answers_free(&answers);
    return status;
}
