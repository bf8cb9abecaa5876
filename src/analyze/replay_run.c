/* One run of a plan: its operations through an allocator, every event beside the recording's where that is followed.
 * May use src/snapshot, src/alloc, src/device, src/base. */
#include "analyze/replay_plan.h"

#include "analyze/replay_device.h"
#include "analyze/replay_end.h"
#include "base/array.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_STREAM (INT64_MIN + 77)         /* stands for "another stream still uses it" */
#define DEVICE_TOTAL (UINT64_C(150109880320)) /* where the recording does not tell */
#define MOST_LOOKS 1000

struct run {
    const struct replay_plan *plan;
    const struct replay_trial *trial;
    struct replay_result *result;
    struct replay_difference difference;
    struct replay_device device;
    struct allocator *allocator;
    uint64_t *here;     /* by number: where the replay has the block; 0: nowhere */
    uint32_t *whose;    /* by number: the context of its block: which request it was, from 1; 0: of before */
    uint32_t requests;  /* so far */
    bool *alive;        /* by pool: made and not let go */
    uint32_t scope;     /* the pool whose scope is open, 0: none */
    uint32_t request;   /* place in the list of the request that runs */
    int64_t most_reserved;
    uint64_t rounding_waste, fragmentation_waste; /* then */
    uint64_t ooms, first_oom;
    int looks;          /* at the pools, for snapshots of one */
    size_t next_oom;    /* of the recording's, by place */
    struct settings settings;
    bool follows, is_taken; /* what the result says of the moment is */
};

static const struct entries *entries_of(const struct run *run)
{
    return &run->plan->snapshot->entries;
}

__attribute__((format(printf, 4, 5))) static void differ(struct run *run, enum replay_difference_kind kind, size_t at,
                                                         const char *format, ...)
{
    va_list list;
    if (run->difference.kind || !run->follows)
        return;
    run->difference.kind = kind;
    run->difference.at = at;
    run->difference.request = run->request;
    run->result->at_end = at >= run->plan->count;
    run->result->difference_entry = at < run->plan->count ? run->plan->list[at] : entries_of(run)->count;
    va_start(list, format);
    vsnprintf(run->result->difference, sizeof(run->result->difference), format, list);
    va_end(list);
}

static void weigh_waste(struct run *run)
{
    const struct memory_stats *stats = allocator_stats(run->allocator);
    int64_t reserved = stats->kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].current;
    if (reserved <= run->most_reserved)
        return;
    int64_t active = stats->kinds[MEMORY_STAT_ACTIVE_BYTES][MEMORY_POOL_ALL].current;
    run->most_reserved = reserved;
    int64_t requested = stats->kinds[MEMORY_STAT_REQUESTED_BYTES][MEMORY_POOL_ALL].current;
    run->fragmentation_waste = reserved > active ? (uint64_t)(reserved - active) : 0;
    run->rounding_waste = active > requested ? (uint64_t)(active - requested) : 0;
}

static void take_result(struct run *run)
{
    if (run->is_taken)
        return;
    weigh_waste(run); /* in the middle of a request its segment may be there already */
    run->is_taken = true;
    run->result->stats = *allocator_stats(run->allocator);
    run->result->rounding_waste = run->rounding_waste;
    run->result->fragmentation_waste = run->fragmentation_waste;
    run->result->ooms = run->ooms;
    run->result->first_oom = run->first_oom;
}

/* The moment lies inside the trace: before anything of a later entry happens. */
static void take_moment(struct run *run, size_t at)
{
    uint64_t entry = at < run->plan->count ? run->plan->list[at] : entries_of(run)->count;
    if (entry >= run->plan->options.moment)
        take_result(run);
}

/* The stream only where it is not the usual one; an oom has no address. */
static void describe(char *text, size_t size, enum action action, uint64_t bytes, uint64_t address, int64_t stream)
{
    int length = snprintf(text, size, "%s of %" PRIu64 " bytes", action_name(action), bytes);
    if (action != ACTION_OOM && length > 0 && (size_t)length < size)
        length += snprintf(text + length, size - (size_t)length, " at %#" PRIx64, address);
    if (stream && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, " on stream %" PRId64, stream);
}

