/*
 * The layout of a ring file: what a recorded process leaves behind, and all that the reader knows of it.
 *
 * One file a process, written through a shared mapping, so that what was published is there after any kind of death.
 * Plain fixed-size structures in the machine's own byte order (a ring file is read on the machine that wrote it);
 * offsets count from the start of the file.  Pieces that grow are appended as chunks; chunk k of a table holds
 * first << k elements.
 *
 *   header | devices | names of driver calls | chunks: live levels, stack nodes, modules, strings, rings, extensions,
 *   Python's nodes and code objects, annotations
 *
 * Publishing: a writer marks its slot busy, fills it, and stores the sequence number with release order.  A reader
 * that copies a slot twice and finds the same bytes, with a sequence that is not busy, has a whole event.
 * Elements of a table below its count are complete.  Sequence numbers are one order for the whole process, from 1.
 */
#ifndef RECORD_RING_H
#define RECORD_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC "CUMEMRNG"
#define RING_MAJOR 2
#define RING_MINOR 0
#define RING_SUFFIX ".ring"        /* of a finished file's name; one being made has RING_UNFINISHED after it */
#define RING_UNFINISHED ".new"

#define RING_DEVICES 64            /* ordinals that have a ring */
#define RING_TABLE_CHUNKS 20
#define RING_LIVE_LEVELS 20
#define RING_EXTENSION_CHUNKS 64
#define RING_DEFAULT_ENTRIES (256u * 1024u)
#define RING_MIN_SLOTS 64u
#define RING_MAX_SLOTS (UINT64_C(1) << 28)
#define RING_DEPTH_MAX 512u        /* frames of a stack, native ones and Python's */
#define RING_REMOVED 16u           /* mappings that an unmapping which failed gives back at most */

#define RING_BUSY (UINT64_C(1) << 63) /* in a slot's sequence: being written */

enum ring_slot_flag { /* above the kind's 5 bits */
    RING_KIND_MASK = 0x1f,
    RING_STREAM_UNKNOWN = 0x20,
    RING_SIZE_UNKNOWN = 0x40,
    RING_EXTENDED = 0x80, /* the extension at the same position belongs to this event */
};

enum ring_note {
    RING_REQUESTED_UNKNOWN = 1, /* of a block: the size is the block's, nobody told the one asked for */
    RING_HOLDS_BLOCKS = 2,      /* of a segment that lives, or of its end: it was cut into blocks; of a segment's event and
                                   of an oom: it is our own allocator's */
    RING_UNMAPPED = 4,          /* of a segment that lives: physical memory that is mapped nowhere; no event made it */
    RING_FREE_TOLD = 16,        /* of a block's requested free, and of the block from then on: its end will be told */
    RING_SAME_CALL = 32,        /* of an event: a part of the call that the thread's event before it was of */
    RING_WHILE_PAUSED = 8,      /* of memory that came while recording was paused, and of its end: no event made it */
};

struct ring_slot {
    uint64_t sequence; /* 0 never used */
    uint64_t ticks;
    uint64_t address;  /* bytes free for RECORD_OOM, UINT64_MAX if not known */
    uint64_t size;
    int64_t stream;
    uint32_t thread;
    uint32_t stack;    /* RING_STACK_NONE, RING_STACK_EMPTY or a node's number */
    uint32_t python_stack;
    uint8_t action;    /* enum record_action */
    uint8_t flags;     /* kind, enum ring_slot_flag */
    uint16_t device;
    uint16_t call;
    uint16_t result;   /* CUresult, 65535 for any that does not fit */
    uint32_t notes;    /* enum ring_note */
};
static_assert(sizeof(struct ring_slot) == 64, "a slot is one cache line");

/* What few events have.  Valid if its sequence is the slot's. */
struct ring_extension {
    uint64_t sequence;
    uint64_t requested; /* UINT64_MAX: the same as size */
    uint64_t pool;
    uint64_t came;      /* of the end of one piece of memory with RING_WHILE_PAUSED: its ticks; then the two above are its */
};
static_assert(sizeof(struct ring_extension) == 32, "layout");

/* Live memory: a level is (first << level) keys followed by as many values; a key sits in one of two buckets of eight.
 * A key is an address and a class; 0 is free. */
#define RING_LIVE_FIRST 4096u
#define RING_LIVE_BUCKET 8u
#define RING_LIVE_BUSY (UINT64_C(1) << 62)  /* being filled in */
#define RING_LIVE_BLOCK (UINT64_C(1) << 63) /* an allocator's block, not a segment */
#define RING_LIVE_ADDRESS (RING_LIVE_BUSY - 1)

