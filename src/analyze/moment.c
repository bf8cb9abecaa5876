/* Moments: parsing and finding them, and the peaks of a trace.  May use src/snapshot and src/base. */
#include "analyze/moment.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARKS_LISTED 16 /* in the message about one that is not there */

static int bad_moment(const char *text, struct error *err)
{
    return error_set(err, STATUS_USAGE,
                     "'@%.80s' is no moment; write @end, @start, @peak, @peak-reserved, @oom, @oom2, @#4711, @12.5s, @-10s "
                     "or @mark:NAME",
                     text);
}

/* Decimal digits alone; false if there are none, other characters, or too many. */
static bool parse_number(const char *text, uint64_t *number)
{
    if (!*text)
        return false;
    *number = 0;
    for (; *text; text++)
        if (!isdigit((unsigned char)*text) || __builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*text - '0'), number))
            return false;
    return true;
}

/* "12.5s": microseconds. */
static bool parse_seconds(const char *text, int64_t *microseconds)
{
    uint64_t whole = 0, scale = 1000000, part = 0;
    if (!isdigit((unsigned char)*text))
        return false;
    for (; isdigit((unsigned char)*text); text++) {
        whole = whole * 10 + (uint64_t)(*text - '0');
        if (whole > UINT64_C(1000000000000))
            return false;
    }
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text); text++)
            if (scale > 1) {
                scale /= 10;
                part += (uint64_t)(*text - '0') * scale;
            }
    *microseconds = (int64_t)(whole * 1000000 + part);
    return strcmp(text, "s") == 0;
}

int moment_parse(const char *given, struct moment *moment, struct error *err)
{
    static const struct {
        const char *word;
        enum moment_kind kind;
    } words[] = {{"end", MOMENT_END},   {"start", MOMENT_START}, {"peak", MOMENT_PEAK}, {"peak-reserved", MOMENT_PEAK_RESERVED},
                 {"oom", MOMENT_OOM}};
    const char *text = *given == '@' ? given + 1 : given;
    memset(moment, 0, sizeof(*moment));
    moment->number = 1;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(text, words[i].word) == 0) {
            moment->kind = words[i].kind;
            return STATUS_OK;
        }
    size_t length = strlen(text);
    if (length > 5 && length - 5 < sizeof(moment->name) && strncmp(text, "mark:", 5) == 0) {
        moment->kind = MOMENT_MARK;
        memcpy(moment->name, text + 5, length - 4);
        return STATUS_OK;
    }
    if (strncmp(text, "oom", 3) == 0 && parse_number(text + 3, &moment->number) && moment->number) {
        moment->kind = MOMENT_OOM;
        return STATUS_OK;
    }
    if (*text == '#' && parse_number(text + 1, &moment->number)) {
        moment->kind = MOMENT_ENTRY;
        return STATUS_OK;
    }
    if (parse_seconds(text + (*text == '-'), &moment->microseconds)) {
        moment->kind = *text == '-' ? MOMENT_BEFORE_END : MOMENT_SINCE_START;
        return STATUS_OK;
    }
    return bad_moment(text, err);
}

bool moment_is(const char *text)
{
    struct moment moment;
    return moment_parse(text, &moment, NULL) == STATUS_OK;
}

/* --- peaks ------------------------------------------------------------------------------------------------------ */

struct running {
    __int128 now, most;
    uint64_t moment;
};

static void run(struct running *running, __int128 change, uint64_t moment)
{
    running->now += change;
    if (running->now > running->most) {
        running->most = running->now;
        running->moment = moment;
    }
}

static bool is_implied(const struct snapshot *snapshot, uint16_t process)
{
    return process < snapshot->process_count && snapshot->processes[process].implied_blocks;
}

/* What lived at the end, to find from it what lived before the first entry. */
static void end_bytes(const struct snapshot *snapshot, int device, bool pending_counts, __int128 *allocated,
                      __int128 *reserved)
{
    const struct state *end = &snapshot->end;
    *allocated = *reserved = 0;
    for (size_t s = 0; s < end->segment_count; s++) {
        const struct segment *segment = &end->segments[s];
        if ((device != MOMENT_ALL_DEVICES && segment->device != device) || segment->kind == MEMORY_HOST)
            continue;
        *reserved += segment->total_size;
        if (is_implied(snapshot, segment->process)) {
            *allocated += segment->total_size;
            continue;
        }
        for (uint32_t b = 0; b < segment->block_count; b++) {
            const struct block *block = &end->blocks[segment->first_block + b];
            if (block->state == BLOCK_ACTIVE_ALLOCATED || (pending_counts && block->state == BLOCK_ACTIVE_PENDING_FREE))
                *allocated += block->flags & BLOCK_REQUESTED_UNKNOWN ? block->size : block->requested;
        }
    }
}