static void other_event(struct run *run, const struct allocator_event *event, size_t at)
{
    const struct entries *entries = entries_of(run);
    uint32_t entry = run->plan->list[at];
    enum action theirs = (enum action)entries->action[entry];
    bool ours_serves = event->action == ALLOCATOR_ALLOC, ours_releases = is_release((enum action)event->action);
    bool opens = theirs == ACTION_SEGMENT_ALLOC || theirs == ACTION_SEGMENT_MAP;
    enum replay_difference_kind kind = ours_serves && (theirs == ACTION_ALLOC || opens || is_release(theirs))
                                           ? REPLAY_OTHER_PLACE
                                       : ours_releases      ? REPLAY_OTHER_RELEASE
                                       : is_release(theirs) ? REPLAY_UNFORCED
                                                            : REPLAY_OTHER;
    bool stray = theirs == ACTION_ALLOC && at && replay_action(run->plan, at - 1) == ACTION_SEGMENT_ALLOC &&
                 !run->difference.kind && replay_life_at(run->plan, at, entries->address[entry]) == NONE32;
    if (stray) { /* the request is in no segment: the one that was made for it is the odd one */
        differ(run, REPLAY_OTHER, at - 1, "a segment at %#" PRIx64 ", and the request that it is for is served at %#" PRIx64,
               event->address, entries->address[entry]);
        return;
    }
    run->difference.ours = run->difference.kind ? run->difference.ours : event->address;
    run->difference.theirs = run->difference.kind ? run->difference.theirs : entries->address[entry];
    char ours_text[80], theirs_text[80];
    describe(ours_text, sizeof(ours_text), (enum action)event->action, event->size, event->address, event->stream);
    describe(theirs_text, sizeof(theirs_text), theirs, entries->size[entry], entries->address[entry],
             run->plan->snapshot->streams[entries->stream[entry]]);
    differ(run, kind, at, "%s instead of %s", ours_text, theirs_text);
}

/* Every event of the allocator against the recording's next. */
static void follow(void *self, const struct allocator_event *event)
{
    struct run *run = self;
    const struct entries *entries = entries_of(run);
    if (!run->follows)
        return;
    size_t at = replay_device_next(&run->device);
    take_moment(run, at);
    if (at >= run->plan->count) {
        differ(run, REPLAY_OTHER, at, "%s of %" PRIu64 " bytes, and the recording has ended",
               action_name((enum action)event->action), event->size);
        return;
    }
    uint32_t entry = run->plan->list[at];
    run->device.at = at + 1;
    run->result->events++;
    bool same_place = event->action == ALLOCATOR_OOM || event->address == entries->address[entry];
    if ((int)event->action != (int)entries->action[entry] || !same_place || event->size != entries->size[entry] ||
        event->stream != run->plan->snapshot->streams[entries->stream[entry]])
        other_event(run, event, at);
    else if (run->difference.kind)
        return;
    else if (event->action == ALLOCATOR_SEGMENT_ALLOC)
        replay_device_takes(&run->device, event->address, event->size);
    else if (event->action == ALLOCATOR_SEGMENT_FREE)
        replay_device_gives_back(&run->device, event->address);
}

/* --- pools and scopes ------------------------------------------------------------------------------------------- */

static int need_pool(struct run *run, uint32_t index)
{
    const struct replay_pool *pool = &run->plan->pools[index];
    const struct pool_options options = {.use_on_oom = pool->use_on_oom, .no_split = pool->no_split};
    if (!index || run->alive[index])
        return STATUS_OK;
    run->alive[index] = true;
    int status = allocator_pool_create(run->allocator, pool->id, &options);
    return status == ALLOCATOR_INVALID ? allocator_pool_retain(run->allocator, pool->id) : status;
}

static int close_scope(struct run *run)
{
    if (!run->scope)
        return STATUS_OK;
    struct pool_id id = run->plan->pools[run->scope].id;
    run->scope = 0;
    int status = allocator_scope_end(run->allocator, id);
    return status ? status : allocator_pool_release(run->allocator, id);
}

static int open_scope(struct run *run, uint32_t pool)
{
    if (pool == run->scope)
        return STATUS_OK;
    int status = close_scope(run);
    if (!status)
        status = need_pool(run, pool);
    if (status || !pool)
        return status;
    run->scope = pool;
    return allocator_scope_begin(run->allocator, run->plan->pools[pool].id, NULL, NULL);
}

/* The last handle of a pool goes, and what it has cached with it if `flush`. */
static int let_go(struct run *run, uint32_t pool, bool flush)
{
    struct pool_id id = run->plan->pools[pool].id;
    int status = close_scope(run);
    if (!status)
        status = need_pool(run, pool);
    if (status)
        return status;
    run->alive[pool] = false;
    status = allocator_pool_release(run->allocator, id);
    return status || !flush ? status : allocator_pool_flush(run->allocator, id, 0);
}

