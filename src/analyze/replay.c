/* Requests of a recording through the allocator again.  May use src/snapshot, src/alloc, src/device, src/base. */
#include "analyze/replay.h"

#include "alloc/address_map.h"
#include "alloc/allocator.h"
#include "analyze/replay_device.h"
#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_STREAM (INT64_MIN + 77)          /* stands for "another stream still uses it" */
#define DEVICE_TOTAL (UINT64_C(150109880320)) /* where the recording does not tell */

struct run {
    const struct snapshot *snapshot;
    const struct replay_options *options;
    struct replay_result *result;
    struct replay_device device;
    struct allocator *allocator;
    uint32_t *list;     /* the device's entries */
    uint32_t *requests; /* for each of them, the next alloc or oom (an index into list), NONE32 */
    size_t count;
    struct address_map held; /* recorded address -> index + 1 into here */
    uint64_t *here;          /* where the replay has it */
    size_t here_count, here_capacity;
    int64_t most_reserved;
    bool differs;
};

static void differ(struct run *run, uint64_t entry, const char *what)
{
    if (run->differs || run->options->conf)
        return;
    run->differs = true;
    run->result->difference_entry = entry;
    snprintf(run->result->difference, sizeof(run->result->difference), "%s", what);
}

static void contradict(struct run *run, uint32_t entry, const char *what)
{
    if (!run->result->contradictions++)
        run->result->first_contradiction = entry;
    differ(run, entry, what);
}

/* Every event of the allocator against the recording's next. */
static void follow(void *self, const struct allocator_event *event)
{
    struct run *run = self;
    struct replay_device *device = &run->device;
    const struct entries *entries = &run->snapshot->entries;
    char text[200];
    if (!device->follows)
        return;
    while (device->at < device->count && entries->action[device->list[device->at]] == ACTION_SNAPSHOT)
        device->at++;
    const char *name = action_name((enum action)event->action);
    if (device->at >= device->count) {
        snprintf(text, sizeof(text), "%s of %" PRIu64 " bytes, and the recording has ended", name, event->size);
        differ(run, run->options->moment, text);
        return;
    }
    uint32_t entry = device->list[device->at++];
    run->result->events++;
    bool same_place = event->action == ALLOCATOR_OOM || event->address == entries->address[entry];
    if ((int)event->action == (int)entries->action[entry] && same_place && event->size == entries->size[entry] &&
        event->stream == run->snapshot->streams[entries->stream[entry]])
        return;
    snprintf(text, sizeof(text), "%s of %" PRIu64 " bytes at %#" PRIx64 " instead of %s of %" PRIu64 " bytes at %#" PRIx64,
             name, event->size, event->address, action_name((enum action)entries->action[entry]), entries->size[entry],
             entries->address[entry]);
    differ(run, entry, text);
}

static int list_entries(struct run *run)
{
    const struct entries *entries = &run->snapshot->entries;
    size_t end = run->options->moment < entries->count ? (size_t)run->options->moment : entries->count;
    if (end >= NONE32)
        return STATUS_NO_MEMORY;
    run->list = malloc((end + 1) * sizeof(*run->list));
    run->requests = malloc((end + 1) * sizeof(*run->requests));
    if (!run->list || !run->requests)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < end; i++) {
        uint16_t process = entries->process ? entries->process[i] : 0;
        if (process == run->options->process && entries->device[i] == run->options->device &&
            entries->action[i] < ACTION_OTHER && !(entries->flags[i] & (ENTRY_BAD | ENTRY_FAILED)))
            run->list[run->count++] = (uint32_t)i;
    }
    uint32_t next = NONE32;
    for (size_t i = run->count; i-- > 0;) {
        enum action action = (enum action)entries->action[run->list[i]];
        if (action == ACTION_ALLOC || action == ACTION_OOM)
            next = (uint32_t)i;
        run->requests[i] = next;
    }
    return STATUS_OK;
}

/* Did the allocator release this by itself, for the next request?  Such entries share that request's captured stack;
 * without stacks: a device call right after them shows it. */
static bool is_own_release(const struct run *run, size_t at)
{
    const struct entries *entries = &run->snapshot->entries;
    if (run->requests[at] == NONE32)
        return false;
    uint32_t context = entries->context[run->list[at]], next = entries->context[run->list[run->requests[at]]];
    if (context != CONTEXT_NONE || next != CONTEXT_NONE)
        return context == next;
    for (; at < run->count; at++) {
        enum action action = (enum action)entries->action[run->list[at]];
        if (action != ACTION_SEGMENT_FREE && action != ACTION_SEGMENT_UNMAP && action != ACTION_FREE_COMPLETED)
            return action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP || action == ACTION_OOM;
    }
    return false;
}

