/* Statistics through the emitter.  Uses analyze, render and base. */
#include "tools/statistics_out.h"

#include "analyze/usage.h"
#include "base/size.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool statistics_are_selected(const struct load *load, const struct statistics *set)
{
    return load->selection.device < 0 || load->selection.device == set->device;
}

static bool is_wanted(const struct memory_stats_key *key, const char *glob)
{
    return !glob || fnmatch(glob, key->name, 0) == 0;
}

static void number_out(struct emitter *emitter, const struct statistics *set, const struct memory_stats_key *key,
                       const char *name)
{
    enum statistics_bound bound = statistics_bound(set, key);
    int64_t number = memory_stats_value(&set->values, key);
    if (bound == STATISTICS_UNKNOWN) {
        emitter_absent(emitter, name);
        return;
    }
    if (!emitter_is_json(emitter) && bound == STATISTICS_AT_LEAST)
        emitter_lower_bound(emitter);
    if (!emitter_is_json(emitter) && bound == STATISTICS_AT_MOST) {
        char text[40];
        snprintf(text, sizeof(text), "<=%" PRId64, number);
        emitter_text(emitter, name, text);
        return;
    }
    emitter_integer(emitter, name, number);
}

/* JSON: one object a part of the key; the keys are sorted, so parts that are equal follow one another. */
static void nested_out(struct emitter *emitter, const struct statistics *set, const char *glob)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    char open[4][48];
    unsigned depth = 0;
    for (int i = 0; i < MEMORY_STATS_KEYS; i++) {
        if (!is_wanted(&keys[i], glob))
            continue;
        char parts[4][48];
        unsigned count = 0;
        for (const char *at = keys[i].name; count < 4;) {
            size_t length = strcspn(at, ".");
            snprintf(parts[count++], sizeof(parts[0]), "%.*s", (int)length, at);
            if (!at[length])
                break;
            at += length + 1;
        }
        unsigned common = 0;
        while (common < depth && common + 1 < count && strcmp(open[common], parts[common]) == 0)
            common++;
        for (; depth > common; depth--)
            emitter_end(emitter);
        for (; depth + 1 < count; depth++) {
            memcpy(open[depth], parts[depth], sizeof(open[0]));
            emitter_begin_object(emitter, open[depth], NULL);
        }
        number_out(emitter, set, &keys[i], parts[count - 1]);
    }
    for (; depth; depth--)
        emitter_end(emitter);
}

static void bounds_out(struct emitter *emitter, const struct statistics *set, const char *glob, enum statistics_bound bound,
                       const char *name)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    emitter_begin_strings(emitter, name);
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        if (is_wanted(&keys[i], glob) && statistics_bound(set, &keys[i]) == bound)
            emitter_item(emitter, keys[i].name, strlen(keys[i].name));
    emitter_end_strings(emitter);
}

static void json_out(struct emitter *emitter, const struct statistics *set, const char *glob)
{
    emitter_begin_object(emitter, NULL, NULL);
    emitter_count(emitter, "process", set->process);
    emitter_count(emitter, "device", set->device);
    emitter_bool(emitter, "is_exact", set->is_exact);
    emitter_count(emitter, "lost_entries", set->lost_entries);
    bounds_out(emitter, set, glob, STATISTICS_AT_LEAST, "at_least");
    bounds_out(emitter, set, glob, STATISTICS_AT_MOST, "at_most");
    bounds_out(emitter, set, glob, STATISTICS_UNKNOWN, "unknown");
    emitter_begin_object(emitter, "stats", NULL);
    nested_out(emitter, set, glob);
    emitter_end(emitter);
    emitter_end(emitter);
}

static void text_out(struct emitter *emitter, const struct statistics *set, const char *glob)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        if (is_wanted(&keys[i], glob))
            number_out(emitter, set, &keys[i], keys[i].name);
}

/* Flushes that freed nothing leave no entry; the table does not show their number. */
static bool only_flushes_are_open(const struct statistics *set)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        if (statistics_bound(set, &keys[i]) != STATISTICS_EXACT && strcmp(keys[i].name, "num_sync_all_streams") != 0)
            return false;
    return true;
}

static const struct device *device_of(const struct load *load, const struct statistics *set)
{
    const struct snapshot *snapshot = load->snapshot;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == set->process && snapshot->devices[i].ordinal == set->device)
            return &snapshot->devices[i];
    return NULL;
}

void statistics_outside(struct emitter *emitter, const struct load *load, const struct statistics *set)
{
    struct usage_sample sample;
    char used[SIZE_TEXT], known[SIZE_TEXT], pools[SIZE_TEXT], other[SIZE_TEXT];
    const struct device *device = device_of(load, set);
    if (!device || !usage_sample(device, &sample))
        return;
    emitter_note(emitter, "device %u: %s taken when it was looked at last: %s known, %s held by the driver's pools, %s context "
                 "and other (other processes too)", set->device, size_format(sample.used, used),
                 size_format(sample.known, known), size_format(sample.pools, pools), size_format(sample.other, other));
}

void statistics_notes(struct emitter *emitter, const struct load *load, const struct statistics *set)
{
    if (set->lost_entries)
        emitter_note(emitter, "device %u: %" PRIu64 " events lost, the oldest ones, when the ring was full", set->device,
                     set->lost_entries);
    statistics_outside(emitter, load, set);
    if (set->is_exact || only_flushes_are_open(set))
        return;
    if (load->is_part)
        emitter_note(emitter, "device %u: the trace was not read (--no-traces)", set->device);
    else if (!load->snapshot->entries.count && load->snapshot->source == SOURCE_TORCH)
        emitter_note(emitter, "device %u: recording was off; the file has segments but no trace", set->device);
    emitter_note(emitter, "device %u: numbers marked >= are lower bounds, <= upper bounds: the file does not tell more",
                 set->device);
}

void statistics_out(struct emitter *emitter, const struct load *load, const struct statistics_list *list, const char *glob)
{
    size_t selected = 0;
    for (size_t i = 0; i < list->count; i++)
        selected += statistics_are_selected(load, &list->items[i]);
    if (emitter_is_json(emitter)) {
        emitter_text(emitter, "file", load->file);
        emitter_count(emitter, "moment", load->moment);
        emitter_begin_list(emitter, "devices", NULL);
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct statistics *set = &list->items[i];
        if (!statistics_are_selected(load, set))
            continue;
        if (emitter_is_json(emitter)) {
            json_out(emitter, set, glob);
            continue;
        }
        if (selected > 1 && load->snapshot->process_count > 1)
            emitter_note(emitter, "process %u, device %u", set->process, set->device);
        else if (selected > 1)
            emitter_note(emitter, "device %u", set->device);
        text_out(emitter, set, glob);
        if (set->lost_entries)
            emitter_note(emitter, "device %u: %" PRIu64 " events lost", set->device, set->lost_entries);
        if (!glob)
            statistics_outside(emitter, load, set);
    }
    if (emitter_is_json(emitter))
        emitter_end(emitter);
}
