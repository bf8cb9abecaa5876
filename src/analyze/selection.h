/*
 * Selection: which entries, segments and blocks a report looks at.  Filled from option texts, asked per row.
 *
 *   --device N|all  --stream S  --pool A:B  --size MIN..MAX  --entries A..B  --time A..B  --action LIST
 *   --stack REGEX  --not-stack REGEX  --annotation REGEX  --frames user|all
 *
 * selection_init(), selection_set() for each option, selection_bind() once to a snapshot (it looks up streams and pools
 * and matches the expressions against each distinct stack once), predicates, selection_free().  Ranges include both
 * ends, but --entries A..B is what happened between the moments @#A and @#B: entries, numbered from 0, A <= n < B; times count from the first entry, as moments do.  A bound selection may be read by several threads.
 */
#ifndef ANALYZE_SELECTION_H
#define ANALYZE_SELECTION_H

#include "analyze/selection_ranges.h"
#include "base/error.h"
#include "snapshot/snapshot.h"

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a pool is known to lie: a segment of the end state, from the entry that made it. */
struct selection_pool {
    uint64_t start, size, since;
    uint32_t space, pool;
};

struct selection {
    int device;                /* -1: all */
    bool has_stream, has_pool, has_size, has_entries, has_time, has_actions, has_stack, has_not_stack, has_annotation;
    bool user_frames;          /* --frames user */
    int64_t stream;
    int64_t pool[2];
    uint64_t size_low, size_high;
    uint64_t first_entry, last_entry; /* first <= n < last */
    int64_t time_low, time_high; /* microseconds from the first entry */
    uint32_t actions;          /* bit a set: action a is selected */
    regex_t stack, not_stack, annotation;
    /* bound: */
    const struct snapshot *snapshot;
    uint8_t *matches;          /* by stack node; NULL without expressions */
    int64_t first_time;
    struct selection_pool *pools; /* for entries that do not tell their pool; sorted */
    size_t pool_count;
    struct selection_ranges ranges;
};

void selection_init(struct selection *selection); /* everything */
void selection_free(struct selection *selection);

/* name without dashes ("device", "not-stack"); STATUS_USAGE says what is wrong with text. */
int selection_set(struct selection *selection, const char *name, const char *text, struct error *err);

int selection_bind(struct selection *selection, const struct snapshot *snapshot, struct error *err);

bool selection_is_everything(const struct selection *selection);
bool selection_has_entry(const struct selection *selection, size_t entry);
bool selection_has_segment(const struct selection *selection, const struct segment *segment); /* device, stream, pool */
bool selection_has_block(const struct selection *selection, const struct state *state, const struct block *block);
bool selection_has_stack(const struct selection *selection, uint32_t context);

/* Plumbing of PyTorch, Python and ours, which --frames user leaves out. */
bool selection_is_plumbing(const struct snapshot *snapshot, uint32_t frame);

#endif
