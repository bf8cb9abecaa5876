/* Memory by owner and kind.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/usage.h"

#include <stdlib.h>
#include <string.h>

bool usage_is_devices(uint8_t kind)
{
    return kind != MEMORY_HOST && kind != MEMORY_IMPORTED;
}

static void add_segment(struct usage_row *row, const struct state *state, const struct segment *segment)
{
    row->segments++;
    row->reserved += segment->total_size;
    if (row->segments == 1 || segment->total_size > row->largest) {
        row->largest = segment->total_size;
        row->context = segment->context;
        row->kind = segment->kind;
    }
    for (uint32_t b = 0; b < segment->block_count; b++) {
        const struct block *block = &state->blocks[segment->first_block + b];
        if (block->state != BLOCK_ACTIVE_ALLOCATED && block->state != BLOCK_ACTIVE_PENDING_FREE)
            continue;
        row->blocks++;
        row->allocated += block->size;
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct usage_row *x = a, *y = b;
    if (x->reserved != y->reserved)
        return x->reserved < y->reserved ? 1 : -1;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}

int usage_collect(const struct snapshot *snapshot, const struct state *state, struct usage *usage, struct error *err)
{
    memset(usage, 0, sizeof(*usage));
    int status = owners_open(snapshot, &usage->owners, err);
    if (status)
        return status;
    usage->by_owner = calloc(usage->owners.count + 1, sizeof(*usage->by_owner));
    if (!usage->by_owner) {
        usage_free(usage);
        return error_no_memory(err);
    }
    for (size_t s = 0; s < state->segment_count; s++) {
        const struct segment *segment = &state->segments[s];
        if (segment->kind < MEMORY_KIND_COUNT)
            add_segment(&usage->by_kind[segment->kind], state, segment);
        if (usage_is_devices(segment->kind))
            add_segment(&usage->by_owner[owner_of_context(&usage->owners, segment->context)], state, segment);
    }
    for (uint32_t i = 0; i < usage->owners.count; i++) {
        usage->by_owner[i].owner = i;
        if (usage->by_owner[i].segments)
            usage->by_owner[usage->owner_count++] = usage->by_owner[i];
    }
    if (usage->owner_count > 1) /* else there may be no array */
        qsort(usage->by_owner, usage->owner_count, sizeof(*usage->by_owner), compare_rows);
    return STATUS_OK;
}

void usage_free(struct usage *usage)
{
    owners_close(&usage->owners);
    free(usage->by_owner);
    memset(usage, 0, sizeof(*usage));
}

bool usage_sample(const struct device *device, struct usage_sample *sample)
{
    if (!device->has_sample || device->free_at_end > device->total)
        return false;
    *sample = (struct usage_sample){.used = device->total - device->free_at_end, .known = device->known_bytes,
                                    .pools = device->pool_bytes};
    uint64_t told = 0;
    if (__builtin_add_overflow(sample->known, sample->pools, &told))
        told = UINT64_MAX;
    sample->other = sample->used > told ? sample->used - told : 0;
    return true;
}
