/*
 * A recording's requests in the order in which an allocator has to be asked: what the files of replay share.
 *
 * A life is one recorded segment from its segment_alloc (or the start) to its segment_free; which pool it belonged to
 * decides which pool its blocks were asked of.  What a trace does not say about that is a set of beliefs (replay_pools.h)
 * that a run under the recorded settings refutes or not.
 */
#ifndef ANALYZE_REPLAY_PLAN_H
#define ANALYZE_REPLAY_PLAN_H

#include "alloc/allocator.h"
#include "analyze/replay.h"
#include "base/table.h"
#include "snapshot/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum replay_op_kind {
    REPLAY_ALLOC,
    REPLAY_OOM,          /* a request that failed */
    REPLAY_FREE,         /* and its end at once */
    REPLAY_FREE_LATER,   /* other streams still use it */
    REPLAY_COMPLETE,     /* they no longer do */
    REPLAY_FLUSH,        /* empty_cache */
    REPLAY_POOL_FLUSH,   /* the last handle of a pool goes */
    REPLAY_POOL_RELEASE, /* it had gone before this, with blocks alive */
    REPLAY_SNAPSHOT,
};

struct replay_op {
    uint32_t at;    /* place in the list of entries: size and stream stand there */
    uint32_t block; /* number of the recorded address */
    uint16_t pool;  /* index into the plan's pools */
    uint8_t kind;
};

struct replay_pool {
    struct pool_id id; /* pools[0] is (0, 0) */
    bool no_split, use_on_oom;
    bool is_told;      /* no_split is known: said by the user or seen in the final blocks */
    bool is_guess;     /* the recording does not name it */
    bool is_used;      /* by a class, in this settling */
};

struct replay_life {
    uint64_t address, size;
    int64_t stream;
    uint32_t first, last; /* places in the list; 0: from the start; NONE32: to the end */
    uint32_t leader;      /* of the lives that must share a pool: union by index */
    uint32_t joined;      /* the leader before any belief */
    uint16_t pool;
    bool is_known;        /* the recording or the user says its pool */
    bool is_shared;       /* it had two blocks at a time: its pool splits */
    bool is_there;        /* from before the first entry */
    bool is_expandable, is_small;
};

/* What others did to the address space, known from recorded segments that the rule would have put elsewhere. */
struct replay_foreign {
    uint32_t at; /* place in the list: before this */
    enum { REPLAY_FOREIGN_HOLE, REPLAY_FOREIGN_TAKES } kind; /* a hole of theirs opens; they take this range */
    bool is_old; /* the hole's chunk is older than those that are known */
    uint64_t address, size;
};
struct replay_other { /* what others are recorded to take (or to give back: what `begins` took), before this place */
    uint32_t at;
    uint32_t begins; /* NONE32: it takes */
    uint64_t address, size;
};
struct replay_oom { /* a request that failed: so much, reserved, would have been too much less one */
    uint32_t at;
    uint64_t reserved;
};
struct replay_foreigners {
    struct replay_foreign *items;
    size_t count, capacity;
    struct replay_oom *ooms;
    size_t oom_count, oom_capacity;
};

/* What a trace leaves open, answered one way until a run refutes it. */
struct replay_pair {
    uint32_t one, other; /* lives that cannot share a pool */
};
struct replay_beliefs {
    struct replay_pair *apart;
    size_t apart_count, apart_capacity;
    bool flushes;        /* the usual answer to REPLAY_TURN_RELEASE is that it was a flush */
    struct table turned; /* replay_turn(): answers that are the other way */
};

/* Questions about an entry, each with a usual answer. */
enum replay_question {
    REPLAY_TURN_RELEASE, /* a run of releases without stacks begins: a flush? usually the next request's own */
    REPLAY_TURN_DEFAULT, /* a run of releases begins: of the default pool? usually it may be */
    REPLAY_TURN_SCOPE,   /* an oom: inside the last scope? usually not */
    REPLAY_TURN_BORROW,  /* a request served by a pool made with use_on_oom: asked of that pool? usually borrowed */
    REPLAY_TURN_WAIT,    /* a request: did the frees completed before it end in its flush? usually before its search */
};

struct replay_plan {
    const struct snapshot *snapshot;
    struct replay_options options;
    bool follows;        /* there are an allocator's events to follow */
    bool is_alone;       /* nothing of other devices: a snapshot's size is this one's */
    bool implied;        /* nothing cached: segments are the requests */
    bool requests, completes; /* beginnings and ends of frees are told */
    bool is_approximate; /* the beginning is lost or a part left out, or sizes, streams are not told */