struct ring_live {
    uint64_t sequence; /* of the event that made it */
    uint64_t ticks;
    uint64_t size;
    uint64_t requested; /* UINT64_MAX: the same as size */
    uint64_t pool;
    int64_t stream;
    uint32_t stack, python_stack;
    uint32_t thread;
    uint16_t device, call;
    uint8_t action; /* enum record_action: an allocation or a mapping */
    uint8_t flags;
    uint8_t notes;  /* enum ring_note */
    uint8_t spare[5];
};
static_assert(sizeof(struct ring_live) == 72, "layout");

/* The stack trie: a node is its frame and the node of its caller.  Callers come first: parent < own number. */
#define RING_STACK_NONE 0u  /* no stack was taken */
#define RING_STACK_EMPTY 1u /* taken, without frames */
#define RING_STACK_FIRST 2u /* number of the first node of the table */
#define RING_MODULE_UNKNOWN UINT32_MAX

struct ring_node {
    uint32_t parent; /* a node's number or RING_STACK_EMPTY */
    uint32_t module; /* index, RING_MODULE_UNKNOWN: offset is the program counter itself */
    uint64_t offset; /* program counter (of a call: the return address) less the module's load address */
};
static_assert(sizeof(struct ring_node) == 16, "layout");

enum ring_module_flag {
    RING_MODULE_PROGRAM = 1,   /* the main program */
    RING_MODULE_STACK_END = 2, /* the loader or the C library: where threads begin */
};

struct ring_module {
    uint64_t load_address; /* what the loader added to the addresses in the file: 0 for a program at a fixed place */
    uint64_t size;         /* of the range that begins there */
    uint64_t path;         /* offset in the strings table */
    uint32_t path_length;
    uint32_t flags;        /* enum ring_module_flag */
    uint64_t entry;        /* offset of the entry point, for the main program */
    uint8_t build_id[32];
    uint32_t build_id_length;
    uint32_t spare;
};
static_assert(sizeof(struct ring_module) == 80, "layout");

struct ring_table {
    uint64_t count;   /* elements complete */
    uint64_t lost;    /* wanted, but there was no room */
    uint32_t element; /* bytes */
    uint32_t first;   /* elements of chunk 0, a power of two */
    uint64_t chunks[RING_TABLE_CHUNKS]; /* offsets, 0: none yet */
};

/* The trie of Python's frames, beside the native one and with its numbers (RING_STACK_*).  A frame that C entered marks
 * where the interpreter's own native frame belongs: it and the frames that it was called by within one run of the
 * interpreter stand in that native frame's place. */
enum ring_python_flag { RING_PYTHON_ENTRY = 1 }; /* this frame began a run of the interpreter */
struct ring_python_node {
    uint32_t parent;      /* a node's number or RING_STACK_EMPTY */
    uint32_t code;        /* index into the table of code objects */
    int32_t instruction;  /* byte offset of the instruction in the code, -1: not begun */
    uint32_t flags;       /* enum ring_python_flag */
};
static_assert(sizeof(struct ring_python_node) == 16, "layout");

/* What a code object said of itself when it was first met: texts and line table are copied, for it may die. */
struct ring_code {
    uint64_t name, file, lines; /* offsets in the strings table; name is the plain one, as in PyTorch's snapshots */
    uint32_t name_length, file_length, lines_length;
    int32_t first_line;
};
static_assert(sizeof(struct ring_code) == 40, "layout");

enum ring_table_name { RING_NODES, RING_MODULES, RING_STRINGS, RING_PYTHON_NODES, RING_CODES, RING_TABLES };

/* A range or a moment that the program named (NVTX, annotations): a ring of its own, slots published as events are. */
enum ring_annotation_stage { RING_RANGE_PUSH, RING_RANGE_POP, RING_RANGE_START, RING_RANGE_END, RING_INSTANT };
struct ring_annotation {
    uint64_t sequence;  /* 0 never used, RING_BUSY while being written, else its number among the annotations, from 1 */
    uint64_t event;     /* the last event's sequence when it happened */
    uint64_t ticks;
    uint64_t name;      /* offset in the strings table; of a pop or end 0 */
    uint64_t range;     /* of a start and its end: what ties them */
    uint32_t name_length;
    uint32_t thread;
    uint32_t stage;     /* enum ring_annotation_stage */
    uint32_t domain;    /* 0 the default one */
};
static_assert(sizeof(struct ring_annotation) == 56, "layout");
#define RING_ANNOTATIONS (64u * 1024u) /* slots */

/* Set from outside (cudamem ctl), through the same mapping. */
#define RING_MARKS 256
enum ring_mark_state { RING_MARK_FREE, RING_MARK_BUSY, RING_MARK_WHOLE };
struct ring_mark {
    uint64_t sequence; /* the last event's when it was set */
    uint64_t ticks;
    uint32_t state;    /* enum ring_mark_state */
    char name[44];
};
static_assert(sizeof(struct ring_mark) == 64, "layout");

