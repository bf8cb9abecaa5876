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

#include "record/python.h"
#include "record/record.h"
#include "record/ring.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define RECORDER_DEPTH_MAX RING_DEPTH_MAX /* frames kept at most */
#define RECORDER_OWN_FRAMES 32u      /* looked through for record_event.skip */
#define RECORDER_STACK_CACHE 2048u   /* stacks a thread remembers; a power of two */
#define RECORDER_PYTHON_CACHE 1024u  /* frames of Python a thread remembers; a power of two */
#define RECORDER_REMOVED RING_REMOVED /* freed records a thread remembers, for a free that fails */
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
    bool stacks, python;  /* native, Python's */
    bool in_memory;       /* there is no file: only stacks are kept (stacks.c) */
    unsigned depth;       /* of each */
    uint32_t max_nodes;
    uint64_t max_entries, slots;
    size_t page;
    uintptr_t own_start, own_size; /* code whose innermost frames no stack shows; size 0: none */

    /* The file. */
    struct ring_header *header;
    struct ring_device *devices;
    void *first_map;
    size_t first_size;
    struct ring_slot *rings[RING_DEVICES];
    struct ring_extension *extensions[RING_DEVICES][RING_EXTENSION_CHUNKS];
    uint64_t *live_keys[RING_LIVE_LEVELS];
    void *tables[RING_TABLES][RING_TABLE_CHUNKS];
    struct ring_annotation *annotations;
    uint64_t file_device, file_inode;
    uint64_t next_growth; /* ticks; after a failure growth is not tried again at once */
    uint64_t next_calibration, calibration_step;
    uint32_t grow_lock, live_lock, intern_lock, fact_lock, calibrations;
    struct recorder_thread_block *threads;
    uint32_t thread_lock; /* over `threads` */
    uint32_t freeze_lock;
    uint32_t oom_copies;  /* so many at most */
    uint32_t copies[RING_COPIES]; /* so far, by enum ring_copy */
    int signal;           /* that asks for a copy, 0: none */
    bool start_paused, paused_at_first;
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

/* walk.c: frames whose places on the stack are known. */
#define WALK_FRAMES 32768u /* a thread; a power of two; untouched pages cost nothing */
#define WALK_SEEN 16384u
#define WALK_CREDIT 4096u /* stacks that are learned before any is walked */
struct walk_state {
    uintptr_t pc, sp, bp; /* as they are in a frame when its callee returns */
};
struct walk_frame {
    struct walk_state state;
    uint32_t caller;        /* the last one's place in the table */
    uint16_t return_place;  /* of the return address: words from the stack pointer, + 1; 0: there is no caller */
    uint16_t pointer_place; /* of the caller's frame pointer, likewise; 0: it is this one's */
};
struct walk_memory {
    struct walk_frame frames[WALK_FRAMES];
    uint32_t seen[WALK_SEEN];
    uint32_t turn, refused;
    uint64_t earned, learned;
    bool distrusted; /* walks and libunwind disagreed, or these stacks are for libunwind: nothing is walked here */
    void *check[RECORDER_DEPTH_MAX + RECORDER_OWN_FRAMES];
};

/* Python's frames as they were at the last event, so that those that did not change are not looked up again. */
struct python_memory {
    struct python_frame frames[2][RECORDER_DEPTH_MAX]; /* innermost first, by turns */
    uint32_t nodes[RECORDER_DEPTH_MAX];                /* of the last ones, outermost first */
    uint32_t turn, count;                              /* the last ones are frames[turn] */
    struct python_known_code codes[1 << PYTHON_CODES_BITS];
    struct {
        uint64_t key;
        uint32_t node, spare;
    } known[RECORDER_PYTHON_CACHE];                    /* caller's node and frame -> node */
};

