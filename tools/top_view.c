/* What recorded programs hold at this moment.  Uses format, tools/stale and base. */
#include "tools/top_view.h"

#include "base/array.h"
#include "tools/stale.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void forget(struct top_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        snapshot_free(view->processes[i].snapshot);
    view->count = 0;
    view->stack_count = 0;
    view->unread = 0;
    free(view->unread_path);
    view->unread_path = NULL;
}

void top_view_free(struct top_view *view)
{
    forget(view);
    free(view->processes);
    free(view->stacks);
    free(view->memory);
    top_names_free(&view->names);
    memset(view, 0, sizeof(*view));
}

/* Events a second since the last look at this process, or since it began. */
static double rate_of(const struct top_view *view, const struct ring_facts *facts, int64_t when)
{
    int64_t since = facts->start_time;
    uint64_t before = 0;
    for (size_t i = 0; i < view->memory_count; i++) {
        const struct top_memory *memory = &view->memory[i];
        if (memory->pid == facts->pid && memory->start_time == facts->start_time && memory->when < when) {
            since = memory->when;
            before = memory->events;
        }
    }
    int64_t time = facts->end_time > since && facts->end_time < when ? facts->end_time - since : when - since;
    return time > 0 && facts->events > before ? (double)(facts->events - before) * 1e6 / (double)time : 0;
}

static int remember(struct top_view *view, int64_t when)
{
    view->memory_count = 0;
    for (size_t i = 0; i < view->count; i++) {
        const struct ring_facts *facts = &view->processes[i].facts;
        if (array_reserve(&view->memory, &view->memory_capacity, view->memory_count + 1, sizeof(*view->memory)))
            return STATUS_NO_MEMORY;
        view->memory[view->memory_count++] = (struct top_memory){facts->pid, facts->start_time, when, facts->events};
    }
    return STATUS_OK;
}

static int note_unread(struct top_view *view, const char *path, const struct error *err)
{
    if (err->status == STATUS_NO_MEMORY)
        return err->status;
    if (access(path, F_OK) || view->unread++)
        return STATUS_OK;
    view->unread_error = *err;
    view->unread_path = strdup(path);
    return view->unread_path ? STATUS_OK : STATUS_NO_MEMORY;
}

static int add_process(struct top_view *view, const struct stale *ring, int64_t when)
{
    struct top_process process = {.runs = ring->runs};
    struct error err = {0};
    if (ring_read_facts(ring->path, &process.facts, &err) || ring_read_living(ring->path, &process.snapshot, &err))
        return note_unread(view, ring->path, &err);
    if (array_reserve(&view->processes, &view->capacity, view->count + 1, sizeof(*view->processes))) {
        snapshot_free(process.snapshot);
        return STATUS_NO_MEMORY;
    }
    process.rate = rate_of(view, &process.facts, when);
    view->processes[view->count++] = process;
    return STATUS_OK;
}

/* Those in use: left-over files are `ps --stale`'s. */
static int add_rings(struct top_view *view, int64_t when, struct error *err)
{
    struct stale *list;
    size_t count;
    int status = stale_list(&list, &count, err);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++)
        if (list[i].in_use && !list[i].is_copy && (!view->pid || list[i].pid == view->pid))
            status = add_process(view, &list[i], when);
    stale_free(list, count);
    return status ? error_no_memory(err) : STATUS_OK;
}

static int compare_processes(const void *a, const void *b)
{
    const struct top_process *x = a, *y = b;
    if (x->facts.rank != y->facts.rank)
        return x->facts.rank < y->facts.rank ? -1 : 1;
    return x->facts.pid < y->facts.pid ? -1 : x->facts.pid > y->facts.pid;
}

int top_view_look(struct top_view *view, struct error *err)
{
    int64_t when = now();
    forget(view);
    if (!view->stacks && !(view->stacks = calloc(view->most_stacks + 1, sizeof(*view->stacks))))
        return error_no_memory(err);
    int status = add_rings(view, when, err);
    if (status)
        return status;
    if (remember(view, when))
        return error_no_memory(err);
    if (view->count)
        qsort(view->processes, view->count, sizeof(*view->processes), compare_processes);
    for (size_t i = 0; i < view->count; i++) {
        view->stack_count = top_stacks_add(&view->names, view->processes[i].snapshot, view->stacks, view->stack_count,
                                           view->most_stacks);
        if (view->stack_count == SIZE_MAX) {
            view->stack_count = 0;
            return error_no_memory(err);
        }
    }
    return STATUS_OK;
}
