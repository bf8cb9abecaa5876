/*
 * Categories of memory: parameter, gradient, optimizer state, activation, workspace, ... by rules over the stacks that
 * allocated it (snapshot/category_rules.h).
 *
 *     struct categories categories;
 *     if (categories_open(snapshot, rule_sets, 2, &categories, err)) ...
 *     uint32_t number = category_of(&categories, &(struct category_subject){context, requested, is_kept});
 *     const char *name = category_name(&categories, number);
 *     categories_close(&categories);
 *
 * Numbers count from 0 in a fixed order: CATEGORY_OTHER, CATEGORY_NO_STACK, then the rules' categories as they first
 * appear, so that a colour belongs to a number.  Two runs over one snapshot agree.
 *
 * Holds pointers to the snapshot and the rules, which must outlive it; any number of threads may ask.  Cost: each expression is
 * matched once against each distinct frame; a question is a look-up and one step for each rule with a size or `kept`.
 */
#ifndef ANALYZE_CATEGORY_H
#define ANALYZE_CATEGORY_H

#include "base/error.h"
#include "base/strings.h"
#include "base/table.h"
#include "snapshot/category_rules.h"
#include "snapshot/snapshot.h"

#define CATEGORY_OTHER 0u    /* no rule says anything: "other" */
#define CATEGORY_NO_STACK 1u /* nor could one, for no stack was taken: "no stack" */

struct category_late; /* a rule that looks at more than the stack */

struct categories {
    const struct snapshot *snapshot;
    struct strings *names;    /* number + 1 -> name */
    uint32_t *of_stack;       /* stack node -> category, by the rules that look at stacks alone */
    uint32_t *rule_of;        /* stack node -> the rule that said so, NONE32 */
    uint8_t *is_thread;       /* context -> it has no frames, as its thread had none; NULL: there is no such context */
    uint32_t *contents;       /* stack node -> number of its content */
    struct table kept;        /* content and size -> how many such blocks are kept, 2 for more */
    struct category_late *late;
    size_t late_count;
};

/* What is asked about: one allocation. */
struct category_subject {
    uint32_t context;
    uint64_t requested;       /* bytes; the block's where the request is not known */
    bool is_kept;             /* nothing in the trace frees it */
};

/* Sets are tried in order (a file's of the user before the shipped one); a set that `replaces` ends the list.
 * STATUS_USAGE: an expression is none. */
int categories_open(const struct snapshot *snapshot, const struct category_rules *const *sets, size_t set_count,
                    struct categories *categories, struct error *err);
void categories_close(struct categories *categories);

uint32_t category_of(const struct categories *categories, const struct category_subject *subject);
uint32_t category_count(const struct categories *categories);
const char *category_name(const struct categories *categories, uint32_t category);

#endif