static int hold(struct run *run, uint64_t recorded, uint64_t address)
{
    uint32_t known = address_map_get(&run->held, recorded);
    if (known) {
        run->here[known - 1] = address;
        return STATUS_OK;
    }
    if (array_reserve(&run->here, &run->here_capacity, run->here_count + 1, sizeof(*run->here)))
        return STATUS_NO_MEMORY;
    run->here[run->here_count++] = address;
    return address_map_set(&run->held, recorded, (uint32_t)run->here_count);
}

static int request(struct run *run, uint32_t entry)
{
    const struct entries *entries = &run->snapshot->entries;
    bool failed = entries->action[entry] == ACTION_OOM;
    uint64_t address = 0, size = entries->size[entry], ooms = (uint64_t)allocator_stats(run->allocator)->num_ooms;
    run->result->requests++;
    int status = allocator_malloc(run->allocator, size, run->snapshot->streams[entries->stream[entry]], 1, &address);
    if ((uint64_t)allocator_stats(run->allocator)->num_ooms > ooms && !run->result->ooms++)
        run->result->first_oom = entry;
    if (status == ALLOCATOR_OUT_OF_MEMORY) {
        if (!failed)
            differ(run, entry, "the request runs out of memory, and did not in the recording");
        return failed ? STATUS_OK : hold(run, entries->address[entry], 0);
    }
    if (status)
        return status;
    if (!failed)
        return hold(run, entries->address[entry], address);
    differ(run, entry, "the request is served, and was not in the recording");
    return allocator_release(run->allocator, address, 0); /* the program went on without it */
}

/* The end of a block's use.  Returns whether the next entry is part of it. */
static int give_back(struct run *run, size_t at, bool *with_next)
{
    const struct entries *entries = &run->snapshot->entries;
    uint32_t entry = run->list[at], known = address_map_get(&run->held, entries->address[entry]);
    *with_next = at + 1 < run->count && entries->action[run->list[at + 1]] == ACTION_FREE_COMPLETED &&
                 entries->address[run->list[at + 1]] == entries->address[entry];
    if (!known) {
        contradict(run, entry, "a free of an address that nothing holds");
        return STATUS_OK;
    }
    uint64_t address = run->here[known - 1];
    if (!address) /* its request failed here */
        return STATUS_OK;
    int status = *with_next ? STATUS_OK : allocator_record_stream(run->allocator, address, OTHER_STREAM);
    if (!status)
        status = allocator_release(run->allocator, address, 0);
    if (status == ALLOCATOR_INVALID) {
        contradict(run, entry, "a second free of the same block");
        return STATUS_OK;
    }
    return status;
}

static int complete(struct run *run, uint32_t entry)
{
    uint32_t known = address_map_get(&run->held, run->snapshot->entries.address[entry]);
    if (!known) {
        contradict(run, entry, "a free ends of an address that nothing holds");
        return STATUS_OK;
    }
    if (!run->here[known - 1])
        return STATUS_OK;
    int status = allocator_complete_free(run->allocator, run->here[known - 1], 0);
    if (status == ALLOCATOR_INVALID && run->options->conf) /* a retry here has ended it */
        return STATUS_OK;
    if (status == ALLOCATOR_INVALID)
        contradict(run, entry, "a free ends that was not requested");
    return status == ALLOCATOR_INVALID ? STATUS_OK : status;
}

static void weigh_waste(struct run *run)
{
    const struct memory_stats *stats = allocator_stats(run->allocator);
    int64_t reserved = stats->kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].current;
    if (reserved <= run->most_reserved)
        return;
    int64_t active = stats->kinds[MEMORY_STAT_ACTIVE_BYTES][MEMORY_POOL_ALL].current;
    run->most_reserved = reserved;
    run->result->fragmentation_waste = (uint64_t)(reserved - active);
    run->result->rounding_waste =
        (uint64_t)(active - stats->kinds[MEMORY_STAT_REQUESTED_BYTES][MEMORY_POOL_ALL].current);
}

