/*
 * Where the driver puts what it hands out: a model, found from recordings
 * (driver 580), of the addresses that cuMemAlloc answers with.
 *
 * A *segment* is one request, rounded up to 2 MiB.  Address space is taken in
 * *chunks* (a segment's size up to 32 MiB) and what a segment leaves of its
 * chunk is a *hole*.  A new segment goes to the start of the smallest
 * sufficient hole of the most recently made chunk that has one; else a new
 * chunk is made at the top of the highest *gap* (a range that a whole chunk
 * gave back) that is strictly larger than the chunk; else directly below
 * everything so far, where the *open space* begins.
 *
 * Nothing is touched behind these addresses: the simulated device and replay
 * use the same model.  Ownership: placement_new's result goes to
 * placement_free.  Threads: none of its own; the caller locks.  Cost: linear
 * in the number of chunks, of which there are hundreds at most in practice.
 */
#ifndef DEVICE_PLACEMENT_H
#define DEVICE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#define PLACEMENT_PAGE (2ull << 20)   /* a segment is a multiple of it */
#define PLACEMENT_CHUNK (32ull << 20) /* and a chunk of this */

struct placement;

/* top: the upper end of the open space, exclusive, a multiple of PLACEMENT_CHUNK.  NULL: no memory. */
struct placement *placement_new(uint64_t top);
void placement_free(struct placement *p);

/* The size a request really takes; 0 if there is no such size. */
uint64_t placement_round(uint64_t bytes);

/* A new segment: its address; 0 if the address space or memory is exhausted. */
uint64_t placement_get(struct placement *p, uint64_t bytes);

/* Give back a segment of placement_get, placement_take or placement_seed; false if it is none. */
bool placement_put(struct placement *p, uint64_t address);

/*
 * Teach the model what it cannot know.  _seed: a segment lies at address in a chunk that was there before, with unknown
 * contents before it and a hole from its end to hole_end (equal: no hole).  _open: the open space ends at top.
 * _take: a segment was placed at this very address, whatever the rule says (recordings); its chunk is made if needed.
 * False: it overlaps a live segment, or no memory.
 */
bool placement_seed(struct placement *p, uint64_t address, uint64_t bytes, uint64_t hole_end);
void placement_open(struct placement *p, uint64_t top);
bool placement_take(struct placement *p, uint64_t address, uint64_t bytes);
uint64_t placement_low(const struct placement *p); /* where the open space ends */

/* A hole that the driver turns out to have, in address space of which nothing was known: from now on as if its chunk had
 * just been made.  False if a segment, a hole or the open space is there, or no memory. */
bool placement_hole(struct placement *p, uint64_t start, uint64_t end);

/* The chunk that holds address becomes the oldest.  False: there is none. */
bool placement_age(struct placement *p, uint64_t address);

/* For tests and debug builds: every invariant (order, no overlap, holes and segments fill their chunk). */
bool placement_is_valid(const struct placement *p);

#endif