/* Statistics of a device, exact while they are kept (under the header's lock). */
enum ring_measure { RING_COUNT, RING_BYTES, RING_REQUESTED, RING_MEASURES };
enum ring_class { RING_ALL, RING_SMALL, RING_LARGE, RING_CLASSES }; /* the numbers of enum memory_pool_class */
#define RING_SMALL_LIMIT (UINT64_C(1) << 20)                        /* a small segment has at most so many bytes */

struct ring_stat {
    int64_t current, peak, allocated, freed;
};

/* Where an allocator tells of its blocks: these, and the segments that it cut into such (the rest is others'). */
enum ring_block_measure { RING_BLOCK_COUNT, RING_BLOCK_BYTES, RING_BLOCK_MEASURES };
enum ring_held_measure { RING_HELD_CALLS, RING_HELD_BYTES, RING_HELD_SEGMENTS, RING_HELD_MEASURES }; /* mappings are calls */
#define RING_SMALL_HELD (UINT64_C(2) << 20) /* a small segment of such an allocator has at most so many bytes */

struct ring_device {
    uint64_t ring;    /* offset of its slots, 0: no event yet */
    uint64_t head;    /* events so far; event n (from 0) stood in slot n & (slots - 1) */
    uint64_t dropped; /* events counted by head that found their slot held by a stalled writer */
    uint64_t ring_failed; /* events that are not in head: there was no room for the ring */
    uint64_t extensions[RING_EXTENSION_CHUNKS]; /* of slots / RING_EXTENSION_CHUNKS elements each */
    struct ring_stat stats[RING_MEASURES][RING_CLASSES];
    struct ring_stat blocks[RING_BLOCK_MEASURES][RING_CLASSES];
    struct ring_stat held[RING_HELD_MEASURES][RING_CLASSES];
    int64_t device_allocs, device_frees, ooms;
    int64_t block_ooms;  /* of the ooms: those that an allocator told of */
    uint64_t allocator;  /* offset of struct ring_allocator, 0: ours does not serve it */
    uint64_t total;
    uint64_t free_bytes; /* the last seen */
    uint64_t known_bytes, pool_bytes; /* what was known to be taken then; what the driver's pools held beyond it */
    uint32_t known;      /* enum ring_device_known */
    uint8_t uuid[16];
    char name[132];
};
static_assert(sizeof(struct ring_device) % 8 == 0, "layout");
/* The statistics of our own allocator, if it serves a device: those of turn & 1 are whole. */
#define RING_ALLOCATOR_VALUES 122 /* of struct memory_stats */
struct ring_allocator {
    uint64_t turn;
    int64_t values[2][RING_ALLOCATOR_VALUES];
};
enum ring_device_known { RING_DEVICE_NAME = 1, RING_DEVICE_UUID = 2, RING_DEVICE_TOTAL = 4, RING_DEVICE_FREE = 8 };

/* Where the cycle counter and the clocks stood together; two of them give its rate.  One is valid if check agrees. */
struct ring_calibration {
    uint64_t ticks;
    int64_t monotonic; /* nanoseconds */
    int64_t realtime;  /* nanoseconds since the epoch */
    uint64_t check;
};
#define RING_CALIBRATIONS 3 /* [0] from the start, the others by turns */
#define RING_CALIBRATION_CHECK(c) ((c)->ticks ^ (uint64_t)(c)->monotonic * 3 ^ (uint64_t)(c)->realtime * 5 ^ 0x5bd1e995)

enum ring_clock { RING_CLOCK_CYCLES, RING_CLOCK_NANOSECONDS };
enum ring_state_flag {
    RING_STATS_INEXACT = 1, /* a stalled writer's lock was broken */
    RING_FINISHED = 2,      /* the process ended normally */
};

struct ring_header {
    char magic[8];
    uint16_t major, minor;
    uint32_t header_size; /* sizeof(struct ring_header) */
    uint32_t device_size; /* sizeof(struct ring_device) */
    uint32_t slot_size;
    uint32_t byte_order;  /* 0x01020304 */
    uint32_t ready;       /* 1 when the file is complete enough to be read */
    int64_t pid, parent;
    int64_t rank;         /* -1: no launcher said */
    uint64_t max_entries; /* a device */
    uint64_t slots;       /* a device: the next power of two */
    uint64_t devices;     /* offset of RING_DEVICES struct ring_device */
    uint64_t calls;       /* offset of the names, each followed by NUL */
    uint64_t calls_size;
    uint32_t call_count;
    uint32_t clock;       /* enum ring_clock */
    int32_t driver_version; /* as cuDriverGetVersion says, 0 unknown */
    uint32_t depth;
    int64_t start_time;   /* nanoseconds since the epoch, as are all times here */
    struct ring_calibration calibrations[RING_CALIBRATIONS];
    char program[512];    /* path; truncated if longer, NUL-terminated, as all texts here */
    char host[256];
    char boot_id[64];
    char output[512];
    char driver_path[512];
    char environment[4096]; /* NAME=VALUE NUL NAME=VALUE NUL NUL: allocator settings and CUDA's own */