/* --- operations ------------------------------------------------------------------------------------------------- */

/* Where no limit is told, a request that failed in the recording says that so much was not to be had: what was reserved
 * then, and the segment that was refused. */
static uint64_t oom_bound(struct run *run, uint32_t at)
{
    const struct replay_foreigners *known = &run->plan->foreigners;
    while (run->next_oom < known->oom_count && known->ooms[run->next_oom].at < at)
        run->next_oom++;
    return run->next_oom < known->oom_count && known->ooms[run->next_oom].at == at ? known->ooms[run->next_oom].reserved : 0;
}

static int note_oom(struct run *run, uint32_t at, uint64_t size)
{
    struct replay_foreigners *learned = &run->device.learned;
    if (array_reserve(&learned->ooms, &learned->oom_capacity, learned->oom_count + 1, sizeof(*learned->ooms)))
        return STATUS_NO_MEMORY;
    uint64_t reserved = allocator_reserved(run->allocator), segment = settings_segment_size(&run->settings, size);
    learned->ooms[learned->oom_count++] = (struct replay_oom){at, reserved + segment - 1};
    return STATUS_OK;
}

static int request(struct run *run, const struct replay_op *op)
{
    bool failed = op->kind == REPLAY_OOM;
    uint32_t entry = run->plan->list[op->at];
    uint64_t address = 0, size = entries_of(run)->size[entry];
    int64_t stream = run->plan->snapshot->streams[entries_of(run)->stream[entry]];
    int64_t ooms = allocator_stats(run->allocator)->num_ooms;
    run->request = op->at;
    run->device.request = op->at;
    run->requests++;
    if (op->pool != run->scope && open_scope(run, op->pool))
        return STATUS_NO_MEMORY;
    size_t before = run->device.at;
    if (failed && !run->follows && run->trial->limit == REPLAY_NO_LIMIT)
        run->device.bound = oom_bound(run, op->at);
    int status = allocator_malloc(run->allocator, size, stream, run->requests, &address);
    run->device.bound = UINT64_MAX;
    if (run->device.unforced)
        differ(run, REPLAY_UNFORCED, before, "the request releases memory, and the limit would have let it have more");
    if (allocator_stats(run->allocator)->num_ooms > ooms && !run->ooms++)
        run->first_oom = entry;
    if (status == ALLOCATOR_OUT_OF_MEMORY) {
        if (failed)
            return run->follows ? note_oom(run, op->at, size) : STATUS_OK;
        differ(run, REPLAY_OTHER, op->at, "the request runs out of memory, and did not in the recording");
        run->here[op->block] = 0;
        return STATUS_OK;
    }
    if (status)
        return status;
    if (!failed) {
        run->here[op->block] = address;
        run->whose[op->block] = run->requests;
        weigh_waste(run);
        return STATUS_OK;
    }
    differ(run, REPLAY_OTHER, op->at, "the request is served, and was not in the recording");
    return allocator_release(run->allocator, address, 0); /* the program went on without it */
}

static int give_back(struct run *run, const struct replay_op *op)
{
    uint64_t address = run->here[op->block];
    if (!address) /* its request failed here */
        return STATUS_OK;
    bool later = op->kind == REPLAY_FREE_LATER;
    int status = later ? close_scope(run) : STATUS_OK; /* a use inside a scope would end with it: the trace says when */
    if (!status && later)
        status = allocator_record_stream(run->allocator, address, OTHER_STREAM);
    if (!status)
        status = allocator_release(run->allocator, address, 0);
    if (!later)
        run->here[op->block] = 0;
    return status == ALLOCATOR_INVALID && run->plan->has_start ? STATUS_OK : status; /* a rebuilt state may lack it */
}

/* A retry here may have ended it already, and its address may be another block's: the context tells whose it is. */
static int complete(struct run *run, const struct replay_op *op)
{
    uint64_t address = run->here[op->block];
    run->here[op->block] = 0;
    if (!address || (run->whose[op->block] && allocator_context(run->allocator, address) != run->whose[op->block]))
        return STATUS_OK;
    int status = allocator_complete_free(run->allocator, address, 0);
    return status == ALLOCATOR_INVALID ? STATUS_OK : status;
}

