/* A device's newest entries: chunks that are taken as needed, then used again.  Uses src/base. */
#include "api/history.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static struct history_entry *entry_at(const struct history_ring *ring, uint64_t index)
{
    return &ring->chunks[index / HISTORY_CHUNK][index % HISTORY_CHUNK];
}

/* Room for one entry more at the end. */
static bool has_room(struct history_ring *ring)
{
    if (ring->count < ring->chunk_count * HISTORY_CHUNK)
        return true;
    if (array_reserve(&ring->chunks, &ring->chunk_capacity, ring->chunk_count + 1, sizeof(*ring->chunks)))
        return false;
    uint64_t left = ring->max_entries - ring->count;
    size_t entries = left < HISTORY_CHUNK ? (size_t)left : HISTORY_CHUNK;
    ring->chunks[ring->chunk_count] = malloc(entries * sizeof(struct history_entry));
    if (!ring->chunks[ring->chunk_count])
        return false;
    ring->chunk_count++;
    return true;
}

void history_ring_add(struct history_ring *ring, const struct history_entry *entry)
{
    if (ring->count < ring->max_entries) {
        if (has_room(ring))
            *entry_at(ring, ring->count++) = *entry;
        else
            ring->lost++;
        return;
    }
    if (!ring->max_entries)
        return;
    *entry_at(ring, ring->next) = *entry;
    ring->next = ring->next + 1 == ring->max_entries ? 0 : ring->next + 1;
    ring->lost++;
}

static void free_chunks(struct history_ring *ring)
{
    for (size_t i = 0; i < ring->chunk_count; i++)
        free(ring->chunks[i]);
    free(ring->chunks);
    ring->chunks = NULL;
    ring->chunk_count = ring->chunk_capacity = 0;
}

void history_ring_clear(struct history_ring *ring)
{
    free_chunks(ring);
    ring->count = ring->next = ring->lost = 0;
}

int history_ring_set_max(struct history_ring *ring, uint64_t max_entries)
{
    if (max_entries == ring->max_entries)
        return STATUS_OK;
    struct history_ring other = {.max_entries = max_entries, .lost = ring->lost};
    uint64_t first = ring->count > max_entries ? ring->count - max_entries : 0;
    for (uint64_t i = first; i < ring->count; i++) {
        history_ring_add(&other, entry_at(ring, (ring->next + i) % ring->count));
        if (other.count != i - first + 1) {
            free_chunks(&other);
            return STATUS_NO_MEMORY;
        }
    }
    other.lost = ring->lost + first;
    free_chunks(ring);
    *ring = other;
    return STATUS_OK;
}

struct history_entry *history_ring_copy(const struct history_ring *ring)
{
    struct history_entry *copy = malloc(ring->count * sizeof(*copy) + 1);
    for (uint64_t i = 0; copy && i < ring->count; i++)
        copy[i] = *entry_at(ring, ring->next + i < ring->count ? ring->next + i : ring->next + i - ring->count);
    return copy;
}
