/*
 * Annotations among the entries: which ranges were open when an entry was made, in its thread or in the whole process
 * (ranges of files that tell no threads are everybody's), and which entry made a block.
 * Cost: one pass over annotations and entries; the index one sort of the entries that make something.
 */
#ifndef ANALYZE_RANGES_H
#define ANALYZE_RANGES_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* Both in order; of each process, an annotation comes before the entries that are later.  Another answer than 0 ends it. */
struct ranges_visitor {
    int (*annotation)(void *context, size_t number);
    int (*entry)(void *context, size_t number);
    void *context;
};
int ranges_walk(const struct snapshot *snapshot, const struct ranges_visitor *visitor); /* or STATUS_NO_MEMORY */

/* The name (string object) of the innermost range that was open at each entry: of its thread, else of the process;
 * STRING_NONE where there was none.  The caller frees.  NULL: no memory. */
uint32_t *ranges_innermost(const struct snapshot *snapshot);

/* A key for tables: a thread of a process; 0 is the process itself. */
static inline uint64_t ranges_thread(uint16_t process, uint32_t thread)
{
    return (uint64_t)process << 32 | thread;
}

struct ranges_made { /* entry `entry` made what begins there */
    uint32_t space;
    uint64_t address, entry;
};
struct ranges_index {
    struct ranges_made *made; /* sorted */
    size_t count;
};
int ranges_index_make(struct ranges_index *index, const struct snapshot *snapshot); /* or STATUS_NO_MEMORY */
void ranges_index_free(struct ranges_index *index);
size_t ranges_maker(const struct ranges_index *index, const struct state *state, const struct block *block); /* SIZE_MAX: none */

#endif
