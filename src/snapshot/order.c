/*
 * Traces of several devices on one time axis.  A file of PyTorch has them one after the other; a moment needs them as
 * they happened.  Each device's own entries keep their order (times may go back a little within a trace), equal times
 * keep the file's.  May use src/base and the snapshot.
 */
#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

struct place {
    int64_t time; /* the latest of its device so far, so that an order by time keeps each device's own */
    uint64_t entry;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* The places of all entries; NULL with *status 0 if they are in order as they are, or cannot be ordered. */
static struct place *find_places(const struct snapshot *snapshot, bool by_process, int *status)
{
    const struct entries *entries = &snapshot->entries;
    struct table latest = {0}; /* device or process -> its latest entry so far */
    struct place *places = malloc((entries->count + 1) * sizeof(*places));
    bool ordered = true, possible = true;
    *status = places ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; i < entries->count && !*status && possible; i++) {
        uint32_t trace = !by_process ? entries->device[i] : entries->process ? entries->process[i] : 0;
        uint32_t *slot = i < NONE32 ? table_at(&latest, trace, NONE32) : NULL;
        bool has_time = !(entries->flags[i] & ENTRY_NO_TIME);
        possible = has_time || by_process;
        if (!slot) {
            *status = STATUS_NO_MEMORY;
            break;
        }
        places[i] = (struct place){has_time ? entries->time[i] : INT64_MIN, i};
        if (*slot != NONE32 && places[*slot].time > places[i].time)
            places[i].time = places[*slot].time;
        *slot = (uint32_t)i;
        ordered = ordered && (!i || places[i - 1].time <= places[i].time);
    }
    bool is_single = latest.count < 2;
    table_free(&latest);
    if (!*status && possible && !ordered && !is_single)
        return places;
    free(places);
    return NULL;
}

/* What the columns cannot hold follows its entry. */
static int move_odds(struct snapshot *snapshot, const uint64_t *moved)
{
    struct odd *odds = snapshot->odds;
    size_t count = snapshot->odd_count;
    int status = STATUS_OK;
    snapshot->odds = NULL;
    snapshot->odd_count = snapshot->odd_capacity = 0;
    table_free(&snapshot->odd_index);
    for (size_t i = 0; i < count && !status; i++) {
        uint64_t row = odds[i].row_kind == ROW_ENTRY ? moved[odds[i].row] : odds[i].row;
        status = snapshot_set_odd(snapshot, (enum row_kind)odds[i].row_kind, row, odds[i].slot, odds[i].content);
    }
    free(odds);
    return status;
}

static int order(struct snapshot *snapshot, bool by_process)
{
    int status;
    size_t count = snapshot->entries.count;
    struct place *places = find_places(snapshot, by_process, &status);
    if (!places)
        return status;
    qsort(places, count, sizeof(*places), compare_places);
    uint64_t *rows = malloc(count * sizeof(*rows)), *moved = malloc(count * sizeof(*moved));
    status = rows && moved ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && !status; i++) {
        rows[i] = places[i].entry;
        moved[places[i].entry] = i;
    }
    free(places);
    if (!status)
        status = entries_permute(&snapshot->entries, rows);
    if (!status)
        status = move_odds(snapshot, moved);
    free(rows);
    free(moved);
    return status;
}

int snapshot_order_by_time(struct snapshot *snapshot)
{
    if (snapshot->has_raw || snapshot->trace_count < 2)
        return STATUS_OK; /* an object graph names entries by number */
    return order(snapshot, false);
}

int snapshot_order_processes(struct snapshot *snapshot)
{
    return order(snapshot, true);
}
