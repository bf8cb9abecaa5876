/*
 * The comparison of a ring file with what its program wrote down before it was killed.
 *
 * Of each thread every call that returned is an entry, in order, and at most one call more: the one that was cut off.
 * Where the ring overwrote, what is left is the end of that, and the number that was lost is right.  An event whose slot
 * was held up by another thread is lost among others; the ring file counts those.  What lives agrees with all that.
 */
#include "killed.h"

#include "format/format.h"
#include "record/record.h"
#include "record/ring.h"
#include "snapshot/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct check {
    const struct snapshot *snapshot;
    const struct progress *progress;
    const char *program;
    bool stacks;
    uint32_t *of_thread[PROGRESS_THREADS]; /* its entries, in order */
    size_t counts[PROGRESS_THREADS];
    bool further[PROGRESS_THREADS];        /* the entry of a call that did not return is there */
    uint64_t dropped;                      /* entries that are lost among others, at most */
};

static bool wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("wrong: ");
    vprintf(format, list);
    putchar('\n');
    va_end(list);
    return false;
}

/* Where an allocator tells of its blocks, the reader adds those of memory that it did not cut, and the ends of frees. */
static bool is_added(const struct entries *entries, size_t i)
{
    bool of_block = entries->action[i] == ACTION_ALLOC || entries->action[i] == ACTION_FREE_REQUESTED;
    return entries->action[i] == ACTION_FREE_COMPLETED || (of_block && (entries->flags[i] & ENTRY_OUTSIDE));
}

static bool split(struct check *check)
{
    const struct entries *entries = &check->snapshot->entries;
    for (unsigned t = 0; t < PROGRESS_THREADS; t++)
        if (!(check->of_thread[t] = malloc((entries->count + 1) * sizeof(uint32_t))))
            return wrong("no memory");
    for (size_t i = 0; i < entries->count; i++) {
        unsigned t = 0;
        if (is_added(entries, i))
            continue;
        while (t < PROGRESS_THREADS && check->progress->threads[t].number != entries->thread[i])
            t++;
        if (t == PROGRESS_THREADS)
            return wrong("entry %zu is of thread %" PRIu32, i, entries->thread[i]);
        check->of_thread[t][check->counts[t]++] = (uint32_t)i;
    }
    return true;
}

static bool is_call(const struct check *check, uint32_t entry, const struct progress_call *call)
{
    const struct entries *entries = &check->snapshot->entries;
    return entries->action[entry] == call->action && entries->size[entry] == call->size &&
           entries->device[entry] == call->device &&
           (call->action == RECORD_OOM || entries->address[entry] == call->address);
}

/* Do the thread's entries end with its last call, or one entry after it?  Back from the end. */
static bool ends_at(const struct check *check, unsigned t, size_t further)
{
    const struct progress_thread *thread = &check->progress->threads[t];
    uint64_t call = thread->count + further, gaps = 0;
    for (size_t i = check->counts[t]; i-- > 0;) {
        if (call == 0)
            return false;
        call--;
        while (call < thread->count && !is_call(check, check->of_thread[t][i], &thread->calls[call]))
            if (call-- == 0 || ++gaps > check->dropped)
                return false;
    }
    return true;
}

static const struct device *device_of(const struct snapshot *snapshot, unsigned ordinal)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].ordinal == ordinal)
            return &snapshot->devices[i];
    return NULL;
}

static bool check_thread(struct check *check, unsigned t)
{
    const struct device *device = device_of(check->snapshot, t % 2);
    uint64_t count = check->progress->threads[t].count, lost = device ? device->lost_entries : 0;
    bool there = ends_at(check, t, 0);
    check->further[t] = !there && ends_at(check, t, 1);
    if (!there && !check->further[t])
        return wrong("thread %u: %" PRIu64 " calls returned, %zu other entries (%" PRIu64 " lost)", t, count,
                     check->counts[t], lost);
    if (!lost && check->counts[t] != count + check->further[t])
        return wrong("thread %u: %" PRIu64 " calls returned, %zu entries", t, count, check->counts[t]);
    return true;
}

