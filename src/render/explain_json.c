/* An explanation as JSON.  May use src/analyze and src/base. */
#include "render/explain_json.h"

#include "analyze/stack_tree.h"

#include <inttypes.h>
#include <stdio.h>

struct writer {
    struct emitter *emitter;
    const struct explain *explain;
    size_t rows;
    struct text text;
};

static void size_or_null(struct emitter *emitter, const char *key, bool is_known, uint64_t bytes)
{
    if (is_known)
        emitter_size(emitter, key, bytes);
    else
        emitter_absent(emitter, key);
}

static void stack_out(struct writer *writer, uint32_t context)
{
    const struct snapshot *snapshot = writer->explain->snapshot;
    uint32_t stack = snapshot_context_stack(snapshot, context);
    emitter_begin_strings(writer->emitter, "stack");
    for (; stack != STACK_EMPTY; stack = snapshot->stacks[stack].parent) {
        text_clear(&writer->text);
        stack_tree_frame_text(snapshot, &snapshot->frames[snapshot->stacks[stack].frame], false, &writer->text);
        emitter_item(writer->emitter, text_string(&writer->text), writer->text.length);
    }
    emitter_end_strings(writer->emitter);
}

static void pool_out(struct emitter *emitter, const struct pool *pool)
{
    char text[64];
    snprintf(text, sizeof(text), "%" PRId64 ":%" PRId64, pool->id[0], pool->id[1]);
    emitter_text(emitter, "pool", text);
}

static void request_out(struct writer *writer)
{
    const struct explain_request *request = &writer->explain->request;
    struct emitter *emitter = writer->emitter;
    emitter_begin_object(emitter, "request", NULL);
    emitter_count(emitter, "entry", request->entry);
    emitter_count(emitter, "failure", request->number);
    emitter_size(emitter, "bytes", request->size);
    emitter_bool(emitter, "is_rounded", request->is_rounded);
    emitter_size(emitter, "segment_bytes", request->segment_size);
    if (request->has_stream)
        emitter_integer(emitter, "stream", request->stream);
    else
        emitter_absent(emitter, "stream");
    if (request->has_pool)
        pool_out(emitter, &request->pool);
    else
        emitter_absent(emitter, "pool");
    emitter_bool(emitter, "is_small", request->is_small);
    size_or_null(emitter, "device_free_bytes", request->has_device_free, request->device_free);
    stack_out(writer, request->context);
    emitter_end(emitter);
}

static void memory_out(struct writer *writer)
{
    const struct explain_memory *memory = &writer->explain->memory;
    struct emitter *emitter = writer->emitter;
    emitter_begin_object(emitter, "memory", NULL);
    emitter_count(emitter, "segments", memory->segments);
    emitter_size(emitter, "reserved_bytes", memory->reserved);
    emitter_count(emitter, "blocks", memory->blocks);
    emitter_size(emitter, "allocated_bytes", memory->allocated);
    emitter_size(emitter, "requested_bytes", memory->requested);
    emitter_count(emitter, "pending_blocks", memory->pending_blocks);
    emitter_size(emitter, "pending_bytes", memory->pending);
    emitter_count(emitter, "holes", memory->holes);
    emitter_size(emitter, "free_bytes", memory->free);
    emitter_size(emitter, "largest_hole_bytes", memory->largest_hole);
    emitter_size(emitter, "releasable_bytes", memory->releasable);
    emitter_size(emitter, "before_recording_bytes", memory->before);
    emitter_end(emitter);
}

static void room_out(struct writer *writer)
{
    const struct explain_room *room = &writer->explain->room;
    bool is_known = room->kind != EXPLAIN_ROOM_UNKNOWN;
    emitter_begin_object(writer->emitter, "room", NULL);
    emitter_text(writer->emitter, "by", explain_room_key(room->kind));
    size_or_null(writer->emitter, "at_least_bytes", is_known, room->low);
    size_or_null(writer->emitter, "below_bytes", room->kind == EXPLAIN_ROOM_INFERRED, room->high);
    emitter_bool(writer->emitter, "refutes_limit", room->refuted);
    size_or_null(writer->emitter, "lacks_bytes", is_known, writer->explain->lacks);
    emitter_end(writer->emitter);
}

