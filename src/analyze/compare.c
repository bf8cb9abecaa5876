/* Which segments only one of two states has.  Uses src/snapshot and src/base. */
#include "analyze/compare.h"

#include <stdlib.h>

struct key {
    uint64_t address, size;
};

static int by_address(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static struct key *sorted_keys(const struct state *state)
{
    struct key *keys = calloc(state->segment_count + 1, sizeof(*keys));
    if (!keys)
        return NULL;
    for (size_t i = 0; i < state->segment_count; i++)
        keys[i] = (struct key){state->segments[i].address, state->segments[i].total_size};
    qsort(keys, state->segment_count, sizeof(*keys), by_address);
    return keys;
}

static int fill_side(const struct state *mine, const struct key *keys, const struct state *theirs,
                     const struct key *other, struct compare_side *side)
{
    side->addresses = calloc(mine->segment_count + 1, sizeof(*side->addresses));
    side->members = calloc(mine->segment_count + 1, sizeof(*side->members));
    if (!side->addresses || !side->members)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < mine->segment_count; i++) {
        struct key key = {mine->segments[i].address, mine->segments[i].total_size};
        side->members[i] = !bsearch(&key, other, theirs->segment_count, sizeof(key), by_address);
    }
    for (size_t i = 0; i < mine->segment_count; i++) {
        if (i && by_address(&keys[i], &keys[i - 1]) == 0)
            continue;
        if (!bsearch(&keys[i], other, theirs->segment_count, sizeof(*keys), by_address))
            side->addresses[side->count++] = keys[i].address;
    }
    return 0;
}

int compare_segments(const struct state *before, const struct state *after, struct compare *result, struct error *err)
{
    *result = (struct compare){0};
    struct key *mine = sorted_keys(before), *theirs = sorted_keys(after);
    int status = STATUS_NO_MEMORY;
    if (mine && theirs) {
        status = fill_side(before, mine, after, theirs, &result->before);
        if (!status)
            status = fill_side(after, theirs, before, mine, &result->after);
    }
    free(mine);
    free(theirs);
    if (!status)
        return 0;
    compare_free(result);
    return error_no_memory(err);
}

void compare_free(struct compare *compare)
{
    free(compare->before.addresses);
    free(compare->before.members);
    free(compare->after.addresses);
    free(compare->after.members);
    *compare = (struct compare){0};
}