static bool has_action(const struct entries *entries, enum action action)
{
    return entries->count && memchr(entries->action, action, entries->count) != NULL;
}

static void run_entry(const struct snapshot *snapshot, size_t i, enum action free_action, struct running *allocated,
                      struct running *reserved)
{
    const struct entries *entries = &snapshot->entries;
    enum action action = entries->action[i];
    bool implied = is_implied(snapshot, entries->process ? entries->process[i] : 0);
    __int128 size = entries->size[i];
    if (action == ACTION_ALLOC && !implied)
        run(allocated, size, i + 1);
    else if (action == free_action && !implied)
        run(allocated, -size, i + 1);
    if (action < ACTION_SEGMENT_ALLOC || action > ACTION_SEGMENT_UNMAP)
        return;
    bool grows = action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP;
    __int128 change = grows == !(entries->flags[i] & ENTRY_FAILED) ? size : -size;
    run(reserved, change, i + 1);
    if (implied)
        run(allocated, change, i + 1);
}

static struct moment_peak settle(const struct running *running, __int128 end)
{
    __int128 baseline = end - running->now; /* allocated before the first entry */
    if (baseline < 0)
        baseline = 0; /* the trace frees more than there was: never below nothing */
    __int128 bytes = baseline + running->most;
    return (struct moment_peak){.moment = running->moment, .bytes = bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes};
}

int moment_peaks(const struct snapshot *snapshot, int device, struct moment_peak *allocated,
                 struct moment_peak *reserved, struct error *err)
{
    (void)err;
    const struct entries *entries = &snapshot->entries;
    struct running blocks = {0}, segments = {0};
    bool completes = has_action(entries, ACTION_FREE_COMPLETED);
    enum action free_action = completes ? ACTION_FREE_COMPLETED : ACTION_FREE_REQUESTED;
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->flags[i] & ENTRY_BAD || (device != MOMENT_ALL_DEVICES && entries->device[i] != device) ||
            (entries->kind && entries->kind[i] == MEMORY_HOST))
            continue;
        run_entry(snapshot, i, free_action, &blocks, &segments);
    }
    __int128 end_allocated, end_reserved;
    end_bytes(snapshot, device, completes || !entries->count, &end_allocated, &end_reserved);
    if (allocated)
        *allocated = settle(&blocks, end_allocated);
    if (reserved)
        *reserved = settle(&segments, end_reserved);
    return STATUS_OK;
}

/* --- finding ---------------------------------------------------------------------------------------------------- */

static int find_oom(const struct snapshot *snapshot, uint64_t number, int device, uint64_t *result, struct error *err)
{
    const struct entries *entries = &snapshot->entries;
    uint64_t found = 0;
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->action[i] != ACTION_OOM || (entries->flags[i] & ENTRY_OUTSIDE) ||
            (device != MOMENT_ALL_DEVICES && entries->device[i] != device))
            continue;
        if (++found == number) {
            *result = i + 1;
            return STATUS_OK;
        }
    }
    if (!found)
        return error_set(err, STATUS_NOT_FOUND, "@oom: no out of memory is in the trace%s",
                         device == MOMENT_ALL_DEVICES ? "" : " of that device");
    return error_set(err, STATUS_NOT_FOUND, "@oom%" PRIu64 ": the trace has only %" PRIu64, number, found);
}

/* The first and the last time of the trace; false if it has none. */
static bool time_span(const struct entries *entries, int64_t *first, int64_t *last)
{
    bool found = false;
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->flags[i] & ENTRY_NO_TIME)
            continue;
        if (!found || entries->time[i] < *first)
            *first = entries->time[i];
        if (!found || entries->time[i] > *last)
            *last = entries->time[i];
        found = true;
    }
    return found;
}

/* How many entries come before the first one that is later than (or, with `reached`, not before) a time. */
static uint64_t entries_until(const struct entries *entries, int64_t time, bool reached)
{
    for (size_t i = 0; i < entries->count; i++)
        if (!(entries->flags[i] & ENTRY_NO_TIME) && (reached ? entries->time[i] >= time : entries->time[i] > time))
            return i;
    return entries->count;
}

