/*
 * The snapshot in memory: what every reader fills and every report looks at.
 *
 * Nouns:
 *   trace entry  one event: an action on device memory, with time, address, size, stream, stack
 *   segment      memory taken from the driver
 *   block        a piece of a segment handed out by a caching allocator (where nothing caches: one block a segment)
 *   pool         what a segment belongs to: a pair of numbers, (0, 0) is the default
 *   frame        one line of a stack; two frames with equal text can be two frame objects (as in PyTorch's files)
 *   stack        a node of the stack tree: its frame and, as parent, the node of its caller's side.  A stack reads from
 *                its node (innermost frame) towards the root; node 0 is the empty stack
 *   context      one captured stack object: entries of one allocator call share it, two calls with equal stacks do not
 *   moment       a position between entries: moment n is the state after the first n entries
 *   state        the segments and blocks that exist at a moment
 *   shape        which keys a dict of the source file had, in order; 0 is "ours, not from a file"
 *   odd value    what the source had under a key and our columns cannot hold (unknown keys, None, wrong types)
 *
 * Columns are plain arrays that readers of this header may read; only the functions below (and src/format) write.
 * "Optional" columns are NULL until something is stored in them.  Times are microseconds since the epoch, sizes bytes.
 * Not thread safe while being built; any number of threads may read a finished one.
 */
#ifndef SNAPSHOT_SNAPSHOT_H
#define SNAPSHOT_SNAPSHOT_H

#include "base/error.h"
#include "base/memory_stats.h"
#include "base/strings.h"
#include "base/table.h"
#include "snapshot/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NONE32 UINT32_MAX
#define STACK_EMPTY 0u       /* the root of the stack tree */
#define CONTEXT_NONE NONE32  /* no stack was taken (which is not an empty stack) */
#define SHAPE_OURS 0u

enum action {
    ACTION_ALLOC,
    ACTION_FREE_REQUESTED,
    ACTION_FREE_COMPLETED,
    ACTION_SEGMENT_ALLOC,
    ACTION_SEGMENT_FREE,
    ACTION_SEGMENT_MAP,
    ACTION_SEGMENT_UNMAP,
    ACTION_SNAPSHOT,
    ACTION_OOM,
    ACTION_OTHER, /* a word we do not know; the text is an odd value under FIELD_ACTION */
    ACTION_COUNT
};
const char *action_name(enum action action);              /* PyTorch's word, "other" for ACTION_OTHER */
enum action action_from_name(const char *name, size_t length);

/* How memory was obtained from the driver (recorded snapshots). */
enum memory_kind {
    MEMORY_PLAIN,
    MEMORY_PITCHED,
    MEMORY_ARRAY,
    MEMORY_MIPMAPPED,
    MEMORY_MANAGED,
    MEMORY_HOST,
    MEMORY_ASYNC,
    MEMORY_POOL,
    MEMORY_VIRTUAL,
    MEMORY_IMPORTED,
    MEMORY_GRAPH,
    MEMORY_CONTEXT,
    MEMORY_MODULE,
    MEMORY_KIND_COUNT
};
const char *memory_kind_name(enum memory_kind kind);

enum entry_flag {
    ENTRY_REQUESTED_UNKNOWN = 1, /* size is the block's, the requested one was not told */
    ENTRY_STREAM_UNKNOWN = 2,
    ENTRY_NO_TIME = 4,
    ENTRY_FAILED = 8, /* a correcting entry: this free was reported failed by the driver and undone */
    ENTRY_BAD = 16,   /* a field has a value that makes no sense; left out of sums */
    ENTRY_OUTSIDE = 32, /* of memory beside a framework's allocator whose blocks are known; an oom: the driver refused, and
                           what became of it that allocator tells itself.  No part of its numbers */
};

