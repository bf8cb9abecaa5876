/* What a refuted run says about the questions that a trace leaves open.  May use src/snapshot, src/base. */
#include "analyze/replay_plan.h"

#include "base/array.h"

/* The other answer to a question, once. */
static bool turn(struct replay_plan *plan, enum replay_question question, size_t at)
{
    uint64_t key = replay_turn_key(question, at);
    return !table_has(&plan->beliefs.turned, key) && !table_set(&plan->beliefs.turned, key, 1);
}

/* These were thought to belong together. */
static void part(struct replay_plan *plan, uint32_t leader)
{
    for (uint32_t i = 0; i < plan->life_count; i++)
        if (i != leader && replay_leader(plan, i) == leader)
            plan->lives[i].pool = UINT16_MAX;
    for (uint32_t i = 0; i < plan->life_count; i++)
        if (plan->lives[i].pool == UINT16_MAX)
            plan->lives[i].leader = i;
}

/* Two segments that cannot be of one pool: a request went to one although the other would have served it. */
static bool set_apart(struct replay_plan *plan, uint32_t one, uint32_t other)
{
    struct replay_beliefs *beliefs = &plan->beliefs;
    if (one == NONE32 || other == NONE32 || one == other || (plan->lives[one].is_known && plan->lives[other].is_known))
        return false;
    for (size_t i = 0; i < beliefs->apart_count; i++)
        if ((beliefs->apart[i].one == one && beliefs->apart[i].other == other) ||
            (beliefs->apart[i].one == other && beliefs->apart[i].other == one))
            return false;
    if (array_reserve(&beliefs->apart, &beliefs->apart_capacity, beliefs->apart_count + 1, sizeof(*beliefs->apart)))
        return false;
    beliefs->apart[beliefs->apart_count++] = (struct replay_pair){one, other};
    if (replay_leader(plan, one) == replay_leader(plan, other))
        part(plan, replay_leader(plan, one));
    return true;
}

/* The first release of the run that holds a place. */
static size_t run_of(const struct replay_plan *plan, size_t at)
{
    while (at > 0 && (at >= plan->count || !is_release(replay_action(plan, at)) || is_release(replay_action(plan, at - 1))))
        at--;
    return at;
}

/* A run of releases without stacks was thought to be the next request's own, or a flush.  The first time that fails for
 * the former, all of them are thought to be flushes; a limit that is known tells for each of them. */
static bool turn_release(struct replay_plan *plan, size_t at)
{
    if (plan->snapshot->entries.context[plan->list[at]] != CONTEXT_NONE)
        return false;
    if (!plan->beliefs.flushes && !plan->beliefs.turned.count && plan->trial.limit == REPLAY_NO_LIMIT) {
        plan->beliefs.flushes = true;
        return true;
    }
    return turn(plan, REPLAY_TURN_RELEASE, run_of(plan, at));
}

/* A request was served from here, and from elsewhere in the recording. */
static bool learn_place(struct replay_plan *plan, const struct replay_difference *difference)
{
    size_t at = difference->at;
    enum action theirs = replay_action(plan, at);
    uint32_t request = difference->request;
    if (is_release(theirs)) {
        if (turn_release(plan, at))
            return true;
        if (request != NONE32 && turn(plan, REPLAY_TURN_WAIT, request))
            return true;
    }
    if (request != NONE32 && request < plan->count && replay_action(plan, request) == ACTION_ALLOC &&
        plan->options.pool_count && turn(plan, REPLAY_TURN_BORROW, request))
        return true;
    uint32_t ours = replay_life_at(plan, at, difference->ours);
    uint32_t recorded = is_release(theirs) && request != NONE32
                            ? replay_life_at(plan, request, plan->snapshot->entries.address[plan->list[request]])
                            : replay_life_at(plan, at, difference->theirs);
    return set_apart(plan, ours, recorded);
}

static uint32_t life_released_at(const struct replay_plan *plan, size_t at)
{
    for (uint32_t i = 0; i < plan->life_count; i++)
        if (plan->lives[i].last == at)
            return i;
    return NONE32;
}

/* A private pool went away, and with it a segment that stayed in the recording: that one was not of the pool. */
static bool part_from_pool(struct replay_plan *plan, const struct replay_difference *difference)
{
    uint32_t gone = difference->at ? life_released_at(plan, difference->at - 1) : NONE32;
    uint32_t kept = replay_life_at(plan, difference->at, difference->ours);
    return gone != NONE32 && kept != NONE32 && plan->lives[gone].pool && plan->lives[gone].pool == plan->lives[kept].pool &&
           set_apart(plan, gone, kept);
}

/* The allocator released what the recording kept. */
static bool learn_release(struct replay_plan *plan, const struct replay_difference *difference)
{
    if (difference->at < plan->count && replay_action(plan, difference->at) == ACTION_OOM)
        return turn(plan, REPLAY_TURN_SCOPE, difference->at);
    if (plan->beliefs.flushes && difference->at && difference->at < plan->count &&
        is_release(replay_action(plan, difference->at - 1)) && turn_release(plan, difference->at - 1))
        return true;
    if (part_from_pool(plan, difference))
        return true;
    size_t last = difference->at; /* the run's releases up to here were thought to be of a flush of the default pool */
    while (last > 0 && last - 1 < plan->count && !is_release(replay_action(plan, last - 1)))
        last--;
    return last > 0 && turn(plan, REPLAY_TURN_DEFAULT, last - 1);
}

bool replay_learn(struct replay_plan *plan, const struct replay_difference *difference)
{
    if (difference->kind == REPLAY_OTHER_PLACE && difference->at < plan->count)
        return learn_place(plan, difference);
    if (difference->kind == REPLAY_UNFORCED && difference->at < plan->count)
        return turn_release(plan, difference->at);
    if (difference->kind == REPLAY_OTHER_RELEASE)
        return learn_release(plan, difference);
    return false;
}
