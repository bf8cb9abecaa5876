/* Who holds memory.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/report.h"

#include "analyze/allocations.h"
#include "analyze/flame.h"
#include "analyze/makers.h"
#include "analyze/report_key.h"
#include "base/array.h"
#include "snapshot/state.h"

#include <stdlib.h>
#include <string.h>

struct making {
    const struct snapshot *snapshot;
    const struct selection *selection;
    const struct report_options *options;
    struct report *report;
    struct report_keys keys;
    struct table row_of; /* node -> row */
    const struct state *original;
    struct state state;  /* a copy that tells what is older than the trace */
    struct makers makers;
    uint64_t moment;
};

static struct report_row *row_at(struct making *m, const struct report_item *item)
{
    struct report *report = m->report;
    uint32_t node = report_key(&m->keys, item);
    uint32_t *slot = node == NONE32 ? NULL : table_at(&m->row_of, node, NONE32);
    if (!slot)
        return NULL;
    if (*slot == NONE32) {
        if (array_reserve(&report->rows, &report->capacity, report->count + 1, sizeof(*report->rows)))
            return NULL;
        report->rows[report->count] = (struct report_row){.stack = node};
        *slot = (uint32_t)report->count++;
    }
    return &report->rows[*slot];
}

static int add(struct making *m, const struct report_item *item, const struct report_amount *more)
{
    struct report_row *row = row_at(m, item);
    if (!row)
        return STATUS_NO_MEMORY;
    struct report_amount *amounts[] = {&row->amount, &m->report->total};
    for (int i = 0; i < 2; i++) {
        amounts[i]->bytes += more->bytes;
        amounts[i]->requested += more->requested;
        amounts[i]->unknown += more->unknown;
        amounts[i]->pending += more->pending;
        amounts[i]->outside += more->outside;
        amounts[i]->count += more->count;
        amounts[i]->alive += more->alive;
        amounts[i]->of += more->of;
    }
    return STATUS_OK;
}

/* --- living blocks -------------------------------------------------------------------------------------------------- */

static int add_block(struct making *m, size_t number)
{
    const struct block *block = &m->state.blocks[number];
    const struct segment *segment = &m->state.segments[block->segment];
    bool is_known = !(block->flags & BLOCK_REQUESTED_UNKNOWN);
    uint64_t requested = is_known ? flame_block_requested(m->snapshot, m->original, number) : block->size;
    struct report_item item = {.context = block->context, .bytes = block->size, .requested = requested,
                               .entry = m->makers.entry ? m->makers.entry[number] : MAKER_NONE, .stream = segment->stream,
                               .knows_stream = true, .pool = segment->pool, .block = number, .process = segment->process,
                               .device = segment->device, .is_before = block->flags & BLOCK_BEFORE_RECORDING,
                               .is_kept = m->makers.kept && m->makers.kept[number]};
    if (m->options->by == REPORT_LEAK && (item.entry == MAKER_NONE || item.entry < m->options->since))
        return STATUS_OK;
    struct report_amount more = {.bytes = block->size, .requested = is_known ? requested : 0, .count = 1, .alive = 1};
    more.unknown = is_known ? 0 : block->size;
    more.pending = block->state == BLOCK_ACTIVE_PENDING_FREE ? block->size : 0;
    more.outside = segment->is_outside ? block->size : 0;
    return add(m, &item, &more);
}