struct entries {
    size_t count, capacity;
    uint8_t *action;
    uint8_t *flags;
    uint16_t *device;      /* ordinal; in files of PyTorch the index of the trace it stands in */
    uint32_t *stream;      /* index into streams */
    uint64_t *address;     /* for ACTION_OOM: bytes that the device still had free */
    uint64_t *size;        /* alloc, free_*: requested bytes; segments: bytes; oom: rounded request; snapshot: active bytes */
    int64_t *time;
    uint32_t *context;     /* index into contexts, or CONTEXT_NONE */
    uint16_t *shape;
    uint32_t *compile_context; /* optional; string object, STRING_NONE where absent */
    uint32_t *user_metadata;   /* optional; string object */
    uint16_t *process;     /* optional; index into processes, 0 where absent */
    uint32_t *pool;        /* optional; index into pools, NONE32 where unknown */
    uint32_t *thread;      /* optional; the system's thread number */
    uint16_t *call;        /* optional; index into calls: the driver call, 0 = not known */
    uint8_t *kind;         /* optional; enum memory_kind */
};

struct frame {
    uint32_t name, filename; /* string objects, STRING_NONE where unknown */
    int64_t line;
    uint32_t module;         /* index into modules for native frames, else NONE32 */
    uint16_t shape;
    uint8_t flags;           /* enum frame_flag */
    uint64_t offset;         /* of the program counter in the module (an address if module is NONE32) */
};
enum frame_flag {
    FRAME_NATIVE = 1,
    FRAME_PYTHON = 2,
    FRAME_INLINED = 4,
    FRAME_SYMBOLIZED = 8, /* name, filename and line were looked up */
    FRAME_TRUNCATED = 16, /* the unwinder could not go past this frame */
};

struct stack_node {
    uint32_t parent; /* towards the outermost frame; the root's is NONE32 */
    uint32_t frame;
    uint32_t depth;  /* frames from here to the root */
};

enum block_state { BLOCK_INACTIVE, BLOCK_ACTIVE_ALLOCATED, BLOCK_ACTIVE_PENDING_FREE, BLOCK_STATE_OTHER };
const char *block_state_name(enum block_state state); /* "inactive", "active_allocated", "active_pending_free" */

struct block {
    uint64_t address, size;
    uint64_t requested; /* stale in inactive blocks, as in PyTorch's files */
    uint32_t context;
    uint32_t segment;   /* index of its segment in the same state */
    uint16_t shape;
    uint8_t state;      /* enum block_state */
    uint8_t flags;      /* enum block_flag */
};
enum block_flag {
    BLOCK_REQUESTED_UNKNOWN = 1,
    BLOCK_BEFORE_RECORDING = 2, /* alive before the first entry we have */
};

struct segment {
    uint64_t address, total_size;
    uint64_t allocated_size, active_size, requested_size;
    int64_t stream;
    uint32_t context;
    uint32_t pool;        /* index into pools, NONE32 where the file does not say */
    uint32_t first_block, block_count;
    uint16_t process, device;
    uint16_t shape;
    bool is_large;        /* pool class, not size */
    bool is_expandable;
    bool is_outside;      /* beside a framework's allocator whose blocks are known */
    uint8_t kind;         /* enum memory_kind */
};

/* What exists at a moment.  Segments in file order (recorded ones: by process, device, address), blocks by segment and
 * address. */
struct state {
    struct segment *segments;
    size_t segment_count, segment_capacity;
    struct block *blocks;
    size_t block_count, block_capacity;
    uint64_t moment; /* after this many entries */
    bool exact;      /* false: block sizes of the past were rebuilt by rounding, not known */
};

struct module {
    uint32_t path;               /* string content */
    uint8_t build_id[32];
    uint8_t build_id_length;
    uint64_t load_address, size;
};

struct pool {
    int64_t id[2];
};

