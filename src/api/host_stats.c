/* The pinned host allocator's numbers: a struct, a visit in order, JSON.  Uses src/base. */
#include "api/host.h"

#include "api/report.h"
#include "base/text.h"

#include <cudamem/host.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATS cudamem_host_memory_stats

struct group {
    const char *name;
    size_t offset;       /* in STATS */
    const char *const *parts; /* NULL: one number */
};

static const char *const stat_parts[] = {"current", "peak", "allocated", "freed", NULL};
static const char *const time_parts[] = {"total", "max", "min", "count", "avg", NULL};

/* PyTorch's order of the nested dict. */
static const struct group groups[] = {
    {"num_host_alloc", offsetof(STATS, num_host_alloc), NULL},
    {"num_host_free", offsetof(STATS, num_host_free), NULL},
    {"allocations", offsetof(STATS, allocations), stat_parts},
    {"allocated_bytes", offsetof(STATS, allocated_bytes), stat_parts},
    {"active_requests", offsetof(STATS, active_requests), stat_parts},
    {"active_bytes", offsetof(STATS, active_bytes), stat_parts},
    {"host_alloc_time", offsetof(STATS, host_alloc_time), time_parts},
    {"host_free_time", offsetof(STATS, host_free_time), time_parts},
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))
#define KEYS 28

struct key {
    char name[40];
    int64_t value;
};

static cudamem_stat stat_of(const struct memory_stat *stat)
{
    return (cudamem_stat){stat->current, stat->peak, stat->allocated, stat->freed};
}

static cudamem_host_time time_of(const struct host_time *time)
{
    return (cudamem_host_time){time->total, time->max, time->min, time->count,
                               time->count ? time->total / time->count : 0};
}

static int read_stats(STATS *stats, struct error *err)
{
    int status = library_check_outside(err);
    memset(stats, 0, sizeof(*stats));
    if (status)
        return status;
    library_thread.inside = true;
    lock_take(&host.lock);
    *stats = (STATS){
        .struct_size = sizeof(*stats),
        .num_host_alloc = host.allocations.allocated,
        .num_host_free = host.allocations.freed,
        .allocations = stat_of(&host.allocations),
        .allocated_bytes = stat_of(&host.allocated_bytes),
        .active_requests = stat_of(&host.active_requests),
        .active_bytes = stat_of(&host.active_bytes),
        .host_alloc_time = time_of(&host.alloc_time),
        .host_free_time = time_of(&host.free_time),
    };
    lock_open(&host.lock);
    library_thread.inside = false;
    return CUDAMEM_OK;
}

EXPORT int cudamem_get_host_memory_stats(cudamem_host_memory_stats *stats, cudamem_error *error)
{
    struct error err = {0};
    STATS full;
    if (!stats)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the statistics was given"));
    int status = read_stats(&full, &err);
    if (!status && api_give(stats, &full, sizeof(full)))
        status = error_set(&err, CUDAMEM_ERROR_USAGE, "struct_size of the statistics is not set");
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

static int64_t number_at(const STATS *stats, size_t offset)
{
    int64_t number;
    memcpy(&number, (const char *)stats + offset, sizeof(number));
    return number;
}

static size_t list_keys(const STATS *stats, struct key keys[KEYS])
{
    size_t count = 0;
    for (size_t g = 0; g < GROUPS; g++) {
        size_t offset = groups[g].offset;
        for (const char *const *part = groups[g].parts; part && *part; part++, offset += sizeof(int64_t)) {
            snprintf(keys[count].name, sizeof(keys[count].name), "%s.%s", groups[g].name, *part);
            keys[count++].value = number_at(stats, offset);
        }
        if (groups[g].parts)
            continue;
        snprintf(keys[count].name, sizeof(keys[count].name), "%s", groups[g].name);
        keys[count++].value = number_at(stats, offset);
    }
    return count;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->name, ((const struct key *)b)->name);
}

static int read_keys(struct key keys[KEYS], size_t *count, struct error *err)
{
    STATS stats;
    int status = read_stats(&stats, err);
    *count = list_keys(&stats, keys);
    qsort(keys, *count, sizeof(*keys), compare_keys);
    return status;
}

