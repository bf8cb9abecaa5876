/* From trace entries to a list of requests: what belongs to the device, what contradicts, what the beginning was.  May use
 * src/snapshot, src/alloc, src/base. */
#include "analyze/replay_plan.h"

#include "alloc/address_map.h"
#include "base/array.h"
#include "base/ordered_bits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (UINT64_C(1) << 60) /* sizes and addresses beyond are no memory's */

static bool is_ours(const struct replay_plan *plan, size_t entry)
{
    const struct entries *entries = &plan->snapshot->entries;
    uint16_t process = entries->process ? entries->process[entry] : 0;
    return process == plan->options.process && entries->device[entry] == plan->options.device &&
           entries->action[entry] < ACTION_OTHER && !(entries->flags[entry] & (ENTRY_FAILED | ENTRY_OUTSIDE)) &&
           !(entries->kind && entries->kind[entry] == MEMORY_HOST);
}

static void contradict(struct replay_plan *plan, enum replay_contradiction kind, size_t entry)
{
    if (!plan->contradictions.counts[kind]++)
        plan->contradictions.first[kind] = entry;
}

/* Entries of the device; those with senseless values are counted and left out. */
static int list_entries(struct replay_plan *plan)
{
    const struct entries *entries = &plan->snapshot->entries;
    size_t count = 0;
    if (entries->count >= NONE32 / 2)
        return STATUS_NO_MEMORY;
    plan->is_alone = true;
    for (size_t i = 0; i < entries->count; i++) {
        count += is_ours(plan, i);
        plan->is_alone &= entries->device[i] == plan->options.device;
    }
    plan->list = malloc((count + 1) * sizeof(*plan->list));
    plan->next_request = malloc((count + 1) * sizeof(*plan->next_request));
    plan->numbers = malloc((count + 1) * sizeof(*plan->numbers));
    if (!plan->list || !plan->next_request || !plan->numbers)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < entries->count; i++) {
        if (!is_ours(plan, i))
            continue;
        uint64_t address = entries->action[i] == ACTION_OOM ? 0 : entries->address[i];
        if (entries->flags[i] & ENTRY_BAD || entries->size[i] >= LARGEST || address > UINT64_MAX - entries->size[i])
            contradict(plan, REPLAY_SENSELESS, i);
        else
            plan->list[plan->count++] = (uint32_t)i;
    }
    uint32_t next = NONE32;
    for (size_t i = plan->count; i-- > 0;) {
        enum action action = replay_action(plan, i);
        if (action == ACTION_ALLOC || action == ACTION_OOM)
            next = (uint32_t)i;
        plan->next_request[i] = next;
    }
    return STATUS_OK;
}

/* --- the beginning ---------------------------------------------------------------------------------------------- */

bool replay_is_our_segment(const struct replay_plan *plan, const struct segment *segment)
{
    return segment->process == plan->options.process && segment->device == plan->options.device &&
           segment->kind != MEMORY_HOST && !segment->is_outside;
}

/* Was there memory before the first entry?  What the entries add to it is not what there is at the end. */
static bool lacks_beginning(const struct replay_plan *plan)
{
    const struct state *end = &plan->snapshot->end;
    const struct entries *entries = &plan->snapshot->entries;
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->count; i++) {
        enum action action = replay_action(plan, i);
        uint64_t size = entries->size[plan->list[i]];
        if (action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP)
            bytes += size;
        else if (is_release(action))
            bytes -= size;
    }
    for (size_t i = 0; i < end->segment_count; i++)
        if (replay_is_our_segment(plan, &end->segments[i]))
            bytes -= end->segments[i].total_size;
    return bytes != 0 && plan->snapshot->source != SOURCE_RMM;
}

static int find_beginning(struct replay_plan *plan, struct error *err)
{
    if (!lacks_beginning(plan))
        return STATUS_OK;
    int status = state_at(plan->snapshot, 0, &plan->start, err);
    size_t kept = 0;
    for (size_t i = 0; !status && i < plan->start.segment_count; i++)
        kept += replay_is_our_segment(plan, &plan->start.segments[i]);
    plan->has_start = kept > 0;
    return status;
}

/* --- addresses as numbers --------------------------------------------------------------------------------------- */

static bool names_a_block(const struct replay_plan *plan, enum action action)
{
    if (plan->implied)
        return action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP || is_release(action);
    return action <= ACTION_FREE_COMPLETED;
}