static void set_limit(struct run *run)
{
    allocator_set_limit(run->allocator, run->options->limit);
    run->device.knows_limit = run->options->limit != REPLAY_NO_LIMIT;
}

static int run_entries(struct run *run)
{
    const struct entries *entries = &run->snapshot->entries;
    bool flushed = false, with_next;
    int status = STATUS_OK;
    for (size_t i = 0; i < run->count && !status; i++) {
        uint32_t entry = run->list[i];
        enum action action = (enum action)entries->action[entry];
        if (entry >= run->options->limit_entry && run->options->limit != allocator_limit(run->allocator))
            set_limit(run);
        if (action == ACTION_SEGMENT_FREE || action == ACTION_SEGMENT_UNMAP) {
            bool own = is_own_release(run, i);
            if (!own && !flushed)
                status = allocator_empty_cache(run->allocator, 0);
            flushed = !own;
            continue;
        }
        if (action == ACTION_FREE_COMPLETED) {
            status = complete(run, entry);
            continue;
        }
        flushed = false;
        if (action == ACTION_ALLOC || action == ACTION_OOM) {
            status = request(run, entry);
            weigh_waste(run);
        } else if (action == ACTION_FREE_REQUESTED) {
            status = give_back(run, i, &with_next);
            i += with_next;
        }
        if (run->differs && run->device.follows)
            break; /* what follows would differ because of this */
    }
    return status;
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

struct piece {
    uint64_t address, size, requested;
    int64_t state; /* enum block_state; -1: a segment.  As wide as the others: pieces are compared as bytes */
};
struct pieces {
    struct piece *items;
    size_t count, capacity;
};

static int add_piece(struct pieces *pieces, uint64_t address, uint64_t size, int state, uint64_t requested)
{
    if (array_reserve(&pieces->items, &pieces->capacity, pieces->count + 1, sizeof(*pieces->items)))
        return STATUS_NO_MEMORY;
    pieces->items[pieces->count++] = (struct piece){address, size, state == BLOCK_INACTIVE ? 0 : requested, state};
    return STATUS_OK;
}

static int piece_segment(void *self, const struct allocator_segment *segment)
{
    return add_piece(self, segment->address, segment->size, -1, 0);
}

static int piece_block(void *self, const struct allocator_block *block)
{
    return add_piece(self, block->address, block->size,
                     block->allocated ? BLOCK_ACTIVE_ALLOCATED
                     : block->active  ? BLOCK_ACTIVE_PENDING_FREE
                                      : BLOCK_INACTIVE,
                     block->requested);
}

static int piece_compare(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->state < b->state ? -1 : a->state > b->state;
}

static int recorded_pieces(const struct run *run, struct pieces *pieces)
{
    const struct state *end = &run->snapshot->end;
    int status = STATUS_OK;
    for (size_t s = 0; s < end->segment_count && !status; s++) {
        const struct segment *segment = &end->segments[s];
        if (segment->process != run->options->process || segment->device != run->options->device)
            continue;
        status = add_piece(pieces, segment->address, segment->total_size, -1, 0);
        for (uint32_t b = 0; b < segment->block_count && !status; b++) {
            const struct block *block = &end->blocks[segment->first_block + b];
            status = add_piece(pieces, block->address, block->size, block->state, block->requested);
        }
    }
    if (pieces->count)
        qsort(pieces->items, pieces->count, sizeof(*pieces->items), piece_compare);
    return status;
}

static int compare_end(struct run *run)
{
    struct pieces ours = {0}, theirs = {0};
    const struct allocator_visitor visitor = {piece_segment, piece_block, &ours};
    char text[200];
    int status = allocator_visit(run->allocator, &visitor);
    if (!status)
        status = recorded_pieces(run, &theirs);
    if (ours.count)
        qsort(ours.items, ours.count, sizeof(*ours.items), piece_compare);
    for (size_t i = 0; !status && (i < ours.count || i < theirs.count); i++) {
        if (i < ours.count && i < theirs.count && memcmp(&ours.items[i], &theirs.items[i], sizeof(ours.items[i])) == 0)
            continue;
        const struct piece *piece = i < theirs.count ? &theirs.items[i] : &ours.items[i];
        snprintf(text, sizeof(text), "the recording's end has other blocks or segments, first at %#" PRIx64, piece->address);
        differ(run, run->options->moment, text);
        break;
    }
    free(ours.items);
    free(theirs.items);
    return status;
}

static int check_end(struct run *run)
{
    struct replay_device *device = &run->device;
    const struct entries *entries = &run->snapshot->entries;
    while (device->at < device->count && entries->action[device->list[device->at]] == ACTION_SNAPSHOT)
        device->at++;
    if (!run->differs && device->at < device->count)
        differ(run, device->list[device->at], "the recording has an event here that the replay has not");
    if (!run->differs && run->options->moment >= entries->count)
        return compare_end(run);
    return STATUS_OK;
}

/* --- settings and all together ---------------------------------------------------------------------------------- */

static int settings_of(const struct run *run, struct settings *settings, struct error *err)
{
    value content;
    settings_init(settings);
    if (run->options->conf)
        return settings_parse(settings, run->options->conf, err);
    if (!snapshot_get_setting(run->snapshot, "PYTORCH_CUDA_ALLOC_CONF", &content) || value_kind(content) != VALUE_STRING)
        return STATUS_OK;
    return settings_parse(settings, snapshot_object_text(run->snapshot, (uint32_t)value_payload(content), NULL), err);
}

static uint64_t device_total(const struct run *run)
{
    for (size_t i = 0; i < run->snapshot->device_count; i++) {
        const struct device *device = &run->snapshot->devices[i];
        if (device->process == run->options->process && device->ordinal == run->options->device && device->total)
            return device->total;
    }
    return DEVICE_TOTAL;
}

static int run_all(struct run *run, struct error *err)
{
    struct allocator_options options = {.limit = run->options->limit_entry ? ALLOCATOR_NO_LIMIT : run->options->limit,
                                        .trace = follow, .trace_self = run};
    int status = settings_of(run, &options.settings, err);
    if (status)
        return status;
    if (list_entries(run))
        return error_no_memory(err);
    if (!run->count)
        return error_set(err, STATUS_NOT_FOUND, "there is nothing to replay: no trace entries of this device");
    run->device = (struct replay_device){.entries = &run->snapshot->entries, .list = run->list, .count = run->count,
                                         .follows = !run->options->conf, .total = device_total(run)};
    if (replay_device_start(&run->device))
        return error_no_memory(err);
    options.device = replay_device_table(&run->device);
    run->allocator = allocator_new(&options);
    if (!run->allocator)
        return error_no_memory(err);
    run->device.knows_limit = options.limit != ALLOCATOR_NO_LIMIT;
    status = run_entries(run);
    if (!status && !run->options->conf)
        status = check_end(run);
    if (status == STATUS_NO_MEMORY)
        return error_no_memory(err);
    if (status)
        return error_set(err, STATUS_INPUT, "the replay stopped: status %d", status);
    run->result->stats = *allocator_stats(run->allocator);
    run->result->refused = run->device.refused && run->options->limit == REPLAY_NO_LIMIT;
    run->result->exact = !run->options->conf && !run->differs;
    return STATUS_OK;
}

int replay_run(const struct snapshot *snapshot, const struct replay_options *options, struct replay_result *result,
               struct error *err)
{
    struct run run = {.snapshot = snapshot, .options = options, .result = result};
    memset(result, 0, sizeof(*result));
    int status = run_all(&run, err);
    replay_device_end(&run.device);
    allocator_free(run.allocator);
    address_map_free(&run.held);
    free(run.here);
    free(run.list);
    free(run.requests);
    return status;
}

int replay_statistics(void *context, const struct snapshot *snapshot, uint64_t moment, struct statistics *result,
                      struct error *err)
{
    struct replay_options options = {.limit = REPLAY_NO_LIMIT};
    struct replay_result replay;
    if (snapshot->source != SOURCE_TORCH || moment < snapshot->entries.count || snapshot->first_entry)
        return 1; /* only the end can be checked against the recording */
    if (context)
        options = *(const struct replay_options *)context;
    options.process = result->process;
    options.device = result->device;
    options.moment = moment;
    int status = replay_run(snapshot, &options, &replay, err);
    if (status == STATUS_NO_MEMORY)
        return status;
    if (status || !replay.exact)
        return 1;
    result->values = replay.stats;
    memset(&result->bounds, 0, sizeof(result->bounds));
    result->bounds.num_sync_all_streams = STATISTICS_AT_LEAST; /* a flush that frees nothing leaves no entry */
    if (replay.refused)
        result->bounds.num_alloc_retries = STATISTICS_AT_LEAST;
    return STATUS_OK;
}