/* Lost and kept ones together are all there ever were. */
static bool check_numbers(const struct check *check)
{
    for (unsigned d = 0; d < 2; d++) {
        const struct device *device = device_of(check->snapshot, d);
        uint64_t returned = 0, kept = 0;
        for (unsigned t = d; t < PROGRESS_THREADS; t += 2) {
            returned += check->progress->threads[t].count;
            kept += check->counts[t];
        }
        uint64_t all = kept + (device ? device->lost_entries : 0);
        if (all < returned || all > returned + PROGRESS_THREADS / 2)
            return wrong("device %u: %" PRIu64 " calls returned, %" PRIu64 " entries and lost ones", d, returned, all);
    }
    return true;
}

static bool check_stacks(const struct check *check)
{
    const struct snapshot *snapshot = check->snapshot;
    if (!check->stacks)
        return true;
    for (size_t i = 0; i < snapshot->entries.count; i++) {
        uint32_t context = snapshot->entries.context[i];
        uint32_t stack = context == CONTEXT_NONE ? STACK_EMPTY : snapshot_context_stack(snapshot, context);
        if (stack == STACK_EMPTY || snapshot->stacks[stack].depth < 2)
            return wrong("entry %zu has no stack", i);
        const struct frame *frame = &snapshot->frames[snapshot->stacks[stack].frame];
        const char *path = frame->module == NONE32
                               ? ""
                               : snapshot_content_text(snapshot, snapshot->modules[frame->module].path, NULL);
        if (strcmp(path, check->program) != 0)
            return wrong("entry %zu was called from '%s', not from the program", i, path);
    }
    return true;
}

/* --- what lives ----------------------------------------------------------------------------------------------------- */

struct address {
    uint64_t address;
    bool block;
    int64_t lives; /* 1, 0 */
};

static int by_address(const void *a, const void *b)
{
    const struct address *x = a, *y = b;
    if (x->block != y->block)
        return x->block ? 1 : -1;
    return (x->address > y->address) - (x->address < y->address);
}

/* What lives of a thread after its calls that returned: a list, sorted. */
static struct address *live_of(const struct progress_thread *thread, size_t *count)
{
    struct address *list = calloc(thread->count + 1, sizeof(*list));
    *count = 0;
    for (uint64_t i = 0; list && i < thread->count; i++) {
        const struct progress_call *call = &thread->calls[i];
        bool block = call->action == RECORD_ALLOC || call->action == RECORD_FREE_REQUESTED;
        bool comes = call->action == RECORD_ALLOC || call->action == RECORD_SEGMENT_ALLOC ||
                     call->action == RECORD_SEGMENT_MAP;
        size_t at = 0;
        if (call->action == RECORD_OOM)
            continue;
        while (at < *count && (list[at].address != call->address || list[at].block != block))
            at++;
        if (comes)
            list[(*count)++] = (struct address){call->address, block, 1};
        else if (at < *count)
            list[at] = list[--*count];
    }
    if (list)
        qsort(list, *count, sizeof(*list), by_address);
    return list;
}

static struct address *live_in_file(const struct snapshot *snapshot, size_t *count)
{
    const struct state *end = &snapshot->end;
    struct address *list = calloc(end->segment_count + end->block_count + 1, sizeof(*list));
    *count = 0;
    for (size_t i = 0; list && i < end->segment_count; i++)
        list[(*count)++] = (struct address){end->segments[i].address, false, 1};
    for (size_t i = 0; list && i < end->block_count; i++)
        if (end->blocks[i].state == BLOCK_ACTIVE_ALLOCATED)
            list[(*count)++] = (struct address){end->blocks[i].address, true, 1};
    if (list)
        qsort(list, *count, sizeof(*list), by_address);
    return list;
}