static uint32_t number_of(struct replay_plan *plan, struct address_map *map, uint64_t address)
{
    uint32_t known = address_map_get(map, address);
    if (known)
        return known - 1;
    if (array_reserve(&plan->addresses, &plan->address_capacity, plan->address_count + 1, sizeof(*plan->addresses)))
        return NONE32;
    plan->addresses[plan->address_count++] = address;
    return address_map_set(map, address, (uint32_t)plan->address_count) ? NONE32 : (uint32_t)plan->address_count - 1;
}

static int number_start(struct replay_plan *plan, struct address_map *map)
{
    size_t count = plan->has_start ? plan->start.block_count : 0;
    plan->start_numbers = malloc((count + 1) * sizeof(*plan->start_numbers));
    if (!plan->start_numbers)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct block *block = &plan->start.blocks[i];
        plan->start_numbers[i] = NONE32;
        if (block->state == BLOCK_INACTIVE || !replay_is_our_segment(plan, &plan->start.segments[block->segment]))
            continue;
        plan->start_numbers[i] = number_of(plan, map, block->address);
        if (plan->start_numbers[i] == NONE32)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static int number_addresses(struct replay_plan *plan)
{
    struct address_map map = {0};
    const struct entries *entries = &plan->snapshot->entries;
    int status = number_start(plan, &map);
    for (size_t i = 0; i < plan->count && !status; i++) {
        plan->numbers[i] = NONE32;
        if (!names_a_block(plan, replay_action(plan, i)))
            continue;
        plan->numbers[i] = number_of(plan, &map, entries->address[plan->list[i]]);
        status = plan->numbers[i] == NONE32 ? STATUS_NO_MEMORY : STATUS_OK;
    }
    address_map_free(&map);
    return status;
}

/* --- contradictions --------------------------------------------------------------------------------------------- */

enum use { USE_NONE, USE_LIVE, USE_PENDING, USE_LEFT_OUT };

/* What is alive, in address order, to see that nothing lies over anything. */
struct watch {
    struct replay_plan *plan;
    struct ordered_bits live; /* by rank */
    uint32_t *ranks, *by_rank;
    uint64_t *sizes;          /* by number */
    uint8_t *uses;            /* enum use, by number */
    bool requests, completes; /* the trace has these entries at all */
};

static int address_compare(const void *left, const void *right, void *addresses)
{
    const uint64_t *all = addresses;
    uint64_t a = all[*(const uint32_t *)left], b = all[*(const uint32_t *)right];
    return a < b ? -1 : a > b;
}

static int watch_start(struct watch *watch)
{
    struct replay_plan *plan = watch->plan;
    size_t count = plan->address_count;
    watch->ranks = malloc((count + 1) * sizeof(*watch->ranks));
    watch->by_rank = malloc((count + 1) * sizeof(*watch->by_rank));
    watch->sizes = calloc(count + 1, sizeof(*watch->sizes));
    watch->uses = calloc(count + 1, 1);
    if (!watch->ranks || !watch->by_rank || !watch->sizes || !watch->uses || ordered_bits_init(&watch->live, count))
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        watch->by_rank[i] = (uint32_t)i;
    qsort_r(watch->by_rank, count, sizeof(*watch->by_rank), address_compare, plan->addresses);
    for (size_t i = 0; i < count; i++)
        watch->ranks[watch->by_rank[i]] = (uint32_t)i;
    for (size_t i = 0; i < plan->count; i++) {
        watch->requests |= replay_action(plan, i) == ACTION_FREE_REQUESTED;
        watch->completes |= replay_action(plan, i) == ACTION_FREE_COMPLETED;
    }
    return STATUS_OK;
}

static void watch_add(struct watch *watch, uint32_t number, uint64_t size, enum use use)
{
    watch->sizes[number] = size ? size : 1;
    watch->uses[number] = (uint8_t)use;
    ordered_bits_add(&watch->live, watch->ranks[number]);
}

static void watch_remove(struct watch *watch, uint32_t number)
{
    watch->uses[number] = USE_NONE;
    ordered_bits_remove(&watch->live, watch->ranks[number]);
}

static bool lies_over_another(const struct watch *watch, uint32_t number, uint64_t size)
{
    const uint64_t *addresses = watch->plan->addresses;
    uint64_t start = addresses[number], end = start + (size ? size : 1);
    size_t below = ordered_bits_at_or_below(&watch->live, watch->ranks[number]);
    size_t above = ordered_bits_at_or_above(&watch->live, watch->ranks[number]);
    if (above != ORDERED_BITS_NONE && addresses[watch->by_rank[above]] < end)
        return true;
    return below != ORDERED_BITS_NONE &&
           addresses[watch->by_rank[below]] + watch->sizes[watch->by_rank[below]] > start;
}

/* Whether the entry can be run. */
static bool watch_entry(struct watch *watch, size_t at)
{
    struct replay_plan *plan = watch->plan;
    uint32_t number = plan->numbers[at];
    uint64_t size = plan->snapshot->entries.size[plan->list[at]];
    enum action action = replay_action(plan, at);
    enum use use = watch->uses[number];
    if (action == ACTION_ALLOC || (plan->implied && !is_release(action))) {
        if (!lies_over_another(watch, number, size)) {
            watch_add(watch, number, size, USE_LIVE);
            return true;
        }
        contradict(plan, REPLAY_OVERLAP, plan->list[at]);
        if (use == USE_NONE)
            watch->uses[number] = USE_LEFT_OUT;
        return false;
    }
    if (use == USE_LEFT_OUT) { /* the end of what was left out */
        if (action != ACTION_FREE_REQUESTED || !watch->completes)
            watch->uses[number] = USE_NONE;
        return false;
    }
    bool ends = action == ACTION_FREE_COMPLETED || plan->implied || !watch->completes;
    bool fits = action == ACTION_FREE_COMPLETED ? use == USE_PENDING || (use == USE_LIVE && !watch->requests)
                                                : use == USE_LIVE;
    if (!fits)
        contradict(plan, REPLAY_UNKNOWN_FREE, plan->list[at]);
    else if (ends)
        watch_remove(watch, number);
    else
        watch->uses[number] = USE_PENDING;
    return fits;
}

/* Entries that cannot be run lose their number. */
static int leave_out_contradictions(struct replay_plan *plan)
{
    struct watch watch = {.plan = plan};
    int status = watch_start(&watch);
    plan->requests = watch.requests;
    plan->completes = watch.completes;
    for (size_t i = 0; plan->has_start && !status && i < plan->start.block_count; i++)
        if (plan->start_numbers[i] != NONE32)
            watch_add(&watch, plan->start_numbers[i], plan->start.blocks[i].requested,
                      plan->start.blocks[i].state == BLOCK_ACTIVE_PENDING_FREE ? USE_PENDING : USE_LIVE);
    for (size_t i = 0; !status && i < plan->count; i++)
        if (plan->numbers[i] != NONE32 && !watch_entry(&watch, i))
            plan->numbers[i] = NONE32;
    ordered_bits_free(&watch.live);
    free(watch.ranks);
    free(watch.by_rank);
    free(watch.sizes);
    free(watch.uses);
    return status;
}

/* --- together --------------------------------------------------------------------------------------------------- */

static bool has_action(const struct replay_plan *plan, enum action action)
{
    for (size_t i = 0; i < plan->count; i++)
        if (replay_action(plan, i) == action)
            return true;
    return false;
}

/* Blocks of which only the size is told that they got. */
static bool lacks_requests(const struct replay_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (replay_action(plan, i) == ACTION_ALLOC &&
            (plan->snapshot->entries.flags[plan->list[i]] & ENTRY_REQUESTED_UNKNOWN))
            return true;
    return false;
}

/* Requests came and went without an entry. */
static bool was_paused(const struct replay_plan *plan)
{
    return plan->options.process < plan->snapshot->process_count &&
           plan->snapshot->processes[plan->options.process].unrecorded;
}

int replay_plan_list(struct replay_plan *plan, struct error *err)
{
    const struct snapshot *snapshot = plan->snapshot;
    plan->implied = plan->options.process < snapshot->process_count &&
                    snapshot->processes[plan->options.process].implied_blocks;
    if (list_entries(plan))
        return error_no_memory(err);
    bool has_requests = has_action(plan, ACTION_ALLOC) || has_action(plan, ACTION_OOM);
    if ((plan->implied ? !plan->count : !has_requests) && plan->contradictions.counts[REPLAY_SENSELESS])
        return error_set(err, STATUS_NOT_FOUND, "there is nothing to replay: %" PRIu64 " entries of this device have values "
                         "that no memory has, the first is entry %" PRIu64, plan->contradictions.counts[REPLAY_SENSELESS],
                         plan->contradictions.first[REPLAY_SENSELESS]);
    if (plan->implied ? !plan->count : !has_requests)
        return error_set(err, STATUS_NOT_FOUND, plan->count ? "there is nothing to replay: no request in the trace of this device"
                                                            : "there is nothing to replay: no trace entries of this device");
    plan->follows = !plan->implied && snapshot->source != SOURCE_RMM;
    int status = find_beginning(plan, err);
    if (status)
        return status;
    plan->is_approximate = !plan->follows || plan->has_start || lacks_requests(plan) || was_paused(plan);
    if (replay_find_others(plan) || number_addresses(plan) || leave_out_contradictions(plan))
        return error_no_memory(err);
    return STATUS_OK;
}
