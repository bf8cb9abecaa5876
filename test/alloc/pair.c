/* Two allocators side by side: see pair.h. */
#include "pair.h"

#include "invariants.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool differ(struct pair *pair, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool differ(struct pair *pair, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(pair->difference, sizeof(pair->difference), format, arguments);
    va_end(arguments);
    return false;
}

/* --- what is seen of each ----------------------------------------------------------------------------------------- */

static void side_event(void *self, const struct allocator_event *event)
{
    struct side *side = self;
    if (side->event_count < PAIR_EVENTS)
        side->events[side->event_count++] = *event;
}

static int side_segment(void *self, const struct allocator_segment *segment)
{
    struct side *side = self;
    if (side->item_count < PAIR_ITEMS)
        side->items[side->item_count++] = (struct view_item){.is_segment = true, .segment = *segment};
    return 0;
}

static int side_block(void *self, const struct allocator_block *block)
{
    struct side *side = self;
    if (side->item_count < PAIR_ITEMS)
        side->items[side->item_count++] = (struct view_item){.block = *block};
    return 0;
}

struct pair *pair_new(uint64_t capacity, bool events, const struct settings *settings, uint64_t limit)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    struct allocator_options options[2];
    for (int i = 0; i < 2; i++)
        options[i] = (struct allocator_options){.device = fake_device_init(&pair->sides[i].device, capacity, events),
                                                .settings = *settings, .limit = limit, .trace = side_event,
                                                .trace_self = &pair->sides[i]};
    pair->real = allocator_new(&options[0]);
    pair->naive = naive_new(&options[1]);
    return pair;
}

void pair_free(struct pair *pair)
{
    allocator_free(pair->real);
    naive_free(pair->naive);
    free(pair);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static void event_print(const struct side *side, size_t i, char *text, size_t size)
{
    static const char *const names[] = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
                                        "segment_map", "segment_unmap", "snapshot", "oom"};
    const struct allocator_event *event = &side->events[i];
    if (i >= side->event_count)
        snprintf(text, size, "nothing");
    else
        snprintf(text, size, "%s %#" PRIx64 " +%" PRIu64 " stream %#" PRIx64 " pool (%d, %d) context %" PRIu64,
                 names[event->action], event->address, event->size, (uint64_t)event->stream, (int)event->pool.first,
                 (int)event->pool.second, event->context);
}

static bool same_event(const struct allocator_event *x, const struct allocator_event *y)
{
    return x->action == y->action && x->address == y->address && x->size == y->size && x->stream == y->stream &&
           x->pool.first == y->pool.first && x->pool.second == y->pool.second && x->context == y->context;
}

static bool same_events(struct pair *pair)
{
    const struct side *real = &pair->sides[0], *naive = &pair->sides[1];
    for (size_t i = 0; i < real->event_count || i < naive->event_count; i++) {
        if (i < real->event_count && i < naive->event_count && same_event(&real->events[i], &naive->events[i]))
            continue;
        char ours[200], theirs[200];
        event_print(real, i, ours, sizeof(ours));
        event_print(naive, i, theirs, sizeof(theirs));
        return differ(pair, "event %zu is %s, the naive one's %s", i, ours, theirs);
    }
    return true;
}

static bool same_statistics(struct pair *pair)
{
    const struct memory_stats *real = allocator_stats(pair->real), *naive = naive_stats(pair->naive);
    const struct memory_stats_key *keys = memory_stats_keys();
    for (size_t i = 0; i < MEMORY_STATS_KEYS; i++)
        if (memory_stats_value(real, &keys[i]) != memory_stats_value(naive, &keys[i]))
            return differ(pair, "%s is %" PRId64 ", the naive one's %" PRId64, keys[i].name,
                          memory_stats_value(real, &keys[i]), memory_stats_value(naive, &keys[i]));
    if (allocator_reserved(pair->real) != naive_reserved(pair->naive))
        return differ(pair, "reserved differs");
    return true;
}

static bool same_block(const struct allocator_block *x, const struct allocator_block *y)
{
    return x->address == y->address && x->size == y->size && x->requested == y->requested &&
           x->context == y->context && x->allocated == y->allocated && x->active == y->active;
}

