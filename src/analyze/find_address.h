/*
 * What is at an address at a moment: the block that holds it, the hole of a segment, or nothing; and what the trace tells
 * of it: which entry allocated there last, which freed that, which uses it next.
 *
 * One answer for each process that knows the address; addresses of different devices of a process do not meet.
 * Cost: one pass over the segments, one over the entries for each answer.
 */
#ifndef ANALYZE_FIND_ADDRESS_H
#define ANALYZE_FIND_ADDRESS_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

#define FIND_NO_ENTRY UINT64_MAX

enum find_kind {
    FIND_LIVE,    /* in a living block */
    FIND_HOLE,    /* in a segment, in no living block */
    FIND_FREED,   /* in no segment, but the trace tells of it */
    FIND_NEVER,   /* nothing tells of it */
};

struct find_answer {
    enum find_kind kind;
    uint16_t process;
    size_t segment, block; /* of the state, SIZE_MAX */
    uint64_t allocated;    /* entry: of what lives, or of what lived there last */
    uint64_t freed;        /* the entry that freed what lived there last */
    uint64_t next;         /* the first entry after the moment that allocates there */
};

/* The number of the answer with what lives at the address, or else of what else is told; at least one. */
struct find_answers {
    struct find_answer *items;
    size_t count;
};

int find_address(const struct snapshot *snapshot, const struct state *state, uint64_t address, struct find_answers *answers,
                 struct error *err);
void find_answers_free(struct find_answers *answers);

#endif