static void block_out(struct writer *writer, const char *key, uint32_t number)
{
    const struct block *block;
    if (number == NONE32) {
        emitter_absent(writer->emitter, key);
        return;
    }
    block = &writer->explain->snapshot->end.blocks[number];
    emitter_begin_object(writer->emitter, key, NULL);
    emitter_address(writer->emitter, "address", block->address);
    emitter_size(writer->emitter, "bytes", block->size);
    stack_out(writer, block->context);
    emitter_end(writer->emitter);
}

static void holes_out(struct writer *writer)
{
    const struct explain *explain = writer->explain;
    const struct state *state = &explain->snapshot->end;
    struct emitter *emitter = writer->emitter;
    emitter_begin_object(emitter, "holes_by_reason", NULL);
    for (int reason = 0; reason < EXPLAIN_HOLE_REASONS; reason++) {
        emitter_begin_object(emitter, explain_hole_key((enum explain_hole_reason)reason), NULL);
        emitter_count(emitter, "holes", explain->reasons[reason].count);
        emitter_size(emitter, "bytes", explain->reasons[reason].bytes);
        emitter_size(emitter, "largest_bytes", explain->reasons[reason].largest);
        emitter_end(emitter);
    }
    emitter_end(emitter);
    emitter_begin_list(emitter, "holes", NULL);
    for (size_t i = 0; i < explain->memory.holes && i < writer->rows; i++) {
        const struct explain_hole *hole = &explain->holes[i];
        const struct block *block = &state->blocks[hole->block];
        emitter_begin_object(emitter, NULL, NULL);
        emitter_address(emitter, "address", block->address);
        emitter_size(emitter, "bytes", block->size);
        emitter_integer(emitter, "stream", state->segments[block->segment].stream);
        emitter_text(emitter, "reason", explain_hole_key(hole->reason));
        block_out(writer, "below", hole->before);
        block_out(writer, "above", hole->after);
        emitter_end(emitter);
    }
    emitter_end(emitter);
}

static void pins_out(struct writer *writer)
{
    const struct explain_pins *pins = &writer->explain->pins;
    emitter_begin_object(writer->emitter, "in_the_way", NULL);
    emitter_count(writer->emitter, "blocks", pins->count);
    emitter_size(writer->emitter, "bytes", pins->bytes);
    emitter_size(writer->emitter, "opens_bytes", pins->opened);
    emitter_count(writer->emitter, "segments", pins->segments);
    emitter_begin_list(writer->emitter, "list", NULL);
    for (size_t i = 0; i < pins->count && i < writer->rows; i++)
        block_out(writer, NULL, pins->blocks[i]);
    emitter_end(writer->emitter);
    emitter_end(writer->emitter);
}

static void settings_out(struct writer *writer)
{
    static const char *const judged[] = {[EXPLAIN_JUDGED] = "judged", [EXPLAIN_JUDGED_NOT_CACHING] = "not_caching",
                                         [EXPLAIN_JUDGED_NOTHING] = "nothing_to_replay",
                                         [EXPLAIN_JUDGED_OTHERWISE] = "failure_not_reproduced"};
    const struct explain_settings *settings = &writer->explain->settings;
    struct emitter *emitter = writer->emitter;
    emitter_begin_object(emitter, "settings", NULL);
    emitter_text(emitter, "judged", judged[settings->judged]);
    emitter_text(emitter, "recorded", settings->recorded);
    size_or_null(emitter, "limit_bytes", settings->limit && settings->limit != REPLAY_NO_LIMIT, settings->limit);
    emitter_bool(emitter, "exact", settings->exact);
    emitter_bool(emitter, "searched", settings->searched);
    emitter_count(emitter, "tried", settings->tried);
    size_or_null(emitter, "recorded_peak_reserved_bytes", settings->recorded_peak, settings->recorded_peak);
    emitter_begin_list(emitter, "trials", NULL);
    for (size_t i = 0; i < settings->count; i++) {
        const struct explain_trial *trial = &settings->trials[i];
        emitter_begin_object(emitter, NULL, NULL);
        emitter_text(emitter, "conf", trial->conf);
        emitter_bool(emitter, "fits", trial->serves);
        emitter_bool(emitter, "exact", trial->exact);
        emitter_size(emitter, "peak_reserved_bytes", trial->peak_reserved);
        emitter_count(emitter, "ooms", trial->ooms);
        emitter_end(emitter);
    }
    emitter_end(emitter);
    size_or_null(emitter, "smallest_limit_bytes", settings->least_conf, settings->least_limit);
    emitter_text(emitter, "smallest_limit_conf", settings->least_conf);
    emitter_end(emitter);
}

