/*
 * Which pool the recorded segments were of that do not say it themselves.  A class is what must share a pool.  Scopes of
 * pools are long, so a class belongs where the requests before and after its own went, as far as the beliefs let it; the
 * default pool if nothing speaks against it.  May use src/snapshot, src/base.
 */
#include "analyze/replay_plan.h"

#include "base/array.h"

#include <stdlib.h>

struct class {
    uint32_t pool;         /* NONE32: not yet */
    size_t first, end;     /* places in the list: it begins; it is released as a pool that goes away, SIZE_MAX: it is not */
    bool is_private, has_small, has_large;
    bool is_constrained;   /* stands in a pair */
};

/* Two requests, one after the other, of different classes. */
struct neighbour {
    uint32_t class, other;
};

struct settling {
    struct replay_plan *plan;
    struct class *classes; /* by leader */
    struct neighbour *neighbours;
    size_t neighbour_count, neighbour_capacity;
    size_t *pool_ends;     /* by pool: after this it is gone */
    size_t *votes;
    size_t pool_capacity, vote_capacity;
};

static void gather_classes(struct settling *settling)
{
    struct replay_plan *plan = settling->plan;
    for (size_t i = 0; i < plan->life_count; i++)
        settling->classes[i] = (struct class){.pool = NONE32, .first = SIZE_MAX, .end = SIZE_MAX};
    for (uint32_t i = 0; i < plan->life_count; i++) {
        const struct replay_life *life = &plan->lives[i];
        struct class *class = &settling->classes[replay_leader(plan, i)];
        class->has_small |= life->is_small;
        class->has_large |= !life->is_small;
        class->is_private |= life->last != NONE32 && replay_is_turned(plan, REPLAY_TURN_DEFAULT, life->last);
        if (life->first < class->first)
            class->first = life->first;
        if (life->last != NONE32 && !replay_is_own_release(plan, life->last))
            class->end = life->last;
        if (life->is_known)
            class->pool = life->pool;
    }
    for (size_t i = 0; i < plan->life_count; i++)
        settling->classes[i].is_private |= settling->classes[i].has_small && settling->classes[i].has_large &&
                                           settling->classes[i].pool == NONE32;
    for (size_t i = 0; i < plan->beliefs.apart_count; i++) {
        settling->classes[replay_leader(plan, plan->beliefs.apart[i].one)].is_constrained = true;
        settling->classes[replay_leader(plan, plan->beliefs.apart[i].other)].is_constrained = true;
    }
}

static int neighbour_compare(const void *left, const void *right)
{
    const struct neighbour *a = left, *b = right;
    return a->class != b->class ? (a->class > b->class) - (a->class < b->class) : (a->other > b->other) - (a->other < b->other);
}

static int add_neighbour(struct settling *settling, uint32_t class, uint32_t other)
{
    if (array_reserve(&settling->neighbours, &settling->neighbour_capacity, settling->neighbour_count + 1,
                      sizeof(*settling->neighbours)))
        return STATUS_NO_MEMORY;
    settling->neighbours[settling->neighbour_count++] = (struct neighbour){class, other};
    return STATUS_OK;
}

static int gather_neighbours(struct settling *settling)
{
    struct replay_plan *plan = settling->plan;
    uint32_t last = NONE32;
    if (!plan->request_lives)
        plan->request_lives = replay_request_lives(plan);
    if (!plan->request_lives)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->request_lives[i] == NONE32)
            continue;
        uint32_t class = replay_leader(plan, plan->request_lives[i]);
        bool differs = last != NONE32 && class != last;
        if (differs && settling->classes[class].pool == NONE32 && add_neighbour(settling, class, last))
            return STATUS_NO_MEMORY;
        if (differs && settling->classes[last].pool == NONE32 && add_neighbour(settling, last, class))
            return STATUS_NO_MEMORY;
        last = class;
    }
    if (settling->neighbour_count)
        qsort(settling->neighbours, settling->neighbour_count, sizeof(*settling->neighbours), neighbour_compare);
    return STATUS_OK;
}