struct process {
    int64_t pid, parent;
    uint32_t program, host, arguments, boot_id, driver; /* string contents, STRING_NONE where not known; arguments only if
                                                           asked for, one string with NUL between them */
    int64_t rank;                /* -1: no launcher */
    int64_t start_time, end_time;
    int32_t exit_status;         /* as wait(2) gave it, -1 if not known */
    bool implied_blocks;         /* nothing caches: a segment_alloc is an allocation, too */
    bool incomplete;             /* the recording itself says that something is missing */
    uint64_t lost_stacks;        /* entries without a stack because a table was full */
    uint64_t lost_state;         /* live allocations that the state table had no room for */
    uint64_t unrecorded;         /* events while recording was paused, or from before it was begun anew: what lived is
                                    known, what came and went between is not */
    int64_t clock_realtime;      /* microseconds since the epoch ... */
    int64_t clock_monotonic;     /* ... when the monotonic clock stood here */
};

struct device {
    uint16_t process, ordinal;
    uint32_t name;               /* string content or STRING_NONE */
    uint8_t uuid[16];
    bool has_uuid;
    uint64_t total, free_at_end; /* 0 where not known */
    bool has_sample;             /* free_at_end was seen, and when it was: */
    uint64_t known_bytes;        /* what this process was known to have taken */
    uint64_t pool_bytes;         /* what the driver's pools held beyond what they had handed out */
    uint64_t max_entries;        /* the ring's capacity, 0 where not known */
    uint64_t lost_entries;       /* overwritten in the ring */
    bool has_stats, stats_exact; /* stats_exact false: peaks and sums are lower bounds */
    struct memory_stats stats;
};

/* `external_annotations`. */
struct annotation {
    uint32_t name;               /* string object */
    int64_t time;
    uint32_t thread;             /* the system's number; 0: of all threads, or not known */
    uint32_t later;              /* entries of its process and of the same microsecond that came before it */
    uint16_t device, process;
    uint16_t shape;
    uint8_t stage;               /* 0 START, 1 END, 2 a mark of our own, 3 other (odd value) */
};

/* One setting as the file gives it: `allocator_settings` in order, or what the recorder saw of the environment. */
struct setting {
    uint32_t key;                /* string content */
    value content;
};

/* Dict kinds that have shapes, and what VALUE_ROW can point at. */
enum row_kind { ROW_TOP, ROW_ENTRY, ROW_SEGMENT, ROW_BLOCK, ROW_FRAME, ROW_ANNOTATION, ROW_CONTEXT, ROW_SETTINGS, ROW_KIND_COUNT };

/* Keys that we know; shapes hold these numbers, and FIELD_COUNT + string content for any other key. */
enum field {
    FIELD_ACTION, FIELD_ADDR, FIELD_DEVICE_FREE, FIELD_SIZE, FIELD_STREAM, FIELD_TIME_US, FIELD_COMPILE_CONTEXT,
    FIELD_USER_METADATA, FIELD_FRAMES, FIELD_POOL_ID, FIELD_DEVICE, FIELD_ADDRESS, FIELD_TOTAL_SIZE,
    FIELD_ALLOCATED_SIZE, FIELD_ACTIVE_SIZE, FIELD_REQUESTED_SIZE, FIELD_SEGMENT_TYPE, FIELD_SEGMENT_POOL_ID,
    FIELD_IS_EXPANDABLE, FIELD_BLOCKS, FIELD_STATE, FIELD_HISTORY, FIELD_NAME, FIELD_FILENAME, FIELD_LINE, FIELD_STAGE,
    FIELD_SEGMENTS, FIELD_DEVICE_TRACES, FIELD_ALLOCATOR_SETTINGS, FIELD_EXTERNAL_ANNOTATIONS,
    FIELD_COUNT
};
const char *field_name(enum field field);
int field_from_name(const char *name, size_t length); /* -1: none of ours */

struct shape {
    uint8_t row_kind;
    uint32_t count;
    uint32_t *keys;
};

/* An odd value: of one row, at one position of its shape.  With ODD_KEY in the slot the content is the string object of
 * that *key*, where the file has one of its own for each dict (annotations of PyTorch). */
#define ODD_KEY 0x8000u
struct odd {
    uint64_t row;
    uint16_t slot;               /* index into the shape's keys */
    uint8_t row_kind;
    value content;
};

enum snapshot_source { SOURCE_RECORDED, SOURCE_TORCH, SOURCE_RMM };

