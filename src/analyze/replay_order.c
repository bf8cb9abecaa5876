/* The operations that reproduce a recording, in order: requests with their pools, frees, flushes.  May use src/snapshot,
 * src/base. */
#include "analyze/replay_plan.h"

#include "base/array.h"
#include "base/ordered_bits.h"

#include <stdlib.h>

/* The lives that exist where the walk stands, by address. */
struct walk {
    struct replay_plan *plan;
    struct ordered_bits live; /* by place in plan->by_address */
    uint32_t *places;         /* of lives there */
    size_t next;              /* life to begin */
    uint32_t last_pool;       /* of the last request */
    bool own;                 /* the verdict on the run of releases without stacks that goes on here */
    uint32_t flushed;         /* the pool that the last flush of the run was of, NONE32 */
    bool *dropped;            /* by pool: its handle is gone */
};

static int walk_start(struct walk *walk)
{
    struct replay_plan *plan = walk->plan;
    walk->flushed = NONE32;
    walk->dropped = calloc(plan->pool_count, sizeof(*walk->dropped));
    walk->places = malloc((plan->life_count + 1) * sizeof(*walk->places));
    if (!walk->dropped || !walk->places || ordered_bits_init(&walk->live, plan->life_count))
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < plan->life_count; i++)
        walk->places[plan->by_address[i]] = (uint32_t)i;
    return STATUS_OK;
}

static void walk_end(struct walk *walk)
{
    ordered_bits_free(&walk->live);
    free(walk->places);
    free(walk->dropped);
}

/* The life that holds the address now, NULL if none. */
static const struct replay_life *walk_find(const struct walk *walk, uint64_t address)
{
    const struct replay_plan *plan = walk->plan;
    size_t place = replay_first_life(plan, address == UINT64_MAX ? address : address + 1);
    if (!place)
        return NULL;
    place = ordered_bits_at_or_below(&walk->live, place - 1);
    return place == ORDERED_BITS_NONE ? NULL : &plan->lives[plan->by_address[place]];
}

static void walk_lives(struct walk *walk, size_t at)
{
    struct replay_plan *plan = walk->plan;
    while (walk->next < plan->life_count && (plan->lives[walk->next].is_there || plan->lives[walk->next].first <= at))
        ordered_bits_add(&walk->live, walk->places[walk->next++]);
}

static int add_op(struct replay_plan *plan, enum replay_op_kind kind, size_t at, uint32_t pool)
{
    if (array_reserve(&plan->ops, &plan->op_capacity, plan->op_count + 1, sizeof(*plan->ops)))
        return STATUS_NO_MEMORY;
    plan->ops[plan->op_count++] = (struct replay_op){
        .kind = (uint8_t)kind, .at = (uint32_t)at, .block = plan->numbers[at], .pool = (uint16_t)pool};
    return STATUS_OK;
}

bool replay_is_own_release(const struct replay_plan *plan, size_t at)
{
    uint32_t next = plan->next_request[at];
    if (next == NONE32)
        return false;
    const uint32_t *contexts = plan->snapshot->entries.context;
    uint32_t context = contexts[plan->list[at]], of_request = contexts[plan->list[next]];
    if (context != CONTEXT_NONE || of_request != CONTEXT_NONE)
        return context == of_request;
    size_t first = at; /* no stacks: what follows the run shows */
    while (at < next && (is_release(replay_action(plan, at)) || replay_action(plan, at) == ACTION_FREE_COMPLETED))
        at++;
    enum action action = replay_action(plan, at);
    bool own = action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP || action == ACTION_OOM;
    return own && plan->beliefs.flushes == replay_is_turned(plan, REPLAY_TURN_RELEASE, first);
}

/* A release by the allocator itself says of a private pool that its handle is gone; one that was asked for is a flush of
 * the pool that the segment is of. */
static int walk_release(struct walk *walk, size_t at)
{
    struct replay_plan *plan = walk->plan;
    const struct replay_life *life = walk_find(walk, plan->snapshot->entries.address[plan->list[at]]);
    uint32_t pool = life ? life->pool : 0;
    bool goes_on = at && is_release(replay_action(plan, at - 1)) &&
                   plan->snapshot->entries.context[plan->list[at]] == CONTEXT_NONE &&
                   plan->snapshot->entries.context[plan->list[at - 1]] == CONTEXT_NONE;
    bool own = walk->own = goes_on ? walk->own : replay_is_own_release(plan, at);
    int status = STATUS_OK;
    if (own && pool && !walk->dropped[pool]) {
        walk->dropped[pool] = true;
        status = add_op(plan, REPLAY_POOL_RELEASE, at, pool);
    } else if (!own && walk->flushed != pool) {
        walk->flushed = pool;
        walk->dropped[pool] = pool != 0;
        status = add_op(plan, pool ? REPLAY_POOL_FLUSH : REPLAY_FLUSH, at, pool);
    }
    if (life && replay_action(plan, at) == ACTION_SEGMENT_FREE)
        ordered_bits_remove(&walk->live, walk->places[life - plan->lives]);
    return status;
}

static bool opens_segment(const struct replay_plan *plan, size_t at)
{
    return at && (replay_action(plan, at - 1) == ACTION_SEGMENT_ALLOC || replay_action(plan, at - 1) == ACTION_SEGMENT_MAP);
}