/* What a thread remembers; mapped at its first event, unmapped at its end. */
struct recorder_thread_block {
    struct recorder_thread_block *next; /* of the process's list */
    uint32_t capturing; /* in the unwinder, which takes locks that a forked child must not find taken */
    uint32_t unloads;   /* as modules_unloads() said at the last stack */
    struct recorder_cached_stack stacks[RECORDER_STACK_CACHE];
    void *frames[RECORDER_DEPTH_MAX + RECORDER_OWN_FRAMES];
    struct walk_memory walks;
    struct python_memory python;
    uint64_t freed_address; /* of the last free: `removed` holds what it removed */
    uint32_t removed_count; /* may exceed RECORDER_REMOVED: the rest is not remembered */
    bool free_skipped;      /* that free is no entry: recording was paused */
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
int ring_file_make_in_memory(void);  /* the tables of stacks alone, for stacks.c */
void ring_file_tell_facts(void);     /* of the devices, once it is there */
void *ring_file_append(uint64_t size, uint64_t *offset); /* takes the grow lock */
void ring_file_forget(void);                             /* unmap what is mapped: in a forked child */
void *ring_table_at(enum ring_table_name table, uint64_t index);
int64_t ring_table_add(enum ring_table_name table, const void *elements, uint64_t count); /* index of the first or -1;
                                                            one writer at a time */
int ring_file_reopen(void); /* a descriptor of our own file, -1: it is gone */
void recorder_say(const char *what, const char *detail, int error); /* the one line on stderr, once */

/* freeze.c, signal.c */
void recorder_freeze(uint32_t reason); /* enum ring_copy */
void signal_keep(void);                /* the program may have set a handler past us */

/* open.c: what is missing on an event's way; false or NULL: there is no room. */
#define RECORDER_AHEAD 4096u /* slots: 256 KiB */
#define RECORDER_COLD __attribute__((cold, noinline))
RECORDER_COLD bool recorder_open_file(unsigned device);
RECORDER_COLD struct ring_slot *recorder_open_ring(unsigned device);
RECORDER_COLD struct ring_extension *recorder_open_extensions(unsigned device, uint64_t chunk);
RECORDER_COLD void recorder_touch_ahead(struct ring_slot *ring, uint64_t position);

/* live.c */
static inline bool live_is_block(uint8_t action)
{
    return action == RECORD_ALLOC || action == RECORD_FREE_REQUESTED || action == RECORD_FREE_COMPLETED;
}

static inline uint64_t live_key(uint64_t address, uint8_t action)
{
    address &= RING_LIVE_ADDRESS;
    return address ? address | (live_is_block(action) ? RING_LIVE_BLOCK : 0) : 0;
}

struct live_place {
    uint32_t level;
    uint64_t index;
};
bool live_find(uint64_t key, struct ring_live *copy, struct live_place *place);
bool live_insert(uint64_t key, const struct ring_live *record);
bool live_note(uint64_t key, struct live_place place, uint8_t note); /* one more enum ring_note; false: it had it */
void live_remove(uint64_t key, struct live_place place);

/* trie.c: nodes as ring_node and ring_python_node are; under the intern lock. */
struct trie_node {
    uint32_t parent, part;
    uint64_t rest;
};
struct trie {
    enum ring_table_name table;
    size_t first;    /* slots to begin with, a power of two */
    uint32_t *slots; /* node numbers, 0 free: an open-addressed index */
    size_t capacity; /* a power of two */
};
uint32_t trie_find(struct trie *trie, const struct trie_node *node); /* RING_STACK_NONE: no room */
void trie_forget(struct trie *trie);

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* stack.c, python.c, modules.c */
int stack_start(char *message, size_t message_size); /* -1: no unwinder */
/* false: the native one, which was wanted, is lost */
bool stack_capture(struct recorder_thread_block *block, const void *skip, uint64_t now, uint32_t *native,
                   uint32_t *python);
void stack_forget(void);                             /* a new file: the tries are empty */
void stack_refresh_modules(void);                    /* under the intern lock */
uint32_t python_capture(struct recorder_thread_block *block, uint64_t now);
void python_forget(void);
uint32_t modules_current(uint64_t now, bool force);  /* generation; looks whether the loader's list changed */
uint32_t modules_unloads(void);                      /* modules that went, when somebody looked last */
bool modules_refresh(void); /* under the intern lock; true if one was unloaded */
uint32_t modules_resolve(uint64_t pc, uint64_t *offset);
void modules_forget(void);

/* walk.c */
enum walk_end {
    WALK_DONE,
    WALK_UNKNOWN, /* a frame that is not known yet */
    WALK_REFUSED, /* one that only libunwind can follow */
};
void walk_start(void *library); /* libunwind */
enum walk_end walk_frames(struct walk_memory *memory, const struct walk_state *from, void **frames, size_t limit,
                          size_t *count);
/* What libunwind found from there: `count` frames, their hash.  Called below the frame that `from` is the caller of. */
void walk_learn(struct walk_memory *memory, const struct walk_state *from, void *const *frames, size_t count,
                uint64_t stack);
void walk_forget(struct walk_memory *memory);

/* unwind_cache.c: around the first stack, and when a library went. */
void unwind_cache_before(void);
void unwind_cache_find(void *const *frames, int count);
void unwind_cache_empty(void); /* the calling thread's */

/* thread.c */
struct recorder_thread {
    struct recorder_thread_block *block; /* NULL: no memory, no stacks */
    uint32_t inside;     /* in recorder_event: a signal handler's event is turned away */
    uint32_t generation; /* of the file that block and number belong to */
    uint32_t number;     /* the system's thread number */
    uint32_t forks;      /* between the beginning and the end of a fork: the thread lock is its own */
    uint32_t unloads;    /* calls of dlclose that it is in */
};
extern __thread struct recorder_thread recorder_self __attribute__((tls_model("initial-exec")));
void recorder_threads_start(void); /* how threads end, and what fork waits for */
void recorder_enter_thread(void);  /* a thread's first event in this file */
void recorder_hold_captures(void); /* as fork does: until they are released no stack is taken */
void recorder_release_captures(void);
bool recorder_begin_capture(struct recorder_thread_block *block); /* false: a fork takes too long */

static inline void recorder_end_capture(struct recorder_thread_block *block)
{
    __atomic_store_n(&block->capturing, 0, __ATOMIC_RELEASE);
}

/* annotate.c */
void annotate_enter_thread(void);  /* tells the file which ranges are open */
void annotate_forget_holder(void); /* of its lock: a thread that a forked child does not have */

/* Calls that may wait in the kernel are where a cancelled thread would leave, with our locks. */
static inline int cancel_off(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_as(int before)
{
    pthread_setcancelstate(before, NULL);
}

/* lock.c */
bool lock_try(uint32_t *lock);   /* false: another thread holds it and does not give it back */
void lock_release(uint32_t *lock);
void lock_wait_header(uint32_t *lock); /* the slow half of taking the header's lock; breaks it in the end */
void lock_pause(unsigned *turns); /* one turn of waiting */

/* The header's lock is free but for a moment. */
static inline void lock_header(void)
{
    uint32_t *lock = &recorder.header->lock, expected = 0;
    if (__builtin_expect(!__atomic_compare_exchange_n(lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED), 0))
        lock_wait_header(lock);
}

/* Statistics, moved under that lock; what is current is also read without it. */
typedef void stat_mover(struct ring_stat *stat, int64_t amount);

static inline void stat_move(struct ring_stat *stat, int64_t amount)
{
    __atomic_store_n(&stat->current, stat->current + amount, __ATOMIC_RELAXED);
}

static inline void stat_add(struct ring_stat *stat, int64_t amount)
{
    stat_move(stat, amount);
    stat->allocated += amount;
    if (stat->current > stat->peak)
        stat->peak = stat->current;
}

static inline void stat_subtract(struct ring_stat *stat, int64_t amount)
{
    stat_move(stat, -amount);
    stat->freed += amount;
}

static inline void stat_undo(struct ring_stat *stat, int64_t amount)
{
    stat_move(stat, -amount);
    stat->allocated -= amount;
}

static inline void stat_restore(struct ring_stat *stat, int64_t amount)
{
    stat_move(stat, amount);
    stat->freed -= amount;
}

/* blocks.c: of an allocator's blocks, and of the segments that it cut into such. */
struct held_change { /* for the classes small and large */
    int64_t amount[2][RING_HELD_MEASURES];
    bool any; /* else nothing of it is set */
};
void held_change_by(struct held_change *change, const struct ring_live *segment);
void held_move(struct ring_device *device, const struct held_change *change, stat_mover *move);
void block_move(struct ring_device *device, uint64_t size, stat_mover *move);

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