EXPORT int cudamem_visit_host_memory_stats(int (*visit)(void *self, const char *key, int64_t value), void *self,
                                           cudamem_error *error)
{
    struct error err = {0};
    struct key keys[KEYS];
    size_t count;
    if (!visit)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no function to visit with was given"));
    int status = read_keys(keys, &count, &err);
    if (status)
        return api_report(error, &err, status);
    for (size_t i = 0; i < count && !status; i++)
        status = visit(self, keys[i].name, keys[i].value);
    return status;
}

static void write_flat(const struct key *keys, size_t count, struct text *text)
{
    for (size_t i = 0; i < count; i++)
        text_printf(text, "%s\"%s\": %" PRId64, i ? ", " : "", keys[i].name, keys[i].value);
}

static void write_nested(const STATS *stats, struct text *text)
{
    for (size_t g = 0; g < GROUPS; g++) {
        size_t offset = groups[g].offset;
        text_printf(text, "%s\"%s\": ", g ? ", " : "", groups[g].name);
        if (!groups[g].parts)
            text_printf(text, "%" PRId64, number_at(stats, offset));
        for (const char *const *part = groups[g].parts; part && *part; part++, offset += sizeof(int64_t))
            text_printf(text, "%s\"%s\": %" PRId64, part == groups[g].parts ? "{" : ", ", *part, number_at(stats, offset));
        text_add(text, groups[g].parts ? "}" : "");
    }
}

EXPORT int cudamem_host_memory_stats_json(int nested, char **result, cudamem_error *error)
{
    struct error err = {0};
    struct text text = {0};
    struct key keys[KEYS];
    STATS stats;
    if (!result)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the text was given"));
    *result = NULL;
    int status = read_stats(&stats, &err);
    if (status)
        return api_report(error, &err, status);
    text_char(&text, '{');
    if (nested) {
        write_nested(&stats, &text);
    } else {
        size_t count = list_keys(&stats, keys);
        qsort(keys, count, sizeof(*keys), compare_keys);
        write_flat(keys, count, &text);
    }
    text_char(&text, '}');
    if (text_failed(&text)) {
        text_free(&text);
        return api_report(error, &err, error_no_memory(&err));
    }
    *result = text.bytes;
    return CUDAMEM_OK;
}

/* --- resets ---------------------------------------------------------------------------------------------------------- */

static void begin_sums(void)
{
    struct memory_stat *const stats[] = {&host.allocations, &host.allocated_bytes, &host.active_requests,
                                         &host.active_bytes};
    struct host_time *const times[] = {&host.alloc_time, &host.free_time};
    for (size_t i = 0; i < sizeof(stats) / sizeof(*stats); i++)
        stats[i]->allocated = stats[i]->freed = 0;
    for (size_t i = 0; i < 2; i++)
        times[i]->total = times[i]->count = 0;
}

static void begin_peaks(void)
{
    struct memory_stat *const stats[] = {&host.allocations, &host.allocated_bytes, &host.active_requests,
                                         &host.active_bytes};
    struct host_time *const times[] = {&host.alloc_time, &host.free_time};
    for (size_t i = 0; i < sizeof(stats) / sizeof(*stats); i++)
        stats[i]->peak = stats[i]->current;
    for (size_t i = 0; i < 2; i++)
        times[i]->max = times[i]->min = 0;
}

static int reset(void (*how)(void), cudamem_error *error)
{
    struct error err = {0};
    int status = library_check_outside(&err);
    if (status)
        return api_report(error, &err, status);
    library_thread.inside = true;
    lock_take(&host.lock);
    how();
    lock_open(&host.lock);
    library_thread.inside = false;
    return CUDAMEM_OK;
}

EXPORT int cudamem_reset_accumulated_host_memory_stats(cudamem_error *error)
{
    return reset(begin_sums, error);
}

EXPORT int cudamem_reset_peak_host_memory_stats(cudamem_error *error)
{
    return reset(begin_peaks, error);
}