static uint32_t said_scope(const struct replay_plan *plan, size_t at)
{
    for (size_t i = plan->options.scope_count; i-- > 0;) {
        const struct replay_scope_option *said = &plan->options.scopes[i];
        if (plan->list[at] < said->from || plan->list[at] > said->to)
            continue;
        for (uint32_t pool = 0; pool < plan->pool_count; pool++)
            if (plan->pools[pool].id.first == said->first && plan->pools[pool].id.second == said->second)
                return pool;
    }
    return NONE32;
}

/* The pool that a request was asked of: that of the segment which served it, unless it was borrowed. */
static uint32_t request_pool(struct walk *walk, size_t at)
{
    const struct replay_plan *plan = walk->plan;
    uint32_t said = said_scope(plan, at);
    if (said != NONE32)
        return said;
    if (plan->pool_count < 2)
        return 0;
    if (replay_action(plan, at) == ACTION_OOM)
        return replay_is_turned(plan, REPLAY_TURN_SCOPE, at) ? walk->last_pool : 0;
    const struct replay_life *life = walk_find(walk, plan->snapshot->entries.address[plan->list[at]]);
    uint32_t pool = life ? life->pool : 0;
    bool may_borrow = plan->pools[pool].use_on_oom && !opens_segment(plan, at) &&
                      plan->options.limit != REPLAY_NO_LIMIT && plan->list[at] >= plan->options.limit_entry;
    return may_borrow && !replay_is_turned(plan, REPLAY_TURN_BORROW, at) ? 0 : pool;
}

static int walk_free(struct walk *walk, size_t *at)
{
    struct replay_plan *plan = walk->plan;
    size_t here = *at;
    bool ends = !plan->completes || (here + 1 < plan->count && replay_action(plan, here + 1) == ACTION_FREE_COMPLETED &&
                                     plan->numbers[here + 1] == plan->numbers[here]);
    if (ends && plan->completes)
        ++*at;
    return add_op(plan, ends ? REPLAY_FREE : REPLAY_FREE_LATER, here, 0);
}

/* Did this end of a free happen in the flush of the next request? */
static bool waits(const struct replay_plan *plan, size_t at)
{
    uint32_t next = plan->next_request[at];
    const uint32_t *contexts = plan->snapshot->entries.context;
    if (next != NONE32 && snapshot_is_cached(plan->snapshot, plan->options.process)) /* it tells by the context */
        return contexts[plan->list[at]] == contexts[plan->list[next]] && contexts[plan->list[next]] != CONTEXT_NONE;
    return next != NONE32 && replay_is_turned(plan, REPLAY_TURN_WAIT, next);
}

/* Where nothing caches: what the driver gave is what was asked for. */
static int walk_implied(struct walk *walk, size_t at)
{
    enum action action = replay_action(walk->plan, at);
    if (action == ACTION_OOM)
        return add_op(walk->plan, REPLAY_OOM, at, 0);
    if (walk->plan->numbers[at] == NONE32)
        return STATUS_OK;
    return add_op(walk->plan, is_release(action) ? REPLAY_FREE : REPLAY_ALLOC, at, 0);
}

static int walk_entry(struct walk *walk, size_t *at)
{
    struct replay_plan *plan = walk->plan;
    enum action action = replay_action(plan, *at);
    walk_lives(walk, *at);
    if (plan->implied)
        return walk_implied(walk, *at);
    if (is_release(action))
        return walk_release(walk, *at);
    if (action == ACTION_SNAPSHOT)
        return add_op(plan, REPLAY_SNAPSHOT, *at, 0);
    if (action == ACTION_FREE_COMPLETED && (plan->numbers[*at] == NONE32 || waits(plan, *at)))
        return STATUS_OK;
    if (action == ACTION_FREE_COMPLETED)
        return add_op(plan, plan->requests ? REPLAY_COMPLETE : REPLAY_FREE, *at, 0);
    walk->flushed = NONE32;
    if (action == ACTION_FREE_REQUESTED)
        return plan->numbers[*at] == NONE32 ? STATUS_OK : walk_free(walk, at);
    if (action != ACTION_OOM && (action != ACTION_ALLOC || plan->numbers[*at] == NONE32))
        return STATUS_OK;
    walk->last_pool = request_pool(walk, *at);
    walk->dropped[walk->last_pool] = false;
    return add_op(plan, action == ACTION_OOM ? REPLAY_OOM : REPLAY_ALLOC, *at, walk->last_pool);
}

uint32_t *replay_request_lives(struct replay_plan *plan)
{
    struct walk walk = {.plan = plan};
    uint32_t *lives = malloc((plan->count + 1) * sizeof(*lives));
    if (!lives || walk_start(&walk)) {
        free(lives);
        walk_end(&walk);
        return NULL;
    }
    for (size_t i = 0; i < plan->count; i++) {
        lives[i] = NONE32;
        walk_lives(&walk, i);
        uint64_t address = plan->snapshot->entries.address[plan->list[i]];
        const struct replay_life *life = replay_action(plan, i) <= ACTION_SEGMENT_UNMAP ? walk_find(&walk, address) : NULL;
        if (life && replay_action(plan, i) == ACTION_ALLOC)
            lives[i] = (uint32_t)(life - plan->lives);
        else if (life && replay_action(plan, i) == ACTION_SEGMENT_FREE)
            ordered_bits_remove(&walk.live, walk.places[life - plan->lives]);
    }
    walk_end(&walk);
    return lives;
}

int replay_plan_order(struct replay_plan *plan)
{
    struct walk walk = {.plan = plan};
    int status = walk_start(&walk);
    plan->op_count = 0;
    for (size_t i = 0; i < plan->count && !status; i++)
        status = walk_entry(&walk, &i);
    walk_end(&walk);
    return status;
}
