/*
 * The history's parts: history.c turns it on and off and takes stacks, history_ring.c keeps entries, history_contexts.c
 * numbers calls, memory_snapshot.c makes snapshots of it all.  Not for others.
 *
 * Who records, and how, changes under all devices' locks and is read under any; a ring is its device's.  Annotations have
 * a lock of their own, taken last.
 */
#ifndef API_HISTORY_H
#define API_HISTORY_H

#include "api/library.h"
#include "base/strings.h"
#include "record/ring.h"

#include <cudamem/history.h>
#include <pthread.h>

/* --- entries (history_ring.c) ------------------------------------------------------------------------------------------ */

struct history_entry {
    uint64_t address, size, context, ticks;
    int64_t stream;
    struct pool_id pool;
    uint64_t action;
};

#define HISTORY_CHUNK 4096u /* entries */

struct history_ring {
    struct history_entry **chunks;
    size_t chunk_count, chunk_capacity;
    uint64_t count;       /* entries there are */
    uint64_t next;        /* the oldest, once it is full */
    uint64_t lost;        /* entries that were overwritten or had no memory */
    uint64_t max_entries; /* 0: none are kept */
};

void history_ring_add(struct history_ring *ring, const struct history_entry *entry);
void history_ring_clear(struct history_ring *ring); /* and its memory goes */
/* The newest that fit stay, in order.  STATUS_NO_MEMORY: it is as it was. */
int history_ring_set_max(struct history_ring *ring, uint64_t max_entries);
/* Oldest first; NULL: no memory. */
struct history_entry *history_ring_copy(const struct history_ring *ring);

/* --- contexts (history_contexts.c) -------------------------------------------------------------------------------------- */

/* This call's stack, as a number that no other call has; 0: it is lost. */
uint64_t history_context_take(void);
/* The stack's numbers in the tables of record/stacks.h. */
void history_context_stacks(uint64_t context, uint32_t *native, uint32_t *python);

/* --- all of it (history.c) ---------------------------------------------------------------------------------------------- */

struct history_annotation {
    uint32_t name; /* in history.names */
    uint16_t device;
    uint8_t is_end;
    uint64_t ticks;
};

struct history {
    atomic_bool is_started; /* clock and tables are there: */
    struct ring_calibration start;

    /* Written under all devices' locks, read under any. */
    bool is_enabled;
    bool watches;         /* pieces of blocks need to hear of events, recorded or not */
    bool keeps_contexts;  /* in entries */
    uint32_t skip_actions;
    struct history_ring rings[LIBRARY_DEVICES];

    /* Under this lock. */
    pthread_mutex_t lock;
    bool annotates;
    uint64_t max_annotations;
    struct strings *names;
    struct history_annotation *annotations; /* a ring, too */
    size_t annotation_count, annotation_capacity, annotation_next;
};
extern struct history history;

/* Take history.lock, unless this thread has it (in a signal handler) or is inside a call that holds a device's. */
int history_enter(struct error *err);
void history_leave(void);

/* An entry, if any are kept; under the device's lock. */
void history_keep(struct library_device *device, const struct allocator_event *event);

/* From now on suballoc_event() hears what the allocators do. */
int history_watch(struct error *err);

/* A `snapshot` entry; under the device's lock. */
void history_mark_snapshot(struct library_device *device, uint64_t active_bytes, struct pool_id pool);

#endif
