/* The lives of recorded segments, and which pool each belonged to.  May use src/snapshot, src/base. */
#include "analyze/replay_plan.h"

#include "base/array.h"

#include <stdlib.h>

#define MOST_POOLS 4096

/* --- finding them ----------------------------------------------------------------------------------------------- */

static int life_add(struct replay_plan *plan, struct replay_life life)
{
    if (array_reserve(&plan->lives, &plan->life_capacity, plan->life_count + 1, sizeof(*plan->lives)))
        return STATUS_NO_MEMORY;
    life.leader = (uint32_t)plan->life_count;
    plan->lives[plan->life_count++] = life;
    return STATUS_OK;
}

static int lives_of_start(struct replay_plan *plan, struct table *live)
{
    for (size_t i = 0; plan->has_start && i < plan->start.segment_count; i++) {
        const struct segment *segment = &plan->start.segments[i];
        if (!replay_is_our_segment(plan, segment))
            continue;
        if (table_set(live, segment->address, (uint32_t)plan->life_count) ||
            life_add(plan, (struct replay_life){.address = segment->address, .size = segment->total_size,
                                                .stream = segment->stream, .last = NONE32, .is_there = true,
                                                .is_expandable = segment->is_expandable,
                                                .is_small = !segment->is_large}))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* The request that opened a segment tells its class. */
static bool opens_small(const struct replay_plan *plan, size_t at)
{
    uint32_t next = plan->next_request[at];
    return next != NONE32 && plan->snapshot->entries.size[plan->list[next]] <= ALLOCATOR_SMALL_LIMIT;
}

static int live_entry(struct replay_plan *plan, struct table *live, size_t at)
{
    const struct entries *entries = &plan->snapshot->entries;
    uint32_t entry = plan->list[at];
    enum action action = replay_action(plan, at);
    bool maps = action == ACTION_SEGMENT_MAP;
    uint32_t known = table_get(live, entries->address[entry], NONE32);
    if (action == ACTION_SEGMENT_FREE && known == NONE32 && !plan->has_start && !plan->implied) {
        if (!plan->contradictions.counts[REPLAY_UNKNOWN_SEGMENT]++)
            plan->contradictions.first[REPLAY_UNKNOWN_SEGMENT] = entry;
    }
    if (action == ACTION_SEGMENT_FREE && known != NONE32) {
        plan->lives[known].last = (uint32_t)at;
        table_remove(live, entries->address[entry]);
    }
    if ((action != ACTION_SEGMENT_ALLOC && !maps) || (maps && known != NONE32))
        return STATUS_OK;
    if (table_set(live, entries->address[entry], (uint32_t)plan->life_count))
        return STATUS_NO_MEMORY;
    return life_add(plan, (struct replay_life){.address = entries->address[entry], .size = entries->size[entry],
                                               .stream = plan->snapshot->streams[entries->stream[entry]],
                                               .first = (uint32_t)at, .last = NONE32, .is_expandable = maps,
                                               .is_small = opens_small(plan, at)});
}

/* --- what is known ---------------------------------------------------------------------------------------------- */

uint32_t replay_pool_find(struct replay_plan *plan, int64_t first, int64_t second)
{
    for (uint32_t i = 0; i < plan->pool_count; i++)
        if (plan->pools[i].id.first == first && plan->pools[i].id.second == second)
            return i;
    if (plan->pool_count >= MOST_POOLS ||
        array_reserve(&plan->pools, &plan->pool_capacity, plan->pool_count + 1, sizeof(*plan->pools)))
        return NONE32;
    plan->pools[plan->pool_count] = (struct replay_pool){.id = {first, second}};
    return (uint32_t)plan->pool_count++;
}

static int life_knows(struct replay_life *life, uint32_t pool)
{
    if (pool == NONE32)
        return STATUS_NO_MEMORY;
    life->pool = (uint16_t)pool;
    life->is_known = true;
    return STATUS_OK;
}

/* The plan's pool for one of the snapshot's. */
static uint32_t pool_of(struct replay_plan *plan, uint32_t pool)
{
    return replay_pool_find(plan, plan->snapshot->pools[pool].id[0], plan->snapshot->pools[pool].id[1]);
}

/* Where an end was rebuilt, what is free may be the rest of a block whose size is not known. */
static bool is_split(const struct state *end, const struct segment *segment)
{
    uint32_t active = 0;
    for (uint32_t i = 0; i < segment->block_count && !end->exact; i++)
        active += end->blocks[segment->first_block + i].state != BLOCK_INACTIVE;
    return end->exact ? segment->block_count > 1 : active > 1;
}

/* A block that fills a segment of which the rest would have been split off belongs to a pool that does not split. */
static void look_at_blocks(struct replay_plan *plan, const struct segment *segment, uint32_t pool)
{
    uint64_t slack = segment->is_large ? ALLOCATOR_SMALL_LIMIT : ALLOCATOR_MIN_BLOCK; /* what rounding leaves */
    if (!pool || !segment->block_count || segment->is_expandable)
        return;
    const struct block *block = &plan->snapshot->end.blocks[segment->first_block];
    if (is_split(&plan->snapshot->end, segment))
        plan->pools[pool].is_told = true;
    else if (block->state != BLOCK_INACTIVE && block->requested && block->size / 2 > block->requested + slack)
        plan->pools[pool].no_split = plan->pools[pool].is_told = true;
}

static int life_compare(const void *left, const void *right, void *lives)
{
    const struct replay_life *all = lives, *a = &all[*(const uint32_t *)left], *b = &all[*(const uint32_t *)right];
    return a->address != b->address ? a->address < b->address ? -1 : 1 : (a->first > b->first) - (a->first < b->first);
}

static int sort_lives(struct replay_plan *plan)
{
    plan->by_address = malloc((plan->life_count + 1) * sizeof(*plan->by_address));
    if (!plan->by_address)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < plan->life_count; i++)
        plan->by_address[i] = (uint32_t)i;
    qsort_r(plan->by_address, plan->life_count, sizeof(*plan->by_address), life_compare, plan->lives);
    return STATUS_OK;
}

size_t replay_first_life(const struct replay_plan *plan, uint64_t address)
{
    size_t low = 0, high = plan->life_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->lives[plan->by_address[middle]].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Segments that are there at the end name their pool; those of expandable segments are ranges of several mappings. */
static int learn_from_end(struct replay_plan *plan)
{
    const struct state *end = &plan->snapshot->end;
    for (size_t s = 0; s < end->segment_count; s++) {
        const struct segment *segment = &end->segments[s];
        if (!replay_is_our_segment(plan, segment) || segment->pool == NONE32)
            continue;
        uint32_t pool = pool_of(plan, segment->pool);
        if (pool == NONE32)
            return STATUS_NO_MEMORY;
        look_at_blocks(plan, segment, pool);
        for (size_t i = replay_first_life(plan, segment->address); i < plan->life_count; i++) {
            struct replay_life *life = &plan->lives[plan->by_address[i]];
            if (life->address - segment->address >= segment->total_size)
                break;
            if (life->last == NONE32)
                life_knows(life, pool);
        }
    }
    return STATUS_OK;
}

/* Newer files say the pool in every entry. */
static int learn_from_entries(struct replay_plan *plan)
{
    const uint32_t *pools = plan->snapshot->entries.pool;
    for (size_t i = 0; pools && i < plan->life_count; i++) {
        struct replay_life *life = &plan->lives[i];
        uint32_t pool = life->is_there ? NONE32 : pools[plan->list[life->first]];
        if (pool != NONE32 && life_knows(life, pool_of(plan, pool)))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* What the user says: pools with their properties, and ranges of entries in which requests went to a pool. */
static int learn_from_options(struct replay_plan *plan)
{
    const struct replay_options *options = &plan->options;
    for (size_t i = 0; i < options->pool_count; i++) {
        const struct replay_pool_option *said = &options->pools[i];
        size_t had = plan->pool_count;
        uint32_t pool = replay_pool_find(plan, said->first, said->second);
        if (pool == NONE32)
            return STATUS_NO_MEMORY;
        plan->pools[pool].is_guess = plan->pool_count > had; /* what has no segments at the end may be any of these */
        plan->pools[pool].no_split = said->no_split;
        plan->pools[pool].use_on_oom = said->use_on_oom;
        plan->pools[pool].is_told = true;
    }
    for (size_t i = 0; i < options->scope_count; i++) {
        const struct replay_scope_option *said = &options->scopes[i];
        for (size_t k = 0; k < plan->life_count; k++) {
            uint64_t entry = plan->count ? plan->list[plan->lives[k].first] : 0;
            if (entry >= said->from && entry <= said->to && !plan->lives[k].is_there &&
                life_knows(&plan->lives[k], replay_pool_find(plan, said->first, said->second)))
                return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

/* --- lives that share a pool ------------------------------------------------------------------------------------ */

uint32_t replay_life_at(const struct replay_plan *plan, size_t at, uint64_t address)
{
    uint32_t found = NONE32;
    for (size_t i = 0; i < plan->life_count; i++) {
        const struct replay_life *life = &plan->lives[i];
        if (life->first > at || life->last < at || life->address > address)
            continue;
        if (life->is_expandable ? found == NONE32 || plan->lives[found].address < life->address
                                : address - life->address < life->size)
            found = (uint32_t)i;
    }
    return found;
}

/* Releases of one captured call, small before large: that is how a pool that goes away is released.  After a step from
 * large to small, which is how the default pool is, nothing is sure. */
static void join_drops(struct replay_plan *plan)
{
    const uint32_t *contexts = plan->snapshot->entries.context;
    uint32_t *by_last = calloc(plan->count + 1, sizeof(*by_last)), context = CONTEXT_NONE;
    bool is_sure = true;
    for (size_t i = 0; by_last && i < plan->life_count; i++)
        if (plan->lives[i].last != NONE32)
            by_last[plan->lives[i].last] = (uint32_t)i + 1;
    for (size_t i = 0; by_last && i + 1 < plan->count; i++) {
        if (contexts[plan->list[i]] != context)
            is_sure = true;
        context = contexts[plan->list[i]];
        if (context == CONTEXT_NONE || context != contexts[plan->list[i + 1]] || !by_last[i] || !by_last[i + 1] ||
            replay_is_own_release(plan, i))
            continue;
        uint32_t one = by_last[i] - 1, next = by_last[i + 1] - 1;
        is_sure &= plan->lives[one].is_small || !plan->lives[next].is_small;
        if (is_sure)
            plan->lives[replay_leader(plan, next)].leader = replay_leader(plan, one);
    }
    free(by_last);
    for (uint32_t i = 0; i < plan->life_count; i++)
        plan->lives[i].joined = plan->lives[i].leader;
}

/* Segments with two blocks at a time, and the pools that are known to split by them. */
static int find_shared(struct replay_plan *plan)
{
    uint32_t *live = calloc(plan->life_count + 1, sizeof(*live));
    uint32_t *holders = malloc((plan->address_count + 1) * sizeof(*holders)); /* by number: the block's life */
    int status = live && holders && (plan->request_lives = replay_request_lives(plan)) ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; !status && i < plan->address_count; i++)
        holders[i] = NONE32;
    for (size_t i = 0; !status && i < plan->count; i++) {
        uint32_t number = plan->numbers[i], life = plan->request_lives[i];
        if (number == NONE32)
            continue;
        if (life != NONE32) {
            holders[number] = life;
            plan->lives[life].is_shared |= ++live[life] > 1;
            if (plan->lives[life].is_known && live[life] > 1)
                plan->pools[plan->lives[life].pool].is_told = true;
        } else if (holders[number] != NONE32 &&
                   replay_action(plan, i) == (plan->completes ? ACTION_FREE_COMPLETED : ACTION_FREE_REQUESTED)) {
            live[holders[number]]--;
            holders[number] = NONE32;
        }
    }
    free(live);
    free(holders);
    return status;
}

int replay_lives_find(struct replay_plan *plan)
{
    struct table live = {0};
    int status = replay_pool_find(plan, 0, 0) == NONE32 ? STATUS_NO_MEMORY : lives_of_start(plan, &live);
    for (size_t i = 0; i < plan->count && !status; i++) {
        enum action action = replay_action(plan, i);
        if (action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP || action == ACTION_SEGMENT_FREE)
            status = live_entry(plan, &live, i);
    }
    table_free(&live);
    if (!status)
        status = sort_lives(plan);
    if (!status)
        status = learn_from_end(plan);
    if (!status)
        status = learn_from_entries(plan);
    if (!status)
        status = learn_from_options(plan);
    if (!status)
        join_drops(plan);
    plan->named_count = plan->pool_count;
    if (!status && plan->pool_count > 1)
        status = find_shared(plan);
    return status;
}