    /* What changes while the process runs, away from the rest. */
    __attribute__((aligned(64))) uint32_t lock; /* held while sequence and statistics move: 1 */
    uint32_t state;       /* enum ring_state_flag */
    uint64_t sequence;    /* the last one given */
    uint64_t last_ticks;
    uint64_t file_size;
    int64_t end_time;     /* 0: not ended, or not normally */
    __attribute__((aligned(64))) uint64_t dropped_nested; /* event inside an event of the same thread */
    uint64_t dropped_device; /* ordinal beyond RING_DEVICES */
    uint64_t dropped_waiting; /* gave up waiting for the file to be made */
    uint64_t lost_stacks; /* entries without a stack because a table was full */
    uint64_t lost_live;   /* live allocations that found no room */
    uint64_t unknown_frees; /* of memory that was not known to be live */
    uint64_t replaced;    /* allocations at an address that was thought live */
    uint64_t grow_failures;
    uint64_t lost_annotations;
    uint64_t skipped_paused;  /* events while it was paused; what they changed is kept in live memory and statistics */
    struct ring_table tables[RING_TABLES];
    uint64_t live[RING_LIVE_LEVELS]; /* offsets, 0: none yet */
    uint64_t annotations;     /* offset of RING_ANNOTATIONS slots, 0: none yet */
    uint64_t annotation_head; /* annotations so far */

    /* Python, once it was found in the process. */
    uint32_t python_version;  /* as PY_VERSION_HEX, 0: no Python */
    uint32_t python_state;    /* enum ring_python_state */
    uint32_t python_module;   /* where the interpreter's loop lies: module, offset and size of its code */
    uint32_t python_spare;
    uint64_t python_offset, python_size;

    /* Control from outside. */
    __attribute__((aligned(64))) uint32_t paused;
    uint32_t mark_count;      /* places taken, whole or not */
    uint64_t forgotten;       /* events up to this sequence are not shown any more */
    uint32_t copy;            /* enum ring_copy: what this file is a copy for */
    uint32_t copy_number;     /* of its kind, from 1 */
    __attribute__((aligned(64))) struct ring_mark marks[RING_MARKS];
};
enum ring_copy { RING_COPY_NONE, RING_COPY_OOM, RING_COPY_SIGNAL, RING_COPIES }; /* NAME.oom1.ring, NAME.signal1.ring */
#define RING_COPY_OOM_WORD ".oom"
#define RING_COPY_SIGNAL_WORD ".signal"
enum ring_python_state {
    RING_PYTHON_NONE,
    RING_PYTHON_RECORDED,
    RING_PYTHON_UNKNOWN_VERSION,
    RING_PYTHON_OFF,
    RING_PYTHON_FREE_THREADED,
    RING_PYTHON_DEBUG_BUILD,
    RING_PYTHON_UNREADABLE, /* its memory is not laid out as its version says */
};
static_assert(sizeof(struct ring_header) % 64 == 0, "layout");

/* Chunk and place in it of element `index` of a table whose chunk 0 has `first` elements (a power of two). */
static inline unsigned ring_table_chunk(uint64_t index, uint32_t first, uint64_t *place)
{
    uint64_t scaled = index / first + 1;
    unsigned chunk = 63u - (unsigned)__builtin_clzll(scaled);
    *place = index - (((UINT64_C(1) << chunk) - 1) * first);
    return chunk;
}

/* Slots for `entries` entries: the next power of two. */
static inline uint64_t ring_slots_for(uint64_t entries)
{
    uint64_t slots = RING_MIN_SLOTS;
    while (slots < entries && slots < RING_MAX_SLOTS)
        slots *= 2;
    return slots;
}

/* The bucket pair of a key in a level of `keys` keys (a power of two). */
static inline void ring_live_buckets(uint64_t key, uint64_t keys, uint64_t bucket[2])
{
    uint64_t x = (key ^ key >> 32) * UINT64_C(0xd6e8feb86659fd93);
    uint64_t mask = keys / RING_LIVE_BUCKET - 1;
    x ^= x >> 32;
    bucket[0] = (x & mask) * RING_LIVE_BUCKET;
    x *= UINT64_C(0xd6e8feb86659fd93);
    bucket[1] = (x >> 32 & mask) * RING_LIVE_BUCKET;
}

#endif
