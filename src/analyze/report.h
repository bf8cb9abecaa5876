/*
 * Who holds memory, or held it: what lives at a moment, or the allocations until then, by a measure, grouped by a key.
 *
 *   live        the living blocks of the state              leak        those that an entry since a moment made
 *   waste       the same, by what they are larger than asked
 *   allocated   every allocation until the moment, with the bytes that its entry tells (requested ones); what lived
 *               before the first entry is a row of its own
 *   temporary   allocations that were freed within a few entries of their process and device
 *
 * Each block or allocation counts in one row, so that the rows add up to the total; of all rows, pinned memory of the
 * host is left out and summed up beside.  `outside` is memory beside a framework's allocator, which its statistics do
 * not count.  The rows do not need the snapshot any more.  Cost: one pass over blocks, for allocations over entries.
 */
#ifndef ANALYZE_REPORT_H
#define ANALYZE_REPORT_H

#include "analyze/selection.h"
#include "analyze/stack_tree.h"
#include "base/error.h"
#include "snapshot/category_rules.h"
#include "snapshot/snapshot.h"

enum report_by { REPORT_LIVE, REPORT_ALLOCATED, REPORT_LEAK, REPORT_TEMPORARY, REPORT_WASTE };
enum report_group {
    REPORT_STACK, REPORT_FUNCTION, REPORT_FILE, REPORT_LIBRARY, REPORT_STREAM, REPORT_SIZE, REPORT_POOL, REPORT_DEVICE,
    REPORT_ANNOTATION, REPORT_OWNER, REPORT_CATEGORY
};

struct report_options {
    enum report_by by;
    enum report_group group;
    bool user_frames;
    uint64_t since;   /* leak: entries from this one on */
    uint64_t within;  /* temporary: freed at most so many entries after */
    const struct category_rules *const *rules;
    size_t rule_sets;
};

struct report_amount {
    uint64_t bytes;     /* of blocks; of allocations what was asked for */
    uint64_t requested; /* where it is known */
    uint64_t unknown;   /* bytes of blocks of which it is not */
    uint64_t pending;   /* of bytes: freed, waiting for a stream */
    uint64_t outside;   /* of bytes */
    uint64_t count;     /* blocks or allocations */
    uint64_t alive;     /* of count: allocations that live at the moment */
    uint64_t of;        /* temporary: allocations in all */
};

struct report_row {
    struct report_amount amount;
    uint32_t stack;     /* for report_frame(): a stack, or one text */
};

struct report {
    struct report_row *rows; /* most first: bytes; of temporary the count; of waste what is wasted */
    size_t count, capacity;
    struct report_amount total;
    uint64_t cached;    /* bytes of blocks that an allocator keeps and nobody uses */
    uint64_t host, host_blocks;
    bool is_exact;      /* false: block sizes of the past are rounded up from what was asked for */
    struct stack_tree stacks;
};

/* selection is bound to the snapshot. */
int report_make(const struct snapshot *snapshot, const struct state *state, const struct selection *selection,
                const struct report_options *options, struct report *report, struct error *err);
void report_free(struct report *report);

/* Walk a row's frames from the innermost: start with *node = row->stack; NULL after the last. */
const char *report_frame(const struct report *report, uint32_t *node, size_t *length);

static inline uint64_t report_waste(const struct report_amount *amount)
{
    return amount->bytes - amount->unknown - amount->requested;
}

#endif
