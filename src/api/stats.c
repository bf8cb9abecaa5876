/* The public statistics (include/cudamem/stats.h).  Uses src/base, src/alloc, src/analyze and src/render. */
#include "api/library.h"

#include "analyze/statistics.h"
#include "base/text.h"
#include "render/summary_text.h"

#include <cudamem/stats.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of one moment; *used is false before the first use of any device, and then all are 0. */
static int stats_now(int ordinal, struct memory_stats *stats, bool *used, int *shown, struct error *err)
{
    struct library_device *device;
    memset(stats, 0, sizeof(*stats));
    *used = library_is_used();
    *shown = ordinal < 0 ? 0 : ordinal;
    int status = library_native_only("statistics", err);
    if (!status)
        status = library_check_outside(err);
    if (!status)
        status = library_device_if_used(ordinal, &device, err);
    if (status)
        return status;
    if (*used)
        memory_stats_init(stats);
    if (!device)
        return CUDAMEM_OK;
    *shown = device->ordinal;
    status = library_enter(device, err);
    if (status)
        return status;
    *stats = *allocator_stats(device->allocator);
    library_leave(device);
    return CUDAMEM_OK;
}

/* --- the struct, the visitor -------------------------------------------------------------------------------------- */

EXPORT int cudamem_get_memory_stats(int device, cudamem_memory_stats *stats, cudamem_error *error)
{
    struct error err = {0};
    struct memory_stats now;
    bool used;
    int shown, status = stats ? stats_now(device, &now, &used, &shown, &err)
                              : error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the statistics was given");
    if (status)
        return api_report(error, &err, status);
    cudamem_memory_stats full = {
        .is_used = used,
        .num_alloc_retries = now.num_alloc_retries,
        .num_ooms = now.num_ooms,
        .max_split_size = now.max_split_size,
        .num_sync_all_streams = now.num_sync_all_streams,
        .num_device_alloc = now.num_device_alloc,
        .num_device_free = now.num_device_free,
    };
    /* Ours in the same order: kinds, each for all, small and large; then the two oversize ones. */
    _Static_assert(sizeof(now.kinds) == 9 * sizeof(cudamem_pool_stats), "the public struct has every kind");
    memcpy(&full.allocation, now.kinds, sizeof(now.kinds));
    memcpy(&full.oversize_allocations, &now.oversize_allocations, sizeof(cudamem_stat));
    memcpy(&full.oversize_segments, &now.oversize_segments, sizeof(cudamem_stat));
    if (api_give(stats, &full, sizeof(full)))
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "the struct's struct_size is not set"));
    return CUDAMEM_OK;
}

EXPORT int cudamem_visit_memory_stats(int device, int (*visit)(void *self, const char *key, int64_t value), void *self,
                                      cudamem_error *error)
{
    struct error err = {0};
    struct memory_stats now;
    bool used;
    int shown, status = visit ? stats_now(device, &now, &used, &shown, &err)
                              : error_set(&err, CUDAMEM_ERROR_USAGE, "nothing to call was given");
    if (status)
        return api_report(error, &err, status);
    const struct memory_stats_key *keys = memory_stats_keys();
    for (size_t i = 0; used && !status && i < MEMORY_STATS_KEYS; i++)
        status = visit(self, keys[i].name, memory_stats_value(&now, &keys[i]));
    return status;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void add_flat(struct text *text, const struct memory_stats *stats)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    for (size_t i = 0; i < MEMORY_STATS_KEYS; i++)
        text_printf(text, "%s\"%s\": %" PRId64, i ? ", " : "", keys[i].name, memory_stats_value(stats, &keys[i]));
}

static void add_stat(struct text *text, const struct memory_stat *stat)
{
    text_printf(text,
                "{\"current\": %" PRId64 ", \"peak\": %" PRId64 ", \"allocated\": %" PRId64 ", \"freed\": %" PRId64 "}",
                stat->current, stat->peak, stat->allocated, stat->freed);
}

static void add_nested(struct text *text, const struct memory_stats *stats)
{
    text_printf(text, "\"num_alloc_retries\": %" PRId64 ", \"num_ooms\": %" PRId64 ", \"max_split_size\": %" PRId64
                ", \"num_sync_all_streams\": %" PRId64 ", \"num_device_alloc\": %" PRId64 ", \"num_device_free\": %" PRId64,
                stats->num_alloc_retries, stats->num_ooms, stats->max_split_size, stats->num_sync_all_streams,
                stats->num_device_alloc, stats->num_device_free);
    for (int kind = 0; kind < MEMORY_STAT_KINDS; kind++) {
        text_printf(text, ", \"%s\": {", memory_stat_kind_name((enum memory_stat_kind)kind));
        for (int pool = 0; pool < MEMORY_POOL_CLASSES; pool++) {
            text_printf(text, "%s\"%s\": ", pool ? ", " : "", memory_pool_class_name((enum memory_pool_class)pool));
            add_stat(text, &stats->kinds[kind][pool]);
        }
        text_char(text, '}');
    }
    text_add(text, ", \"oversize_allocations\": ");
    add_stat(text, &stats->oversize_allocations);
    text_add(text, ", \"oversize_segments\": ");
    add_stat(text, &stats->oversize_segments);
}