static void outside_out(struct writer *writer)
{
    const struct explain_outside *outside = &writer->explain->outside;
    struct emitter *emitter = writer->emitter;
    emitter_begin_object(emitter, "outside", NULL);
    size_or_null(emitter, "device_total_bytes", outside->total, outside->total);
    size_or_null(emitter, "bytes", outside->is_known, outside->bytes);
    emitter_size(emitter, "recorded_bytes", outside->recorded);
    emitter_size(emitter, "other_processes_bytes", outside->others);
    size_or_null(emitter, "not_seen_bytes", outside->is_known, outside->rest);
    size_or_null(emitter, "not_seen_when_sampled_bytes", outside->has_sample, outside->sample_rest);
    emitter_begin_list(emitter, "owners", NULL);
    for (size_t i = 0; i < outside->count && i < writer->rows; i++) {
        emitter_begin_object(emitter, NULL, NULL);
        emitter_text(emitter, "owner", outside->rows[i].name);
        emitter_size(emitter, "bytes", outside->rows[i].bytes);
        emitter_count(emitter, "allocations", outside->rows[i].segments);
        emitter_end(emitter);
    }
    emitter_end(emitter);
    emitter_end(emitter);
}

static void stacks_out(struct writer *writer, const char *key, const struct explain_stack *stacks, size_t count, bool growing)
{
    struct emitter *emitter = writer->emitter;
    emitter_begin_list(emitter, key, NULL);
    for (size_t i = 0; i < count && i < writer->rows; i++) {
        emitter_begin_object(emitter, NULL, NULL);
        emitter_size(emitter, "bytes", stacks[i].bytes);
        emitter_count(emitter, "blocks", stacks[i].blocks);
        emitter_bool(emitter, "before_recording", stacks[i].is_before);
        if (growing) {
            emitter_begin_list(emitter, "requested_bytes_by_quarter", NULL);
            for (unsigned q = 0; q < EXPLAIN_QUARTERS; q++)
                emitter_size(emitter, NULL, stacks[i].quarters[q]);
            emitter_end(emitter);
        }
        stack_out(writer, stacks[i].context);
        emitter_end(emitter);
    }
    emitter_end(emitter);
}

int explain_json(struct emitter *emitter, const struct explain *explain, size_t rows, struct error *err)
{
    struct writer writer = {.emitter = emitter, .explain = explain, .rows = rows};
    emitter_count(emitter, "moment", explain->snapshot->first_entry + explain->snapshot->entries.count);
    emitter_count(emitter, "process", explain->process);
    emitter_count(emitter, "device", explain->device);
    emitter_bool(emitter, "failed", explain->is_failure);
    emitter_text(emitter, "cause", explain_cause_key(explain->cause));
    if (explain->is_failure)
        request_out(&writer);
    else
        emitter_absent(emitter, "request");
    memory_out(&writer);
    room_out(&writer);
    if (explain->is_failure) {
        holes_out(&writer);
        pins_out(&writer);
    }
    settings_out(&writer);
    outside_out(&writer);
    stacks_out(&writer, "holders", explain->holders, explain->holder_count, false);
    stacks_out(&writer, "growing", explain->growing, explain->growing_count, true);
    emitter_count(emitter, "lost_entries", explain->lost_entries);
    emitter_count(emitter, "unrecorded", explain->unrecorded);
    emitter_bool(emitter, "block_sizes_are_rebuilt", explain->is_rebuilt);
    bool failed = text_failed(&writer.text);
    text_free(&writer.text);
    return failed ? error_no_memory(err) : STATUS_OK;
}