static int find_time(const struct snapshot *snapshot, const struct moment *moment, uint64_t *result, struct error *err)
{
    int64_t first = 0, last = 0;
    bool from_end = moment->kind == MOMENT_BEFORE_END;
    if (!time_span(&snapshot->entries, &first, &last))
        return error_set(err, STATUS_NOT_FOUND, "the trace has no times; name an entry, as in @#4711");
    int64_t span;
    if (__builtin_sub_overflow(last, first, &span))
        span = INT64_MAX;
    if (moment->microseconds > span)
        return error_set(err, STATUS_NOT_FOUND, "@%s%.6fs: the trace spans only %.6f s", from_end ? "-" : "",
                         (double)moment->microseconds / 1e6, (double)span / 1e6);
    int64_t time = from_end ? last - moment->microseconds : first + moment->microseconds;
    *result = entries_until(&snapshot->entries, time, false);
    return STATUS_OK;
}

/* A mark, or the beginning of a range. */
static bool is_named(const struct snapshot *snapshot, const struct annotation *annotation, const char *name)
{
    size_t length;
    const char *text = snapshot_object_text(snapshot, annotation->name, &length);
    return (annotation->stage == 0 || annotation->stage == 2) && length == strlen(name) && memcmp(text, name, length) == 0;
}

/* The names that there are, each once, as far as they fit. */
static void list_marks(const struct snapshot *snapshot, char *list, size_t size)
{
    const char *listed[MARKS_LISTED];
    size_t used = 0, count = 0;
    list[0] = 0;
    for (size_t i = 0; i < snapshot->annotation_count; i++) {
        const char *name = snapshot_object_text(snapshot, snapshot->annotations[i].name, NULL);
        bool is_listed = !is_named(snapshot, &snapshot->annotations[i], name);
        for (size_t k = 0; k < count && !is_listed; k++)
            is_listed = strcmp(listed[k], name) == 0;
        if (is_listed)
            continue;
        if (count == MARKS_LISTED || used + strlen(name) + sizeof(", ...") > size) {
            snprintf(list + used, size - used, "%s...", used ? ", " : "");
            return;
        }
        used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
        listed[count++] = name;
    }
}

static int find_mark(const struct snapshot *snapshot, const char *name, uint64_t *result, struct error *err)
{
    char list[160];
    for (size_t i = 0; i < snapshot->annotation_count; i++) {
        const struct annotation *annotation = &snapshot->annotations[i];
        if (!is_named(snapshot, annotation, name))
            continue;
        uint64_t first = entries_until(&snapshot->entries, annotation->time, true);
        *result = first + annotation->later < snapshot->entries.count ? first + annotation->later : snapshot->entries.count;
        return STATUS_OK;
    }
    list_marks(snapshot, list, sizeof(list));
    if (!list[0])
        return error_set(err, STATUS_NOT_FOUND, "@mark:%.80s: no mark or range has a name in this file", name);
    return error_set(err, STATUS_NOT_FOUND, "@mark:%.80s: no mark or range of that name; there are: %s", name, list);
}

int moment_resolve(const struct snapshot *snapshot, const struct moment *moment, int device, uint64_t *result,
                   struct error *err)
{
    struct moment_peak allocated, reserved;
    int status;
    switch (moment->kind) {
    case MOMENT_END:
        *result = snapshot->entries.count;
        return STATUS_OK;
    case MOMENT_START:
        *result = 0;
        return STATUS_OK;
    case MOMENT_PEAK:
    case MOMENT_PEAK_RESERVED:
        status = moment_peaks(snapshot, device, &allocated, &reserved, err);
        *result = moment->kind == MOMENT_PEAK ? allocated.moment : reserved.moment;
        return status;
    case MOMENT_OOM:
        return find_oom(snapshot, moment->number, device, result, err);
    case MOMENT_ENTRY:
        *result = moment->number - snapshot->first_entry;
        if (moment->number < snapshot->first_entry || *result > snapshot->entries.count)
            return error_set(err, STATUS_NOT_FOUND, "@#%" PRIu64 ": the trace has entries %" PRIu64 " to %" PRIu64,
                             moment->number, snapshot->first_entry, snapshot->first_entry + snapshot->entries.count);
        return STATUS_OK;
    case MOMENT_SINCE_START:
    case MOMENT_BEFORE_END:
        return find_time(snapshot, moment, result, err);
    case MOMENT_MARK:
        return find_mark(snapshot, moment->name, result, err);
    }
    return error_set(err, STATUS_USAGE, "no such kind of moment");
}