/* The text becomes the caller's. */
static int give_text(struct text *text, char **result, struct error *err)
{
    text_string(text);
    if (text_failed(text) || !text->bytes) {
        text_free(text);
        return error_no_memory(err);
    }
    *result = text->bytes;
    return CUDAMEM_OK;
}

EXPORT int cudamem_memory_stats_json(int device, int nested, char **text, cudamem_error *error)
{
    struct error err = {0};
    struct memory_stats now;
    struct text made = {0};
    bool used;
    int shown, status = text ? stats_now(device, &now, &used, &shown, &err)
                             : error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the text was given");
    if (text)
        *text = NULL;
    if (status)
        return api_report(error, &err, status);
    text_char(&made, '{');
    if (used && nested)
        add_nested(&made, &now);
    else if (used)
        add_flat(&made, &now);
    text_char(&made, '}');
    status = give_text(&made, text, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT int cudamem_memory_summary(int device, int abbreviated, char **text, cudamem_error *error)
{
    struct error err = {0};
    struct statistics statistics = {.is_exact = true};
    struct text made = {0};
    bool used;
    int shown, status = text ? stats_now(device, &statistics.values, &used, &shown, &err)
                             : error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the text was given");
    if (text)
        *text = NULL;
    if (status)
        return api_report(error, &err, status);
    statistics.device = (uint16_t)shown;
    summary_text(&statistics, abbreviated != 0, &made);
    status = give_text(&made, text, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

EXPORT void cudamem_text_free(char *text)
{
    free(text);
}

/* --- resets ------------------------------------------------------------------------------------------------------- */

static void reset_stat(struct memory_stat *stat, bool peak)
{
    if (peak)
        stat->peak = stat->current;
    else
        stat->allocated = stat->freed = 0;
}

static void reset_all(struct memory_stats *stats, bool peak)
{
    for (int kind = 0; kind < MEMORY_STAT_KINDS; kind++)
        for (int pool = 0; pool < MEMORY_POOL_CLASSES; pool++)
            reset_stat(&stats->kinds[kind][pool], peak);
    reset_stat(&stats->oversize_allocations, peak);
    reset_stat(&stats->oversize_segments, peak);
    if (!peak)
        stats->num_alloc_retries = stats->num_ooms = stats->num_sync_all_streams = stats->num_device_alloc =
            stats->num_device_free = 0;
}

static int reset(int ordinal, bool peak, cudamem_error *error)
{
    struct error err = {0};
    struct library_device *device = NULL;
    int status = library_native_only("statistics", &err);
    if (!status)
        status = library_check_outside(&err);
    if (!status)
        status = library_device_if_used(ordinal, &device, &err);
    if (!status && device)
        status = library_enter(device, &err);
    if (status)
        return api_report(error, &err, status);
    if (device) {
        reset_all(allocator_stats(device->allocator), peak);
        library_leave(device);
    }
    return CUDAMEM_OK;
}

EXPORT int cudamem_reset_accumulated_memory_stats(int device, cudamem_error *error)
{
    return reset(device, false, error);
}

EXPORT int cudamem_reset_peak_memory_stats(int device, cudamem_error *error)
{
    return reset(device, true, error);
}

EXPORT int cudamem_reset_max_memory_allocated(int device, cudamem_error *error)
{
    return reset(device, true, error);
}

EXPORT int cudamem_reset_max_memory_cached(int device, cudamem_error *error)
{
    return reset(device, true, error);
}

/* --- single numbers ----------------------------------------------------------------------------------------------- */

static int one_number(int device, enum memory_stat_kind kind, bool peak, uint64_t *bytes, cudamem_error *error)
{
    struct error err = {0};
    struct memory_stats now;
    bool used;
    int shown, status = bytes ? stats_now(device, &now, &used, &shown, &err)
                              : error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the number was given");
    if (bytes)
        *bytes = 0;
    if (status)
        return api_report(error, &err, status);
    const struct memory_stat *stat = &now.kinds[kind][MEMORY_POOL_ALL];
    *bytes = (uint64_t)(peak ? stat->peak : stat->current);
    return CUDAMEM_OK;
}

EXPORT int cudamem_memory_allocated(int device, uint64_t *bytes, cudamem_error *error)
{
    return one_number(device, MEMORY_STAT_ALLOCATED_BYTES, false, bytes, error);
}

EXPORT int cudamem_max_memory_allocated(int device, uint64_t *bytes, cudamem_error *error)
{
    return one_number(device, MEMORY_STAT_ALLOCATED_BYTES, true, bytes, error);
}

EXPORT int cudamem_memory_reserved(int device, uint64_t *bytes, cudamem_error *error)
{
    return one_number(device, MEMORY_STAT_RESERVED_BYTES, false, bytes, error);
}

EXPORT int cudamem_max_memory_reserved(int device, uint64_t *bytes, cudamem_error *error)
{
    return one_number(device, MEMORY_STAT_RESERVED_BYTES, true, bytes, error);
}

EXPORT int cudamem_memory_cached(int device, uint64_t *bytes, cudamem_error *error)
{
    return cudamem_memory_reserved(device, bytes, error);
}

EXPORT int cudamem_max_memory_cached(int device, uint64_t *bytes, cudamem_error *error)
{
    return cudamem_max_memory_reserved(device, bytes, error);
}