static int add_blocks(struct making *m)
{
    for (size_t b = 0; b < m->state.block_count; b++) {
        const struct block *block = &m->state.blocks[b];
        const struct segment *segment = &m->state.segments[block->segment];
        if (!selection_has_block(m->selection, &m->state, block))
            continue;
        if (!block_is_living(block)) {
            m->report->cached += segment->kind == MEMORY_HOST ? 0 : block->size;
        } else if (segment->kind == MEMORY_HOST) {
            m->report->host += block->size;
            m->report->host_blocks++;
        } else if (add_block(m, b)) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

/* --- allocations ---------------------------------------------------------------------------------------------------- */

/* What no entry made belongs to the whole, not to a part of the trace. */
static bool takes_older(const struct making *m, uint16_t device)
{
    const struct selection *s = m->selection;
    return (s->device < 0 || s->device == device) && !s->has_stream && !s->has_pool && !s->has_size && !s->has_entries &&
           !s->has_time && !s->has_actions && !s->has_stack && !s->has_not_stack && !s->has_annotation;
}

static int add_allocation(void *context, const struct allocation *allocation)
{
    struct making *m = context;
    const struct entries *entries = &m->snapshot->entries;
    bool is_older = allocation->made == ALLOCATION_NO_ENTRY;
    uint64_t told = is_older ? allocation->freed : allocation->made;
    if ((entries->kind && entries->kind[told] == MEMORY_HOST) ||
        (is_older ? m->options->by == REPORT_TEMPORARY || !takes_older(m, allocation->device)
                  : !selection_has_entry(m->selection, told)))
        return STATUS_OK;
    bool is_freed = allocation->freed != ALLOCATION_NO_ENTRY;
    bool is_brief = is_freed && allocation->freed < m->moment && allocation->distance <= m->options->within;
    bool counts = m->options->by == REPORT_ALLOCATED || is_brief;
    struct report_item item = {.context = allocation->context, .bytes = allocation->size, .requested = allocation->size,
                               .entry = allocation->made, .stream = m->snapshot->streams[entries->stream[told]],
                               .knows_stream = !(entries->flags[told] & ENTRY_STREAM_UNKNOWN),
                               .pool = entries->pool ? entries->pool[told] : NONE32, .block = SIZE_MAX,
                               .process = allocation->process, .device = allocation->device, .is_before = is_older,
                               .is_kept = !is_freed};
    struct report_amount more = {.of = 1};
    if (counts) {
        more.bytes = allocation->size;
        more.count = 1;
        more.alive = !is_freed || allocation->freed >= m->moment;
        more.outside = entries->flags[told] & ENTRY_OUTSIDE ? allocation->size : 0;
        *(entries->flags[told] & ENTRY_REQUESTED_UNKNOWN ? &more.unknown : &more.requested) = allocation->size;
    }
    return add(m, &item, &more);
}

/* Those that lived before the first entry and live still. */
static int add_older(struct making *m)
{
    for (size_t b = 0; b < m->state.block_count; b++) {
        const struct block *block = &m->state.blocks[b];
        const struct segment *segment = &m->state.segments[block->segment];
        if (!block_is_living(block) || segment->kind == MEMORY_HOST || m->makers.entry[b] != MAKER_NONE ||
            !takes_older(m, segment->device))
            continue;
        bool is_known = !(block->flags & BLOCK_REQUESTED_UNKNOWN);
        uint64_t asked = is_known ? block->requested : block->size;
        struct report_item item = {.context = block->context, .bytes = asked, .requested = asked, .entry = MAKER_NONE,
                                   .stream = segment->stream, .knows_stream = true, .pool = segment->pool, .block = b,
                                   .process = segment->process, .device = segment->device, .is_before = true};
        struct report_amount more = {.bytes = asked, .requested = is_known ? asked : 0, .unknown = is_known ? 0 : asked,
                                     .outside = segment->is_outside ? asked : 0, .count = 1, .alive = 1, .of = 1};
        if (add(m, &item, &more))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* --- together -------------------------------------------------------------------------------------------------------- */

static uint64_t rank_of(const struct report_amount *amount, enum report_by by)
{
    return by == REPORT_TEMPORARY ? amount->count : by == REPORT_WASTE ? report_waste(amount) : amount->bytes;
}

struct order {
    const struct report *report;
    enum report_by by;
};

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct report_row *x = a, *y = b;
    const struct order *order = context;
    uint64_t keys[][2] = {{rank_of(&x->amount, order->by), rank_of(&y->amount, order->by)},
                          {x->amount.bytes, y->amount.bytes},
                          {x->amount.count, y->amount.count}};
    for (size_t i = 0; i < 3; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    return stack_tree_compare(&order->report->stacks, x->stack, y->stack);
}

static void order_rows(struct making *m)
{
    struct report *report = m->report;
    struct order order = {report, m->options->by};
    size_t kept = 0;
    for (size_t i = 0; i < report->count; i++)
        if (report->rows[i].amount.count) /* others only had allocations that are not brief */
            report->rows[kept++] = report->rows[i];
    report->count = kept;
    if (kept > 1)
        qsort_r(report->rows, kept, sizeof(*report->rows), compare_rows, &order);
}

static int prepare(struct making *m, const struct state *state, struct error *err)
{
    enum report_by by = m->options->by;
    bool is_category = m->options->group == REPORT_CATEGORY;
    bool needs_makers = by == REPORT_LEAK || by == REPORT_ALLOCATED || m->options->group == REPORT_ANNOTATION || is_category;
    if (state_copy(&m->state, state))
        return error_no_memory(err);
    m->state.moment = m->moment;
    if (m->snapshot->entries.count && state_mark_before_recording(m->snapshot, &m->state, NULL))
        return error_no_memory(err);
    m->report->stacks.user_frames = m->options->user_frames;
    if (stack_tree_open(&m->report->stacks))
        return error_no_memory(err);
    int status = needs_makers ? makers_find(m->snapshot, &m->state, is_category, &m->makers, err) : STATUS_OK;
    return status ? status : report_keys_open(&m->keys, m->snapshot, m->original, m->options, &m->report->stacks, err);
}

static int fill(struct making *m, struct error *err)
{
    enum report_by by = m->options->by;
    int status;
    if (by != REPORT_ALLOCATED && by != REPORT_TEMPORARY)
        status = add_blocks(m);
    else
        status = allocations_walk(m->snapshot, m->moment, m->options->group == REPORT_CATEGORY, add_allocation, m);
    if (!status && by == REPORT_ALLOCATED)
        status = add_older(m);
    return status ? error_no_memory(err) : STATUS_OK;
}

int report_make(const struct snapshot *snapshot, const struct state *state, const struct selection *selection,
                const struct report_options *options, struct report *report, struct error *err)
{
    struct making m = {.snapshot = snapshot, .selection = selection, .options = options, .report = report,
                       .original = state};
    memset(report, 0, sizeof(*report));
    report->is_exact = state == &snapshot->end || state->exact;
    m.moment = state == &snapshot->end ? snapshot->entries.count : state->moment;
    int status = prepare(&m, state, err);
    if (!status)
        status = fill(&m, err);
    if (!status)
        order_rows(&m);
    report_keys_close(&m.keys);
    makers_free(&m.makers);
    state_free(&m.state);
    table_free(&m.row_of);
    if (status)
        report_free(report);
    return status;
}

void report_free(struct report *report)
{
    free(report->rows);
    stack_tree_close(&report->stacks);
    memset(report, 0, sizeof(*report));
}

const char *report_frame(const struct report *report, uint32_t *node, size_t *length)
{
    return stack_tree_frame(&report->stacks, node, length);
}