/* A snapshot entry has the active bytes: all of them, or those of one pool. */
static int check_snapshot(struct run *run, const struct replay_op *op)
{
    if (!run->follows || run->difference.kind || !run->plan->is_alone || run->looks >= MOST_LOOKS)
        return STATUS_OK;
    uint64_t size = entries_of(run)->size[run->plan->list[op->at]];
    uint64_t total = (uint64_t)allocator_stats(run->allocator)->kinds[MEMORY_STAT_ACTIVE_BYTES][MEMORY_POOL_ALL].current;
    bool is_pools = false;
    run->looks += total != size;
    int status = total == size ? STATUS_OK : replay_is_pools_size(run->plan, run->allocator, size, &is_pools);
    if (!status && total != size && !is_pools)
        differ(run, REPLAY_OTHER_SIZE, op->at, "%" PRIu64 " bytes are active, and %" PRIu64 " were in the recorded snapshot",
               total, size);
    return status;
}

static int operate(struct run *run, const struct replay_op *op)
{
    switch ((enum replay_op_kind)op->kind) {
    case REPLAY_ALLOC:
    case REPLAY_OOM:
        return request(run, op);
    case REPLAY_FREE:
    case REPLAY_FREE_LATER:
        return give_back(run, op);
    case REPLAY_COMPLETE:
        return complete(run, op);
    case REPLAY_FLUSH:
        return close_scope(run) ? STATUS_NO_MEMORY : allocator_empty_cache(run->allocator, 0);
    case REPLAY_POOL_FLUSH:
        return let_go(run, op->pool, true);
    case REPLAY_POOL_RELEASE:
        return let_go(run, op->pool, false);
    case REPLAY_SNAPSHOT:
        return check_snapshot(run, op);
    }
    return STATUS_OK;
}

static void set_limit(struct run *run)
{
    allocator_set_limit(run->allocator, run->trial->limit);
    run->device.knows_limit = run->trial->limit != REPLAY_NO_LIMIT;
}

static int run_operations(struct run *run)
{
    const struct replay_plan *plan = run->plan;
    int status = STATUS_OK;
    bool has_limit = !run->trial->limit_entry;
    for (size_t i = 0; i < plan->op_count && !status; i++) {
        const struct replay_op *op = &plan->ops[i];
        uint32_t entry = plan->list[op->at];
        if (!run->follows && entry >= plan->options.moment)
            break;
        if (!has_limit && entry >= run->trial->limit_entry) {
            has_limit = true;
            set_limit(run);
        }
        run->request = NONE32;
        if (run->follows)
            take_moment(run, replay_device_next(&run->device));
        status = operate(run, op);
        if (run->difference.kind)
            break; /* what follows would differ because of this */
    }
    return status;
}

/* --- the beginning and the end ---------------------------------------------------------------------------------- */

static int adopt_segment(struct run *run, const struct segment *segment, struct allocator_block *blocks)
{
    const struct state *start = &run->plan->start;
    const struct pool *pool = segment->pool == NONE32 ? NULL : &run->plan->snapshot->pools[segment->pool];
    struct allocator_segment adopted = {.address = segment->address, .size = segment->total_size,
                                        .stream = segment->stream, .is_large = segment->is_large,
                                        .is_expandable = segment->is_expandable};
    uint32_t life = replay_life_at(run->plan, 0, segment->address);
    uint32_t index = life != NONE32 ? run->plan->lives[life].pool : 0;
    if (pool || index)
        adopted.pool = run->plan->pools[index].id;
    if (need_pool(run, index))
        return STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const struct block *block = &start->blocks[segment->first_block + i];
        uint32_t number = run->plan->start_numbers[segment->first_block + i];
        blocks[i] = (struct allocator_block){.address = block->address, .size = block->size,
                                             .requested = block->requested, .active = block->state != BLOCK_INACTIVE,
                                             .allocated = block->state == BLOCK_ACTIVE_ALLOCATED};
        if (number != NONE32)
            run->here[number] = block->address;
    }
    if (!segment->is_expandable)
        replay_device_holds(&run->device, segment->total_size);
    int status = allocator_adopt(run->allocator, &adopted, blocks, segment->block_count);
    return status == ALLOCATOR_INVALID ? STATUS_OK : status;
}

static int adopt_start(struct run *run)
{
    const struct state *start = &run->plan->start;
    struct allocator_block *blocks = malloc((start->block_count + 1) * sizeof(*blocks));
    int status = blocks ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; i < start->segment_count && !status; i++)
        if (replay_is_our_segment(run->plan, &start->segments[i]))
            status = adopt_segment(run, &start->segments[i], blocks);
    free(blocks);
    return status;
}

