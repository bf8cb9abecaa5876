/* cudamem blocks: the blocks of a moment, or the one that holds an address.  Uses analyze, render and base. */
#include "analyze/makers.h"
#include "analyze/no_stack.h"
#include "analyze/stack_tree.h"
#include "snapshot/state.h"
#include "tools/blocks_address.h"
#include "tools/command.h"
#include "tools/load.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec blocks_options[] = {
    {"address", 'a', "ADDRESS", OPTION_TEXT, "what holds this address, or why nothing does"},
    {"state", 0, "STATE", OPTION_CHOICE, "all (default), living, pending or inactive", "all|living|pending|inactive"},
    OPTIONS_ROWS("address|size|requested|age"),
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_SELECTION,
    OPTIONS_END,
};

static const struct emitter_column blocks_columns[] = {
    {"address", NULL, EMITTER_NUMBER}, {"size", NULL, EMITTER_NUMBER},    {"requested", NULL, EMITTER_NUMBER},
    {"state", NULL, EMITTER_STRING},   {"device", NULL, EMITTER_NUMBER},  {"stream", NULL, EMITTER_NUMBER},
    {"pool", NULL, EMITTER_STRING},    {"segment", NULL, EMITTER_NUMBER}, {"entry", NULL, EMITTER_NUMBER},
    {"age", NULL, EMITTER_NUMBER},     {"frame", NULL, EMITTER_STRING},
};

struct listing {
    const struct load *load;
    struct state state; /* a copy that tells what is older than the trace */
    struct makers makers;
    struct no_stacks reasons;
    size_t *chosen;
    size_t count;
    uint64_t bytes;
    struct text text;
    const char *sort;
};

static bool is_wanted(const struct command_line *line, const struct listing *listing, size_t number)
{
    const struct block *block = &listing->state.blocks[number];
    bool fits = !options_has(line, "state") || options_is(line, "state", "all") ||
                (options_is(line, "state", "living") && block_is_living(block)) ||
                (options_is(line, "state", "pending") && block->state == BLOCK_ACTIVE_PENDING_FREE) ||
                (options_is(line, "state", "inactive") && !block_is_living(block));
    return fits && selection_has_block(&listing->load->selection, &listing->state, block);
}

