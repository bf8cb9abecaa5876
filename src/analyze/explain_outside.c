/* What of a device lies outside its allocator, as far as the recording knows.  May use src/snapshot and src/base. */
#include "analyze/explain_internal.h"

#include "analyze/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct device *device_of(const struct snapshot *snapshot, uint16_t process, uint16_t ordinal)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == process && snapshot->devices[i].ordinal == ordinal)
            return &snapshot->devices[i];
    return NULL;
}

/* The same GPU, in another process of a merged file. */
static bool is_same_gpu(const struct snapshot *snapshot, const struct device *device, const struct segment *segment)
{
    const struct device *other = device_of(snapshot, segment->process, segment->device);
    return device && other && device != other && device->has_uuid && other->has_uuid &&
           memcmp(device->uuid, other->uuid, sizeof(device->uuid)) == 0;
}

static int add_row(struct explain_outside *outside, const char *name, uint64_t bytes)
{
    size_t at = 0;
    while (at < outside->count && strncmp(outside->rows[at].name, name, sizeof(outside->rows[at].name) - 1) != 0)
        at++;
    if (at == outside->count) {
        struct explain_named *rows = realloc(outside->rows, (outside->count + 1) * sizeof(*rows));
        if (!rows)
            return STATUS_NO_MEMORY;
        outside->rows = rows;
        rows[outside->count] = (struct explain_named){{0}, 0, 0};
        snprintf(rows[outside->count++].name, sizeof(rows->name), "%s", name);
    }
    outside->rows[at].bytes += bytes;
    outside->rows[at].segments++;
    return STATUS_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const struct explain_named *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* A context and modules are what they are; the rest belongs to the library that asked for it. */
static const char *name_of(const struct owners *owners, const struct segment *segment)
{
    if (segment->kind == MEMORY_CONTEXT)
        return "CUDA context";
    if (segment->kind == MEMORY_MODULE)
        return "CUDA modules";
    return owner_name(owners, owner_of_context(owners, segment->context));
}

static int add_recorded(struct explain *explain, const struct owners *owners, const struct device *device)
{
    const struct snapshot *snapshot = explain->snapshot;
    struct explain_outside *outside = &explain->outside;
    for (size_t i = 0; i < snapshot->end.segment_count; i++) {
        const struct segment *segment = &snapshot->end.segments[i];
        if (!usage_is_devices(segment->kind) || explain_is_ours(explain, segment))
            continue;
        if (segment->process != explain->process || segment->device != explain->device) {
            outside->others += is_same_gpu(snapshot, device, segment) ? segment->total_size : 0;
            continue;
        }
        outside->recorded += segment->total_size;
        if (add_row(outside, name_of(owners, segment), segment->total_size))
            return STATUS_NO_MEMORY;
    }
    if (outside->count)
        qsort(outside->rows, outside->count, sizeof(*outside->rows), compare_rows);
    return STATUS_OK;
}

int explain_outside(struct explain *explain, struct error *err)
{
    const struct device *device = device_of(explain->snapshot, explain->process, explain->device);
    struct explain_outside *outside = &explain->outside;
    struct usage_sample sample;
    struct owners owners;
    int status = owners_open(explain->snapshot, &owners, err);
    if (status)
        return status;
    if (add_recorded(explain, &owners, device))
        status = error_no_memory(err);
    owners_close(&owners);
    outside->total = device ? device->total : 0;
    uint64_t used = outside->total - explain->request.device_free, reserved = explain->memory.reserved;
    uint64_t told = outside->recorded + outside->others;
    outside->is_known = explain->is_failure && explain->request.has_device_free && outside->total &&
                        explain->request.device_free <= outside->total && used >= reserved;
    if (outside->is_known) {
        outside->bytes = used - reserved;
        outside->rest = outside->bytes > told ? outside->bytes - told : 0;
    }
    outside->has_sample = device && usage_sample(device, &sample);
    if (outside->has_sample)
        outside->sample_rest = sample.other + sample.pools;
    return status;
}