static size_t first_neighbour(const struct settling *settling, uint32_t class)
{
    size_t low = 0, high = settling->neighbour_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (settling->neighbours[middle].class < class)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int need_pools(struct settling *settling)
{
    size_t count = settling->plan->pool_count, had = settling->pool_capacity;
    if (array_reserve(&settling->pool_ends, &settling->pool_capacity, count, sizeof(*settling->pool_ends)) ||
        array_reserve(&settling->votes, &settling->vote_capacity, count, sizeof(*settling->votes)))
        return STATUS_NO_MEMORY;
    for (size_t i = had; i < settling->pool_capacity; i++)
        settling->pool_ends[i] = SIZE_MAX;
    return STATUS_OK;
}

static bool is_apart(const struct settling *settling, uint32_t leader, uint32_t pool)
{
    const struct replay_plan *plan = settling->plan;
    for (size_t i = 0; i < plan->beliefs.apart_count; i++) {
        uint32_t one = replay_leader(plan, plan->beliefs.apart[i].one);
        uint32_t other = replay_leader(plan, plan->beliefs.apart[i].other);
        if ((one == leader && settling->classes[other].pool == pool) ||
            (other == leader && settling->classes[one].pool == pool))
            return true;
    }
    return false;
}

static bool may_be(const struct settling *settling, uint32_t leader, uint32_t pool)
{
    const struct class *class = &settling->classes[leader];
    if (pool ? class->first > settling->pool_ends[pool] : class->is_private)
        return false;
    return !class->is_constrained || !is_apart(settling, leader, pool);
}

static uint32_t new_guess(struct settling *settling)
{
    struct replay_plan *plan = settling->plan;
    int64_t next = 1;
    for (size_t i = 0; i < plan->pool_count; i++)
        if (plan->pools[i].id.first == 0 && plan->pools[i].id.second >= next)
            next = plan->pools[i].id.second + 1;
    uint32_t pool = replay_pool_find(plan, 0, next);
    if (pool != NONE32)
        plan->pools[pool].is_guess = true;
    return pool == NONE32 || need_pools(settling) ? NONE32 : pool;
}

/* The pool of most neighbours.  Guesses of earlier settlings that no class is in yet are as good as a new one. */
static uint32_t choose_pool(struct settling *settling, uint32_t leader)
{
    struct replay_plan *plan = settling->plan;
    uint32_t best = NONE32, unused = NONE32;
    for (uint32_t pool = 0; pool < plan->pool_count; pool++)
        settling->votes[pool] = 0;
    for (size_t i = first_neighbour(settling, leader); i < settling->neighbour_count; i++) {
        if (settling->neighbours[i].class != leader)
            break;
        uint32_t pool = settling->classes[settling->neighbours[i].other].pool;
        if (pool != NONE32)
            settling->votes[pool]++;
    }
    for (uint32_t pool = 0; pool < plan->pool_count; pool++) {
        if (!may_be(settling, leader, pool))
            continue;
        if (plan->pools[pool].is_guess && !plan->pools[pool].is_used && unused == NONE32)
            unused = pool;
        if ((!pool || settling->votes[pool]) && (best == NONE32 || settling->votes[pool] > settling->votes[best]))
            best = pool;
    }
    return best != NONE32 ? best : unused != NONE32 ? unused : new_guess(settling);
}

static int settle_class(struct settling *settling, uint32_t leader)
{
    struct class *class = &settling->classes[leader];
    if (class->pool == NONE32)
        class->pool = choose_pool(settling, leader);
    if (class->pool == NONE32)
        return STATUS_NO_MEMORY;
    settling->plan->pools[class->pool].is_used = true;
    if (class->pool && class->end < settling->pool_ends[class->pool])
        settling->pool_ends[class->pool] = class->end;
    return STATUS_OK;
}

static int settle_all(struct settling *settling)
{
    struct replay_plan *plan = settling->plan;
    bool is_plain = plan->pool_count == 1 && !plan->beliefs.apart_count && !plan->beliefs.turned.count;
    gather_classes(settling);
    for (size_t i = 0; i < plan->pool_count; i++)
        plan->pools[i].is_used = false;
    for (size_t i = 0; i < plan->life_count; i++)
        is_plain &= !settling->classes[i].is_private;
    int status = need_pools(settling);
    if (!status && !is_plain)
        status = gather_neighbours(settling);
    for (uint32_t i = 0; i < plan->life_count && !status; i++) {
        uint32_t leader = replay_leader(plan, i);
        status = settle_class(settling, leader);
        if (!status && !plan->lives[i].is_known)
            plan->lives[i].pool = (uint16_t)settling->classes[leader].pool;
    }
    return status;
}

int replay_lives_settle(struct replay_plan *plan)
{
    struct settling settling = {.plan = plan, .classes = malloc((plan->life_count + 1) * sizeof(*settling.classes))};
    int status = settling.classes ? settle_all(&settling) : STATUS_NO_MEMORY;
    free(settling.classes);
    free(settling.neighbours);
    free(settling.pool_ends);
    free(settling.votes);
    return status;
}
