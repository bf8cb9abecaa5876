/*
 * What the files of this room share: the one recorder of the process, its parts and its locks.  Not for others.
 *
 * Everything here must run in signal handlers and after fork, so: system calls, atomics and memory that is already
 * ours.  Locks are words that are tried for a bounded time; a thread never takes one while it holds the same, because
 * an event inside an event is turned away before (record.c).  Order: intern or live lock, then grow lock; the thread lock alone; the lock in the
 * header is never held together with another.
 */
#ifndef RECORD_INTERNAL_H
#define RECORD_INTERNAL_H

#include "record/record.h"
#include "record/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define RECORDER_DEPTH_MAX 512u      /* frames kept at most */
#define RECORDER_OWN_FRAMES 16u      /* looked through for record_event.skip */
#define RECORDER_STACK_CACHE 2048u   /* stacks a thread remembers; a power of two */
#define RECORDER_REMOVED 16u         /* freed records a thread remembers, for a free that fails */
#define RECORDER_MAX_NODES (4u << 20)

enum recorder_file_state { RECORDER_NONE, RECORDER_MAKING, RECORDER_READY, RECORDER_OFF };

struct recorder_fact { /* of a device; kept here too because a forked child needs it */
    uint32_t known;
    uint8_t uuid[16];
    uint64_t total, free_bytes;
    char name[sizeof(((struct ring_device *)0)->name)];
};

struct recorder {
    uint32_t *state;      /* enum recorder_file_state, in a page that fork wipes; NULL: not started */
    uint32_t generation;  /* of the file: what threads remember of another one is stale */
    uint32_t clock;       /* enum ring_clock */
    bool stacks;
    unsigned depth;
    uint32_t max_nodes;
    uint64_t max_entries, slots;
    size_t page;

    /* The file. */
    struct ring_header *header;
    struct ring_device *devices;
    void *first_map;
    size_t first_size;
    struct ring_slot *rings[RING_DEVICES];
    struct ring_extension *extensions[RING_DEVICES][RING_EXTENSION_CHUNKS];
    uint64_t *live_keys[RING_LIVE_LEVELS];
    void *tables[RING_TABLES][RING_TABLE_CHUNKS];
    uint64_t file_device, file_inode;
    uint64_t next_growth; /* ticks; after a failure growth is not tried again at once */
    uint64_t next_calibration, calibration_step;
    uint32_t grow_lock, live_lock, intern_lock, fact_lock, calibrations;
    struct recorder_thread_block *threads;
    uint32_t thread_lock; /* over `threads` */
    uint32_t forking;     /* a fork waits for captures to end, and captures for the fork */
    char folder[3072];
    char path[3200], unfinished[3200];

    /* Facts for the header. */
    struct ring_calibration start;
    int64_t rank;
    const char *const *calls;
    size_t call_count;
    int32_t driver_version;
    char wanted_folder[3072];
    char output[512];
    char program[512];
    char host[256];
    char boot_id[64];
    char driver_path[512];
    char environment[4096];
    struct recorder_fact facts[RING_DEVICES];
    uint64_t dropped_nested, dropped_waiting; /* before there was a file */
};
extern struct recorder recorder;

struct recorder_cached_stack {
    uint64_t hash;
    uint32_t stack, modules; /* generation of the module table it was made under */
};

/* What a thread remembers; mapped at its first event, unmapped at its end. */
struct recorder_thread_block {
    struct recorder_thread_block *next; /* of the process's list */
    uint32_t capturing; /* in the unwinder, which takes locks that a forked child must not find taken */
    struct recorder_cached_stack stacks[RECORDER_STACK_CACHE];
    void *frames[RECORDER_DEPTH_MAX + RECORDER_OWN_FRAMES];
    uint64_t freed_address; /* of the last free: `removed` holds what it removed */
    uint32_t removed_count; /* may exceed RECORDER_REMOVED: the rest is not remembered */
    uint64_t removed_keys[RECORDER_REMOVED];
    struct ring_live removed[RECORDER_REMOVED];
};

/* clock.c */
void ticks_choose(void);
void ticks_sample(struct ring_calibration *sample);
void ticks_calibrate(uint64_t now);                  /* put a later sample into the header, when it is time */
int64_t ticks_monotonic_ns(void);

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(recorder.clock == RING_CLOCK_CYCLES, 1))
        return __rdtsc();
#elif defined(__aarch64__)
    if (__builtin_expect(recorder.clock == RING_CLOCK_CYCLES, 1)) {
        uint64_t count;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
        return count;
    }
#endif
    return (uint64_t)ticks_monotonic_ns();
}

/* ring_file.c: all return NULL or -1 with errno when there is no room. */
int ring_file_make(unsigned device); /* with a ring for that device */
void *ring_file_append(uint64_t size, uint64_t *offset); /* takes the grow lock */
void ring_file_forget(void);                             /* unmap what is mapped: in a forked child */
void *ring_table_at(enum ring_table_name table, uint64_t index);
int64_t ring_table_add(enum ring_table_name table, const void *elements, uint64_t count); /* index of the first or -1;
                                                            one writer at a time */
void recorder_say(const char *what, const char *detail, int error); /* the one line on stderr, once */

/* live.c */
struct live_place {
    uint32_t level;
    uint64_t index;
};
bool live_find(uint64_t key, struct ring_live *copy, struct live_place *place);
bool live_insert(uint64_t key, const struct ring_live *record);
void live_note(uint64_t key, struct live_place place, uint8_t note); /* one more enum ring_note */
void live_remove(uint64_t key, struct live_place place);

/* stack.c, modules.c */
int stack_start(char *message, size_t message_size); /* -1: no unwinder */
uint32_t stack_capture(struct recorder_thread_block *block, const void *skip, uint64_t now);
void stack_forget(void);                             /* a new file: the trie is empty */
uint32_t modules_current(uint64_t now, bool force);  /* generation; looks whether the loader's list changed */
bool modules_refresh(void); /* under the intern lock; true if one was unloaded */
uint32_t modules_resolve(uint64_t pc, uint64_t *offset);
void modules_forget(void);

/* thread.c */
struct recorder_thread {
    struct recorder_thread_block *block; /* NULL: no memory, no stacks */
    uint32_t inside;     /* in recorder_event: a signal handler's event is turned away */
    uint32_t generation; /* of the file that block and number belong to */
    uint32_t number;     /* the system's thread number */
};
extern __thread struct recorder_thread recorder_self __attribute__((tls_model("initial-exec")));
void recorder_threads_start(void); /* how threads end, and what fork waits for */
void recorder_enter_thread(void);  /* a thread's first event in this file */
bool recorder_begin_capture(struct recorder_thread_block *block); /* false: a fork takes too long */

static inline void recorder_end_capture(struct recorder_thread_block *block)
{
    __atomic_store_n(&block->capturing, 0, __ATOMIC_RELEASE);
}

/* lock.c */
bool lock_try(uint32_t *lock);   /* false: another thread holds it and does not give it back */
void lock_release(uint32_t *lock);
void lock_wait_header(uint32_t *lock); /* the slow half of taking the header's lock; breaks it in the end */
void lock_pause(unsigned *turns); /* one turn of waiting */

/* Counters that several threads move without a lock. */
static inline void recorder_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline uint32_t recorder_state(void)
{
    return __atomic_load_n(recorder.state, __ATOMIC_ACQUIRE);
}

#endif