struct snapshot {
    enum snapshot_source source;
    struct strings *strings;                        /* contents */
    uint32_t *string_objects;                       /* string object -> content */
    size_t string_object_count, string_object_capacity;
    struct table shared_strings;                    /* content -> the object of snapshot_shared_string() */

    struct frame *frames;
    size_t frame_count, frame_capacity;
    struct stack_node *stacks;                      /* [0] is the root */
    size_t stack_count, stack_capacity;
    struct table stack_index;                       /* parent, frame -> node */
    uint32_t *contexts;                             /* context -> stack node */
    size_t context_count, context_capacity;

    struct entries entries;
    uint64_t first_entry;                           /* number, in its file, of entries[0]: not 0 where a part was read */
    int64_t *streams;
    size_t stream_count, stream_capacity;
    struct table stream_index;
    struct pool *pools;
    size_t pool_count, pool_capacity;
    struct table pool_index;                        /* hash of the pair -> pool */
    uint32_t *calls;                                /* string contents; [0] is the empty one */
    size_t call_count, call_capacity;

    struct state end;                               /* the state after the last entry */

    struct module *modules;
    size_t module_count, module_capacity;
    struct process *processes;                      /* at least one */
    size_t process_count, process_capacity;
    struct device *devices;
    size_t device_count, device_capacity;
    uint32_t trace_count;                           /* lists in `device_traces`, empty ones included */
    struct annotation *annotations;
    size_t annotation_count, annotation_capacity;
    struct setting *settings;
    size_t setting_count, setting_capacity;

    struct shape *shapes;                           /* [0] is SHAPE_OURS, without keys */
    size_t shape_count, shape_capacity;
    struct table shape_index;                       /* hash of kind and keys -> shape */
    uint16_t top_shape, settings_shape;
    struct values *values;
    struct odd *odds;
    size_t odd_count, odd_capacity;
    struct table odd_index;                         /* hash of (kind, row, slot) -> odds */

    bool is_bare_list;   /* the file was just a list of segments (before 2.0) */
    bool has_raw;        /* the columns cannot give the file back exactly (objects shared in unusual ways): `raw` does */
    value raw;
};

struct snapshot *snapshot_new(enum snapshot_source source); /* with one process; NULL: no memory */
void snapshot_free(struct snapshot *snapshot);

/* All of these return an index, or NONE32 when memory or numbers ran out. */
uint32_t snapshot_string(struct snapshot *snapshot, const char *bytes, size_t length);        /* a content */
uint32_t snapshot_string_object(struct snapshot *snapshot, uint32_t content);                  /* a new object */
uint32_t snapshot_shared_string(struct snapshot *snapshot, const char *bytes, size_t length); /* one object a content */
uint32_t snapshot_add_frame(struct snapshot *snapshot, const struct frame *frame);
uint32_t snapshot_push_frame(struct snapshot *snapshot, uint32_t stack, uint32_t frame); /* the node for frame called from stack */
uint32_t snapshot_add_context(struct snapshot *snapshot, uint32_t stack);
uint32_t snapshot_stream(struct snapshot *snapshot, int64_t stream);
uint32_t snapshot_pool(struct snapshot *snapshot, int64_t first, int64_t second);
uint32_t snapshot_call(struct snapshot *snapshot, const char *name);
uint32_t snapshot_add_module(struct snapshot *snapshot, const struct module *module);
uint32_t snapshot_add_process(struct snapshot *snapshot, const struct process *process);
uint32_t snapshot_device(struct snapshot *snapshot, uint16_t process, uint16_t ordinal); /* found or made */
uint32_t snapshot_add_annotation(struct snapshot *snapshot, const struct annotation *annotation);
uint32_t snapshot_add_setting(struct snapshot *snapshot, uint32_t key, value content);
uint32_t snapshot_shape(struct snapshot *snapshot, enum row_kind kind, const uint32_t *keys, uint32_t count); /* found or made */