    uint32_t *list;         /* the device's entries */
    uint32_t *next_request; /* for each, the next alloc or oom at or after it (a place in the list), NONE32 */
    uint32_t *numbers;      /* for each, the number of its block's address; NONE32: none, or left out */
    size_t count;
    struct replay_op *ops;
    size_t op_count, op_capacity;
    uint64_t *addresses; /* recorded, by number */
    size_t address_count, address_capacity;

    struct state start; /* what existed before the first entry, where that is lost */
    bool has_start;
    uint32_t *start_numbers; /* of its blocks */

    struct replay_pool *pools;
    size_t pool_count, pool_capacity;
    size_t named_count;   /* of pools: those that the recording or the user names; guesses follow */
    struct replay_life *lives; /* by first */
    size_t life_count, life_capacity;
    uint32_t *by_address; /* of lives */
    uint32_t *request_lives; /* NULL until it is asked for */
    struct replay_beliefs beliefs;
    struct replay_foreigners foreigners;
    struct replay_other *others;
    size_t other_count, other_capacity;

    struct replay_contradictions contradictions;
    struct replay_result recorded; /* of the run under the recorded settings */
    struct replay_trial trial;     /* and the limit that it had */
    const struct allocator_visitor *end_visitor; /* NULL, or who sees the end of a run that reproduces the recording */
};

/* replay_plan.c: fills list, numbers, addresses, start.  0, STATUS_NOT_FOUND, no memory. */
int replay_plan_list(struct replay_plan *plan, struct error *err);
bool replay_is_our_segment(const struct replay_plan *plan, const struct segment *segment);

/* replay_others.c: memory of others that the recording tells of, in order. */
int replay_find_others(struct replay_plan *plan);

/* replay_lives.c: the lives with what is known of their pools. */
int replay_lives_find(struct replay_plan *plan);
uint32_t replay_pool_find(struct replay_plan *plan, int64_t first, int64_t second); /* made if needed; NONE32: too many */
size_t replay_first_life(const struct replay_plan *plan, uint64_t address); /* in by_address, at or above */
uint32_t replay_life_at(const struct replay_plan *plan, size_t at, uint64_t address); /* NONE32: none. Linear */

/* replay_classes.c: a pool for each of the others, under the beliefs. */
int replay_lives_settle(struct replay_plan *plan);

/* replay_order.c: the life that served each request, by place in the list (NONE32: none); the caller frees it. */
uint32_t *replay_request_lives(struct replay_plan *plan);

/* replay_order.c: the operations, from the list, the lives' pools and the beliefs; again after these changed. */
int replay_plan_order(struct replay_plan *plan);
bool replay_is_own_release(const struct replay_plan *plan, size_t at);

/* replay_run.c: one run.  difference may be NULL; it and result say the first one under the recorded settings.
 * foreigners may be NULL; it gets what the run under the recorded settings showed of them, replacing what it had. */
enum replay_difference_kind {
    REPLAY_SAME,
    REPLAY_OTHER_PLACE,
    REPLAY_OTHER_RELEASE,
    REPLAY_UNFORCED, /* the request released memory although the limit would have let it have more */
    REPLAY_OTHER_SIZE,
    REPLAY_OTHER,
};
struct replay_difference {
    enum replay_difference_kind kind;
    size_t at;             /* place in the list */
    uint64_t ours, theirs; /* addresses */
    uint32_t request;      /* place in the list of the request that runs, NONE32 */
};
int replay_run_once(const struct replay_plan *plan, const struct replay_trial *trial, struct replay_result *result,
                    struct replay_difference *difference, struct replay_foreigners *foreigners, struct error *err);

/* replay_ways.c: beliefs and properties of pools under which the recording is reproduced; fills recorded. */
int replay_settle(struct replay_plan *plan, struct replay_difference *difference, struct error *err);

/* replay_learn.c: beliefs after a difference; false: nothing left to believe. */
bool replay_learn(struct replay_plan *plan, const struct replay_difference *difference);

static inline uint32_t replay_leader(const struct replay_plan *plan, uint32_t life)
{
    while (plan->lives[life].leader != life)
        life = plan->lives[life].leader;
    return life;
}
static inline uint64_t replay_turn_key(enum replay_question question, size_t at)
{
    return (uint64_t)at << 3 | question;
}
static inline bool replay_is_turned(const struct replay_plan *plan, enum replay_question question, size_t at)
{
    return plan->beliefs.turned.count && table_has(&plan->beliefs.turned, replay_turn_key(question, at));
}
static inline uint64_t replay_entry(const struct replay_plan *plan, size_t at)
{
    return plan->list[at];
}
static inline enum action replay_action(const struct replay_plan *plan, size_t at)
{
    return (enum action)plan->snapshot->entries.action[plan->list[at]];
}
static inline bool is_release(enum action action)
{
    return action == ACTION_SEGMENT_FREE || action == ACTION_SEGMENT_UNMAP;
}

#endif