static int compare_blocks(const void *a, const void *b, void *context)
{
    const struct listing *listing = context;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    const struct block *first = &listing->state.blocks[x], *second = &listing->state.blocks[y];
    uint64_t keys[2] = {first->size, second->size};
    if (strcmp(listing->sort, "requested") == 0) {
        keys[0] = block_is_living(first) ? first->requested : 0;
        keys[1] = block_is_living(second) ? second->requested : 0;
    } else if (strcmp(listing->sort, "age") == 0) { /* the oldest first; those without a maker are older still */
        bool living[] = {block_is_living(first), block_is_living(second)};
        if (living[0] != living[1])
            return living[0] ? -1 : 1;
        keys[0] = ~(listing->makers.entry[x] + 1);
        keys[1] = ~(listing->makers.entry[y] + 1);
    } else if (strcmp(listing->sort, "address") == 0) {
        keys[0] = ~first->address;
        keys[1] = ~second->address;
    }
    if (keys[0] != keys[1])
        return keys[0] > keys[1] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int listing_make(const struct command_line *line, const struct load *load, struct listing *listing, struct error *err)
{
    const struct snapshot *snapshot = load->snapshot;
    listing->load = load;
    listing->sort = options_text(line, "sort");
    if (state_copy(&listing->state, load->state))
        return error_no_memory(err);
    listing->state.moment = load->moment;
    if ((snapshot->entries.count && state_mark_before_recording(snapshot, &listing->state, NULL)) ||
        makers_find(snapshot, &listing->state, false, &listing->makers, err) ||
        no_stacks_open(snapshot, &listing->reasons, err))
        return error_no_memory(err);
    listing->chosen = malloc((listing->state.block_count + 1) * sizeof(*listing->chosen));
    if (!listing->chosen)
        return error_no_memory(err);
    for (size_t b = 0; b < listing->state.block_count; b++) {
        if (!is_wanted(line, listing, b))
            continue;
        listing->chosen[listing->count++] = b;
        listing->bytes += listing->state.blocks[b].size;
    }
    if (listing->sort && listing->count > 1)
        qsort_r(listing->chosen, listing->count, sizeof(*listing->chosen), compare_blocks, listing);
    return STATUS_OK;
}

static void listing_free(struct listing *listing)
{
    state_free(&listing->state);
    makers_free(&listing->makers);
    no_stacks_close(&listing->reasons);
    free(listing->chosen);
    text_free(&listing->text);
}

/* The innermost frame of the program's own, else the innermost; without a stack why there is none. */
static void frame_out(struct emitter *emitter, struct listing *listing, const struct block *block)
{
    const struct snapshot *snapshot = listing->load->snapshot;
    const struct segment *segment = &listing->state.segments[block->segment];
    uint32_t stack = snapshot_context_stack(snapshot, block->context), own = stack;
    text_clear(&listing->text);
    if (!block_is_living(block)) {
        emitter_absent(emitter, "frame");
        return;
    }
    while (own != STACK_EMPTY && selection_is_plumbing(snapshot, snapshot->stacks[own].frame))
        own = snapshot->stacks[own].parent;
    if (stack == STACK_EMPTY)
        text_add(&listing->text, no_stack_text(no_stack_of(&listing->reasons, segment->process, segment->device,
                                                           block->context, block->flags & BLOCK_BEFORE_RECORDING)));
    else
        stack_tree_frame_text(snapshot, &snapshot->frames[snapshot->stacks[own ? own : stack].frame], false, &listing->text);
    emitter_string(emitter, "frame", text_string(&listing->text), listing->text.length);
}

static void age_out(struct emitter *emitter, const struct listing *listing, uint64_t entry)
{
    const struct entries *entries = &listing->load->snapshot->entries;
    uint64_t moment = listing->load->moment;
    if (entry == MAKER_NONE) {
        emitter_absent(emitter, "entry");
        emitter_absent(emitter, "age");
        return;
    }
    emitter_count(emitter, "entry", listing->load->snapshot->first_entry + entry);
    if (!moment || (entries->flags[entry] | entries->flags[moment - 1]) & ENTRY_NO_TIME)
        emitter_absent(emitter, "age");
    else
        emitter_duration(emitter, "age", entries->time[moment - 1] - entries->time[entry]);
}

static void row_out(struct emitter *emitter, struct listing *listing, size_t number)
{
    const struct snapshot *snapshot = listing->load->snapshot;
    const struct block *block = &listing->state.blocks[number];
    const struct segment *segment = &listing->state.segments[block->segment];
    char pool[48];
    emitter_row(emitter);
    emitter_address(emitter, "address", block->address);
    emitter_size(emitter, "size", block->size);
    if (!block_is_living(block) || (block->flags & BLOCK_REQUESTED_UNKNOWN))
        emitter_absent(emitter, "requested");
    else
        emitter_size(emitter, "requested", block->requested);
    emitter_text(emitter, "state", block_state_name((enum block_state)block->state));
    emitter_count(emitter, "device", segment->device);
    emitter_integer(emitter, "stream", segment->stream);
    if (segment->pool < snapshot->pool_count) {
        snprintf(pool, sizeof(pool), "%" PRId64 ":%" PRId64, snapshot->pools[segment->pool].id[0],
                 snapshot->pools[segment->pool].id[1]);
        emitter_text(emitter, "pool", pool);
    } else {
        emitter_absent(emitter, "pool");
    }
    emitter_address(emitter, "segment", segment->address);
    age_out(emitter, listing, block_is_living(block) ? listing->makers.entry[number] : MAKER_NONE);
    frame_out(emitter, listing, block);
}

static int listing_out(const struct command_line *line, struct listing *listing)
{
    struct output *output = NULL;
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    struct emitter_options how = command_emitter_options(line);
    struct emitter *emitter = emitter_new(output, &how);
    uint64_t limit = options_number(line, "rows", UINT64_MAX);
    if (emitter) {
        if (emitter_is_json(emitter)) {
            emitter_begin_object(emitter, "total", NULL);
            emitter_count(emitter, "blocks", listing->count);
            emitter_size(emitter, "bytes", listing->bytes);
            emitter_count(emitter, "moment", listing->load->moment);
            emitter_bool(emitter, "is_exact", listing->load->state->exact);
            emitter_end(emitter);
        } else if (!listing->load->state->exact) {
            emitter_note(emitter, "the trace tells requested sizes: block sizes of the past are rounded up from them");
        }
        emitter_begin_table(emitter, "blocks", "", blocks_columns, sizeof(blocks_columns) / sizeof(blocks_columns[0]));
        for (size_t i = 0; i < listing->count && i < limit; i++)
            row_out(emitter, listing, listing->chosen[i]);
        emitter_end(emitter);
    }
    return command_finish(emitter, output, EXIT_DONE);
}

static int blocks_run(struct command_line *line)
{
    struct load load;
    struct error err = {0};
    struct listing listing = {0};
    const char *text = options_text(line, "address");
    char *end = NULL;
    errno = 0;
    uint64_t address = text && isdigit((unsigned char)*text) ? strtoull(text, &end, 0) : 0;
    if (text && (!end || *end || errno))
        return command_usage(line->command, "'%.60s' is no address: write it as 0x7f2a40000000 or in decimal", text);
    int status = load_open(line, line->arguments[0], LOAD_STATE, &load);
    if (status)
        return status;
    if (text)
        status = blocks_address_run(line, &load, address);
    else
        status = listing_make(line, &load, &listing, &err) ? command_error(load.file, &err) : listing_out(line, &listing);
    listing_free(&listing);
    load_close(&load);
    return status;
}

const struct command command_blocks = {
    .name = "blocks",
    .summary = "the blocks of a moment, and what holds an address",
    .arguments = "[FILE[@MOMENT]]",
    .least = 0,
    .most = 1,
    .options = blocks_options,
    .run = blocks_run,
};
