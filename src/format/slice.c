/* A range of entries out of a snapshot.  Uses src/base, src/snapshot. */
#include "format/slice.h"

#include "base/table.h"
#include "format/bin_graph.h"
#include "snapshot/state.h"

#include <stdlib.h>
#include <string.h>

#define KEEP(column) \
    do { \
        if (entries->column && count) \
            memmove(entries->column, entries->column + from, count * sizeof(*entries->column)); \
    } while (0)

static void keep_entries(struct entries *entries, size_t from, size_t count)
{
    KEEP(action);
    KEEP(flags);
    KEEP(device);
    KEEP(stream);
    KEEP(address);
    KEEP(size);
    KEEP(time);
    KEEP(context);
    KEEP(shape);
    KEEP(compile_context);
    KEEP(user_metadata);
    KEEP(process);
    KEEP(pool);
    KEEP(thread);
    KEEP(call);
    KEEP(kind);
    entries->count = count;
}

static uint64_t block_key(const struct segment *segment, const struct block *block)
{
    return block->address ^ hash_mix((uint64_t)segment->device << 16 | segment->process);
}

/* What the entries at hand do not tell of a block, because it was made before them, the earlier checkpoint knows. */
static int take_origins(const struct state *before, struct state *state, struct error *err)
{
    struct table known = {0};
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < before->block_count; i++)
        status = table_set(&known, block_key(&before->segments[before->blocks[i].segment], &before->blocks[i]),
                           (uint32_t)i);
    for (size_t i = 0; !status && i < state->block_count; i++) {
        struct block *block = &state->blocks[i];
        if (!(block->flags & BLOCK_BEFORE_RECORDING))
            continue;
        uint32_t at = table_get(&known, block_key(&state->segments[block->segment], block), NONE32);
        if (at == NONE32 || before->blocks[at].address != block->address)
            continue;
        block->context = before->blocks[at].context;
        block->flags = before->blocks[at].flags;
        block->requested = before->blocks[at].requested;
    }
    table_free(&known);
    return status ? error_no_memory(err) : STATUS_OK;
}

static bool lost_with_slice(unsigned row_kind, bool same_state)
{
    return row_kind == ROW_ENTRY || (!same_state && (row_kind == ROW_SEGMENT || row_kind == ROW_BLOCK));
}

/* Pointers to rows that are gone become None. */
static int drop_pointers(struct snapshot *snapshot, bool same_state)
{
    struct bin_graph graph = {0};
    int status = bin_graph_build(&graph, snapshot);
    for (size_t n = 0; !status && n < graph.count; n++) {
        if (!bin_graph_is_container(value_kind(graph.nodes[n])))
            continue;
        value *items = values_items_mutable(snapshot->values, graph.nodes[n]);
        size_t count = values_count(snapshot->values, graph.nodes[n]);
        for (size_t i = 0; i < count; i++)
            if (value_kind(items[i]) == VALUE_ROW && lost_with_slice(value_row_kind(items[i]), same_state))
                items[i] = value_make(VALUE_NONE, 0);
    }
    bin_graph_free(&graph);
    return status;
}

/* Odd values keep to their rows; those of rows that are gone go. */
static int keep_odds(struct snapshot *snapshot, uint64_t first, uint64_t last, bool same_state)
{
    struct odd *odds = snapshot->odds;
    size_t count = snapshot->odd_count;
    int status = STATUS_OK;
    snapshot->odds = NULL;
    snapshot->odd_count = snapshot->odd_capacity = 0;
    table_free(&snapshot->odd_index);
    for (size_t i = 0; !status && i < count; i++) {
        struct odd *odd = &odds[i];
        if (odd->row_kind == ROW_ENTRY ? odd->row < first || odd->row >= last
                                       : lost_with_slice(odd->row_kind, same_state))
            continue;
        if (value_kind(odd->content) == VALUE_ROW && lost_with_slice(value_row_kind(odd->content), same_state))
            odd->content = value_make(VALUE_NONE, 0);
        status = snapshot_set_odd(snapshot, (enum row_kind)odd->row_kind,
                                  odd->row_kind == ROW_ENTRY ? odd->row - first : odd->row, odd->slot, odd->content);
    }
    free(odds);
    return status;
}

int slice_entries(struct snapshot *snapshot, uint64_t first, uint64_t last, const struct state *before, bool end_is_far,
                  struct error *err)
{
    uint64_t number = snapshot->first_entry;
    bool same_state = last == snapshot->entries.count && !end_is_far;
    if (last != snapshot->entries.count) {
        struct state state = {0};
        int status = state_at(snapshot, last, &state, err);
        if (!status && before)
            status = take_origins(before, &state, err);
        if (status) {
            state_free(&state);
            return status;
        }
        state_free(&snapshot->end);
        snapshot->end = state;
    }
    snapshot->has_raw = false; /* it is the whole file's */
    snapshot->raw = value_make(VALUE_NONE, 0);
    keep_entries(&snapshot->entries, (size_t)first, (size_t)(last - first));
    snapshot->first_entry = number + first;
    snapshot->end.moment = snapshot->entries.count;
    if (drop_pointers(snapshot, same_state) || keep_odds(snapshot, number + first, number + last, same_state))
        return error_no_memory(err);
    return STATUS_OK;
}