static bool same_segment(const struct allocator_segment *x, const struct allocator_segment *y)
{
    return x->address == y->address && x->size == y->size && x->context == y->context && x->stream == y->stream &&
           x->pool.first == y->pool.first && x->pool.second == y->pool.second && x->is_large == y->is_large &&
           x->is_expandable == y->is_expandable;
}

static void item_print(const struct side *side, size_t i, char *text, size_t size)
{
    const struct view_item *item = &side->items[i];
    if (i >= side->item_count)
        snprintf(text, size, "nothing");
    else if (item->is_segment)
        snprintf(text, size, "segment %#" PRIx64 " +%" PRIu64 " context %" PRIu64 " pool (%d, %d)",
                 item->segment.address, item->segment.size, item->segment.context, (int)item->segment.pool.first,
                 (int)item->segment.pool.second);
    else
        snprintf(text, size, "block %#" PRIx64 " +%" PRIu64 " requested %" PRIu64 " context %" PRIu64 "%s%s",
                 item->block.address, item->block.size, item->block.requested, item->block.context,
                 item->block.allocated ? " allocated" : "", item->block.active ? " active" : "");
}

static bool same_view(struct pair *pair)
{
    const struct side *real = &pair->sides[0], *naive = &pair->sides[1];
    for (size_t i = 0; i < real->item_count || i < naive->item_count; i++) {
        const struct view_item *x = &real->items[i], *y = &naive->items[i];
        if (i < real->item_count && i < naive->item_count && x->is_segment == y->is_segment &&
            (x->is_segment ? same_segment(&x->segment, &y->segment) : same_block(&x->block, &y->block)))
            continue;
        char ours[200], theirs[200];
        item_print(real, i, ours, sizeof(ours));
        item_print(naive, i, theirs, sizeof(theirs));
        return differ(pair, "there is %s, in the naive one %s", ours, theirs);
    }
    return true;
}

static void look(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        struct side *side = &pair->sides[i];
        const struct allocator_visitor visitor = {side_segment, side_block, side};
        side->item_count = 0;
        if (i)
            naive_visit(pair->naive, &visitor);
        else
            allocator_visit(pair->real, &visitor);
    }
}

static bool is_right(struct pair *pair)
{
    struct error err = {0};
    const char *broken = invariants_broken(&pair->sides[0], allocator_stats(pair->real));
    if (broken)
        return differ(pair, "%s", broken);
    return allocator_is_valid(pair->real, &err) || differ(pair, "is not valid: %.400s", err.message);
}