static int check_end(struct run *run)
{
    char text[160] = "";
    size_t at = replay_device_next(&run->device);
    take_moment(run, at);
    if (!run->difference.kind && at < run->plan->count)
        differ(run, REPLAY_OTHER, at, "the recording has %s of %" PRIu64 " bytes here, and the replay has not",
               action_name(replay_action(run->plan, at)), entries_of(run)->size[run->plan->list[at]]);
    if (run->difference.kind)
        return STATUS_OK;
    int status = replay_compare_end(run->plan, run->allocator, text, sizeof(text));
    if (!status && text[0])
        differ(run, REPLAY_OTHER_SIZE, run->plan->count, "%s", text);
    if (!status && !text[0] && run->plan->end_visitor)
        status = allocator_visit(run->allocator, run->plan->end_visitor);
    return status;
}

/* --- settings and all together ---------------------------------------------------------------------------------- */

static int settings_of(const struct run *run, struct settings *settings, struct error *err)
{
    settings_init(settings);
    const char *recorded = replay_recorded_conf(run->plan->snapshot, run->plan->options.process);
    return settings_parse(settings, run->trial->conf ? run->trial->conf : recorded, err);
}

static uint64_t device_total(const struct run *run)
{
    const struct snapshot *snapshot = run->plan->snapshot;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct device *device = &snapshot->devices[i];
        if (device->process == run->plan->options.process && device->ordinal == run->plan->options.device && device->total)
            return device->total;
    }
    return DEVICE_TOTAL;
}

static int run_prepared(struct run *run)
{
    int status = run->plan->has_start ? adopt_start(run) : STATUS_OK;
    if (!status)
        status = run_operations(run);
    if (!status && run->follows)
        status = check_end(run);
    take_result(run);
    run->result->placements = run->device.placements;
    run->result->explained = run->device.explained;
    run->result->refused = run->device.refused && run->trial->limit == REPLAY_NO_LIMIT;
    return status;
}

static int run_all(struct run *run, struct error *err)
{
    const struct replay_plan *plan = run->plan;
    struct allocator_options options = {.limit = run->trial->limit_entry ? ALLOCATOR_NO_LIMIT : run->trial->limit,
                                        .trace = run->follows ? follow : NULL, .trace_self = run};
    int status = settings_of(run, &options.settings, err);
    if (status)
        return status;
    uint64_t total = device_total(run);
    run->settings = options.settings;
    if (options.limit == ALLOCATOR_NO_LIMIT && !run->trial->limit_entry && options.settings.per_process_memory_fraction < 1)
        options.limit = (uint64_t)(options.settings.per_process_memory_fraction * (double)total);
    run->device = (struct replay_device){.plan = plan, .follows = run->follows, .total = total, .bound = UINT64_MAX};
    run->here = calloc(plan->address_count + 1, sizeof(*run->here));
    run->alive = calloc(plan->pool_count + 1, sizeof(*run->alive));
    run->whose = calloc(plan->address_count + 1, sizeof(*run->whose));
    if (!run->here || !run->whose || !run->alive || replay_device_start(&run->device))
        return error_no_memory(err);
    options.device = replay_device_table(&run->device);
    run->allocator = allocator_new(&options);
    if (!run->allocator)
        return error_no_memory(err);
    run->device.knows_limit = options.limit != ALLOCATOR_NO_LIMIT;
    status = run_prepared(run);
    if (status == STATUS_NO_MEMORY)
        return error_no_memory(err);
    if (status)
        return error_set(err, STATUS_INPUT, "the replay stopped: status %d", status);
    return STATUS_OK;
}

int replay_run_once(const struct replay_plan *plan, const struct replay_trial *trial, struct replay_result *result,
                    struct replay_difference *difference, struct replay_foreigners *foreigners, struct error *err)
{
    struct run run = {.plan = plan, .trial = trial, .result = result, .follows = plan->follows && !trial->conf};
    memset(result, 0, sizeof(*result));
    int status = run_all(&run, err);
    if (foreigners) {
        free(foreigners->items);
        free(foreigners->ooms);
        *foreigners = run.device.learned;
        run.device.learned = (struct replay_foreigners){0};
    }
    replay_device_end(&run.device);
    allocator_free(run.allocator);
    free(run.here);
    free(run.whose);
    free(run.alive);
    result->requests = run.requests;
    result->contradictions = plan->contradictions;
    result->approximate = plan->is_approximate;
    result->lost_beginning = plan->has_start;
    result->rebuilt_end = !plan->snapshot->end.exact;
    result->exact = run.follows && !status && !run.difference.kind && !plan->is_approximate;
    if (difference)
        *difference = run.difference;
    return status;
}