/* One trace entry as a record, for those who do not need the columns' speed. */
struct entry {
    enum action action;
    uint8_t flags;
    uint16_t device, process, shape, call;
    uint8_t kind;
    int64_t stream;
    uint64_t address, size;
    int64_t time;
    uint32_t context, compile_context, user_metadata, pool, thread;
};
void entry_init(struct entry *entry); /* zero, and "none" where that is not zero */
int snapshot_add_entry(struct snapshot *snapshot, const struct entry *entry);
struct entry snapshot_entry(const struct snapshot *snapshot, size_t index);

/* Entry i becomes entry order[i] of before: every column.  On failure (no memory) the entries are of no use. */
int entries_permute(struct entries *entries, const uint64_t *order);

/* Traces of several devices that stand one after the other, onto one time axis; each device's entries keep their order.
 * Nothing happens to entries without times.  Readers call it once, before they hand a snapshot out. */
int snapshot_order_by_time(struct snapshot *snapshot);

/* The same for entries of several processes: each one's keep their order; one without a time stays with the one before. */
int snapshot_order_processes(struct snapshot *snapshot);

int state_add_segment(struct state *state, const struct segment *segment); /* its blocks follow */
int state_add_block(struct state *state, const struct block *block);       /* to the last segment */
void state_free(struct state *state);
int state_copy(struct state *to, const struct state *from);

/* Room for `need` entries in every column that exists; those that write the columns themselves (src/format) call it. */
int entries_reserve(struct entries *entries, size_t need);

/* Optional columns: made, filled with "none", when first needed. */
int entries_need_process(struct entries *entries);
int entries_need_pool(struct entries *entries);
int entries_need_thread(struct entries *entries);
int entries_need_call(struct entries *entries);
int entries_need_kind(struct entries *entries);
int entries_need_compile_context(struct entries *entries);
int entries_need_user_metadata(struct entries *entries);

int snapshot_set_odd(struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t slot, value content);
bool snapshot_get_odd(const struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t slot, value *content);

/* Text of a string object or content; "" for STRING_NONE.  Length may be NULL. */
const char *snapshot_object_text(const struct snapshot *snapshot, uint32_t object, size_t *length);
const char *snapshot_content_text(const struct snapshot *snapshot, uint32_t content, size_t *length);

/* dict[key] by the key's content; false if dict is none or lacks it. */
bool snapshot_dict_get(const struct snapshot *snapshot, value dict, const char *key, value *content);

/* A setting's content by key; false if there is none. */
bool snapshot_get_setting(const struct snapshot *snapshot, const char *key, value *content);

/* Settings in which processes differ stand in a dict of each: under this key.  The setting of one process: its own, else
 * the common one. */
#define SNAPSHOT_PROCESS_KEY 32
void snapshot_process_key(size_t process, char key[SNAPSHOT_PROCESS_KEY]);
size_t snapshot_setting_process(const struct snapshot *snapshot, const char *key); /* SIZE_MAX: no such key */
/* Our own caching allocator served the process's memory: all that it did is in the entries and numbers. */
bool snapshot_is_cached(const struct snapshot *snapshot, size_t process);
/* The entries of the process say what was asked for, of which stream and pool, and when frees ended. */
bool snapshot_tells_requests(const struct snapshot *snapshot, size_t process);
bool snapshot_process_setting(const struct snapshot *snapshot, size_t process, const char *key, value *content);

static inline uint32_t snapshot_context_stack(const struct snapshot *snapshot, uint32_t context)
{
    return context < snapshot->context_count ? snapshot->contexts[context] : STACK_EMPTY;
}

/* Numbers for stacks by their *content* (names, files, lines), so that equal stacks of different frame objects agree:
 * fills ids[stack_count], an id is the lowest node of equal content.  Caller frees.  NULL: no memory. */
uint32_t *snapshot_stack_contents(const struct snapshot *snapshot);

/* True if every index is in range, blocks tile their segments' ranges in order, and columns agree; else err says what
 * is wrong.  Readers call it before handing a snapshot out; tests and fuzzers call it everywhere. */
bool snapshot_is_valid(const struct snapshot *snapshot, struct error *err);

#endif