/* Where nothing cuts a segment it counts as one block: only the blocks that the program told of are compared. */
static bool check_live(const struct check *check)
{
    size_t in_file, claimed = 0;
    struct address *file = live_in_file(check->snapshot, &in_file);
    bool right = file != NULL;
    for (unsigned t = 0; right && t < PROGRESS_THREADS; t++) {
        size_t count, missing = 0;
        struct address lost = {0}, *list = live_of(&check->progress->threads[t], &count);
        for (size_t i = 0; list && i < count; i++) {
            bool there = bsearch(&list[i], file, in_file, sizeof(*file), by_address) != NULL;
            if (!there && missing++)
                right = wrong("thread %u: %s 0x%" PRIx64 " and %s 0x%" PRIx64 " live, and are not there", t,
                              lost.block ? "block" : "segment", lost.address, list[i].block ? "block" : "segment",
                              list[i].address);
            if (!there)
                lost = list[i];
            claimed += there && !list[i].block;
        }
        free(list);
    }
    if (right && check->snapshot->end.segment_count > claimed + PROGRESS_THREADS)
        right = wrong("%zu segments live, the program knows of %zu", check->snapshot->end.segment_count, claimed);
    free(file);
    return right;
}

/* Where an entry is missing among others, they cannot all agree. */
static bool check_faults(const struct snapshot *snapshot, uint64_t dropped)
{
    struct state state;
    struct state_faults faults;
    struct error err = {0};
    if (state_at_counting(snapshot, 0, &state, &faults, &err))
        return wrong("%s", err.message);
    state_free(&state);
    if (faults.unknown_allocs + faults.unknown_segments + faults.overlaps + faults.outside > 4 * dropped)
        return wrong("entries and state disagree: allocs=%" PRIu64 " segments=%" PRIu64 " overlaps=%" PRIu64
                     " outside=%" PRIu64, faults.unknown_allocs, faults.unknown_segments, faults.overlaps,
                     faults.outside);
    return true;
}

static bool check_entries(struct check *check)
{
    if (!split(check))
        return false;
    for (unsigned t = 0; t < PROGRESS_THREADS; t++)
        if (!check_thread(check, t))
            return false;
    return check_numbers(check) && check_stacks(check) && check_live(check) && check_faults(check->snapshot, check->dropped);
}

/* What the file itself says. */
static bool count_dropped(const char *path, uint64_t *dropped)
{
    static struct ring_device devices[RING_DEVICES];
    struct ring_header header;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool right = file >= 0 && pread(file, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
                 pread(file, devices, sizeof(devices), (off_t)header.devices) == (ssize_t)sizeof(devices);
    if (file >= 0)
        close(file);
    *dropped = 0;
    for (unsigned d = 0; d < RING_DEVICES; d++)
        *dropped += devices[d].dropped;
    return right || wrong("%s: cannot be read", path);
}

bool killed_check(const char *path, const struct progress *progress, const char *program, bool stacks)
{
    struct snapshot *snapshot;
    struct error err = {0};
    if (format_read(path, NULL, &snapshot, &err))
        return wrong("%s: %s", path, err.message);
    struct check check = {.snapshot = snapshot, .progress = progress, .program = program, .stacks = stacks};
    bool right = snapshot->process_count == 1 && !snapshot->processes[0].incomplete;
    if (!right)
        wrong("the recording says that something is missing");
    right = right && count_dropped(path, &check.dropped) && check_entries(&check);
    for (unsigned t = 0; t < PROGRESS_THREADS; t++)
        free(check.of_thread[t]);
    snapshot_free(snapshot);
    return right;
}

bool killed_check_copy(const char *path)
{
    struct snapshot *snapshot;
    struct error err = {0};
    if (format_read(path, NULL, &snapshot, &err))
        return wrong("%s: %s", path, err.message);
    uint64_t dropped;
    bool right = count_dropped(path, &dropped) && check_faults(snapshot, dropped);
    snapshot_free(snapshot);
    return right;
}