static bool compare(struct pair *pair)
{
    const struct side *real = &pair->sides[0], *naive = &pair->sides[1];
    if (!same_events(pair))
        return false;
    if (real->status != naive->status || real->address != naive->address)
        return differ(pair, "returned %d and %#" PRIx64 ", the naive one %d and %#" PRIx64, real->status,
                      real->address, naive->status, naive->address);
    if (!same_block(&real->found, &naive->found))
        return differ(pair, "another block was found");
    if (!same_statistics(pair))
        return false;
    look(pair);
    if (!same_view(pair))
        return false;
    if (real->device.calls != naive->device.calls || real->device.sum != naive->device.sum)
        return differ(pair, "the device was asked otherwise: %" PRIu64 " calls, by the naive one %" PRIu64,
                      real->device.calls, naive->device.calls);
    return is_right(pair);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static bool only_this(void *self, int64_t stream)
{
    return stream == *(const int64_t *)self;
}

static int real_step(struct pair *pair, const struct step *step, struct side *side)
{
    struct allocator *a = pair->real;
    switch (step->kind) {
    case STEP_MALLOC:
        return allocator_malloc(a, step->size, step->stream, step->context, &side->address);
    case STEP_FREE:
        return allocator_release(a, step->address, step->context);
    case STEP_RECORD_STREAM:
        return allocator_record_stream(a, step->address, step->stream);
    case STEP_COMPLETE:
        return allocator_complete_free(a, step->address, step->context);
    case STEP_EMPTY_CACHE:
        return allocator_empty_cache(a, step->context);
    case STEP_LIMIT:
        allocator_set_limit(a, step->size);
        return 0;
    case STEP_SETTINGS:
        allocator_set_settings(a, &step->settings);
        return 0;
    case STEP_POOL_CREATE:
        return allocator_pool_create(a, step->pool, &step->pool_options);
    case STEP_POOL_RETAIN:
        return allocator_pool_retain(a, step->pool);
    case STEP_POOL_RELEASE:
        return allocator_pool_release(a, step->pool);
    case STEP_POOL_FLUSH:
        return allocator_pool_flush(a, step->pool, step->context);
    case STEP_SCOPE_BEGIN:
        return allocator_scope_begin(a, step->pool, step->only_stream ? only_this : NULL, (void *)step->only_stream);
    case STEP_SCOPE_END:
        return allocator_scope_end(a, step->pool);
    case STEP_FIND:
        return allocator_find(a, step->address, &side->found);
    default:
        return 0;
    }
}

static int naive_step(struct pair *pair, const struct step *step, struct side *side)
{
    struct naive *a = pair->naive;
    switch (step->kind) {
    case STEP_MALLOC:
        return naive_malloc(a, step->size, step->stream, step->context, &side->address);
    case STEP_FREE:
        return naive_release(a, step->address, step->context);
    case STEP_RECORD_STREAM:
        return naive_record_stream(a, step->address, step->stream);
    case STEP_COMPLETE:
        return naive_complete_free(a, step->address, step->context);
    case STEP_EMPTY_CACHE:
        return naive_empty_cache(a, step->context);
    case STEP_LIMIT:
        naive_set_limit(a, step->size);
        return 0;
    case STEP_SETTINGS:
        naive_set_settings(a, &step->settings);
        return 0;
    case STEP_POOL_CREATE:
        return naive_pool_create(a, step->pool, &step->pool_options);
    case STEP_POOL_RETAIN:
        return naive_pool_retain(a, step->pool);
    case STEP_POOL_RELEASE:
        return naive_pool_release(a, step->pool);
    case STEP_POOL_FLUSH:
        return naive_pool_flush(a, step->pool, step->context);
    case STEP_SCOPE_BEGIN:
        return naive_scope_begin(a, step->pool, step->only_stream ? only_this : NULL, (void *)step->only_stream);
    case STEP_SCOPE_END:
        return naive_scope_end(a, step->pool);
    case STEP_FIND:
        return naive_find(a, step->address, &side->found);
    default:
        return 0;
    }
}

static void device_step(struct fake_device *device, const struct step *step)
{
    if (step->kind == STEP_PROGRESS)
        fake_device_progress(device, step->stream, step->size);
    if (step->kind == STEP_REFUSE_GET)
        device->refuse_get = (unsigned)step->size;
    if (step->kind == STEP_REFUSE_MAP)
        device->refuse_map = (unsigned)step->size;
    if (step->kind == STEP_REFUSE_GET || step->kind == STEP_REFUSE_MAP)
        device->refusal = step->status;
}

bool pair_step(struct pair *pair, const struct step *step)
{
    for (int i = 0; i < 2; i++) {
        struct side *side = &pair->sides[i];
        side->event_count = 0;
        side->address = 0;
        side->found = (struct allocator_block){0};
        device_step(&side->device, step);
        side->status = i ? naive_step(pair, step, side) : real_step(pair, step, side);
    }
    if (allocator_pool_uses(pair->real, step->pool) != naive_pool_uses(pair->naive, step->pool))
        return differ(pair, "the pool has %d uses, the naive one's %d", allocator_pool_uses(pair->real, step->pool),
                      naive_pool_uses(pair->naive, step->pool));
    return compare(pair);
}

void step_print(const struct step *step, char *text, size_t size)
{
    static const char *const names[STEP_KINDS] = {
        "malloc", "free", "record_stream", "complete_free", "empty_cache", "progress", "refuse_get", "refuse_map",
        "set_limit", "set_settings", "pool_create", "pool_retain", "pool_release", "pool_flush", "scope_begin",
        "scope_end", "find"};
    snprintf(text, size, "%s size %" PRIu64 " address %#" PRIx64 " stream %#" PRIx64 " context %" PRIu64
             " pool (%d, %d)%s%s %s", names[step->kind], step->size, step->address, (uint64_t)step->stream,
             step->context, (int)step->pool.first, (int)step->pool.second,
             step->pool_options.use_on_oom ? " use_on_oom" : "", step->pool_options.no_split ? " no_split" : "",
             step->text);
}
